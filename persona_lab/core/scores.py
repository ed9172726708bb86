"""The tidy table that every benchmark ends in, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ScoreOutcome = Literal["ok", "unparsed", "truncated", "failed"]


@dataclass(frozen=True)
class Score:
    """One row of the table: what one question gave on one metric.

    Attributes:
        cluster: the user or scenario that the item belongs to; estimates respect it.
        value: None unless the outcome is `ok`; never invented.
        facets: what the row can be grouped by.
    """

    case: str
    question: str
    metric: str
    cluster: str
    value: float | None
    outcome: ScoreOutcome
    reason: str = ""
    facets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """One reported number. A value that does not exist is None, with the reason in `interval`.

    Attributes:
        low, high: ends of the 95 % interval; interval: the method's name, or why there is none.
        basis: `all` (an item without a value counts as the worse outcome) or `scored`.
        n: items that the value is over; clusters: their clusters.
        unparsed, truncated, failed: items without a value.
        two_way: ends of the 95 % interval that also respects a second, crossed clustering
            (BenchPreS: user and context, so that it speaks of new contexts too); None where none
            was asked for, or either side has fewer than 5 clusters.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    interval: str
    basis: str
    n: int
    clusters: int
    unparsed: int = 0
    truncated: int = 0
    failed: int = 0
    facets: Mapping[str, str] = field(default_factory=dict)
    two_way: tuple[float, float] | None = None


Row = dict[str, str | int | float | None]


@dataclass(frozen=True)
class RowsTable:
    """A table of its own kind, such as the agreement of two judges: rows of one shape.

    Attributes:
        kept_back: columns that are stored and not printed.
        printed: rows that are printed at most; all are stored (None: all are printed).
    """

    title: str
    rows: list[Row]
    kept_back: tuple[str, ...] = ()
    printed: int | None = None


@dataclass(frozen=True)
class Summary:
    """What an experiment makes of its outcomes; `tables` come besides estimates and tests.

    Attributes:
        card: what the run says of its target as a judge of others, by metric; empty where it says
            nothing. The runs that this judge serves in show it.
        unread: replies behind what cases share that nothing could be made of, and all such replies.
        files: rows of further Parquet files in the run's folder, by the file's stem.
    """

    scores: list[Score]
    estimates: list[Estimate]
    tests: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: list[RowsTable] = field(default_factory=list)
    card: Mapping[str, Estimate] = field(default_factory=dict)
    files: Mapping[str, list[Row]] = field(default_factory=dict)
    unread: tuple[int, int] = (0, 0)
