"""Exact cosine search over the turns of one history (RealPref Appendix H.2: the 5 best)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_UNIT_ERROR = 1e-6


@dataclass(frozen=True)
class Hit:
    """One text found: its 0-based position among the texts, and the retriever's score."""

    position: int
    score: float


def search(query: Floats, matrix: Floats, k: int) -> list[list[Hit]]:
    """The k rows most similar to each query, best first, ties by position.

    Args:
        query: [D], or [Q, D] for several.
        matrix: [N, D]; rows of any length, only their direction counts.
        k: at least 1; more than N gives all N.

    Returns:
        One list a query; scores are cosines in [-1, 1].

    Raises:
        ValueError: k is below 1, shapes do not fit, or a row is zero or not finite.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least 1 is needed")
    queries = _unit(np.atleast_2d(query), "query")
    if len(matrix) == 0:
        return [[] for _ in queries]
    rows = _unit(matrix, "matrix")
    if queries.shape[1] != rows.shape[1]:
        raise ValueError(f"queries {queries.shape} and matrix {rows.shape} differ in dimension")
    return [
        _best(scores, positions, k)
        for scores, positions in zip(*_knn(queries, rows, k), strict=True)
    ]


def _knn(queries: Floats, rows: Floats, k: int) -> tuple[Floats, NDArray[np.int64]]:
    """Scores and positions [Q, M] by falling score; M is k or more, so that no tie is torn.

    faiss pads with position -1 beyond N, and takes whichever it likes of equal scores.
    """
    import faiss

    wanted = min(k, len(rows))
    ask = wanted
    while True:
        ask = min(2 * ask, len(rows))
        scores, positions = faiss.knn(queries, rows, ask, metric=faiss.METRIC_INNER_PRODUCT)
        if ask == len(rows) or (scores[:, -1] < scores[:, wanted - 1]).all():
            return scores, positions


def _best(scores: Floats, positions: NDArray[np.int64], k: int) -> list[Hit]:
    # Rounding makes a cosine as large as 1.0000005.
    found = [
        Hit(int(p), max(-1.0, min(1.0, float(s)))) for s, p in zip(scores, positions, strict=True)
    ]
    return sorted(found, key=lambda hit: (-hit.score, hit.position))[:k]


def _unit(rows: Floats, what: str) -> Floats:
    """Rows of length 1; an encoder's rows, which are so already, are not copied."""
    if rows.ndim != 2:
        raise ValueError(f"{what}: shape {rows.shape} is not [N, D]")
    with np.errstate(over="ignore"):
        squares = np.einsum("nd,nd->n", rows, rows)
    if (np.abs(squares - 1) < _UNIT_ERROR).all():
        return np.ascontiguousarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        raise ValueError(f"{what} row {bad[0]} is zero or not finite and has no direction")
    return np.ascontiguousarray(rows / lengths[:, None], dtype=np.float32)
