"""Published figures beside a run's own, in the terminal, within 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from persona_lab.core.scores import Estimate
from persona_lab.reporting.published import PublishedRow, mark, matching

_MOST_COLUMNS = 3
"""Of the paper's columns, that a table can hold with the intervals of this run."""
_MOST_MODELS, _MANY_CELLS = 5, 20
"""Turned round: columns that fit, and cells from which each beside this run's would be too long."""


def published_table(
    name: str,
    rows: Sequence[PublishedRow],
    estimates: Sequence[Estimate],
    judge: str | None,
    data_hash: str,
    *,
    paper_data: bool = False,
) -> Table:
    """One published table beside this run's values, with the mark.

    Where the rows are models measured alike, a small table keeps the paper's shape, with this run
    as its last row, and a large one is turned round, with this run as its last column. In any other
    each figure stands beside the run's own value under the same condition.

    Args:
        name: of the table, such as `Table 15`; rows of others are left out.
        judge, data_hash, paper_data: as `mark` takes them.
    """
    chosen = [row for row in rows if row.table == name]
    spread = any(row.variance is not None for row in chosen)
    table = Table(
        title=escape(f"{name} as published, and this run"),
        title_justify="left",
        caption="± what the paper calls variance" if spread else None,
        caption_justify="left",
    )

    def marked(row: PublishedRow) -> str:
        return mark(row, judge, data_hash, paper_data=paper_data)

    shape = _shape(chosen)
    if shape == "as printed":
        _as_printed(table, chosen, estimates, marked(chosen[0]))
        return table
    if shape == "turned round":
        _turned_round(table, chosen, estimates, marked(chosen[0]))
        return table
    table.add_column("", max_width=23, overflow="fold")
    table.add_column("published", justify="right", max_width=13, overflow="fold")
    table.add_column("this run", justify="right", max_width=28, overflow="fold")
    table.add_column("mark", max_width=23, overflow="fold")
    for heading in dict.fromkeys(row.row for row in chosen):
        table.add_row(escape(heading), style="bold")
        for row in (row for row in chosen if row.row == heading):
            own = [pair.estimate for pair in matching([row], estimates)]
            why = marked(row) if own else ""
            table.add_row(f"  {escape(row.column)}", row.printed, escape(_own(own)), why)
        table.add_section()
    return table


def _shape(rows: Sequence[PublishedRow]) -> str:
    """How the rows of a table are shown, which differ in nothing that this project has a name for;
    empty for rows that do."""
    conditions: dict[str, set[tuple[str, ...]]] = {}
    for row in rows:
        facets = tuple(f"{k}={v}" for k, v in sorted(row.facets.items()))
        conditions.setdefault(row.column, set()).add((row.judge, *facets))
    models = len({row.row for row in rows})
    if models < 2 or any(len(found) > 1 for found in conditions.values()):
        return ""
    if len(conditions) <= _MOST_COLUMNS:
        return "as printed"
    return "turned round" if models <= _MOST_MODELS and len(rows) > _MANY_CELLS else ""


def _as_printed(
    table: Table, rows: Sequence[PublishedRow], estimates: Sequence[Estimate], why: str
) -> None:
    columns = list(dict.fromkeys(row.column for row in rows))
    printed = {(row.row, row.column): row.printed for row in rows}
    table.add_column("", max_width=24, overflow="fold")
    for column in columns:
        table.add_column(escape(column), justify="right", max_width=21, overflow="fold")
    for model in dict.fromkeys(row.row for row in rows):
        table.add_row(escape(model), *(printed.get((model, c), "") for c in columns))
    table.add_section()
    first = {row.column: row for row in reversed(rows)}
    own = ([p.estimate for p in matching([first[c]], estimates)] for c in columns)
    label = f"this run ({why})" if why else "this run"
    table.add_row(label, *(escape(_own(found)) for found in own), style="bold")


def _turned_round(
    table: Table, rows: Sequence[PublishedRow], estimates: Sequence[Estimate], why: str
) -> None:
    models = list(dict.fromkeys(row.row for row in rows))
    table.add_column("", max_width=20, overflow="fold")
    for model in models:
        table.add_column(escape(model), justify="right", max_width=9, overflow="fold")
    table.add_column(f"this run ({why})" if why else "this run", justify="right", max_width=24)
    for column in dict.fromkeys(row.column for row in rows):
        mine = {row.row: row for row in rows if row.column == column}
        own = [p.estimate for p in matching([next(iter(mine.values()))], estimates)]
        cells = (mine[model].printed if model in mine else "" for model in models)
        table.add_row(escape(column), *cells, escape(_own(own)))


def _own(estimates: Sequence[Estimate]) -> str:
    """This run's values; where there are several, each below what sets it apart."""
    names = dict.fromkeys(name for e in estimates for name in e.facets)
    varying = [n for n in names if len({e.facets.get(n, "") for e in estimates}) > 1]
    lines = []
    for e in estimates:
        if varying:
            lines.append(", ".join(e.facets.get(n, "") for n in varying).replace("_", " ") + ":")
        value = "n/a" if e.value is None else f"{e.value:,.3f}"
        ends = "" if e.low is None or e.high is None else f" [{e.low:,.3f}, {e.high:,.3f}]"
        lines.append(f"{value}{ends}  n={e.n}")
    return "\n".join(lines)
