from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.metrics.retrieval import (
    NO_EVIDENCE,
    by_chance,
    recall_at_k,
    reciprocal_rank,
    sources_at_best,
    sources_by_chance,
    sources_recalled,
)


@pytest.mark.parametrize(
    ("k", "recall"),
    # Relevant are 2, 7 and 9; the ranking has 7 first, 2 fourth, 9 not at all.
    [(1, 1 / 3), (3, 1 / 3), (4, 2 / 3), (99, 2 / 3)],
)
def test_recall_by_hand(k: int, recall: float) -> None:
    assert recall_at_k([7, 5, 1, 2], {2, 7, 9}, k).value == pytest.approx(recall)


def test_reciprocal_rank_by_hand() -> None:
    assert reciprocal_rank([5, 1, 2, 7], [7, 2]).value == pytest.approx(1 / 3)
    assert reciprocal_rank([2], [2]).value == 1.0
    assert reciprocal_rank([5, 1], [7]).value == 0.0
    assert reciprocal_rank([], [7]).value == 0.0


def test_nothing_relevant_has_no_value() -> None:
    for measured in (recall_at_k([1, 2], [], 5), reciprocal_rank([1, 2], ())):
        assert measured.value is None
        assert measured.reason == "n/a: nothing is relevant to the query"


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="k=0: at least 1"):
        recall_at_k([1], [1], 0)
    with pytest.raises(ValueError, match="ranked twice"):
        recall_at_k([1, 1], [1], 2)
    with pytest.raises(ValueError, match="ranked twice"):
        reciprocal_rank([1, 1], [1])


_POSITIONS = st.lists(st.integers(0, 9), unique=True)


@given(_POSITIONS, _POSITIONS.filter(bool), st.integers(1, 10))
def test_recall_rises_with_k(ranked: list[int], relevant: list[int], k: int) -> None:
    now, more = recall_at_k(ranked, relevant, k).value, recall_at_k(ranked, relevant, k + 1).value
    first = reciprocal_rank(ranked, relevant).value
    assert now is not None
    assert more is not None
    assert first is not None
    assert 0 <= now <= more <= 1
    assert (first >= 1 / k) == (now > 0)


def test_chance_by_hand() -> None:
    # 3 texts, 1 relevant: in a third of all orders it is first, in a third second. Two places:
    # recall 2/3, reciprocal rank (1 + 1/2) / 3.
    recall, rank = by_chance(3, 1, 2)
    assert (recall.value, rank.value) == (pytest.approx(2 / 3), pytest.approx(0.5))
    assert by_chance(3, 0, 2) == (NO_EVIDENCE, NO_EVIDENCE)
    with pytest.raises(ValueError, match="cannot be"):
        by_chance(3, 4, 2)


@given(st.integers(1, 6), st.data())
def test_chance_is_the_mean_over_all_orders(texts: int, data: st.DataObject) -> None:
    relevant, k = data.draw(st.integers(1, texts)), data.draw(st.integers(1, 7))
    orders = list(permutations(range(texts)))
    wanted = range(relevant)
    recalls = [recall_at_k(order, wanted, k).value or 0.0 for order in orders]
    ranks = [reciprocal_rank(order[:k], wanted).value or 0.0 for order in orders]
    recall, rank = by_chance(texts, relevant, k)
    assert recall.value == pytest.approx(sum(recalls) / len(orders))
    assert rank.value == pytest.approx(sum(ranks) / len(orders))


HELD = [{0, 3}, {3}, {7}, set[int](), {0}]
"""What five memories stand for; of the evidence 0, 3, 5 nothing stands for 5."""


@pytest.mark.parametrize(
    ("ranked", "share"),
    [([1], 1 / 3), ([1, 0], 2 / 3), ([0], 2 / 3), ([2, 3], 0.0), ([], 0.0), (range(5), 2 / 3)],
)
def test_what_memories_stand_for_by_hand(ranked: list[int], share: float) -> None:
    assert sources_recalled(HELD, ranked, [0, 3, 5]).value == pytest.approx(share)


def test_chance_and_the_best_memories_by_hand() -> None:
    # One of five memories: 0 is held by two of them, 3 by two, 5 by none: (2/5 + 2/5 + 0) / 3.
    assert sources_by_chance(HELD, [0, 3, 5], 1).value == pytest.approx(4 / 15)
    # The first memory holds both that can be had.
    assert sources_at_best(HELD, [0, 3, 5], 1).value == pytest.approx(2 / 3)
    assert sources_at_best([{0, 1}, {2, 3}, {1, 2}], [0, 1, 2, 3], 1).value == 0.5
    assert sources_at_best([{0, 1}, {2, 3}, {1, 2}], [0, 1, 2, 3], 2).value == 1.0
    # No memory at all stands for nothing.
    assert sources_by_chance([], [0], 5).value == sources_at_best([], [0], 5).value == 0.0
    assert sources_by_chance(HELD, [], 5) == sources_at_best(HELD, [], 5) == NO_EVIDENCE
    with pytest.raises(ValueError, match="ranked twice"):
        sources_recalled(HELD, [1, 1], [3])


@given(
    st.lists(st.frozensets(st.integers(0, 4), max_size=3), max_size=6),
    st.frozensets(st.integers(0, 4), min_size=1),
    st.integers(1, 4),
)
def test_chance_is_the_mean_and_the_best_the_most_of_all_choices(
    held: list[frozenset[int]], relevant: frozenset[int], k: int
) -> None:
    """Every choice of k memories, one by one."""
    choices = list(combinations(range(len(held)), min(k, len(held))))
    shares = [sources_recalled(held, choice, relevant).value or 0.0 for choice in choices]
    chance, best = sources_by_chance(held, relevant, k), sources_at_best(held, relevant, k)
    assert chance.value == pytest.approx(sum(shares) / len(shares))
    assert best.value == pytest.approx(max(shares))


def test_much_evidence_takes_no_time() -> None:
    """Five of 40 memories that hold two neighbouring turns each hold ten turns."""
    pairs = [{n, n + 1} for n in range(0, 80, 2)]
    assert sources_at_best(pairs, range(80), 5).value == 10 / 80
    overlapping = [{n, n + 1} for n in range(24)]
    assert sources_at_best(overlapping, range(25), 5).value == 10 / 25
