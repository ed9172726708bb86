from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.retrieval.fusion import reciprocal_rank_fusion


def test_scores_by_hand() -> None:
    # 7: 1/61 + 1/62; 3: 1/62 + 1/63; 5: 1/61; 9: 1/63 alone.
    hits = reciprocal_rank_fusion([[7, 3, 9], [5, 7, 3]], 4)
    assert [hit.position for hit in hits] == [7, 3, 5, 9]
    assert [hit.score for hit in hits] == pytest.approx(
        [1 / 61 + 1 / 62, 1 / 62 + 1 / 63, 1 / 61, 1 / 63]
    )


def test_ties_by_position() -> None:
    assert [hit.position for hit in reciprocal_rank_fusion([[4, 2], [2, 4]], 2)] == [2, 4]


def test_the_constant_weighs_first_ranks() -> None:
    # constant 0: 1 against 1/2 + 1/3; constant 60: 1/61 against 1/62 + 1/63.
    rankings = [[0, 1], [2, 3, 1]]
    assert reciprocal_rank_fusion(rankings, 1, constant=0)[0].position == 0
    assert reciprocal_rank_fusion(rankings, 1)[0].position == 1


def test_nothing_to_fuse() -> None:
    assert reciprocal_rank_fusion([], 3) == []
    assert reciprocal_rank_fusion([[], []], 3) == []


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="at least 1 and 0"):
        reciprocal_rank_fusion([[1]], 0)
    with pytest.raises(ValueError, match="ranking 1 holds a position twice"):
        reciprocal_rank_fusion([[1], [2, 2]], 1)


_RANKING = st.lists(st.integers(0, 8), unique=True, max_size=9)


@given(st.lists(_RANKING, max_size=4), st.integers(1, 10))
def test_fusion_is_the_exact_sum_in_any_order(rankings: list[list[int]], k: int) -> None:
    exact: dict[int, Fraction] = {}
    for ranking in rankings:
        for rank, position in enumerate(ranking, 1):
            exact[position] = exact.get(position, Fraction()) + Fraction(1, 60 + rank)
    fused = reciprocal_rank_fusion(rankings, k)
    best = sorted(exact, key=lambda p: (-float(exact[p]), p))[:k]
    assert {hit.position: hit.score for hit in fused} == pytest.approx(
        {p: float(exact[p]) for p in (h.position for h in fused)}
    )
    assert [float(exact[h.position]) for h in fused] == pytest.approx(
        [float(exact[p]) for p in best]
    )
    assert reciprocal_rank_fusion(rankings[::-1], k) == fused
    assert reciprocal_rank_fusion(rankings, k + 1)[:k] == fused
