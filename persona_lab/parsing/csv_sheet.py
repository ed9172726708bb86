"""CSV sheets that people fill in: written so that a spreadsheet program opens them, read strictly.

A cell that a spreadsheet program would take for a formula carries a single quote in front, which
reading takes off again. What such programs and hands leave behind is tolerated: a byte order mark,
semicolons or tabs between cells, blank lines, spaces around a cell, `4.0` for 4, further columns.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from persona_lab.core.errors import ConfigError, DataError
from persona_lab.parsing.parsed import folded

Rows = Sequence[Mapping[str, str]]
CELL_LIMIT = 32_767
"""Characters that the common spreadsheet programs keep of one cell."""
_DELIMITERS = ",;\t"
_FORMULA = re.compile(r"'*[=+\-@]")
_QUOTED = re.compile(r"'+[=+\-@]")


@dataclass(frozen=True)
class SheetRow:
    """One row as it was read.

    Attributes:
        line: 1-based line on which it begins.
        cells: by column name in lower case; `` where the row is short.
    """

    file: Path
    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """A cell that must not be empty."""
        return self.cells[column] or self._refuse(column, "is empty")

    def one_of(self, column: str, labels: Iterable[str]) -> str:
        """A cell that must be one of the labels, in any case."""
        known = {label.casefold(): label for label in labels}
        given = self.text(column)
        found = known.get(" ".join(folded(given).casefold().split()))
        return found or self._refuse(column, f"{given!r} is none of {', '.join(known.values())}")

    def whole(self, column: str, low: int, high: int) -> int:
        """A cell that must be a whole number in [low, high]; `4.0` and `4,0` are 4."""
        given = self.text(column)
        match = re.fullmatch(r"([+-]?[0-9]{1,9})(?:[.,]0*)?", folded(given))
        if match and low <= int(match[1]) <= high:
            return int(match[1])
        return self._refuse(column, f"{given!r} is no whole number from {low} to {high}")

    def error(self, column: str, problem: str) -> DataError:
        """What is wrong with a cell, with its place."""
        return DataError(self.file, problem, line=self.line, field=column)

    def _refuse(self, column: str, problem: str) -> NoReturn:
        raise self.error(column, problem)


def read_sheet(path: Path, columns: Sequence[str], unique: str = "") -> list[SheetRow]:
    """Reads a sheet whose first line names its columns.

    Args:
        columns: those that it must have. unique: one of them whose cells must differ.

    Raises:
        DataError: no such file, no CSV, a missing column or a repeated `unique`.
    """
    text = _text(path)
    records = [(line, cells) for line, cells in _records(path, text) if any(cells)]
    if not records:
        raise DataError(path, "is empty")
    line, header = records[0]
    names = [name.casefold() for name in header]
    _refuse_columns(path, line, names, columns)
    rows = []
    for start, cells in records[1:]:
        if any(cells[len(names) :]):
            raise DataError(path, f"has more cells than the {len(names)} columns", line=start)
        padded = cells + [""] * (len(names) - len(cells))
        rows.append(SheetRow(path, start, dict(zip(names, padded, strict=False))))
    if unique:
        _refuse_repeated(rows, unique)
    return rows


def read_items(path: Path, columns: Sequence[str]) -> list[SheetRow]:
    """Reads items from a CSV sheet or from JSON lines, by the file's ending.

    Raises:
        DataError: naming file, line and field of the first thing that is wrong.
    """
    kind = path.suffix.lower()
    if kind not in (".csv", ".jsonl"):
        raise DataError(path, "is neither a .csv nor a .jsonl file")
    rows = read_sheet(path, columns) if kind == ".csv" else _json_lines(path, columns)
    for row in rows:
        for column in columns:
            row.text(column)
    return rows


def write_sheet(path: Path, rows: Rows, *, replace: bool = False) -> None:
    """Writes a sheet, columns in the order of the first row's.

    Args:
        rows: at least one; cells are stripped.
        replace: whether a file of this name may go.

    Raises:
        ConfigError: the file is there and may have been filled in.
    """
    made = io.StringIO(newline="")
    writer = csv.writer(made)
    writer.writerow(rows[0])
    writer.writerows([_guarded(cell) for cell in row.values()] for row in rows)
    # A lone surrogate, which JSON data may hold, has no UTF-8 form.
    content = made.getvalue().encode("utf-8-sig", "replace")
    if not replace:
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            raise taken(path) from None
        return
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(content)
    scratch.replace(path)


def taken(path: Path) -> ConfigError:
    """Why a file that is there is left as it is."""
    return ConfigError(f"{path}: is there already and may be filled in; name another folder")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 ({error.reason}): save it as CSV UTF-8") from None
    except OSError as error:
        raise DataError(path, f"cannot be read ({error.strerror})") from None


def _records(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of each record."""
    header = re.split(r"[\r\n]", text.lstrip(), maxsplit=1)[0]
    delimiter = max(_DELIMITERS, key=header.count)
    csv.field_size_limit(2**31 - 1)  # the limit of 128 KiB is less than a long conversation
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, [_unguarded(cell) for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, f"is no CSV: {error}", line=line) from None


def _refuse_columns(path: Path, line: int, names: list[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            has = ", ".join(name for name in names if name)
            raise DataError(path, f"no such column; it has {has}", line=line, field=column)
        if names.count(column) > 1:
            raise DataError(path, "two columns have this name", line=line, field=column)


def _refuse_repeated(rows: Sequence[SheetRow], column: str) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        value = row.text(column)
        if value in seen:
            raise row.error(column, f"{value} is on line {seen[value]} already")
        seen[value] = row.line


def _json_lines(path: Path, columns: Sequence[str]) -> list[SheetRow]:
    rows = []
    # Not splitlines(): a JSON string may hold U+2028 and its like as they are.
    for line, text in enumerate(_text(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(path, f"is no JSON: {error}", line=line) from None
        if not isinstance(value, dict):
            raise DataError(path, "is no JSON object", line=line)
        named = {name.casefold(): content for name, content in value.items()}
        for column in columns:
            if not isinstance(named.get(column), str):
                raise DataError(path, "is missing or no text", line=line, field=column)
        rows.append(SheetRow(path, line, {column: named[column].strip() for column in columns}))
    return rows


def _guarded(cell: str) -> str:
    cell = cell.strip()
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _unguarded(cell: str) -> str:
    cell = cell.strip()
    return cell[1:] if _QUOTED.match(cell) else cell
