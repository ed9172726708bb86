"""Published figures (`data/published/`): read, matched with a run's own by condition, marked.

A file of published figures is a CSV with one cell of a paper's table a row:

    table,row,column,value,variance,n,judge,facets
    Table 15,Mem0,Type 1,4.476,,,Claude Sonnet 4,task=open_ended;...;metric=preference_awareness

A figure belongs to an estimate if the estimate has all its facets, `metric` among them, and none
that it excludes (`evaluator!=constant_over`). It is never shown without its mark: other data or
another judge make it a different measurement.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from persona_lab.core.errors import DataError
from persona_lab.core.scores import Estimate
from persona_lab.parsing.json_file import read_text

COLUMNS = ("table", "row", "column", "value", "variance", "n", "judge", "facets")
PAPER_DATA_HASHES: frozenset[str] = frozenset()
"""Data hashes of the papers' own data; none is known so far."""

_NUMBER = r"-?[0-9]+(\.[0-9]+)?"
_SPREAD = r"[0-9]+(\.[0-9]+)?"
_COUNT = r"[1-9][0-9]*"
_FACET = r"[a-z_]+!?=[^;=!\s]+"


@dataclass(frozen=True)
class PublishedRow:
    """One number of a paper's table.

    Attributes:
        table, row, column: where it stands, in the paper's words.
        printed: the number and its spread with the digits of the paper.
        variance: what the paper prints behind `±` and calls variance; n: items, where it says.
        judge: who judged; empty where nobody did.
        facets: its condition in this project's names, and its `metric`.
        unlike: what its condition is not.
    """

    table: str
    row: str
    column: str
    value: float
    printed: str
    variance: float | None = None
    n: int | None = None
    judge: str = ""
    facets: Mapping[str, str] = field(default_factory=dict)
    unlike: Mapping[str, str] = field(default_factory=dict)

    def fits(self, condition: Mapping[str, str]) -> bool:
        """Whether it was measured under this condition."""
        excluded = self.unlike.items() & condition.items()
        return self.facets.items() <= condition.items() and not excluded


@dataclass(frozen=True)
class Pair:
    """A published number and an estimate under the same condition."""

    row: PublishedRow
    estimate: Estimate


def load_published(path: Path) -> list[PublishedRow]:
    """Reads a file of published figures.

    Raises:
        DataError: no such file, a missing or unknown column, a cell that is not what its column
            holds, or a cell of a table given twice; it names file, line and field.
    """
    reader = csv.reader(io.StringIO(read_text(path)), strict=True)
    rows: dict[tuple[str, str, str], PublishedRow] = {}
    try:
        header = next(reader, [])
        _check_header(path, header)
        for cells in reader:
            if len(cells) != len(header):
                problem = f"has {len(cells)} cells, not {len(header)}"
                raise DataError(path, problem, line=reader.line_num)
            row = _row(path, reader.line_num, dict(zip(header, cells, strict=True)))
            if (place := (row.table, row.row, row.column)) in rows:
                problem = f"{', '.join(place)} is given twice"
                raise DataError(path, problem, line=reader.line_num, field="column")
            rows[place] = row
    except csv.Error as error:
        raise DataError(path, f"is no CSV: {error}", line=reader.line_num) from None
    return list(rows.values())


def _check_header(path: Path, header: Sequence[str]) -> None:
    for name in COLUMNS:
        if header.count(name) != 1:
            problem = "column is missing" if name not in header else "column is given twice"
            raise DataError(path, f"{problem}; needed: {','.join(COLUMNS)}", line=1, field=name)
    for name in header:
        if name not in COLUMNS:
            raise DataError(path, f"unknown column; known: {','.join(COLUMNS)}", line=1, field=name)


def _row(path: Path, line: int, cells: Mapping[str, str]) -> PublishedRow:
    def checked(name: str, pattern: str, wanted: str, *, needed: bool = False) -> str:
        cell = cells[name]
        if (cell or needed) and not re.fullmatch(pattern, cell):
            raise DataError(path, f"{cell!r} is not {wanted}", line=line, field=name)
        return cell

    table, row, column = (
        checked(name, r"\S(.*\S)?", "a name", needed=True) for name in ("table", "row", "column")
    )
    value = checked("value", _NUMBER, "a number", needed=True)
    variance = checked("variance", _SPREAD, "a number of at least 0")
    n = checked("n", _COUNT, "a whole number of at least 1")
    facets, unlike = _facets(path, line, cells["facets"])
    return PublishedRow(
        table=table,
        row=row,
        column=column,
        value=float(value),
        printed=f"{value} ± {variance}" if variance else value,
        variance=float(variance) if variance else None,
        n=int(n) if n else None,
        judge=checked("judge", r"\S(.*\S)?", "a name"),
        facets=facets,
        unlike=unlike,
    )


def _facets(path: Path, line: int, cell: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the condition is, and what it is not."""
    parts = cell.split(";")
    for part in parts:
        if not re.fullmatch(_FACET, part):
            problem = f"{part!r} is not key=value; write key=value;key=value"
            raise DataError(path, problem, line=line, field="facets")
    named = dict(part.split("=") for part in parts)
    if len(named) < len(parts):
        raise DataError(path, "a key is given twice", line=line, field="facets")
    facets = {key: value for key, value in named.items() if not key.endswith("!")}
    if "metric" not in facets:
        raise DataError(path, "names no metric: add metric=NAME", line=line, field="facets")
    unlike = {key[:-1]: value for key, value in named.items() if key.endswith("!")}
    return facets, unlike


def matching(rows: Sequence[PublishedRow], estimates: Sequence[Estimate]) -> list[Pair]:
    """Pairs of a published row and an estimate that has all its facets, in the rows' order.

    Of a rate's two bases only the headline (`all`) is paired. An estimate may have facets that the
    row leaves open; then a row has several pairs, with the estimates of fewest facets: an overall
    figure is not paired with its parts.
    """
    headlines: dict[tuple[tuple[str, str], ...], Estimate] = {}
    for estimate in estimates:
        condition = tuple(sorted(_condition(estimate).items()))
        if estimate.basis == "all" or condition not in headlines:
            headlines[condition] = estimate
    pairs = []
    for row in rows:
        found = [e for e in headlines.values() if row.fits(_condition(e))]
        fewest = min((len(e.facets) for e in found), default=0)
        pairs += [Pair(row, estimate) for estimate in found if len(estimate.facets) == fewest]
    return pairs


def _condition(estimate: Estimate) -> dict[str, str]:
    return {**estimate.facets, "metric": estimate.metric}


def mark(row: PublishedRow, judge: str | None, data_hash: str, *, paper_data: bool = False) -> str:
    """Why a run's number is another measurement than the published one; empty if it is not.

    Args:
        judge: the run's judge as the paper would name it; None without one.
        data_hash: of the run's data. paper_data: the caller knows that it is the paper's.

    Returns:
        `other data`, `other judge`, both joined by ", ", or "".
    """
    marks = []
    if not paper_data and data_hash not in PAPER_DATA_HASHES:
        marks.append("other data")
    if row.judge and judge != row.judge:
        marks.append("other judge")
    return ", ".join(marks)
