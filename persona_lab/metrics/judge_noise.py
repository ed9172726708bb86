"""A rate of a judge that errs, corrected by what humans said of a sample (Rogan and Gladen 1978).

Of what is applied the judge finds the share `sensitivity`, of what is not it clears the share
`specificity`; so an apparent rate p belongs to (p + specificity - 1) / (sensitivity + specificity
- 1). In BenchPreS the table is made within g = 0 for MR and within g = 1 for AAR, and the nickname
is matched as a string: its part of a rate is not corrected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from persona_lab.core.scores import Score
from persona_lab.metrics.estimate import Metric
from persona_lab.metrics.intervals import (
    FEWEST_CLUSTERS,
    LEVEL,
    NO_SPREAD,
    Array,
    Interval,
    cluster_totals,
    jackknife,
    jackknife_variance,
    mover,
    too_few,
)
from persona_lab.metrics.items import Items, item_values, lost, why_empty


@dataclass(frozen=True)
class ErrorTable:
    """The judge's labels against human ones: counts. Positive is what counts into the rate."""

    true_positives: int
    false_negatives: int
    true_negatives: int
    false_positives: int

    @property
    def positives(self) -> int:
        """Human positives."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        """Human negatives."""
        return self.true_negatives + self.false_positives

    @property
    def sensitivity(self) -> float | None:
        """Share of the human positives that the judge finds; None if there are none."""
        return self.true_positives / self.positives if self.positives else None

    @property
    def specificity(self) -> float | None:
        """Share of the human negatives that the judge clears; None if there are none."""
        return self.true_negatives / self.negatives if self.negatives else None


@dataclass(frozen=True)
class Corrected:
    """A corrected rate in [0, 1]; without one value is None, and `interval` says why.

    Attributes:
        apparent: the rate as judged and matched.
        low, high: ends of the 95 % interval; interval: its method, or why there is none.
        share: of the items that the judge labelled; the rest is not corrected.
        flags: `cut` if the corrected part lay outside [0, 1].
        n: items with a value, which alone are in the rate; clusters: their clusters.
        unparsed, truncated, failed: rows without a value.
    """

    value: float | None
    low: float | None
    high: float | None
    interval: str
    apparent: float | None
    share: float
    flags: tuple[str, ...]
    n: int
    clusters: int
    unparsed: int = 0
    truncated: int = 0
    failed: int = 0


def corrected_rate(
    judged: Sequence[Score],
    matched: Sequence[Score],
    table: ErrorTable,
    metric: Metric,
    *,
    unit: str = "cluster",
) -> Corrected:
    """The rate over both parts: the judged one corrected, the matched one as it is.

    The parts are weighted by their items; the corrected part is cut to [0, 1] before. Over rows
    with a value only, repeats averaged first. Without judged items there is nothing to correct.

    The interval has two sources of error, whose squares are added. First the items: both parts lie
    in the same clusters, so it is the delete-one-cluster jackknife of the whole corrected rate,
    shares included, with sensitivity and specificity held fixed; Wilson's with n = clusters (a
    weighted sum over the parts) where clusters do not vary. Then the label sample: the delta method
    of Rogan and Gladen (1978), scaled by the judged share, with the variances of sensitivity and
    specificity from (x + 1) / (n + 2) as Lang and Reiczigel (2014) adjust them, so that a judge
    without an error in few labels is not taken for perfect. Labels are taken for independent of
    each other and of the rate. Student's t on (clusters - 1) for both.

    Args:
        judged, matched: rows of one 0/1 metric and one condition, labelled by the judge and not.
        unit: what a cluster is.

    Raises:
        ValueError: the metric is not a rate.
    """
    if (metric.low, metric.high) != (0.0, 1.0):
        raise ValueError(f"only rates in [0, 1] are corrected, not [{metric.low}, {metric.high}]")
    ones, twos = item_values(judged, None), item_values(matched, None)
    n = len(ones.keys) + len(twos.keys)
    clusters = len({cluster for cluster, _ in (*ones.keys, *twos.keys)})
    share = len(ones.keys) / n if n else 0.0
    apparent = float((ones.values.sum() + twos.values.sum()) / n) if n else None
    value: float | None = None
    flags: tuple[str, ...] = ()
    found = Interval(None, None, "")
    if n == 0:
        found = replace(found, method=why_empty([*judged, *matched]))
    elif ones.keys and (why := _unusable(table)):
        found = replace(found, method=f"n/a: {why}")
    else:
        value, found, flags = _corrected(ones, twos, _judge(table) if ones.keys else _PERFECT, unit)
    return Corrected(
        value=value,
        low=found.low,
        high=found.high,
        interval=found.method,
        apparent=apparent,
        share=share,
        flags=flags,
        n=n,
        clusters=clusters,
        **lost([*judged, *matched]),
    )


@dataclass(frozen=True)
class _Judge:
    """Sensitivity and specificity, and their variances over other samples of labels."""

    sensitivity: float
    specificity: float
    sensitivity_variance: float
    specificity_variance: float

    @property
    def youden(self) -> float:
        return self.sensitivity + self.specificity - 1

    def correct(self, apparent: Array) -> Array:
        """The rates behind apparent ones; not cut."""
        return (apparent + self.specificity - 1) / self.youden

    def label_variance(self, corrected: float) -> float:
        """Variance of a corrected rate over samples of labels, the apparent rate held fixed."""
        found = corrected**2 * self.sensitivity_variance
        return (found + (1 - corrected) ** 2 * self.specificity_variance) / self.youden**2


_PERFECT = _Judge(1.0, 1.0, 0.0, 0.0)


def _unusable(table: ErrorTable) -> str:
    """Why the table corrects nothing; empty if it does."""
    positives, negatives = table.positives, table.negatives
    if not positives or not negatives:
        return f"no {'positives' if not positives else 'negatives'} among the labels"
    # In whole numbers: 11/10 is no binary fraction.
    found = table.true_positives * negatives + table.true_negatives * positives
    if 10 * found <= 11 * positives * negatives:
        return f"sensitivity + specificity is {found / (positives * negatives):.3f}, not above 1.1"
    return ""


def _judge(table: ErrorTable) -> _Judge:
    positives, negatives = table.positives, table.negatives
    return _Judge(
        table.true_positives / positives,
        table.true_negatives / negatives,
        _variance(table.true_positives, positives),
        _variance(table.true_negatives, negatives),
    )


def _variance(right: int, number: int) -> float:
    adjusted = (right + 1) / (number + 2)
    return adjusted * (1 - adjusted) / (number + 2)


def _corrected(
    judged: Items, matched: Items, judge: _Judge, unit: str
) -> tuple[float, Interval, tuple[str, ...]]:
    """The value, its interval and flags; not both parts are empty."""
    number = len(judged.keys) + len(matched.keys)
    corrected = judge.correct(judged.values)
    part = float(corrected.mean()) if judged.keys else 0.0
    within = min(1.0, max(0.0, part))
    # A mean of ones corrected by a perfect judge may miss 1 by its last bits.
    flags = ("cut",) if abs(part - within) > 1e-12 else ()
    value = (len(judged.keys) * within + float(matched.values.sum())) / number
    values = np.concatenate([corrected, matched.values])
    sums, counts = cluster_totals([values], [np.concatenate([judged.clusters, matched.clusters])])
    clusters = counts.shape[1]
    if clusters < FEWEST_CLUSTERS:
        return value, Interval(None, None, too_few(clusters, unit)), flags
    centre = float(values.mean())
    if jackknife_variance(sums, counts) ** 0.5 > NO_SPREAD:
        ends, method = jackknife(sums, counts), "cluster jackknife"
    else:
        ends, method = _without_variance(judged, matched, judge, centre), "Wilson, n = clusters"
    t = float(stats.t.ppf((1 + LEVEL) / 2, clusters - 1))
    labels = t * len(judged.keys) / number * judge.label_variance(part) ** 0.5
    low = centre - math.hypot(centre - ends[0], labels)
    high = centre + math.hypot(ends[1] - centre, labels)
    # The value is in [0, 1] and may have been cut, to a place outside of these.
    low, high = min(value, max(0.0, low)), max(value, min(1.0, high))
    added = ", label error added" if judged.keys else ""
    return value, Interval(low, high, method + added), flags


def _without_variance(
    judged: Items, matched: Items, judge: _Judge, centre: float
) -> tuple[float, float]:
    """Ends of the interval around `centre` where no cluster differs from another."""
    number = len(judged.keys) + len(matched.keys)
    parts = [(items, w) for items, w in ((judged, 1 / judge.youden), (matched, 1.0)) if items.keys]
    weights = [w * len(items.keys) / number for items, w in parts]
    rates = [float(items.values.mean()) for items, _ in parts]
    apparent = float(np.dot(weights, rates))
    low, high = mover(weights, rates, [len(set(items.clusters.tolist())) for items, _ in parts])
    return centre + low - apparent, centre + high - apparent
