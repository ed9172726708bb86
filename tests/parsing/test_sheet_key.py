from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.core.errors import ConfigError, DataError
from persona_lab.parsing.csv_sheet import write_sheet
from persona_lab.parsing.sheet_key import (
    Sheets,
    item_name,
    missing_note,
    read_filled_in,
    read_key,
    write_sheets,
)


def test_all_sheets_are_written_or_none(tmp_path: Path) -> None:
    sheets = Sheets({"one": [{"item": "a"}], "two": [{"item": "b"}]}, [{"item": "a"}])
    (tmp_path / "kind.key.csv").write_text("item\n")
    with pytest.raises(ConfigError, match=r"kind\.key\.csv: is there already"):
        write_sheets(tmp_path, "kind", sheets)
    assert [p.name for p in tmp_path.iterdir()] == ["kind.key.csv"]
    written = write_sheets(tmp_path / "new" / "folder", "kind", sheets)
    assert [p.name for p in written] == ["one.csv", "two.csv", "kind.key.csv"]


def test_guidelines_are_written_before_the_key(tmp_path: Path) -> None:
    rows = [{"item": "a"}]
    sheets = Sheets({"one": rows}, rows, guidelines={"guide.txt": "Zoë’s rule.\n"})
    written = write_sheets(tmp_path / "new", "kind", sheets)
    assert [p.name for p in written] == ["one.csv", "guide.txt", "kind.key.csv"]
    assert written[1].read_text(encoding="utf-8") == "Zoë’s rule.\n"
    (tmp_path / "guide.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"guide\.txt: is there already"):
        write_sheets(tmp_path, "kind", sheets)
    assert (tmp_path / "guide.txt").read_text() == "mine"
    assert not (tmp_path / "one.csv").exists()


def test_sheets_meet_their_key(tmp_path: Path) -> None:
    write_sheet(tmp_path / "k.csv", [{"item": n, "right": n.upper()} for n in "abc"])
    write_sheet(tmp_path / "ann.csv", [{"item": "b", "answer": "x"}])
    write_sheet(tmp_path / "ben.csv", [{"item": n, "answer": n} for n in "ab"])
    key = read_key(tmp_path / "k.csv", ["right"])
    found = read_filled_in([tmp_path / "ann.csv", tmp_path / "ben.csv"], ["answer"], key)
    assert [(r.annotator, r.row.text("answer"), r.source.text("right")) for r in found] == [
        ("ann", "x", "B"), ("ben", "a", "A"), ("ben", "b", "B")
    ]  # fmt: skip
    assert missing_note(key, found) == ["1 of 3 items of the key are in none of the sheets."]


def test_a_sheet_that_does_not_fit_the_key_is_refused(tmp_path: Path) -> None:
    write_sheet(tmp_path / "k.csv", [{"item": "a"}])
    key = read_key(tmp_path / "k.csv", [])
    stray, none = tmp_path / "stray.csv", tmp_path / "none.csv"
    write_sheet(stray, [{"item": "a"}, {"item": "z"}])
    none.write_text("item\n")
    with pytest.raises(DataError, match=r"stray\.csv:3: item: is not in the key"):
        read_filled_in([stray], [], key)
    with pytest.raises(DataError, match=r"none\.csv: has no items"):
        read_filled_in([none], [], key)
    with pytest.raises(ConfigError, match="another has it too"):
        read_filled_in([stray, tmp_path / "again" / "stray.csv"], [], key)


def test_item_names_differ_and_are_no_numbers() -> None:
    names = [item_name("a", "b"), item_name("ab"), item_name("a", "c"), item_name("b", "a")]
    assert len(set(names)) == 4
    assert item_name("a", "b") == names[0]
    assert all(name.startswith("item-") for name in names)
