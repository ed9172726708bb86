"""Tables for the terminal, within 100 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from persona_lab.core.plan import RolePlan
from persona_lab.core.scores import Estimate, RowsTable
from persona_lab.reporting.usage import RoleUsage

_STACKED_FROM = 4
_MOST_COLUMNS = 5
_LARGE = 100


def results_tables(
    estimates: Sequence[Estimate], title: str, columns: Sequence[str] = ()
) -> list[Table]:
    """Estimates, in a table for each set of facets that they are given by.

    Columns are the first of the facets named for them that varies; where it has many values, they
    go to several tables.

    Args:
        columns: facets that may stand side by side.
    """
    groups: dict[tuple[str, ...], list[Estimate]] = {}
    for estimate in estimates:
        groups.setdefault(tuple(estimate.facets), []).append(estimate)
    first = next(iter(groups), ())
    tables = []
    for names, members in groups.items():
        more = [_words(name) for name in names if name not in first]
        named = f"{title}, by {' and '.join(more)}" if more else title
        across = next((n for n in columns if n in names and len(_values(members, n)) > 1), None)
        across = across or next((n for n in columns if n in names), "")
        values = _values(members, across)
        parts = -(-len(values) // _MOST_COLUMNS)
        for part in range(parts):
            shown = values[part * len(values) // parts : (part + 1) * len(values) // parts]
            chosen = [e for e in members if e.facets.get(across, "") in shown]
            tables.append(_results_table(chosen, named, across))
    return tables


def _values(estimates: Sequence[Estimate], facet: str) -> list[str]:
    return list(dict.fromkeys(e.facets.get(facet, "") for e in estimates))


def _results_table(estimates: Sequence[Estimate], title: str, across: str) -> Table:
    """A row per metric under a heading per condition, a column per value of the facet `across`.

    What is the same everywhere goes to the title: facets, and the reason why no interval exists.
    A rate is shown over all items, with the rate over scored items below where they differ.
    """
    names = list(estimates[0].facets)
    varying = [n for n in names if len(_values(estimates, n)) > 1]
    columns = _values(estimates, across)
    fixed = (estimates[0].facets[n] for n in names if n not in (*varying, across))
    common = [value for value in fixed if value]
    intervals = {e.interval for e in estimates if e.value is not None}
    no_interval = next(iter(intervals)) if len(intervals) == 1 else ""
    if no_interval.startswith("n/a"):
        common.append(f"95 % intervals {no_interval}")
    table = Table(title=escape(f"{title} ({', '.join(common)})" if common else title))
    table.title_justify = "left"
    stacked = len(columns) >= _STACKED_FROM
    widest = max(len(f"  {e.metric}") for e in estimates)
    width = widest if len(columns) > 2 else max(24, widest)
    # Where it may wrap, rich takes its width first, gives it back, and crops the last column.
    table.add_column("metric", min_width=width, no_wrap=not stacked)
    for column in columns:
        table.add_column(_words(column), justify="right")
    for heading, rows in _grouped(estimates, [n for n in varying if n != across], across).items():
        if heading:
            named = ", ".join(filter(None, heading))
            table.add_row(_words(named), *[""] * len(columns), style="bold")
        for metric, cells in rows.items():
            shown = (_cell(cells.get(column, {}), no_interval, stacked) for column in columns)
            table.add_row(f"  {_words(metric)}", *shown)
        table.add_section()
    return table


def _grouped(
    estimates: Sequence[Estimate], facets: Sequence[str], across: str
) -> dict[tuple[str, ...], dict[str, dict[str, dict[str, Estimate]]]]:
    """Heading -> metric -> column -> basis -> estimate."""
    groups: dict[tuple[str, ...], dict[str, dict[str, dict[str, Estimate]]]] = {}
    for e in estimates:
        heading = tuple(e.facets[n] for n in facets)
        column = e.facets.get(across, "")
        by_metric = groups.setdefault(heading, {})
        by_metric.setdefault(e.metric, {}).setdefault(column, {})[e.basis] = e
    return groups


def _cell(by_basis: Mapping[str, Estimate], no_interval: str, stacked: bool) -> str:
    """A value, its interval and its counts; on lines of their own where columns are many."""
    if not by_basis:
        return ""
    scored = by_basis["scored"]
    main = by_basis.get("all", scored)
    digits = 2 if stacked else 3
    if main.value is not None and main.value >= _LARGE:
        digits = 0
    parts = ["n/a" if main.value is None else f"{main.value:,.{digits}f}"]
    if main.low is not None and main.high is not None:
        parts.append(f"[{main.low:,.{digits}f}, {main.high:,.{digits}f}]")
    elif main.value is not None and main.interval != no_interval:
        parts.append(f"({main.interval})")
    lines = [*parts, f"n={main.n}"] if stacked else [f"{' '.join(parts)}  n={main.n}"]
    if "all" in by_basis and scored.value is not None and scored.n != main.n:
        lines.append(f"scored only {scored.value:.{digits}f}  n={scored.n}")
    counts = {"unparsed": main.unparsed, "truncated": main.truncated, "failed": main.failed}
    lost = [f"{count} {name}" for name, count in counts.items() if count]
    lines += lost if stacked else [", ".join(lost)] if lost else []
    return "\n".join(lines)


def _words(name: str) -> str:
    return escape(name.replace("_", " "))


def tests_table(tests: Sequence[Mapping[str, Any]]) -> Table:
    """Ordered comparisons: the hypothesis, its p, and whether it holds in all dimensions."""
    table = Table(title="Significance (largest p over all dimensions)", title_justify="left")
    for name in ("table", "hypothesis", "within", "p", "p (Holm)", "p < 0.05"):
        table.add_column(name, overflow="fold")
    for test in tests:
        p, corrected = test["p"], test["p_holm"]
        table.add_row(
            escape(str(test["table"])),
            f"{_words(test['greater'])} > {_words(test['lesser'])}",
            _words(", ".join(test["facets"].values())),
            "n/a" if p is None else f"{p:.4f}",
            escape(str(test["reason"])) if corrected is None else f"{corrected:.4f}",
            "" if test["significant"] is None else str(test["significant"]),
        )
    return table


def recipes_table(recipes: Mapping[str, str]) -> Table:
    """The recipes and the first line of what each says of itself."""
    table = Table(box=None, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, about in recipes.items():
        table.add_row(escape(name), escape(about))
    return table


def rows_table(made: RowsTable) -> Table:
    """Rows of one shape; numbers to the right, what does not exist as n/a."""
    table = Table(title=escape(made.title), title_justify="left")
    columns = [name for name in (made.rows[0] if made.rows else {}) if name not in made.kept_back]
    for name in columns:
        is_text = isinstance(made.rows[0][name], str)
        table.add_column(_words(name), justify="left" if is_text else "right")
    printed = made.rows[: made.printed]
    for row in printed:
        table.add_row(*(_shown(row[name]) for name in columns))
    if left := len(made.rows) - len(printed):
        table.caption, table.caption_justify = f"and {left:,} more in results.json", "left"
    return table


def _shown(value: str | float | None) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, str):
        return _words(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def plan_table(plans: Mapping[str, RolePlan], names: Mapping[str, str]) -> Table:
    """What a dry run found out, a row per role; `known` replies are remembered, the rest is to be
    served and makes the tokens."""
    guessed = any(plan.exact < plan.to_serve for plan in plans.values())
    caption = "~ estimated: made from replies that are not there yet, or without the tokenizer"
    table = Table(
        title="Plan: requests and prompt tokens",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption=caption if guessed else None,
        caption_justify="left",
    )
    table.add_column("role")
    table.add_column("model", overflow="fold")
    rows = [_plan_row(role, names[role], plan) for role, plan in plans.items()]
    for place, column in enumerate(
        ("requests", "known", "prompt", "unique", "longest", "no fit"), 2
    ):
        width = max([len(column), *(len(row[place]) for row in rows)])
        table.add_column(column, justify="right", min_width=width)
    for row in rows:
        table.add_row(*row)
    return table


def _plan_row(role: str, name: str, plan: RolePlan) -> list[str]:
    about = "~" if plan.exact < plan.to_serve else ""
    return [
        role,
        escape(name),
        f"{plan.requests:,}",
        f"{plan.remembered:,}",
        f"{about}{plan.prompt_tokens:,}",
        f"{about}{plan.unique_tokens:,}",
        f"{about}{plan.longest[0]:,}+{plan.longest[1]:,}",
        f"{len(plan.too_long):,}",
    ]


def usage_table(usage: Mapping[str, RoleUsage]) -> Table:
    """What each role cost, a row per role."""
    table = Table(title="Usage", title_justify="left")
    table.add_column("role")
    for column in ("served", "remembered", "failed", "prompt", "computed", "unique", "out", "s"):
        table.add_column(column, justify="right")
    for role, u in usage.items():
        table.add_row(
            role,
            *(
                f"{n:,}"
                for n in (
                    u.served,
                    u.remembered,
                    u.failed,
                    u.prompt_tokens,
                    u.computed_prompt_tokens,
                    u.unique_prompt_tokens,
                    u.completion_tokens,
                    round(u.seconds),
                )
            ),
        )
    return table
