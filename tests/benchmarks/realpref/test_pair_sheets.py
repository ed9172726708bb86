from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from persona_lab.benchmarks.realpref.pair_sheets import draw_blind_pairs, read_blind_pairs
from persona_lab.core.errors import DataError
from persona_lab.parsing.csv_sheet import write_sheet
from tests.benchmarks.realpref.annotators import written


def sources(folder: Path, first: int = 6, second: int = 6) -> tuple[Path, Path]:
    ours, theirs = folder / "ours.jsonl", folder / "theirs.csv"
    items = [{"preference": f"ours {n}", "conversation": f"O {n}"} for n in range(first)]
    ours.write_text("".join(json.dumps(item) + "\n" for item in items))
    write_sheet(
        theirs,
        [{"preference": f"theirs {n}", "conversation": f"-T {n}"} for n in range(second)],
    )
    return ours, theirs


def test_pairs_are_of_one_line_with_sides_and_order_shuffled(tmp_path: Path) -> None:
    sheets = draw_blind_pairs(*sources(tmp_path, 40, 40), items=40, seed=0)
    rows = sheets.filled_in["blind_pairs"]
    places = {row["item"]: row for row in sheets.key}
    seen = []
    for row in rows:
        assert list(row) == [
            "item", "preference_1", "conversation_1", "preference_2", "conversation_2", "answer"
        ]  # fmt: skip
        place = places[row["item"]]
        mine, other = ("1", "2") if place["first_side"] == "1" else ("2", "1")
        number = row[f"preference_{mine}"].removeprefix("ours ")
        assert row[f"conversation_{mine}"] == f"O {number}"
        assert row[f"preference_{other}"] == f"theirs {number}"
        assert row[f"conversation_{other}"] == f"-T {number}"
        # One item a line; the CSV has a header line before its own.
        assert place["first_line"] == str(int(number) + 1)
        assert place["second_line"] == str(int(number) + 2)
        seen.append(int(number))
    assert sorted(seen) == list(range(40))
    assert seen != sorted(seen)
    assert Counter(row["first_side"] for row in sheets.key) == {"1": 20, "2": 20}
    assert not any(".jsonl" in text or ".csv" in text for row in rows for text in row.values())


def test_sources_of_two_lengths_are_said(tmp_path: Path) -> None:
    ours, theirs = sources(tmp_path, 6, 4)
    sheets = draw_blind_pairs(ours, theirs, items=100, seed=0)
    assert len(sheets.key) == 4
    assert sheets.notes == [
        "Only 4 of the 100 wanted pairs are there.",
        "The last 2 items of ours.jsonl have no partner.",
    ]
    theirs.write_text("preference,conversation\n")
    with pytest.raises(DataError, match=r"theirs\.csv: has no items"):
        draw_blind_pairs(ours, theirs, items=100, seed=0)
    theirs.write_text("preference,text\n")
    with pytest.raises(DataError, match=r"theirs\.csv:1: conversation: no such column"):
        draw_blind_pairs(ours, theirs, items=100, seed=0)


def test_verdicts_become_shares_of_the_first_source(tmp_path: Path) -> None:
    """Of 6 pairs: ours 0, 1 and 2 win, 3 and 4 tie, 5 loses."""
    sheets = draw_blind_pairs(*sources(tmp_path), items=6, seed=0)

    def fill(row: Mapping[str, str]) -> Mapping[str, str]:
        mine, other = ("1", "2") if row["preference_1"].startswith("ours") else ("2", "1")
        number = int(row[f"preference_{mine}"].removeprefix("ours "))
        answers = [f"{mine} wins"] * 3 + ["Tie"] * 2 + [f"{other} WINS"]
        return {"answer": answers[number]}

    files, key = written(tmp_path / "back", sheets, fill)
    summary = read_blind_pairs(files, key)
    shares = {e.metric: (e.value, e.n) for e in summary.estimates if e.basis == "all"}
    assert shares == {"win": (3 / 6, 6), "loss": (1 / 6, 6), "tie": (2 / 6, 6)}
    assert {e.interval for e in summary.estimates} == {"Wilson"}
    assert summary.notes == ["A win is one of ours.jsonl over theirs.csv."]
    written(tmp_path / "odd", sheets, lambda row: {"answer": "1"})
    with pytest.raises(DataError, match=r"blind_pairs\.csv:2: answer: '1' is none of 1 wins, 2 w"):
        read_blind_pairs([tmp_path / "odd" / "blind_pairs.csv"], key)
