"""95 % intervals that respect clusters.

The rules, in this order: fewer than 5 clusters, none; a 0/1 rate whose items are each their own
cluster, or that does not vary between clusters, Wilson's; 30 clusters or more, a cluster
bootstrap; 5 to 29, a delete-one-cluster jackknife with Student's t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

LEVEL = 0.95
FEWEST_CLUSTERS = 5
BOOTSTRAP_CLUSTERS = 30
REPLICATES = 10_000
NO_SPREAD = 1e-9
"""A standard error up to this is none: means that are equal on paper differ in their last bits."""


@dataclass(frozen=True)
class Interval:
    """Ends of an interval and the name of its method, or None, None and why there is none."""

    low: float | None
    high: float | None
    method: str


def interval(
    values: Array,
    clusters: NDArray[Any],
    low: float,
    high: float,
    *,
    rate: bool,
    unit: str = "cluster",
    seed: int = 0,
) -> Interval:
    """The interval of a mean over items.

    Args:
        values: item values [N]. clusters: their cluster labels [N].
        low, high: range of the metric; the interval is cut to it.
        rate: whether the items are 0/1.
        unit: what a cluster is, for the reason why there is no interval.
        seed: of the bootstrap.
    """
    (sums,), (counts,) = cluster_totals([values], [clusters])
    number = len(sums)
    if number < FEWEST_CLUSTERS:
        return Interval(None, None, too_few(number, unit))
    binary = rate and bool(np.isin(values, (0.0, 1.0)).all())
    means = sums / counts
    if binary and number == len(values):
        return Interval(*wilson(float(values.mean()), number), "Wilson")
    if rate and np.ptp(means) <= NO_SPREAD:
        return Interval(*wilson(float(means[0]), number), "Wilson, n = clusters")
    if number >= BOOTSTRAP_CLUSTERS:
        ends, method = cluster_bootstrap(sums, counts, seed), "cluster bootstrap"
    else:
        ends, method = jackknife(sums, counts), "cluster jackknife"
    return Interval(max(low, ends[0]), min(high, ends[1]), method)


def wilson(rate: float, number: int) -> tuple[float, float]:
    """Wilson's score interval of a rate over `number` trials (Wilson 1927)."""
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    centre = (rate + z * z / (2 * number)) / (1 + z * z / number)
    half = (
        z
        * float(np.sqrt(rate * (1 - rate) / number + z * z / (4 * number * number)))
        / (1 + z * z / number)
    )
    return max(0.0, centre - half), min(1.0, centre + half)


def mover(
    weights: Sequence[float], rates: Sequence[float], numbers: Sequence[int]
) -> tuple[float, float]:
    """Interval of a weighted sum of rates from their Wilson's intervals (Zou and Donner 2008).

    The distances from rates to limits are squared and added, as for independent rates. For a
    difference of two rates this is method 10 of Newcombe (1998, independent proportions).

    Args:
        weights, rates, numbers: of each term; numbers are trials.
    """
    centre = sum(w * rate for w, rate in zip(weights, rates, strict=True))
    below = above = 0.0
    for w, rate, number in zip(weights, rates, numbers, strict=True):
        ends = sorted(w * end for end in wilson(rate, number))
        below += (w * rate - ends[0]) ** 2
        above += (ends[1] - w * rate) ** 2
    return float(centre - below**0.5), float(centre + above**0.5)


def cluster_bootstrap(
    sums: Array, counts: Array, seed: int, weights: Sequence[float] = (1.0,)
) -> tuple[float, float]:
    """Percentile interval of the ratio sum/count over resampled clusters.

    Args:
        sums, counts: per cluster [K], or per term and cluster [T, K]: then of the weighted sum
            of the ratios, whose terms share the resampled clusters.
        weights: of the terms.
    """
    rng = np.random.default_rng(seed)
    number = sums.shape[-1]
    chosen = rng.integers(number, size=(REPLICATES, number))
    ratios = np.zeros(REPLICATES)
    for weight, s, c in zip(weights, np.atleast_2d(sums), np.atleast_2d(counts), strict=True):
        ratios += weight * (s[chosen].sum(axis=1) / c[chosen].sum(axis=1))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(ratios, (tail, 1 - tail))
    return float(low), float(high)


def jackknife(sums: Array, counts: Array, weights: Sequence[float] = (1.0,)) -> tuple[float, float]:
    """Delete-one-cluster jackknife with Student's t on (clusters - 1) degrees of freedom.

    Args: as of the bootstrap. A term that lacks some of the clusters lowers the degrees of freedom
        to its own.
    """
    estimate = float(np.dot(weights, np.atleast_1d(sums.sum(axis=-1) / counts.sum(axis=-1))))
    spread = jackknife_variance(sums, counts, weights) ** 0.5
    reach = float(stats.t.ppf((1 + LEVEL) / 2, fewest(counts) - 1)) * spread
    return estimate - reach, estimate + reach


def jackknife_variance(sums: Array, counts: Array, weights: Sequence[float] = (1.0,)) -> float:
    """Delete-one-cluster variance of the weighted sum of ratios; arguments as of the bootstrap.

    No term may have all its items in one cluster.
    """
    s, c = np.atleast_2d(sums), np.atleast_2d(counts)
    number = s.shape[1]
    ratios = (s.sum(axis=1, keepdims=True) - s) / (c.sum(axis=1, keepdims=True) - c)
    left_out = np.asarray(weights, dtype=np.float64) @ ratios
    return float((number - 1) / number * ((left_out - left_out.mean()) ** 2).sum())


def cluster_totals(
    values: Sequence[Array], clusters: Sequence[NDArray[Any]]
) -> tuple[Array, Array]:
    """Sums and counts [T, K] of T terms over the K clusters of them all.

    Args:
        values, clusters: of each term's items, [N] each.
    """
    labels, index = np.unique(np.concatenate(clusters), return_inverse=True)
    parts = np.split(index, np.cumsum([len(c) for c in clusters])[:-1])
    number = len(labels)
    sums = [np.bincount(i, weights=v, minlength=number) for i, v in zip(parts, values, strict=True)]
    counts = [np.bincount(i, minlength=number) for i in parts]
    return np.array(sums, dtype=np.float64), np.array(counts, dtype=np.float64)


def fewest(counts: Array) -> int:
    """Clusters of the term that has fewest; counts per cluster [K] or [T, K]."""
    return int((counts > 0).sum(axis=-1).min())


def too_few(number: int, unit: str) -> str:
    """Why there is no interval over fewer than 5 clusters."""
    return f"n/a: {number} {unit}{'s' if number != 1 else ''}"
