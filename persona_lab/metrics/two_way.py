"""95 % intervals over two crossed clusterings, such as BenchPreS's users and contexts.

A one-way interval speaks of new users at these contexts; this one of new users at new contexts.
The variance is that of Cameron, Gelbach and Miller (2011): of the first clustering, plus of the
second, minus of their intersections, which both contain. Each is a delete-one jackknife.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from persona_lab.metrics.intervals import (
    FEWEST_CLUSTERS,
    LEVEL,
    NO_SPREAD,
    Interval,
    cluster_totals,
    fewest,
    jackknife_variance,
    mover,
)
from persona_lab.metrics.items import Items


def two_way(
    items: Sequence[Items],
    one_way: Interval,
    low: float,
    high: float,
    *,
    rate: bool,
    weights: Sequence[float] = (1.0,),
) -> tuple[float, float] | None:
    """The interval of a weighted sum of means that respects both clusterings of their items.

    The variance is never below that of either clustering, where the difference of three estimates
    can fall, and the interval never inside the one-way one. Student's t has (K - 1) degrees of
    freedom, with K of the clustering that has fewer clusters. Without any variance a rate gets
    Wilson's with n = K, as in one way.

    Args:
        items, weights: of each mean.
        one_way: the interval that respects the first clustering.
        low, high: range; the interval is cut to it.
        rate: whether all means are 0/1 rates.

    Returns:
        Its ends; None where a mean has fewer than 5 clusters on either side, or where the one-way
        interval does not exist, or for ratings without variance.
    """
    if one_way.low is None or one_way.high is None:
        return None
    values = [i.values for i in items]
    sides = [[i.clusters for i in items], [i.crossed for i in items]]
    totals = [cluster_totals(values, side) for side in sides]
    number = min(fewest(counts) for _, counts in totals)
    if number < FEWEST_CLUSTERS:
        return None
    first, second = (jackknife_variance(*total, weights) for total in totals)
    both = jackknife_variance(*cluster_totals(values, _intersections(*sides)), weights)
    spread = max(first + second - both, first, second) ** 0.5
    means = [float(v.mean()) for v in values]
    if spread > NO_SPREAD:
        centre = float(np.dot(weights, means))
        reach = float(stats.t.ppf((1 + LEVEL) / 2, number - 1)) * spread
        ends = centre - reach, centre + reach
    elif rate:
        ends = mover(weights, means, [number] * len(means))
    else:
        return None
    return min(one_way.low, max(low, ends[0])), max(one_way.high, min(high, ends[1]))


def _intersections(
    first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """A label for each pair of clusters, by term."""
    one, two = _codes(first), _codes(second)
    codes = one * (int(two.max()) + 1) + two
    return np.split(codes, np.cumsum([len(labels) for labels in first])[:-1])


def _codes(labels: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    return np.unique(np.concatenate(labels), return_inverse=True)[1]
