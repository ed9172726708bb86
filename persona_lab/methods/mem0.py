"""Mem0 as a method: the memory of a history is written once, and each question recalls from it.

A sub-flow for `Shared`: whoever asks after the same history shares its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, TypeVar

from persona_lab.core.flow import Flow
from persona_lab.core.prompt import Reply
from persona_lab.memory.ingest import ingest
from persona_lab.memory.records import Asker, Exchange, Ingested, Memory, Variant

T = TypeVar("T")


@dataclass
class Spent:
    """What a flow asked of models.

    Attributes:
        failed: requests without a reply. computed_tokens: prompt tokens that no cache held.
    """

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def add(self, reply: Reply) -> None:
        """Counts a reply."""
        self.requests += 1
        self.failed += reply.outcome == "failed"
        self.prompt_tokens += reply.counts.prompt
        self.computed_tokens += reply.counts.prompt - reply.counts.cached
        self.completion_tokens += reply.counts.completion


@dataclass(frozen=True)
class Written:
    """The memory of a history, and what writing it took."""

    ingested: Ingested
    spent: Spent = field(default_factory=Spent)


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
    writing = ingest(
        exchanges, ask, encoder, variant=variant, messages=messages, similar=similar, facts=facts
    )
    ingested = yield from _counted(writing, spent)
    return Written(ingested, spent)


def sources(memories: Sequence[Memory], exchanges: Sequence[Exchange]) -> list[set[int]]:
    """Places of the exchanges that each memory stands for: those that wrote it, and those that it
    already spoke for when they came."""
    place = {exchange.source: i for i, exchange in enumerate(exchanges)}
    return [{place[event.source] for event in memory.history} for memory in memories]


def _counted(flow: Flow[T], spent: Spent) -> Flow[T]:
    answer: Any = None
    while True:
        try:
            wanted = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = yield wanted
        if isinstance(wanted, list):
            for reply in answer:
                spent.add(reply)
