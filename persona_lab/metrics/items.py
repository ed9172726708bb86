"""From rows to items: what estimates, contrasts and corrections are computed over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.scores import Score
from persona_lab.metrics.intervals import Array

Item = tuple[str, str]
"""Cluster and question: rows that share them are repeats of one item."""


@dataclass(frozen=True)
class Items:
    """N items that have a value, in the order of their appearance.

    Attributes:
        keys: of each item.
        values: means of the repeats, [N].
        clusters, crossed: labels in the two clusterings, [N].
    """

    keys: Sequence[Item]
    values: Array
    clusters: NDArray[Any]
    crossed: NDArray[Any]


def item_values(scores: Sequence[Score], worse: float | None, crossed: str = "") -> Items:
    """The value of each item; repeats of one item are averaged first.

    Args:
        worse: what a row without a value counts as; None leaves it out.
        crossed: facet that holds the second cluster.

    Raises:
        ValueError: repeats of one item lie in two of the second clusters.
    """
    repeats: dict[Item, list[float]] = {}
    across: dict[Item, str] = {}
    for score in scores:
        value = score.value if score.value is not None else worse
        if value is None:
            continue
        key = (score.cluster, score.question)
        repeats.setdefault(key, []).append(value)
        place = score.facets.get(crossed, "")
        if across.setdefault(key, place) != place:
            raise ValueError(
                f"question {score.question!r} of {score.cluster!r} has two values of {crossed!r}: "
                f"{across[key]!r} and {place!r}"
            )
    return Items(
        keys=list(repeats),
        values=np.array([sum(v) / len(v) for v in repeats.values()], dtype=np.float64),
        clusters=np.array([cluster for cluster, _ in repeats], dtype=np.str_),
        crossed=np.array(list(across.values()), dtype=np.str_),
    )


def grouped(
    scores: Sequence[Score], metrics: Collection[str], by: Sequence[str]
) -> dict[tuple[str, ...], list[Score]]:
    """Rows by metric and facets, groups in the order of their appearance.

    Args:
        metrics: rows of other metrics are left out. by: facets, in the order of the key.
    """
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in metrics:
            key = (score.metric, *[score.facets.get(name, "") for name in by])
            groups.setdefault(key, []).append(score)
    return groups


def why_empty(scores: Sequence[Score]) -> str:
    """Why a mean over rows without any value does not exist."""
    return "n/a: no item has a value" if scores else "n/a: no items"


def lost(scores: Sequence[Score]) -> Mapping[str, int]:
    """How many rows have no value, by outcome."""
    counts = {"unparsed": 0, "truncated": 0, "failed": 0}
    for score in scores:
        if score.outcome in counts:
            counts[score.outcome] += 1
    return counts
