"""Does a retriever find the evidence? Recall and reciprocal rank of one query.

Positions are those of the texts ranked. A query without evidence is not measured: its None carries
the reason and enters no mean.

What is retrieved may also stand for several texts, as a memory does for the turns that it was
written from: `sources` then holds the positions of those texts, per retrievable item, and what is
recalled is the evidence that the retrieved items stand for together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb

Sources = Sequence[Collection[int]]


@dataclass(frozen=True)
class Measured:
    """A value in [0, 1], or None with the reason."""

    value: float | None
    reason: str = ""


NO_EVIDENCE = Measured(None, "n/a: nothing is relevant to the query")


def recall_at_k(ranked: Sequence[int], relevant: Collection[int], k: int) -> Measured:
    """Share of the relevant positions that are among the first k of the ranking.

    More relevant positions than k keep it below 1, whatever the ranking.

    Raises:
        ValueError: k is below 1, or a position is ranked twice.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least 1 is needed")
    wanted = _wanted(ranked, relevant)
    if not wanted:
        return NO_EVIDENCE
    return Measured(len(wanted.intersection(ranked[:k])) / len(wanted))


def by_chance(texts: int, relevant: int, k: int) -> tuple[Measured, Measured]:
    """Recall@k and reciprocal rank@k that a random order has on average.

    Of n texts r are relevant: a text is among the first k with k / n, and the first relevant one
    is at rank i in C(n - i, r - 1) of C(n, r) cases.

    Raises:
        ValueError: k is below 1, or more are relevant than there are.
    """
    if k < 1 or not 0 <= relevant <= texts:
        raise ValueError(f"k={k}, {relevant} relevant of {texts}: cannot be")
    if not relevant:
        return NO_EVIDENCE, NO_EVIDENCE
    first = [comb(texts - rank, relevant - 1) for rank in range(1, min(k, texts) + 1)]
    total = comb(texts, relevant)
    rank = sum(cases / total / place for place, cases in enumerate(first, 1))
    return Measured(min(k, texts) / texts), Measured(rank)


def reciprocal_rank(ranked: Sequence[int], relevant: Collection[int]) -> Measured:
    """1 / rank of the first relevant position, from 1; 0 where none is ranked. Its mean is MRR.

    Raises:
        ValueError: a position is ranked twice.
    """
    wanted = _wanted(ranked, relevant)
    if not wanted:
        return NO_EVIDENCE
    ranks = (rank for rank, position in enumerate(ranked, 1) if position in wanted)
    first = next(ranks, None)
    return Measured(1 / first if first else 0.0)


def sources_recalled(
    sources: Sources, ranked: Sequence[int], relevant: Collection[int]
) -> Measured:
    """Share of the relevant texts that the ranked items stand for.

    Args:
        ranked: items [K], each at most once.

    Raises:
        ValueError: an item is ranked twice.
    """
    _wanted(ranked, relevant)
    if not relevant:
        return NO_EVIDENCE
    held = {text for item in ranked for text in sources[item]}
    return Measured(len(held.intersection(relevant)) / len(set(relevant)))


def sources_by_chance(sources: Sources, relevant: Collection[int], k: int) -> Measured:
    """Share of the relevant texts that k random items stand for on average.

    Of n items c stand for a text: none of them is drawn in C(n - c, k) of C(n, k) cases.
    """
    if not relevant:
        return NO_EVIDENCE
    items, drawn = len(sources), min(k, len(sources))
    missed = sum(
        comb(items - sum(text in held for held in sources), drawn) for text in set(relevant)
    )
    return Measured(1 - missed / comb(items, drawn) / len(set(relevant)))


def sources_at_best(sources: Sources, relevant: Collection[int], k: int) -> Measured:
    """Share of the relevant texts that the best k items stand for: the most that k can recall."""
    if not relevant:
        return NO_EVIDENCE
    wanted = set(relevant)
    every = {frozenset(wanted.intersection(held)) for held in sources} - {frozenset[int]()}
    useful = [held for held in every if not any(held < other for other in every)]
    if sum(map(len, useful)) == len(frozenset[int]().union(*useful)):  # none overlaps another
        return Measured(sum(sorted(map(len, useful))[-k:]) / len(wanted))
    # Texts held -> the fewest items, k at most, that hold just these together.
    fewest: dict[frozenset[int], int] = {frozenset(): 0}
    for held in useful:
        for before, items in [(texts, n) for texts, n in fewest.items() if n < k]:
            both = before | held
            fewest[both] = min(fewest.get(both, items + 1), items + 1)
    return Measured(max(map(len, fewest)) / len(wanted))


def _wanted(ranked: Sequence[int], relevant: Collection[int]) -> set[int]:
    if len(set(ranked)) != len(ranked):
        raise ValueError("a position is ranked twice")
    return set(relevant)
