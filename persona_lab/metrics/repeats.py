"""How much does a result move when the run is repeated? Table 16 and Appendix H.4 of RealPref: the
same questions at least three times, and the spread of the runs' means."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from persona_lab.core.errors import ConfigError
from persona_lab.core.scores import Score
from persona_lab.metrics.estimate import Metric

FEWEST_RUNS = 3

Group = tuple[str, ...]
"""A metric and its facets."""


@dataclass(frozen=True)
class RepeatedRuns:
    """One cell of Table 16. Without a mean of every run there are none, and `reason` says why.

    Attributes:
        basis: `all` (an item without a value counts as the worse outcome) or `scored`.
        mean: of the runs' means. sd, variance: of the runs' means, with R - 1.
        runs: mean of each run, in the order given.
        n: items of each run that its mean is over.
        unparsed, truncated, failed: scores without a value, over all runs.
    """

    metric: str
    basis: str
    mean: float | None
    sd: float | None
    variance: float | None
    runs: tuple[float | None, ...]
    n: tuple[int, ...]
    reason: str = ""
    unparsed: int = 0
    truncated: int = 0
    failed: int = 0
    facets: Mapping[str, str] = field(default_factory=dict)


def repeated_runs(
    runs: Sequence[Sequence[Score]], metrics: Mapping[str, Metric], by: Sequence[str] = ()
) -> list[RepeatedRuns]:
    """Mean, SD and variance over repeated runs, rates in both bases (Table 16).

    Args:
        runs: the table of each run, at least 3.
        metrics: by name; scores of other metrics are left out.
        by: facets that make the groups, such as `task`, in the order of their appearance.

    Raises:
        ConfigError: fewer than 3 runs.
    """
    if len(runs) < FEWEST_RUNS:
        raise ConfigError(
            f"repeated runs: {len(runs)} given, at least {FEWEST_RUNS} are needed for a spread; "
            "repeat the run with other seeds"
        )
    grouped = [_grouped(run, metrics, by) for run in runs]
    made = []
    for group in dict.fromkeys(key for groups in grouped for key in groups):
        tables = [groups.get(group, []) for groups in grouped]
        facets = dict(zip(by, group[1:], strict=True))
        worse = metrics[group[0]].worse
        if worse is not None:
            made.append(_spread(group[0], "all", tables, worse, facets))
        made.append(_spread(group[0], "scored", tables, None, facets))
    return made


def _spread(
    metric: str,
    basis: str,
    tables: Sequence[Sequence[Score]],
    worse: float | None,
    facets: Mapping[str, str],
) -> RepeatedRuns:
    items = [_item_means(table, worse) for table in tables]
    means = [statistics.fmean(values) if values else None for values in items]
    found = [mean for mean in means if mean is not None]
    outcomes = Counter(score.outcome for table in tables for score in table)
    reason = _problem(tables, means)
    return RepeatedRuns(
        metric=metric,
        basis=basis,
        mean=None if reason else statistics.fmean(found),
        sd=None if reason else statistics.stdev(found),
        variance=None if reason else statistics.variance(found),
        runs=tuple(means),
        n=tuple(map(len, items)),
        reason=reason,
        unparsed=outcomes["unparsed"],
        truncated=outcomes["truncated"],
        failed=outcomes["failed"],
        facets=facets,
    )


def _problem(tables: Sequence[Sequence[Score]], means: Sequence[float | None]) -> str:
    """Why the runs have no common mean; empty if they have one."""
    if empty := [str(number) for number, mean in enumerate(means, 1) if mean is None]:
        return f"no value in run {', '.join(empty)}"
    asked = [{(score.cluster, score.question) for score in table} for table in tables]
    if other := [str(number) for number, items in enumerate(asked, 1) if items != asked[0]]:
        return f"other questions in run {', '.join(other)} than in run 1"
    return ""


def _grouped(
    scores: Sequence[Score], metrics: Mapping[str, Metric], by: Sequence[str]
) -> dict[Group, list[Score]]:
    groups: dict[Group, list[Score]] = {}
    for score in scores:
        if score.metric in metrics:
            group = (score.metric, *(score.facets.get(name, "") for name in by))
            groups.setdefault(group, []).append(score)
    return groups


def _item_means(scores: Sequence[Score], worse: float | None) -> list[float]:
    """The value of each question; repeats within one run are averaged first."""
    repeats: dict[tuple[str, str], list[float]] = {}
    for score in scores:
        value = score.value if score.value is not None else worse
        if value is not None:
            repeats.setdefault((score.cluster, score.question), []).append(value)
    return [statistics.fmean(values) for values in repeats.values()]
