"""Do two judges agree? RealPref's checks of its judge (Appendix G.3): Pearson's correlation
(Table 10), score histograms (Figure 12), and Cohen's kappa of two raters on shared items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from persona_lab.core.scores import Score

Weights = Literal["none", "linear", "quadratic"]

Item = tuple[str, str, str]
"""Cluster, case and question: one answer, whoever judges it."""

_WEIGHING: Mapping[Weights, Callable[[int], int]] = {
    "none": lambda steps: int(steps != 0),
    "linear": abs,
    "quadratic": lambda steps: steps * steps,
}


@dataclass(frozen=True)
class Correlation:
    """Pearson's r in [-1, 1] and its two-sided p over n pairs, or None, None and why.

    The p takes pairs for independent, as Table 10 does.
    """

    r: float | None
    p: float | None
    n: int
    reason: str = ""


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa, or None and why; raw agreement in [0, 1] beside it, over n pairs."""

    value: float | None
    agreement: float | None
    n: int
    weights: Weights
    reason: str = ""


@dataclass(frozen=True)
class JudgeAgreement:
    """One cell of Table 10.

    Attributes:
        metric: its name, or `overall`.
        unpaired: items that are left out, since not both judges gave all their values.
    """

    metric: str
    pearson: Correlation
    unpaired: int


def judge_agreement(
    first: Sequence[Score], second: Sequence[Score], metrics: Sequence[str]
) -> list[JudgeAgreement]:
    """Table 10: each metric, then `overall` over the items' means of all metrics.

    Args:
        first, second: scores by one judge (or human) each, of the same cases and questions.
    """
    made = []
    for name, members in [*((metric, [metric]) for metric in metrics), ("overall", [*metrics])]:
        ones, twos, unpaired = paired_values(first, second, members)
        made.append(JudgeAgreement(name, pearson(ones, twos), unpaired))
    return made


def paired_values(
    first: Sequence[Score], second: Sequence[Score], metrics: Sequence[str]
) -> tuple[list[float], list[float], int]:
    """What two judges gave the same items: the first's values, the second's, and items left out.

    An item's value is its mean over `metrics`, repeats averaged first; it is left out unless both
    judges gave it a value on each of them.
    """
    ones, twos = _item_means(first, metrics), _item_means(second, metrics)
    items = dict.fromkeys(_item(s) for s in (*first, *second) if s.metric in metrics)
    paired = [item for item in items if item in ones and item in twos]
    return [ones[i] for i in paired], [twos[i] for i in paired], len(items) - len(paired)


def pearson(first: Sequence[float], second: Sequence[float]) -> Correlation:
    """Pearson's correlation of paired values; none below 3 pairs or where a side is constant.

    Raises:
        ValueError: sides of different lengths, or a value that is not finite.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values cannot be paired with {len(second)}")
    sides = np.asarray([first, second], dtype=np.float64)
    if not np.isfinite(sides).all():
        raise ValueError("a correlation needs finite values")
    number = sides.shape[1]
    if number < 3:
        return Correlation(None, None, number, f"{number} pair{'s' if number != 1 else ''}, of 3")
    # Means of repeats that are equal on paper differ in their last bits.
    constant = np.ptp(sides, axis=1) <= 1e-12 * np.abs(sides).max(axis=1)
    if constant.any():
        which = " and ".join(np.array(["first", "second"])[constant])
        return Correlation(None, None, number, f"constant: {which}")
    found = stats.pearsonr(sides[0], sides[1])
    return Correlation(float(found.statistic), float(found.pvalue), number)


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    classes: Sequence[Hashable] | None = None,
    weights: Weights = "none",
) -> Kappa:
    """Cohen's kappa of two raters (Cohen 1960; weighted, 1968), items paired by position.

    Args:
        classes: the scale in order, such as `range(1, 6)`. Weights need it: they count steps on
            the scale, where a class that nobody used still lies between its neighbours.
        weights: `none`: all disagreements are equal; else by the steps, or the steps squared.

    Raises:
        ValueError: ratings of different lengths or off the scale, or weights without a scale.
    """
    if classes is None and weights != "none":
        raise ValueError(f"weights={weights} needs the classes in their order")
    pairs, number = list(zip(first, second, strict=True)), len(first)
    scale = list(dict.fromkeys((*first, *second) if classes is None else classes))
    if unknown := [rating for pair in pairs for rating in pair if rating not in scale]:
        raise ValueError(f"the rating {unknown[0]!r} is not on the scale {scale}")
    if not pairs:
        return Kappa(None, None, 0, weights, "no pairs")
    step, weigh = {c: i for i, c in enumerate(scale)}, _WEIGHING[weights]
    agreement = sum(a == b for a, b in pairs) / number
    observed = sum(weigh(step[a] - step[b]) for a, b in pairs)
    expected = sum(
        weigh(step[a] - step[b]) * times_a * times_b
        for a, times_a in Counter(first).items()
        for b, times_b in Counter(second).items()
    )
    if expected == 0:
        return Kappa(None, agreement, number, weights, f"both raters use only {first[0]!r}")
    return Kappa(1 - observed * number / expected, agreement, number, weights)


def score_histogram(values: Iterable[float], scale: Sequence[int]) -> dict[int, int]:
    """How often each score of the scale was given (Figure 12), unused ones included.

    Raises:
        ValueError: a value that is not on the scale.
    """
    counts = dict.fromkeys(scale, 0)
    for value in values:
        if value not in counts:
            raise ValueError(f"the score {value} is not on the scale {list(scale)}")
        counts[int(value)] += 1
    return counts


def _item(score: Score) -> Item:
    return score.cluster, score.case, score.question


def _item_means(scores: Sequence[Score], metrics: Sequence[str]) -> dict[Item, float]:
    """Mean over the metrics of each item that has a value on all of them."""
    repeats: dict[Item, dict[str, list[float]]] = {}
    for score in scores:
        if score.metric in metrics and score.value is not None:
            given = repeats.setdefault(_item(score), {})
            given.setdefault(score.metric, []).append(score.value)
    return {
        item: sum(sum(given[m]) / len(given[m]) for m in metrics) / len(metrics)
        for item, given in repeats.items()
        if len(given) == len(metrics)
    }
