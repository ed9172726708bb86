"""Weighted sums of means on shared clusters, with one interval for the whole.

BenchPreS's gap is AAR - MR; a paired difference is one condition less another over the same items;
a 2 x 2 interaction is a difference of two differences. All terms of a contrast come from the same
users, so that their intervals cannot be put together: a cluster is left out, or drawn again, in all
terms at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from persona_lab.core.scores import Estimate, Score
from persona_lab.metrics.estimate import Metric
from persona_lab.metrics.intervals import (
    BOOTSTRAP_CLUSTERS,
    FEWEST_CLUSTERS,
    NO_SPREAD,
    Interval,
    cluster_bootstrap,
    cluster_totals,
    fewest,
    interval,
    jackknife,
    jackknife_variance,
    mover,
    too_few,
)
from persona_lab.metrics.items import Item, Items, item_values, lost, why_empty
from persona_lab.metrics.two_way import two_way

Basis = Literal["all", "scored"]


@dataclass(frozen=True)
class Term:
    """A mean and its weight in the sum; `scores` are rows of one metric and one condition."""

    weight: float
    scores: Sequence[Score]
    metric: Metric


def contrast(
    name: str,
    terms: Sequence[Term],
    *,
    basis: Basis,
    facets: Mapping[str, str] | None = None,
    unit: str = "cluster",
    seed: int = 0,
    crossed: str = "",
) -> Estimate:
    """The weighted sum of the terms' means, repeats averaged first.

    `n` counts each (cluster, question) once: the gap's items are those of both its terms, a paired
    difference's those of one. Rows without a value are counted over all terms.

    Args:
        name: of the estimate, such as `gap`.
        basis: `all` (an item without a value counts as its term's worse outcome) or `scored`.
        unit: what a cluster is. seed: of the bootstrap.
        crossed: facet that holds the second cluster, for the two-way interval.

    Raises:
        ValueError: no term, or basis `all` for a metric that is over scored items only.
    """
    if not terms or (basis == "all" and any(term.metric.worse is None for term in terms)):
        raise ValueError(f"{name}: needs a term, and for basis `all` metrics with a worse outcome")
    worse = [term.metric.worse if basis == "all" else None for term in terms]
    items = [item_values(t.scores, w, crossed) for t, w in zip(terms, worse, strict=True)]
    keys = {key for part in items for key in part.keys}
    clusters = len({cluster for cluster, _ in keys})
    value, found, both = None, Interval(None, None, _why_no_value(terms, items)), None
    if not found.method:
        value = sum(t.weight * float(i.values.mean()) for t, i in zip(terms, items, strict=True))
        found = _interval(terms, items, unit, seed)
    if crossed and value is not None:
        both = two_way(
            items, found, *_range(terms), rate=_rates(terms), weights=[t.weight for t in terms]
        )
    return Estimate(
        metric=name,
        value=value,
        low=found.low,
        high=found.high,
        interval=found.method,
        basis=basis,
        n=len(keys),
        clusters=clusters,
        facets=facets or {},
        two_way=both,
        **lost([score for term in terms for score in term.scores]),
    )


def paired(*conditions: Sequence[Score], basis: Basis = "all") -> list[list[Score]]:
    """The rows of items that every condition has a row for, so that contrasts are by instance.

    An item is a cluster and a question. In basis `scored` it needs a value in every condition; its
    other repeats stay with their counts, while rows of items left out are no longer counted.
    """
    asked = [
        {_item(s) for s in rows if basis == "all" or s.value is not None} for rows in conditions
    ]
    shared: set[Item] = set.intersection(*asked) if asked else set()
    return [[s for s in rows if _item(s) in shared] for rows in conditions]


def _item(score: Score) -> Item:
    return score.cluster, score.question


def _why_no_value(terms: Sequence[Term], items: Sequence[Items]) -> str:
    """Why the sum does not exist, naming the first term without a mean; empty if all have one."""
    for number, (term, part) in enumerate(zip(terms, items, strict=True), 1):
        if not part.keys:
            return why_empty(term.scores) + (f" in term {number}" if len(terms) > 1 else "")
    return ""


def _interval(terms: Sequence[Term], items: Sequence[Items], unit: str, seed: int) -> Interval:
    """By the rules of `intervals`, which count the clusters of the term that has fewest."""
    if len(terms) == 1:
        return _of_one(terms[0], items[0], unit, seed)
    weights = [term.weight for term in terms]
    sums, counts = cluster_totals([i.values for i in items], [i.clusters for i in items])
    number = fewest(counts)
    if number < FEWEST_CLUSTERS:
        # Also where leaving out one cluster would empty a term.
        where = " in a term" if number < counts.shape[1] else ""
        return Interval(None, None, too_few(number, unit) + where)
    if jackknife_variance(sums, counts, weights) ** 0.5 <= NO_SPREAD:
        if not _rates(terms):
            return Interval(None, None, f"n/a: no variance between {unit}s")
        means, numbers = [float(i.values.mean()) for i in items], (counts > 0).sum(axis=1)
        ends, method = mover(weights, means, numbers.tolist()), "MOVER of Wilson's, n = clusters"
    elif number >= BOOTSTRAP_CLUSTERS:
        ends, method = cluster_bootstrap(sums, counts, seed, weights), "cluster bootstrap"
    else:
        ends, method = jackknife(sums, counts, weights), "cluster jackknife"
    low, high = _range(terms)
    return Interval(max(low, ends[0]), min(high, ends[1]), method)


def _of_one(term: Term, items: Items, unit: str, seed: int) -> Interval:
    """The interval of one mean, times its weight."""
    found = interval(
        items.values, items.clusters, term.metric.low, term.metric.high,
        rate=term.metric.rate, unit=unit, seed=seed,
    )  # fmt: skip
    if found.low is None or found.high is None:
        return found
    low, high = sorted((term.weight * found.low, term.weight * found.high))
    return Interval(low, high, found.method)


def _rates(terms: Sequence[Term]) -> bool:
    return all(term.metric.rate for term in terms)


def _range(terms: Sequence[Term]) -> tuple[float, float]:
    """Least and largest value that the weighted sum can take."""
    ends = np.array([[t.weight * t.metric.low, t.weight * t.metric.high] for t in terms])
    return float(ends.min(axis=1).sum()), float(ends.max(axis=1).sum())
