"""How an evaluator trades recognised errors for false alarms (PersEvalBench section 4, Metrics).

The paper reports ERR and FAR at one operating point, that of the verdicts; an evaluator that cries
error at everything looks good in the first. Repeated samples, or the probabilities of the verdicts,
say how strongly an evaluator takes an answer for an error. A threshold over that weight gives a
curve, from flagging nothing to flagging everything, on which evaluators compare at one FAR.

An error that is flagged still needs its direction: Under judged Over is not recognised at any
threshold. So ERR may stay below 1 where FAR is 1, and chance is no diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from persona_lab.metrics.intervals import (
    BOOTSTRAP_CLUSTERS,
    FEWEST_CLUSTERS,
    LEVEL,
    NO_SPREAD,
    REPLICATES,
    Array,
    Interval,
    too_few,
    wilson,
)

_AT_ONCE = 100
"""Resamples computed together, few enough for the processor's cache."""


@dataclass(frozen=True)
class Graded:
    """What an evaluator made of one response: one row a response, repeats already in the weights.

    Attributes:
        cluster: the scenario. question: the response; unique with cluster and `error`.
        error: whether it is an error response; else a Right one.
        recognised: weight in [0, 1] of the verdicts that name the error's direction (share of
            repeated samples, or probability); of no meaning for a Right response.
        flagged: weight in [0, 1] of any error verdict, `recognised` included.

    Raises:
        ValueError: a weight outside of its range.
    """

    cluster: str
    question: str
    error: bool
    recognised: float
    flagged: float

    def __post_init__(self) -> None:
        # Sums of probabilities may pass each other by their last bits.
        known = not self.error or 0 <= self.recognised <= self.flagged + NO_SPREAD
        if not (known and 0 <= self.flagged <= 1 + NO_SPREAD):
            raise ValueError(
                f"question {self.question!r} of {self.cluster!r}: recognised {self.recognised} and "
                f"flagged {self.flagged} are not 0 <= recognised <= flagged <= 1"
            )


@dataclass(frozen=True)
class Point:
    """ERR and FAR if responses with a flagged weight of `threshold` or more are flagged."""

    threshold: float
    err: float
    far: float


@dataclass(frozen=True)
class Curve:
    """Points by falling threshold, so that err and far never fall, and the area below them.

    Attributes:
        points: the first flags nothing, the last everything; none where area is None.
        area: under ERR over FAR, in [0, 1]; None without error or without Right responses.
        low, high: ends of its 95 % interval; interval: its method, or why one of them is None.
        errors, rights: responses of each kind; clusters: of them all.
    """

    points: tuple[Point, ...]
    area: float | None
    low: float | None
    high: float | None
    interval: str
    errors: int
    rights: int
    clusters: int


def operating_curve(responses: Sequence[Graded], *, unit: str = "scenario", seed: int = 0) -> Curve:
    """ERR over FAR at every threshold over the flagged weight, and the area by trapezoids.

    FAR is the share of Right responses flagged. ERR is the share of error responses that are
    flagged and whose right direction is the heavier one (recognised > flagged - recognised; a tie
    is not recognised), so that direction does not depend on the threshold.

    Right responses that got no error verdict at all are flagged at threshold 0 only. Up to there,
    FAR = 1, the curve goes on horizontally: an error without an error verdict has no direction, and
    direction is not won by flagging everything, as it would be along a diagonal to (1, 1).

    Args:
        unit: what a cluster is. seed: of the bootstrap.

    Raises:
        ValueError: a response is there twice.
    """
    keys = {(r.cluster, r.question, r.error) for r in responses}
    if len(keys) != len(responses):
        raise ValueError(
            f"{len(responses)} rows for {len(keys)} responses: repeats of a response are the "
            "weights of one row"
        )
    clusters = len({r.cluster for r in responses})
    errors = sum(r.error for r in responses)
    rights = len(responses) - errors
    if not errors or not rights:
        lacking = "" if not responses else "error " if rights else "right "
        return Curve((), None, None, None, f"n/a: no {lacking}responses", errors, rights, clusters)
    levels = _levels(responses)
    area = float(levels.areas(np.ones((clusters, 1)))[0])
    found = _area_interval(levels, area, unit, seed)
    return Curve(
        levels.points(), area, found.low, found.high, found.method, errors, rights, clusters
    )


def thinned(curve: Curve, n: int = 11) -> list[Point]:
    """At most n points for a printed table: first, last, and those nearest to equal steps of FAR.

    Of points with one FAR the one of highest ERR stands for them.

    Raises:
        ValueError: n is below 2.
    """
    if n < 2:
        raise ValueError(f"a curve needs its first and its last point, n={n} is too few")
    if len(curve.points) <= n:
        return list(curve.points)
    last = len(curve.points) - 1
    rising = np.array([point.far for point in curve.points])
    steps = np.linspace(rising[0], rising[-1], n)[1:-1]
    # Backwards, since argmin takes the first of equals.
    nearest = last - np.abs(rising[::-1] - steps[:, None]).argmin(axis=1)
    return [curve.points[place] for place in sorted({0, last, *nearest.tolist()})]


