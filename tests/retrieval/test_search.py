from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.retrieval.search import search

pytest.importorskip("faiss")


def rows(*values: list[float]) -> Any:
    return np.array(values, dtype=np.float32)


def positions(query: Any, matrix: Any, k: int) -> list[list[int]]:
    return [[hit.position for hit in hits] for hits in search(query, matrix, k)]


def test_cosine_not_inner_product() -> None:
    # cos((1,0), (3,3)) = 1 / sqrt 2 = 0.70711, below the 1 of (1,0) itself.
    [[first, second]] = search(rows([1, 0]), rows([1, 0], [3, 3]), 2)
    assert (first.position, second.position) == (0, 1)
    assert first.score == pytest.approx(1)
    assert second.score == pytest.approx(0.70711, abs=1e-5)


def test_k_above_the_count_gives_all() -> None:
    assert positions(np.float32([1, 0]), rows([1, 0], [0, 1], [1, 1]), 5) == [[0, 2, 1]]


def test_an_empty_matrix_gives_none() -> None:
    nothing = np.zeros((0, 2), dtype=np.float32)
    assert search(rows([1, 0], [0, 1]), nothing, 1) == [[], []]


@pytest.mark.parametrize("queries", [1, 13, 40])
@pytest.mark.parametrize("k", [1, 5, 600])
def test_ties_come_by_position(queries: int, k: int) -> None:
    query = np.random.default_rng(0).normal(size=(queries, 24)).astype(np.float32)
    same = np.repeat(query[:1], 501, axis=0)
    assert positions(query, same, k) == [list(range(501))[:k]] * queries


def test_several_queries() -> None:
    found = positions(rows([1, 0], [0, 1]), rows([0, 1], [1, 0], [1, 0.1]), 2)
    assert found == [[1, 2], [0, 2]]


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")])
def test_rows_without_direction_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="matrix row 1 is zero or not finite"):
        search(rows([1, 0]), rows([1, 0], [bad, 0]), 1)
    with pytest.raises(ValueError, match="query row 0 is zero or not finite"):
        search(rows([bad, 0]), rows([1, 0]), 1)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="k=0: at least 1"):
        search(rows([1, 0]), rows([1, 0]), 0)
    with pytest.raises(ValueError, match="differ in dimension"):
        search(rows([1, 0, 0]), rows([1, 0]), 1)


_SMALL = st.lists(st.integers(-2, 2), min_size=3, max_size=3).filter(any)


@settings(deadline=None)  # the first example imports the library
@given(st.lists(_SMALL, min_size=1, max_size=3), st.lists(_SMALL, max_size=12), st.integers(1, 15))
def test_search_is_numpys_order(queries: list[list[int]], matrix: list[list[int]], k: int) -> None:
    query = np.array(queries, dtype=np.float32)
    held = np.array(matrix, dtype=np.float32).reshape(-1, 3)
    for q, hits in zip(query, search(query, held, k), strict=True):
        lengths = np.linalg.norm(held, axis=1) * np.linalg.norm(q)
        cosines = (held @ q) / lengths
        assert len(hits) == min(k, len(held))
        assert all(-1 <= hit.score <= 1 for hit in hits)
        best = np.sort(cosines)[::-1]
        for rank, hit in enumerate(hits):
            assert hit.score == pytest.approx(cosines[hit.position], abs=1e-5)
            assert hit.score == pytest.approx(best[rank], abs=1e-5)
        keys = [(-hit.score, hit.position) for hit in hits]
        assert keys == sorted(keys)
        assert hits == search(q, held, k + 1)[0][:k]
