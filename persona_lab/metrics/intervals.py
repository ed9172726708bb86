"""95 % intervals that respect clusters.

The rules, in this order: fewer than 5 clusters, none; a 0/1 rate whose items are each their own
cluster, or that does not vary between clusters, Wilson's; 30 clusters or more, a cluster
bootstrap; 5 to 29, a delete-one-cluster jackknife with Student's t.
"""

from __future__ import annotations

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
    sums, counts = _by_cluster(values, clusters)
    number = len(sums)
    if number < FEWEST_CLUSTERS:
        return Interval(None, None, f"n/a: {number} {unit}{'s' if number != 1 else ''}")
    binary = rate and bool(np.isin(values, (0.0, 1.0)).all())
    means = sums / counts
    if binary and number == len(values):
        return Interval(*wilson(float(values.mean()), number), "Wilson")
    if binary and np.ptp(means) == 0.0:
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


def cluster_bootstrap(sums: Array, counts: Array, seed: int) -> tuple[float, float]:
    """Percentile interval of the ratio sum/count over resampled clusters.

    Args:
        sums, counts: per cluster, [K].
    """
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(sums), size=(REPLICATES, len(sums)))
    ratios = sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(ratios, (tail, 1 - tail))
    return float(low), float(high)


def jackknife(sums: Array, counts: Array) -> tuple[float, float]:
    """Delete-one-cluster jackknife with Student's t on (clusters - 1) degrees of freedom."""
    number = len(sums)
    estimate = sums.sum() / counts.sum()
    left_out = (sums.sum() - sums) / (counts.sum() - counts)
    spread = float(np.sqrt((number - 1) / number * ((left_out - left_out.mean()) ** 2).sum()))
    reach = float(stats.t.ppf((1 + LEVEL) / 2, number - 1)) * spread
    return float(estimate - reach), float(estimate + reach)


def _by_cluster(values: Array, clusters: NDArray[Any]) -> tuple[Array, Array]:
    """Sum and count of each cluster, [K]."""
    _, index = np.unique(clusters, return_inverse=True)
    sums = np.bincount(index, weights=values)
    return sums.astype(np.float64), np.bincount(index).astype(np.float64)
