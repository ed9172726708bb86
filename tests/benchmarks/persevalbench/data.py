"""A small data folder, and sheets as annotators give them back, written by the test that reads
them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, get_args

from persona_lab.benchmarks.persevalbench.loading import FILE
from persona_lab.benchmarks.persevalbench.records import (
    Distance,
    Form,
    Relation,
    StateRelation,
    Subtype,
)
from persona_lab.parsing.csv_sheet import write_sheet
from persona_lab.parsing.sheet_key import Sheets

Cell = tuple[Relation, Subtype]
CELLS: tuple[Cell, ...] = (
    ("re_entry", "complete_omission"),
    ("cross_domain", "stale_superseded"),
    ("out_of_scope", "irrelevant_use"),
    ("re_entry", "partial_omission"),
    ("cross_domain", "over_dominance"),
    ("out_of_scope", "scope_leakage"),
    ("re_entry", "explicit_violation"),
    ("cross_domain", "underweighting"),
    ("out_of_scope", "unsupported_inference"),
    ("re_entry", "irrelevant_use"),
    ("cross_domain", "complete_omission"),
    ("re_entry", "scope_leakage"),
    ("cross_domain", "partial_omission"),
    ("re_entry", "stale_superseded"),
    ("cross_domain", "explicit_violation"),
    ("re_entry", "over_dominance"),
    ("cross_domain", "irrelevant_use"),
    ("re_entry", "underweighting"),
    ("cross_domain", "unsupported_inference"),
)
"""The 19 legal pairs (Table 7): the first six are two of each error family, of all relations."""
TARGET = 13
LATEST: dict[Distance, int] = {"near": 11, "medium": 7, "far": 3}
"""Latest turn of state A: 2, 6 and 10 turns before the target."""


def write_scenarios(folder: Path, number: int = 6, cells: Sequence[Cell] = CELLS) -> Path:
    """Writes scenarios.json: s01, s02, ... of 13 turns in two episodes, one after another of
    `cells`, again from the first where there are more.

    State relations, evidence forms and distances take turns too. State A dominates in odd scenarios
    and supports in even ones; B is ignored, and there is none in complete omissions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = [_scenario(n, cell) for n, cell in enumerate(islice(cycle(cells), number), 1)]
    (folder / FILE).write_text(json.dumps(made, indent=1), encoding="utf-8")
    return folder


def filled_in(
    folder: Path, sheets: Sheets, answer: Callable[[str, Mapping[str, str]], Mapping[str, str]]
) -> tuple[list[Path], Path]:
    """Writes the sheets with what `answer` says of a sheet's name and an item's row of the key, and
    the key."""
    folder.mkdir(exist_ok=True)
    key, sources = folder / "key.csv", {row["item"]: row for row in sheets.key}
    write_sheet(key, sheets.key, replace=True)
    files = [folder / f"{name}.csv" for name in sheets.filled_in]
    for path, rows in zip(files, sheets.filled_in.values(), strict=True):
        cells = [{**row, **answer(path.stem, sources[row["item"]])} for row in rows]
        write_sheet(path, cells, replace=True)
    return files, key


def _scenario(number: int, cell: Cell) -> dict[str, Any]:
    name, (relation, subtype) = f"s{number:02}", cell
    distance: Distance = get_args(Distance)[number % 3]
    form: Form = get_args(Form)[number // 3 % 3]
    latest = LATEST[distance]
    a = _state(f"{name} wants it quiet.", "Dominate" if number % 2 else "Support", [1, latest])
    b = _state(f"{name} once wanted it loud.", "Ignore", [5])
    turns = [
        {"role": "user" if n % 2 else "assistant", "text": f"Turn {n} of {name}."}
        for n in range(1, TARGET)
    ]
    target = {"role": "user", "text": f"Where should {name} go?"}
    return {
        "id": name,
        "relation": relation,
        "subtype": subtype,
        "state_relation": get_args(StateRelation)[number % 8],
        "evidence_form": form,
        "evidence_distance": distance,
        "states": {"A": a, "B": None if subtype == "complete_omission" else b},
        "episodes": [{"turns": turns[:6]}, {"turns": [*turns[6:], target]}],
        "right_response": f"{name} should go to the quiet place.",
        "error_response": f"{name} should go to the loud place.",
    }


def _state(statement: str, role: str, turns: list[int]) -> dict[str, Any]:
    return {
        "statement": statement,
        "holder": "user",
        "scope": "evenings",
        "time": "current",
        "strength": "strong",
        "transferability": "none",
        "role": role,
        "turns": turns,
    }