def resampled_interval(
    statistic: Callable[[Array], Array], clusters: int, fewest: int, constant: Interval, seed: int
) -> Interval:
    """Interval of a statistic in [0, 1] that is no ratio of sums: bootstrap, or jackknife.

    The jackknife's squares are around the value, not around the mean of the left-out values, which
    absolute values inside a statistic can move all alike. For the same reason resamples may all lie
    on one side of the value; the interval is widened to hold it.

    Args:
        statistic: from weights of the clusters [K, R] (how often each is in a resample) to [R].
        clusters: K. fewest: those that the statistic rests on, at least 5; they decide between
            bootstrap (30 or more) and jackknife, and are its degrees of freedom plus 1.
        constant: the answer where leaving out a cluster changes nothing.
    """
    value = float(statistic(np.ones((clusters, 1)))[0])
    left_out = statistic(1 - np.eye(clusters))
    spread = float((clusters - 1) / clusters * ((left_out - value) ** 2).sum()) ** 0.5
    if spread <= NO_SPREAD:
        return constant
    if fewest >= BOOTSTRAP_CLUSTERS:
        # Drawn as by `cluster_bootstrap`: estimates of one run share their resamples.
        chosen = np.random.default_rng(seed).integers(clusters, size=(REPLICATES, clusters))
        parts = (chosen[first : first + _AT_ONCE] for first in range(0, REPLICATES, _AT_ONCE))
        values = np.concatenate([statistic(_times_drawn(part, clusters)) for part in parts])
        ends = np.quantile(values, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        low, high, method = float(ends[0]), float(ends[1]), "cluster bootstrap"
    else:
        reach = float(stats.t.ppf((1 + LEVEL) / 2, fewest - 1)) * spread
        low, high, method = value - reach, value + reach, "cluster jackknife"
    return Interval(min(value, max(0.0, low)), max(value, min(1.0, high)), method)


def _times_drawn(chosen: NDArray[np.int64], clusters: int) -> Array:
    """How often each cluster is in each resample [K, R], from the clusters drawn [R, K]."""
    number = len(chosen)
    places = chosen + clusters * np.arange(number)[:, None]
    counts = np.bincount(places.ravel(), minlength=number * clusters)
    return counts.reshape(number, clusters).T.astype(np.float64)


@dataclass(frozen=True)
class _Levels:
    """Counts by level of the flagged weight, D levels from the largest down, and cluster.

    Attributes:
        weights: of the levels, [D].
        recognised: error responses whose right direction is the heavier one, [D, K] (sparse).
        alarms: Right responses, [D, K] (sparse).
        errors, rights: responses of each cluster, [K].
    """

    weights: Array
    recognised: sparse.csr_array[np.float64]
    alarms: sparse.csr_array[np.float64]
    errors: Array
    rights: Array

    def points(self) -> tuple[Point, ...]:
        err = np.cumsum(self.recognised.sum(axis=1)) / self.errors.sum()
        far = np.cumsum(self.alarms.sum(axis=1)) / self.rights.sum()
        nothing = Point(float(self.weights[0]) + 1, 0.0, 0.0)
        rows = zip(self.weights.tolist(), err.tolist(), far.tolist(), strict=True)
        return nothing, *(Point(*row) for row in rows)

    def areas(self, weights: Array) -> Array:
        """Areas by trapezoids [R] where clusters count as often as weights [K, R] say."""
        found: Array = np.asarray(self.recognised @ weights)
        alarms: Array = np.asarray(self.alarms @ weights)
        between = np.cumsum(found, axis=0) - found / 2
        pairs = (self.errors @ weights) * (self.rights @ weights)
        return np.asarray((between * alarms).sum(axis=0) / pairs, dtype=np.float64)


def _levels(responses: Sequence[Graded]) -> _Levels:
    names, cluster = np.unique([r.cluster for r in responses], return_inverse=True)
    rising, level = np.unique([r.flagged for r in responses], return_inverse=True)
    level = len(rising) - 1 - level
    error = np.array([r.error for r in responses])
    right_way = np.array([r.error and r.recognised > r.flagged - r.recognised for r in responses])
    shape = len(rising), len(names)

    def table(chosen: NDArray[np.bool_]) -> sparse.csr_array[np.float64]:
        ones = np.ones(int(chosen.sum()))
        return sparse.csr_array((ones, (level[chosen], cluster[chosen])), shape=shape)

    def count(chosen: NDArray[np.bool_]) -> Array:
        return np.bincount(cluster[chosen], minlength=len(names)).astype(np.float64)

    return _Levels(
        weights=np.asarray(rising[::-1], dtype=np.float64),
        recognised=table(right_way),
        alarms=table(~error),
        errors=count(error),
        rights=count(~error),
    )


def _area_interval(levels: _Levels, area: float, unit: str, seed: int) -> Interval:
    """By the rules of `intervals`, which count the clusters of the rarer kind of response.

    The area is the share of pairs of an error and a Right response in which the error is recognised
    and flagged more strongly (ties half); without variance it gets a rate's interval.
    """
    clusters = len(levels.errors)
    number, kind = min(
        (int((levels.errors > 0).sum()), "an error"), (int((levels.rights > 0).sum()), "a right")
    )
    if number < FEWEST_CLUSTERS:
        # Also where leaving out one cluster would leave no response of that kind.
        where = f" with {kind} response" if number < clusters else ""
        return Interval(None, None, too_few(number, unit) + where)
    constant = Interval(*wilson(area, number), "Wilson, n = clusters")
    return resampled_interval(levels.areas, clusters, number, constant, seed)
