"""Mem0's algorithm as a flow (Chhikara et al. 2025): extraction, then the update of the memories.

    exchange s3/t2: "I'm off coffee, tea now."
    phase 1   summary, last 10 messages, exchange        -> {"facts": ["Drinks tea, no coffee"]}
    phase 2   fact, its 10 most similar memories, 1: Drinks coffee
                                  -> {"event": "UPDATE", "id": "1", "text": "Drinks tea, no coffee"}

Everything that it knows is inside the flow: two users share nothing, and each goes on as soon as
its own replies are there. Their texts depend on the replies alone, so a memory that was written
once is read again from the remembered ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.flow import Encode, Flow
from persona_lab.memory.bank import Bank
from persona_lab.memory.extraction import Extraction, extract
from persona_lab.memory.prompts import DECISION_SCHEMA, EXAMPLE_DECISION, decision_prompt
from persona_lab.memory.records import (
    KINDS,
    Asker,
    Counts,
    Exchange,
    Fact,
    Ingested,
    Memory,
    Variant,
)
from persona_lab.memory.replies import read_decision
from persona_lab.retrieval.search import search


class _Vectors(dict[str, NDArray[np.float32]]):
    """Text -> its unit vector, [D]; and the rows of the last list of texts that was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._rows: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)

    def rows(self, texts: list[str]) -> NDArray[np.float32]:
        """[N, D], N >= 1; a list that goes on from the last one, as memories mostly do, costs what
        is new."""
        known = len(self._texts)
        if texts[:known] != self._texts:
            known = 0
        if len(texts) > len(self._rows):
            longer = np.zeros((2 * len(texts), len(self[texts[0]])), dtype=np.float32)
            if known:
                longer[:known] = self._rows[:known]
            self._rows = longer
        for row, text in enumerate(texts[known:], known):
            self._rows[row] = self[text]
        self._texts = texts
        return self._rows[: len(texts)]


def ingest(
    exchanges: Sequence[Exchange],
    ask: Asker,
    encoder: str,
    *,
    variant: Variant = "two_stage",
    messages: int = 10,
    similar: int = 10,
    facts: int = 10,
    summary_every: int = 10,
) -> Flow[Ingested]:
    """Writes the memory of one user.

    Args:
        exchanges: the user's, oldest first.
        ask: makes the requests of the role `memory`.
        encoder: name of the encoder that finds similar memories.
        variant: `add_only` leaves phase 2 out: every fact is added that no memory says yet.
        messages: the paper's m, messages before the new exchange that extraction sees.
        similar: the paper's s, memories that a decision sees.
        facts: that one exchange gives at most, where the engine holds answers to their schema.
        summary_every: messages between two refreshes of the summary; an odd number is rounded up
            to whole exchanges.

    Raises:
        ValueError: an unknown variant, or a number that is too small.
    """
    if variant not in get_args(Variant) or messages < 0 or min(similar, facts, summary_every) < 1:
        raise ValueError(
            f"variant={variant}, messages={messages}, similar={similar}, facts={facts}, "
            f"summary_every={summary_every}: two_stage or add_only, at least 0, 1, 1 and 1"
        )
    extractions = yield from extract(
        exchanges, ask, messages=messages, facts=facts, summary_every=summary_every
    )
    bank = Bank()
    vectors = _Vectors()
    if variant == "two_stage":
        texts = [fact.text for extraction in extractions for fact in extraction.facts]
        yield from _encode(vectors, texts, encoder)
    for extraction in extractions:
        bank.failures += extraction.failures
        for fact in extraction.facts:
            if bank.meet(fact):
                continue
            if variant == "add_only":
                bank.add(fact)
            else:
                yield from _update(bank, fact, ask, encoder, vectors, similar)
    return Ingested(
        tuple(bank.live.values()),
        tuple(bank.removed),
        tuple(bank.failures),
        _counts(extractions, bank),
    )


def _update(
    bank: Bank, fact: Fact, ask: Asker, encoder: str, vectors: _Vectors, similar: int
) -> Flow[None]:
    """Phase 2 for one fact, on the memories as the decisions before it left them."""
    memories = list(bank.live.values())
    yield from _encode(vectors, [memory.text for memory in memories], encoder)
    shown = _most_similar(fact, memories, vectors, similar)
    text = decision_prompt([memory.text for memory in shown], fact.text)
    [reply] = yield [ask(text, EXAMPLE_DECISION, DECISION_SCHEMA)]
    read, before = read_decision(reply), len(bank.failures)
    if read.value is None:
        bank.fail(fact, read.reason)
    else:
        bank.decide(fact, read.value, shown)
    bank.failures[before:] = [replace(f, reply=reply.text) for f in bank.failures[before:]]


def _most_similar(
    fact: Fact, memories: Sequence[Memory], vectors: _Vectors, number: int
) -> list[Memory]:
    """The memories most similar to a fact, oldest first, so that prompts share their beginnings."""
    if not memories:
        return []
    rows = vectors.rows([memory.text for memory in memories])
    [found] = search(vectors[fact.text], rows, number)
    return [memories[position] for position in sorted(hit.position for hit in found)]


def _encode(vectors: _Vectors, texts: Sequence[str], encoder: str) -> Flow[None]:
    """Adds the vectors of texts that have none yet: new facts together, updated texts later."""
    new = tuple(dict.fromkeys(text for text in texts if text not in vectors))
    if new:
        encoded: NDArray[np.float32] = yield Encode(encoder, new)
        vectors.update(zip(new, encoded, strict=True))


def _counts(extractions: Sequence[Extraction], bank: Bank) -> Counts:
    return Counts(
        exchanges=len(extractions),
        facts=sum(len(extraction.facts) for extraction in extractions),
        skipped=sum(extraction.skipped for extraction in extractions),
        events={kind: bank.events[kind] for kind in KINDS},
        duplicates=bank.duplicates,
        language_mismatch=len(bank.mismatched),
    )
