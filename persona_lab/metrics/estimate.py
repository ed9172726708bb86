"""Estimates over the score table, each with its counts, basis and clustered interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from persona_lab.core.experiment import Estimate, Score
from persona_lab.metrics.intervals import interval


@dataclass(frozen=True)
class Metric:
    """What an estimator must know of a metric.

    Attributes:
        low, high: its range.
        worse: value that an item without one counts as in basis `all`; None where the metric is
            over scored items only (1-5 scores).
    """

    low: float
    high: float
    worse: float | None = None


ACCURACY = Metric(0.0, 1.0, worse=0.0)
RATING = Metric(1.0, 5.0)


def estimates(
    scores: Sequence[Score],
    metrics: Mapping[str, Metric],
    by: Sequence[str],
    *,
    unit: str = "cluster",
    seed: int = 0,
) -> list[Estimate]:
    """One estimate per metric and group, rates in both bases.

    Args:
        scores: the table. metrics: by name; scores of other metrics are left out.
        by: facets that make the groups, in the order of their appearance.
        unit: what a cluster is (`user`, `scenario`).
        seed: of the bootstrap.
    """
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in metrics:
            facets = tuple(score.facets.get(name, "") for name in by)
            groups.setdefault((score.metric, *facets), []).append(score)
    made = []
    for group, members in groups.items():
        name, metric = group[0], metrics[group[0]]
        named = dict(zip(by, group[1:], strict=True))
        if metric.worse is not None:
            made.append(_estimate(name, members, metric, named, "all", unit, seed))
        made.append(_estimate(name, members, metric, named, "scored", unit, seed))
    return made


def _estimate(
    name: str,
    scores: Sequence[Score],
    metric: Metric,
    facets: Mapping[str, str],
    basis: str,
    unit: str,
    seed: int,
) -> Estimate:
    outcomes = Counter(score.outcome for score in scores)
    values, clusters = _item_values(scores, metric.worse if basis == "all" else None)
    counts = {kind: outcomes[kind] for kind in ("unparsed", "truncated", "failed")}
    if not values:
        why = "n/a: no item has a value" if scores else "n/a: no items"
        return Estimate(name, None, None, None, why, basis, 0, 0, facets=facets, **counts)
    found = interval(
        np.array(values), np.array(clusters), metric.low, metric.high,
        rate=metric.worse is not None, unit=unit, seed=seed,
    )  # fmt: skip
    return Estimate(
        metric=name,
        value=float(np.mean(values)),
        low=found.low,
        high=found.high,
        interval=found.method,
        basis=basis,
        n=len(values),
        clusters=len(set(clusters)),
        facets=facets,
        **counts,
    )


def _item_values(scores: Sequence[Score], worse: float | None) -> tuple[list[float], list[str]]:
    """Value and cluster of each question; repeats of one question are averaged first."""
    repeats: dict[tuple[str, str], list[float]] = {}
    for score in scores:
        value = score.value if score.value is not None else worse
        if value is not None:
            repeats.setdefault((score.cluster, score.question), []).append(value)
    return [sum(v) / len(v) for v in repeats.values()], [cluster for cluster, _ in repeats]
