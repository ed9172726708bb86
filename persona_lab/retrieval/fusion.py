"""Reciprocal-rank fusion (Cormack, Clarke and Buettcher 2009): rankings to one, without scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from persona_lab.retrieval.search import Hit


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[int]], k: int, constant: int = 60
) -> list[Hit]:
    """The k positions with the largest sum of 1 / (constant + rank), ties by position.

    Args:
        rankings: positions, best first; ranks count from 1, and a position that a ranking leaves
            out gets nothing from it. The order of the rankings has no influence.
        constant: the paper's 60; larger values make top ranks count less.

    Raises:
        ValueError: k is below 1, the constant below 0, or a ranking holds a position twice.
    """
    if k < 1 or constant < 0:
        raise ValueError(f"k={k}, constant={constant}: at least 1 and 0 are needed")
    shares: dict[int, list[float]] = {}
    for number, ranking in enumerate(rankings):
        if len(set(ranking)) != len(ranking):
            raise ValueError(f"ranking {number} holds a position twice")
        for rank, position in enumerate(ranking, 1):
            shares.setdefault(position, []).append(1 / (constant + rank))
    fused = [Hit(position, fsum(parts)) for position, parts in shares.items()]
    return sorted(fused, key=lambda hit: (-hit.score, hit.position))[:k]
