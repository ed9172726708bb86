from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.core.errors import ConfigError, DataError
from persona_lab.parsing.csv_sheet import (
    SheetRow,
    read_items,
    read_sheet,
    write_sheet,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sheet.csv"


def row(**cells: str) -> SheetRow:
    return SheetRow(Path("sheet.csv"), 7, cells)


texts = st.text(max_size=12) | st.text("'=+-@,;\t\"\n\r a", max_size=8)


@settings(deadline=None)  # a busy disk
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_what_is_written_is_read(cells: list[tuple[str, str]]) -> None:
    """All but spaces around a cell."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.csv"
        write_sheet(path, [{"item": f"i{n}", "a": a, "b": b} for n, (a, b) in enumerate(cells)])
        read = read_sheet(path, ["item", "a", "b"], "item")
    assert [(r.cells["a"], r.cells["b"]) for r in read] == [
        (a.strip(), b.strip()) for a, b in cells
    ]


def test_a_formula_is_written_as_text(path: Path) -> None:
    harmful = ["=1+1", "+1", "-1", "@SUM(A1)", " =1+1", "'=1", "''@"]
    plain = ["'tis", "a=b", "1-2", "'"]
    write_sheet(path, [{"a": text} for text in [*harmful, *plain]])
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for [cell] in csv.reader(file)][1:]
    assert cells == [f"'{text.strip()}" for text in harmful] + plain
    assert [r.cells["a"] for r in read_sheet(path, ["a"])] == [t.strip() for t in harmful] + plain


def test_a_spreadsheet_program_sees_utf_8(path: Path) -> None:
    write_sheet(path, [{"a": "Zoë 小明"}])
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\n" + "Zoë 小明\r\n".encode()


def test_a_lone_surrogate_can_be_written(path: Path) -> None:
    write_sheet(path, [{"a": "x\ud83cy"}])
    assert read_sheet(path, ["a"])[0].cells["a"] == "x?y"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_what_hands_and_programs_leave_is_tolerated(
    path: Path, delimiter: str, ending: str, mark: bytes
) -> None:
    d = delimiter
    lines = [
        f" Item {d}Score{d}comment{d}{d}",
        f"a{d} 4.0 {d}{d}{d}",
        f'b{d}"5 "{d}"one{ending}two"',
        "",
        f"c{d}3{d}fine{d}{d}{d}{d}",
        d * 4,
        "   ",
        "",
    ]
    path.write_bytes(mark + ending.join(lines).encode())
    rows = read_sheet(path, ["item", "score"], "item")
    assert [(r.line, r.text("item"), r.whole("score", 1, 5)) for r in rows] == [
        (2, "a", 4), (3, "b", 5), (6, "c", 3)
    ]  # fmt: skip


def test_a_short_row_has_empty_cells(path: Path) -> None:
    path.write_text("item,score\na\n")
    [found] = read_sheet(path, ["item", "score"])
    with pytest.raises(DataError, match=r"sheet\.csv:2: score: is empty"):
        found.whole("score", 1, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"sheet\.csv: is empty"),
        ("\n , \n", r"sheet\.csv: is empty"),
        ("\nitem,note\n", r"sheet\.csv:2: score: no such column; it has item, note"),
        ("item,score,Score\n", r"sheet\.csv:1: score: two columns have this name"),
        ('item,score\na,"1\n\n', r"sheet\.csv:2: is no CSV: unexpected end of data"),
        ('item,score\na,1\nb,"1"2\n', r"sheet\.csv:3: is no CSV: .* expected after"),
        ("item,score\na,1,x\n", r"sheet\.csv:2: has more cells than the 2 columns"),
        ('item,score\n"a\n",1\n\nb,2\na,3\n', r"sheet\.csv:6: item: a is on line 2 already"),
        ("item,score\n,1\n", r"sheet\.csv:2: item: is empty"),
    ],
)
def test_a_broken_sheet_is_refused_at_its_place(path: Path, content: str, message: str) -> None:
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_sheet(path, ["item", "score"], "item")


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(DataError, match=r"sheet\.csv: no such file"):
        read_sheet(path, ["item"])
    path.write_bytes("item\nZoë\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"sheet\.csv: is not UTF-8 .*: save it as CSV UTF-8"):
        read_sheet(path, ["item"])
    with pytest.raises(DataError, match="cannot be read"):
        read_sheet(path.parent, ["item"])


@pytest.mark.parametrize(
    ("given", "value"),
    [("1", 1), ("5", 5), ("4.0", 4), ("4,00", 4), ("4.", 4), ("+3", 3), ("03", 3), ("４", 4)],
)
def test_a_whole_number_by_hand(given: str, value: int) -> None:
    assert row(score=given).whole("score", 1, 5) == value


@pytest.mark.parametrize(
    "given", ["0", "6", "-1", "4.5", "4/5", "four", "nan", "inf", "1e0", "4 5", "44", "٤"]
)
def test_what_is_no_whole_number_in_range_is_refused(given: str) -> None:
    with pytest.raises(DataError, match=r"sheet\.csv:7: score: .* is no whole number from 1 to 5"):
        row(score=given).whole("score", 1, 5)


@pytest.mark.parametrize(
    ("given", "label"),
    [("1 wins", "1 wins"), ("1  Wins", "1 wins"), ("TIE", "tie"), ("Ｔie", "tie")],
)
def test_a_label_in_any_case(given: str, label: str) -> None:
    assert row(answer=given).one_of("answer", ("1 wins", "2 wins", "tie")) == label


@pytest.mark.parametrize("given", ["1", "wins", "3 wins", "tie, I think", "E"])
def test_another_label_is_refused(given: str) -> None:
    with pytest.raises(DataError, match=r"answer: .* is none of 1 wins, 2 wins, tie"):
        row(answer=given).one_of("answer", ("1 wins", "2 wins", "tie"))


def test_a_sheet_is_not_overwritten(path: Path) -> None:
    write_sheet(path, [{"a": "1"}])
    with pytest.raises(ConfigError, match=r"sheet\.csv: is there already and may be filled in"):
        write_sheet(path, [{"a": "2"}])
    assert read_sheet(path, ["a"])[0].text("a") == "1"
    write_sheet(path, [{"a": "2"}], replace=True)
    assert read_sheet(path, ["a"])[0].text("a") == "2"
    assert [p.name for p in path.parent.iterdir()] == ["sheet.csv"]


def test_items_come_from_csv_or_json_lines(tmp_path: Path) -> None:
    long = "x" * 200_000  # csv's own limit is 131,072 characters a cell
    items = [{"Preference": "tea", "Conversation": f"{long}\u2028y", "n": 1}]
    lines = tmp_path / "items.jsonl"
    lines.write_text("\n" + "\n".join(json.dumps(i, ensure_ascii=False) for i in items) + "\n\n")
    sheet = tmp_path / "items.csv"
    write_sheet(sheet, [{"preference": "tea", "conversation": f"{long}\u2028y"}])
    for path in (lines, sheet):
        [found] = read_items(path, ["preference", "conversation"])
        assert found.line == 2
        assert found.text("conversation") == f"{long}\u2028y"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", '{"a": "1"}\n{"a"', r"x\.jsonl:2: is no JSON: "),
        ("x.jsonl", '{"a": "1"}\n[1]', r"x\.jsonl:2: is no JSON object"),
        ("x.jsonl", '{"b": "1"}', r"x\.jsonl:1: a: is missing or no text"),
        ("x.jsonl", '{"a": 1}', r"x\.jsonl:1: a: is missing or no text"),
        ("x.jsonl", '\n{"a": " "}', r"x\.jsonl:2: a: is empty"),
        ("x.csv", "a,b\n1,\n,2\n", r"x\.csv:3: a: is empty"),
        ("x.txt", "a\n1\n", r"x\.txt: is neither a \.csv nor a \.jsonl file"),
    ],
)
def test_a_broken_item_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_items(tmp_path / name, ["a"])
