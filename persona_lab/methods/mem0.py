"""Mem0 as a method: the memory of a history is written once, and each question recalls from it.

A sub-flow for `Shared`: whoever asks after the same history shares its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from persona_lab.core.flow import Flow, relayed
from persona_lab.core.prompt import Reply, Request
from persona_lab.memory.ingest import ingest
from persona_lab.memory.records import Asker, Exchange, Ingested, Memory, Variant


@dataclass
class Spent:
    """What was asked of models: each request once, also where several flows asked it.

    Attributes:
        replies: key of a request -> failed, prompt tokens, tokens that no cache held, completion.
    """

    replies: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)

    def add(self, request: Request, reply: Reply) -> None:
        """Counts a reply."""
        counts = reply.counts
        self.replies[request.key] = (
            int(reply.outcome == "failed"),
            counts.prompt,
            counts.prompt - counts.cached,
            counts.completion,
        )

    def __or__(self, other: Spent) -> Spent:
        return Spent(self.replies | other.replies)

    @property
    def requests(self) -> int:
        """Distinct requests."""
        return len(self.replies)

    @property
    def failed(self) -> int:
        """Requests without a reply."""
        return self._sum(0)

    @property
    def prompt_tokens(self) -> int:
        """Tokens asked."""
        return self._sum(1)

    @property
    def computed_tokens(self) -> int:
        """Prompt tokens that were in no cache when they were asked."""
        return self._sum(2)

    @property
    def completion_tokens(self) -> int:
        """Tokens written."""
        return self._sum(3)

    def _sum(self, place: int) -> int:
        return sum(counts[place] for counts in self.replies.values())


@dataclass(frozen=True)
class Written:
    """The memory of a history, and what writing it took.

    Attributes:
        held: places of the exchanges that each memory stands for; see `sources`.
    """

    ingested: Ingested
    held: list[set[int]]
    spent: Spent


def write(
    exchanges: Sequence[Exchange],
    ask: Asker,
    encoder: str,
    *,
    variant: Variant,
    messages: int,
    similar: int,
    facts: int,
) -> Flow[Written]:
    """Writes the memory of a history; see `persona_lab.memory.ingest`."""
    spent = Spent()

    def counted(wanted: Any) -> Flow[Any]:
        answer = yield wanted
        if isinstance(wanted, list):
            for request, reply in zip(wanted, answer, strict=True):
                spent.add(request, reply)
        return answer

    writing = ingest(
        exchanges, ask, encoder, variant=variant, messages=messages, similar=similar, facts=facts
    )
    ingested = yield from relayed(writing, counted)
    return Written(ingested, sources(ingested.memories, exchanges), spent)


def sources(memories: Sequence[Memory], exchanges: Sequence[Exchange]) -> list[set[int]]:
    """Places of the exchanges that each memory stands for: those that wrote it, and those that it
    already spoke for when they came."""
    place = {exchange.source: i for i, exchange in enumerate(exchanges)}
    return [{place[event.source] for event in memory.history} for memory in memories]
