"""Blind sheets and their key: what annotators fill in, and what they must not see.

A sheet shows what its annotator may know. Where an item comes from and what is right stand in the
key. Items are named by a digest of what they are, so a key does not fit a sheet drawn otherwise,
and the annotator is the name of the file: rename a copy to give it to one more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from persona_lab.core.errors import ConfigError, DataError
from persona_lab.parsing.csv_sheet import Rows, SheetRow, read_sheet, taken, write_sheet


@dataclass(frozen=True)
class Sheets:
    """Sheets that are drawn but not written yet.

    Attributes:
        filled_in: name of a sheet -> its rows, all with the same columns.
        key: what annotators must not see, a row per item.
        notes: what the user should know of them.
        guidelines: name of a text file that goes with the sheets -> its content.
    """

    filled_in: Mapping[str, Rows]
    key: Rows
    notes: Sequence[str] = field(default_factory=list)
    guidelines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Annotated:
    """One filled-in row, who filled it in, and its row of the key."""

    annotator: str
    row: SheetRow
    source: SheetRow


def write_sheets(folder: Path, kind: str, sheets: Sheets) -> list[Path]:
    """Writes sheets, guidelines and, last, the key `KIND.key.csv`: all of them, or none.

    Raises:
        ConfigError: one of the files is there already.
    """
    filled_in = {folder / f"{name}.csv": rows for name, rows in sheets.filled_in.items()}
    guidelines = {folder / name: text for name, text in sheets.guidelines.items()}
    key = folder / f"{kind}.key.csv"
    files = [*filled_in, *guidelines, key]
    if there := next((path for path in files if path.exists()), None):
        raise taken(there)
    folder.mkdir(parents=True, exist_ok=True)
    for path, rows in filled_in.items():
        write_sheet(path, rows)
    for path, text in guidelines.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    write_sheet(key, sheets.key)
    return files


def item_name(*parts: str) -> str:
    """A name that says nothing, and that no spreadsheet program takes for a number."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6)
    return f"item-{digest.hexdigest()}"


def read_key(path: Path, columns: Sequence[str]) -> dict[str, SheetRow]:
    """A key's rows by their item.

    Raises:
        DataError: as `read_sheet`.
    """
    return {row.text("item"): row for row in read_sheet(path, ("item", *columns), "item")}


def read_filled_in(
    files: Sequence[Path], columns: Sequence[str], key: Mapping[str, SheetRow]
) -> list[Annotated]:
    """Every row of every sheet; a sheet's file name is its annotator's.

    Raises:
        ConfigError: two files of one name.
        DataError: as `read_sheet`; a sheet without items, or an item that the key lacks.
    """
    names = [path.stem for path in files]
    if twice := next((path for path in files if names.count(path.stem) > 1), None):
        raise ConfigError(f"{twice}: a sheet's name is its annotator's, and another has it too")
    made = []
    for path in files:
        rows = read_sheet(path, ("item", *columns), "item")
        if not rows:
            raise DataError(path, "has no items")
        for row in rows:
            if row.text("item") not in key:
                raise row.error("item", "is not in the key: give the one written with this sheet")
            made.append(Annotated(path.stem, row, key[row.text("item")]))
    return made


def missing_note(key: Mapping[str, SheetRow], rows: Sequence[Annotated]) -> list[str]:
    """Says how many items of the key no sheet has."""
    lacking = len(key) - len({read.source.text("item") for read in rows})
    return [f"{lacking} of {len(key)} items of the key are in none of the sheets."] * bool(lacking)
