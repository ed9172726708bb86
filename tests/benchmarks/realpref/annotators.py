"""Sheets as annotators give them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from persona_lab.parsing.csv_sheet import write_sheet
from persona_lab.parsing.sheet_key import Sheets

Fill = Callable[[Mapping[str, str]], Mapping[str, str]]


def written(folder: Path, sheets: Sheets, fill: Fill) -> tuple[list[Path], Path]:
    """The sheets as annotators give them back, and the key."""
    folder.mkdir(exist_ok=True)
    key = folder / "key.csv"
    write_sheet(key, sheets.key)
    for name, rows in sheets.filled_in.items():
        write_sheet(folder / f"{name}.csv", [{**row, **fill(row)} for row in rows])
    return [folder / f"{name}.csv" for name in sheets.filled_in], key


def items(rows: object) -> list[str]:
    return [row["item"] for row in rows]  # type: ignore[attr-defined]
