"""Is one condition better than another? Paired by item, clustered by user.

The null hypothesis of the sign-flip permutation is that a user's mean difference is as likely
negative as positive, so every pattern of signs over users is equally likely. RealPref's Tables 13
and 14 call an order of two conditions True only if p < 0.05 in all three rating dimensions: a
pair's p is the largest over its metrics. Holm's correction over the pairs stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
from scipy import stats

from persona_lab.core.errors import ConfigError
from persona_lab.core.scores import Score

EXACT_CLUSTERS = 12
FLIPS = 10_000

Item = tuple[str, str]
"""Cluster and question: what pairs two scores."""


@dataclass(frozen=True)
class Comparison:
    """One ordered pair of conditions. A p that does not exist is None, with the reason.

    Attributes:
        greater, lesser: values of the facet; the hypothesis is greater > lesser.
        p: the largest over the metrics; p_holm: corrected over the pairs that have a p.
        significant: whether p < alpha, the rule of Tables 13 and 14.
        by_metric: clustered sign-flip p of each metric.
        wilcoxon: the same by item, which takes items for independent.
        n, clusters: paired items and their clusters, of the metric that has fewest.
        reason: why p is None.
        facet, alpha: what was compared, and at which level.
        method: how the signs were flipped.
        basis: `all` (an item without a value counts as the worse outcome) or `scored`.
    """

    greater: str
    lesser: str
    p: float | None
    p_holm: float | None
    significant: bool | None
    by_metric: Mapping[str, float | None]
    wilcoxon: Mapping[str, float | None]
    n: int
    clusters: int
    reason: str
    facet: str
    alpha: float
    method: str
    basis: str = "scored"


def ordered_comparisons(
    scores: Sequence[Score],
    facet: str,
    order: Sequence[str],
    metrics: Sequence[str],
    pairs: Literal["all", "adjacent", "first"] = "all",
    alpha: float = 0.05,
    seed: int = 0,
    worse: Mapping[str, float] | None = None,
) -> list[Comparison]:
    """Tests earlier > later for the pairs of `order` (Tables 13 and 14).

    Args:
        scores: the table, of one model and one condition in all but `facet`: rows that share
            cluster, question, metric and facet are repeats and are averaged first.
        facet: what is compared, such as `expression`; order: its values, the best first.
        metrics: all of these must be greater.
        pairs: every pair, neighbours only, or the first against each other.
        seed: of the flips where there are too many to try all.
        worse: metric -> what an item without a value counts as (basis `all`); without it such
            items are left out (basis `scored`).

    Raises:
        ConfigError: no metric, or a condition given twice.
    """
    if not metrics or len(set(order)) < len(order):
        raise ConfigError(
            f"comparison by {facet}: metrics {list(metrics)} must not be empty and order "
            f"{list(order)} must name each condition once"
        )
    values = _item_means(scores, facet, worse or {})
    named = {
        "all": list(combinations(order, 2)),
        "adjacent": list(pairwise(order)),
        "first": [(order[0], other) for other in order[1:]],
    }[pairs]
    basis = "all" if worse else "scored"
    made = [
        replace(_compare(values, facet, pair, metrics, alpha, seed), basis=basis) for pair in named
    ]
    corrected = iter(holm([c.p for c in made if c.p is not None]))
    return [c if c.p is None else replace(c, p_holm=next(corrected)) for c in made]


def as_test(comparison: Comparison) -> dict[str, Any]:
    """One entry of the `tests` of results.json."""
    c = comparison
    return {
        "facet": c.facet,
        "greater": c.greater,
        "lesser": c.lesser,
        "p": c.p,
        "p_holm": c.p_holm,
        "alpha": c.alpha,
        "basis": c.basis,
        "significant": c.significant,
        "reason": c.reason,
        "n": c.n,
        "clusters": c.clusters,
        "clustered": {
            "test": "one-sided sign-flip permutation of cluster mean differences",
            "method": c.method,
            "p_by_metric": dict(c.by_metric),
        },
        "unclustered": {
            "test": "one-sided Wilcoxon signed-rank by item (Pratt)",
            "p_by_metric": dict(c.wilcoxon),
        },
    }


def sign_flip(
    differences: Sequence[float], clusters: Sequence[str], seed: int = 0
) -> tuple[float, str]:
    """One-sided sign-flip permutation: is the mean of the cluster mean differences above 0?

    Args:
        differences: of the items, [N]. clusters: their cluster labels, [N].

    Returns:
        p in (0, 1] and how it was found: exactly over all 2^K flips up to 12 clusters, else as
        (b + 1) / (m + 1) with b of m = 10,000 seeded flips as large as the observed mean.

    Raises:
        ValueError: no differences, or one that is not finite.
    """
    values = np.asarray(differences, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise ValueError("the differences must be finite numbers, at least one")
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    means = np.bincount(index, weights=values) / np.bincount(index)
    number = len(means)
    # Sums that are equal on paper differ in their last bits with the order of the signs.
    least = means.sum() - 1e-12 * np.abs(means).sum()
    if number <= EXACT_CLUSTERS:
        signs = 1 - 2 * (np.arange(2**number)[:, None] >> np.arange(number) & 1)
        return float(np.mean(signs @ means >= least)), f"exact, {2**number} flips"
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(FLIPS, number))
    as_large = int(np.count_nonzero(signs @ means >= least))
    return (as_large + 1) / (FLIPS + 1), f"{FLIPS} seeded flips"


def wilcoxon_by_item(differences: Sequence[float]) -> float | None:
    """One-sided Wilcoxon signed-rank p, zeros ranked (Pratt); None if all differences are zero."""
    # Means of repeats leave 1e-16 where the difference is zero, or between equal ranks.
    values = np.round(np.asarray(differences, dtype=np.float64), 9)
    if not values.any():
        return None
    return float(stats.wilcoxon(values, zero_method="pratt", alternative="greater").pvalue)


def mcnemar_exact(b: int, c: int) -> float:
    """McNemar's exact two-sided p; only for items that are their own clusters.

    Args:
        b, c: items that only the first, and only the second, got right.
    """
    return 1.0 if b == c == 0 else float(stats.binomtest(b, b + c, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979), in the order given."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return corrected


@dataclass(frozen=True)
class _Test:
    """One pair on one metric."""

    p: float | None
    method: str
    wilcoxon: float | None
    n: int
    clusters: int
    reason: str = ""


def _compare(
    values: Mapping[tuple[str, str], Mapping[Item, float]],
    facet: str,
    pair: tuple[str, str],
    metrics: Sequence[str],
    alpha: float,
    seed: int,
) -> Comparison:
    greater, lesser = pair
    tests = {
        metric: _test(values.get((metric, greater), {}), values.get((metric, lesser), {}), seed)
        for metric in metrics
    }
    missing = [f"{metric}: {test.reason}" for metric, test in tests.items() if test.reason]
    found = [test.p for test in tests.values() if test.p is not None]
    p = None if missing else max(found)
    return Comparison(
        greater=greater,
        lesser=lesser,
        p=p,
        p_holm=None,
        significant=None if p is None else p < alpha,
        by_metric={metric: test.p for metric, test in tests.items()},
        wilcoxon={metric: test.wilcoxon for metric, test in tests.items()},
        n=min(test.n for test in tests.values()),
        clusters=min(test.clusters for test in tests.values()),
        reason="; ".join(missing),
        facet=facet,
        alpha=alpha,
        method="; ".join(dict.fromkeys(t.method for t in tests.values() if t.method)),
    )


def _test(greater: Mapping[Item, float], lesser: Mapping[Item, float], seed: int) -> _Test:
    items = [item for item in greater if item in lesser]
    if not items:
        return _Test(None, "", None, 0, 0, "no paired items")
    differences = [greater[item] - lesser[item] for item in items]
    clusters = [cluster for cluster, _ in items]
    by_item, number = wilcoxon_by_item(differences), len(set(clusters))
    if number < 2:
        return _Test(None, "", by_item, len(items), number, "fewer than 2 clusters")
    return _Test(*sign_flip(differences, clusters, seed), by_item, len(items), number)


def _item_means(
    scores: Sequence[Score], facet: str, worse: Mapping[str, float]
) -> dict[tuple[str, str], dict[Item, float]]:
    """Metric and condition -> item -> mean of its repeats; an item without a value counts as the
    worse outcome, or is left out."""
    repeats: dict[tuple[str, str], dict[Item, list[float]]] = {}
    for score in scores:
        value = worse.get(score.metric) if score.value is None else score.value
        if value is not None and facet in score.facets:
            items = repeats.setdefault((score.metric, score.facets[facet]), {})
            items.setdefault((score.cluster, score.question), []).append(value)
    return {
        key: {item: sum(v) / len(v) for item, v in items.items()} for key, items in repeats.items()
    }
