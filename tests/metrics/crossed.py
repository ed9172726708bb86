"""Rows of users and contexts, and variances written out with loops, apart from the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from persona_lab.core.scores import Score
from persona_lab.metrics.estimate import Metric

APPLIED = Metric(0.0, 1.0, worse=0.0)
MISAPPLIED = Metric(0.0, 1.0, worse=1.0)
FREE = Metric(-1000.0, 1000.0)


def crossed_rows(values: np.ndarray, metric: str = "rate") -> list[Score]:
    """One row a user and context, from values [users, contexts]."""
    return [
        Score(f"u{u}/c{c}", f"c{c}/{metric}", metric, f"u{u:02}", float(value), "ok", "",
              {"context": f"c{c:02}"})
        for (u, c), value in np.ndenumerate(values)
    ]  # fmt: skip


def left_out_variance(
    rows: Sequence[Score],
    label: Callable[[Score], object],
    statistic: Callable[[Sequence[Score]], float],
) -> float:
    """Delete-one jackknife variance of a statistic over the labels of its rows."""
    labels = {label(row) for row in rows}
    found = np.array([statistic([r for r in rows if label(r) != one]) for one in labels])
    return float((len(found) - 1) * found.var())


def user(row: Score) -> object:
    return row.cluster


def context(row: Score) -> object:
    return row.facets["context"]


def both(row: Score) -> object:
    return row.cluster, row.facets["context"]
