"""Estimates over the score table, each with its counts, basis and clustered interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from persona_lab.core.scores import Estimate, Score
from persona_lab.metrics.intervals import interval
from persona_lab.metrics.items import grouped, item_values, lost, why_empty
from persona_lab.metrics.two_way import two_way


@dataclass(frozen=True)
class Metric:
    """What an estimator must know of a metric.

    Attributes:
        low, high: its range.
        worse: value that an item without one counts as in basis `all`; None where the metric is
            over scored items only (1-5 scores).
        share: whether it is a share of 0/1 items although it is over scored items only.
    """

    low: float
    high: float
    worse: float | None = None
    share: bool = False

    @property
    def rate(self) -> bool:
        """Whether its items are 0/1."""
        return self.share or self.worse is not None


ACCURACY = Metric(0.0, 1.0, worse=0.0)
RATING = Metric(1.0, 5.0)
SHARE = Metric(0.0, 1.0)
COUNT = Metric(0.0, float("inf"))


def estimates(
    scores: Sequence[Score],
    metrics: Mapping[str, Metric],
    by: Sequence[str],
    *,
    unit: str = "cluster",
    seed: int = 0,
    crossed: str = "",
) -> list[Estimate]:
    """One estimate per metric and group, rates in both bases.

    Args:
        scores: the table. metrics: by name; scores of other metrics are left out.
        by: facets that make the groups, in the order of their appearance.
        unit: what a cluster is (`user`, `scenario`).
        seed: of the bootstrap.
        crossed: facet that holds the second cluster (`context`), for the two-way interval.
    """
    made = []
    for group, members in grouped(scores, metrics, by).items():
        name, metric = group[0], metrics[group[0]]
        named = dict(zip(by, group[1:], strict=True))
        if metric.worse is not None:
            made.append(_estimate(name, members, metric, named, "all", unit, seed, crossed))
        made.append(_estimate(name, members, metric, named, "scored", unit, seed, crossed))
    return made


def _estimate(
    name: str,
    scores: Sequence[Score],
    metric: Metric,
    facets: Mapping[str, str],
    basis: str,
    unit: str,
    seed: int,
    crossed: str,
) -> Estimate:
    items, counts = (
        item_values(scores, metric.worse if basis == "all" else None, crossed),
        lost(scores),
    )
    if not items.keys:
        why = why_empty(scores)
        return Estimate(
            name, None, None, None, why, basis, 0, 0, facets=facets, two_way=None, **counts
        )
    rate = metric.rate
    found = interval(
        items.values, items.clusters, metric.low, metric.high, rate=rate, unit=unit, seed=seed
    )
    return Estimate(
        metric=name,
        value=float(np.mean(items.values)),
        low=found.low,
        high=found.high,
        interval=found.method,
        basis=basis,
        n=len(items.keys),
        clusters=len({cluster for cluster, _ in items.keys}),
        facets=facets,
        two_way=two_way([items], found, metric.low, metric.high, rate=rate) if crossed else None,
        **counts,
    )
