"""Phase 1 of Mem0: facts from the rolling summary, the last m messages and the new exchange.

It looks at the conversation alone, never at the memories. So all exchanges between two refreshes
of the summary are read in one batch, and the refresh that follows them is asked for with them:
8 exchanges wait for the model twice and not nine times. The requests are those of the one-by-one
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from persona_lab.core.flow import Flow
from persona_lab.core.prompt import Reply
from persona_lab.memory.prompts import (
    SUMMARY_SCHEMA,
    example_facts,
    example_summary,
    extraction_prompt,
    facts_schema,
    spoken,
    summary_prompt,
)
from persona_lab.memory.records import Asker, Exchange, Fact, Failure, fact_id
from persona_lab.memory.replies import read_facts, read_summary


@dataclass(frozen=True)
class Extraction:
    """What one exchange gave: facts, entries that are none, and what went wrong."""

    exchange: Exchange
    facts: tuple[Fact, ...]
    skipped: int
    failures: tuple[Failure, ...]


def extract(
    exchanges: Sequence[Exchange], ask: Asker, *, messages: int, facts: int, summary_every: int
) -> Flow[list[Extraction]]:
    """One extraction per exchange, in their order.

    A summary that cannot be read leaves the old one, and the next refresh covers its messages too.
    None is asked for behind the last exchange, since nobody would read it.
    """
    said = [message for exchange in exchanges for message in spoken(exchange)]
    stretch = -(-summary_every // 2)  # in exchanges
    made: list[Extraction] = []
    summary, covered = "", 0
    for start in range(0, len(exchanges), stretch):
        new = exchanges[start : start + stretch]
        end = start + len(new)
        asked = [
            ask(
                extraction_prompt(summary, _last(said[: 2 * number], messages), exchange),
                example_facts(exchange),
                facts_schema(facts),
            )
            for number, exchange in enumerate(new, start)
        ]
        if end < len(exchanges):
            text = summary_prompt(summary, said[2 * covered : 2 * end])
            asked.append(ask(text, example_summary(new[-1]), SUMMARY_SCHEMA))
        replies: list[Reply] = yield asked
        found = zip(new, replies, strict=False)
        made += [
            _extraction(n, exchange, reply) for n, (exchange, reply) in enumerate(found, start)
        ]
        if end < len(exchanges):
            refreshed = read_summary(replies[-1])
            if refreshed.value is None:
                made[-1] = _with_failure(made[-1], refreshed.reason, replies[-1])
            else:
                summary, covered = refreshed.value, end
    return made


def _extraction(number: int, exchange: Exchange, reply: Reply) -> Extraction:
    read = read_facts(reply)
    if read.value is None:
        failure = Failure(exchange.source, "extract", read.reason, reply=reply.text)
        return Extraction(exchange, (), 0, (failure,))
    facts = tuple(
        Fact(text, exchange, fact_id(exchange.source, number, position, text))
        for position, text in enumerate(read.value.texts)
    )
    return Extraction(exchange, facts, read.value.skipped, ())


def _with_failure(extraction: Extraction, reason: str, reply: Reply) -> Extraction:
    failure = Failure(extraction.exchange.source, "summary", reason, reply=reply.text)
    return replace(extraction, failures=(*extraction.failures, failure))


def _last(messages: Sequence[str], number: int) -> Sequence[str]:
    """The last so many; [-0:] would be all."""
    return messages[max(0, len(messages) - number) :]
