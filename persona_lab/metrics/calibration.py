"""Is an evaluator right as often as it says? Its stated confidence against its being right, which
PersEvalBench leaves to future work (Limitations, Evaluation scope).

Repeated answers to one question are statements of their own, since each has a confidence; they
share the question's cluster. An answer without a verdict or a confidence is none: count it beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.scores import Estimate
from persona_lab.metrics.intervals import (
    FEWEST_CLUSTERS,
    NO_SPREAD,
    Array,
    Interval,
    interval,
    too_few,
)
from persona_lab.metrics.operating import resampled_interval


@dataclass(frozen=True)
class Stated:
    """A verdict's stated confidence in [0, 1], and whether the verdict was right.

    Raises:
        ValueError: the confidence is outside of [0, 1].
    """

    cluster: str
    question: str
    confidence: float
    right: bool

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise ValueError(
                f"question {self.question!r} of {self.cluster!r}: the confidence "
                f"{self.confidence} is not in [0, 1]; divide a percentage by 100"
            )


@dataclass(frozen=True)
class Bin:
    """One row of a reliability diagram: n statements with a confidence in [low, high).

    Attributes:
        confidence: their mean. right: share of them that is right.
    """

    low: float
    high: float
    n: int
    confidence: float
    right: float


def brier(statements: Sequence[Stated], *, unit: str = "scenario", seed: int = 0) -> Estimate:
    """Mean squared distance of confidence and outcome (Brier 1950), in [0, 1]; 0 is best.

    Args:
        unit: what a cluster is. seed: of the bootstrap.
    """
    if not statements:
        return _estimate("brier", statements, None, _NOTHING)
    squares = (_confidences(statements) - _outcomes(statements)) ** 2
    found = interval(squares, _clusters(statements), 0, 1, rate=False, unit=unit, seed=seed)
    if found.low is not None and found.high is not None and found.high - found.low <= NO_SPREAD:
        found = _constant(unit)
    return _estimate("brier", statements, float(squares.mean()), found)


def expected_calibration_error(
    statements: Sequence[Stated], bins: int = 10, *, unit: str = "scenario", seed: int = 0
) -> Estimate:
    """ECE (Guo et al. 2017, equation 3): distance of mean confidence and share right, in [0, 1].

    The mean over equal-width bins, weighted by their statements. It is biased upwards: statements
    that are calibrated but few in a bin miss its share right by chance.

    Args:
        unit: what a cluster is. seed: of the bootstrap.

    Raises:
        ValueError: no bins.
    """
    places = _places(statements, bins)
    if not statements:
        return _estimate("ece", statements, None, _NOTHING)
    names, cluster = np.unique(_clusters(statements), return_inverse=True)
    counts = np.bincount(cluster).astype(np.float64)
    excess = np.zeros((bins, len(names)))
    np.add.at(excess, (places, cluster), _confidences(statements) - _outcomes(statements))

    def error(weights: Array) -> Array:
        """ECE [R] where clusters count as often as weights [K, R] say."""
        return np.asarray(np.abs(excess @ weights).sum(axis=0) / (counts @ weights))

    found = Interval(None, None, too_few(len(names), unit))
    if len(names) >= FEWEST_CLUSTERS:
        found = resampled_interval(error, len(names), len(names), _constant(unit), seed)
    value = float(np.abs(excess.sum(axis=1)).sum() / len(statements))
    return _estimate("ece", statements, value, found)


def reliability(statements: Sequence[Stated], bins: int = 10) -> list[Bin]:
    """Mean confidence and share right of each bin that has statements, by rising confidence.

    Bins are of equal width, [low, high); the last one holds 1 as well.

    Raises:
        ValueError: no bins.
    """
    places = _places(statements, bins)
    confidences, outcomes = _confidences(statements), _outcomes(statements)
    made = []
    for place in np.unique(places).tolist():
        held = places == place
        means = float(confidences[held].mean()), float(outcomes[held].mean())
        made.append(Bin(place / bins, (place + 1) / bins, int(held.sum()), *means))
    return made


_NOTHING = Interval(None, None, "n/a: no statements")


def _constant(unit: str) -> Interval:
    return Interval(None, None, f"n/a: no variance between {unit}s")


def _estimate(
    name: str, statements: Sequence[Stated], value: float | None, found: Interval
) -> Estimate:
    return Estimate(
        metric=name,
        value=value,
        low=found.low,
        high=found.high,
        interval=found.method,
        basis="scored",
        n=len(statements),
        clusters=len({s.cluster for s in statements}),
    )


def _places(statements: Sequence[Stated], bins: int) -> NDArray[np.intp]:
    """The bin of each statement, from 0."""
    if bins < 1:
        raise ValueError(f"{bins} bins hold nothing; at least 1 is needed")
    # Quotients, not products with a step: 0.3 as it is stated is 3 / 10, but not 3 * 0.1.
    edges = np.arange(1, bins) / bins
    return np.searchsorted(edges, _confidences(statements), side="right")


def _confidences(statements: Sequence[Stated]) -> Array:
    return np.array([s.confidence for s in statements], dtype=np.float64)


def _outcomes(statements: Sequence[Stated]) -> Array:
    return np.array([s.right for s in statements], dtype=np.float64)


def _clusters(statements: Sequence[Stated]) -> NDArray[np.str_]:
    return np.array([s.cluster for s in statements], dtype=np.str_)
