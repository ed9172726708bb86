from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from persona_lab.benchmarks.realpref.records import Expression
from persona_lab.benchmarks.realpref.scoring import METRICS
from persona_lab.benchmarks.realpref.tasks import Task
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Estimate
from persona_lab.reporting import published
from persona_lab.reporting.published import (
    COLUMNS,
    PublishedRow,
    load_published,
    mark,
    matching,
)
from persona_lab.reporting.published_table import published_table
from tests.conftest import ROOT

FILE = ROOT / "data" / "published" / "realpref.csv"
PAPER = ROOT.parent / "shared" / "seeds" / "realpref.txt"
HEADER = ",".join(COLUMNS)
GOOD = "Table 1,x,y,0.5,,,,metric=accuracy"
# Cells with a number, counted by hand in the paper: 2 + 4; 2; 2 x 4; 4 x 3; 2 x 3; 2 x 5.
COUNTS = {
    "Table 8": 6, "Table 9": 2, "Table 10": 8, "Table 12": 12, "Table 15": 6, "Table 16": 10,
}  # fmt: skip
CONTEXTS = {"simple", "normal", "long", "very_long", "extended", "extreme"}
METHODS = {"zero_shot", "reminder", "few_shot_cot", "rag", "mem0"}


@pytest.fixture(scope="module")
def rows() -> list[PublishedRow]:
    return load_published(FILE)


@pytest.fixture(scope="module")
def paper() -> str:
    if not PAPER.is_file():
        pytest.skip("the paper's text is not beside the project")
    return PAPER.read_text(encoding="utf-8")


def paper_table(paper: str, name: str) -> tuple[set[str], dict[str, list[str]]]:
    """Column names, and the cells with a number by the first cell of their line, in order."""
    body = paper.split(f"\n{name}: ")[1].split("\n\n")[1]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]
    number = re.compile(r"[0-9.]+(±[0-9.]+)?")
    cells = {line[0]: [c for c in line[1:] if number.fullmatch(c)] for line in lines[2:]}
    return set(lines[0]), {row: found for row, found in cells.items() if found}


@pytest.mark.parametrize("name", COUNTS)
def test_every_number_of_a_table_is_the_papers(
    rows: list[PublishedRow], paper: str, name: str
) -> None:
    columns, cells = paper_table(paper, name)
    ours: dict[str, list[str]] = {}
    for row in rows:
        if row.table == name:
            assert row.column in columns
            ours.setdefault(row.row, []).append(row.printed.replace(" ", ""))
    assert ours == cells


def test_every_table_is_whole(rows: list[PublishedRow]) -> None:
    assert Counter(row.table for row in rows) == COUNTS


def test_some_values_with_all_their_fields(rows: list[PublishedRow]) -> None:
    """Read in Tables 8, 10, 15 and 16 and Appendices G.2, G.3, H.2.3 and H.4."""
    found = {(row.table, row.row, row.column): row for row in rows}
    mem0 = found["Table 15", "Mem0", "Type 3"]
    assert (mem0.value, mem0.variance, mem0.n) == (4.222, None, None)
    assert mem0.facets == {
        "task": "open_ended", "expression": "stylistic_expression", "method": "mem0",
        "context": "extended", "metric": "preference_awareness",
    }  # fmt: skip
    quality = found["Table 16", "GPT-5 mini", "Answer Quality"]
    assert (quality.value, quality.variance, quality.judge) == (4.098, 0.08, "Claude Sonnet 4")
    assert quality.printed == "4.098 ± 0.08"
    easy = found["Table 8", "Human", "MCQ (Type 4)"]
    assert (easy.value, easy.printed, easy.n, easy.judge) == (0.96, "0.960", 100, "")
    assert found["Table 10", "DeepSeek-V4-Pro", "Overall"].n == 2000


def test_facets_are_the_projects_names(rows: list[PublishedRow]) -> None:
    known = {
        "task": {*get_args(Task)},
        "expression": {*get_args(Expression)},
        "context": CONTEXTS,
        "method": METHODS,
        "check": {"easy_test", "blind_test", "judge_pearson"},
        "metric": {*METRICS, "prompt_tokens", "completion_tokens"},
    }
    for row in rows:
        assert all(value in known[name] for name, value in row.facets.items())
    judged = {row.table for row in rows if row.judge}
    assert judged == {"Table 10", "Table 15", "Table 16"}
    assert all((row.facets["task"] == "open_ended") == bool(row.judge) for row in rows
               if row.table in judged)  # fmt: skip


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "figures.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    names, cells = HEADER.split(","), GOOD.split(",")
    path = written(tmp_path, ",".join(reversed(names)), ",".join(reversed(cells)))
    assert load_published(path) == load_published(written(tmp_path, HEADER, GOOD))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Table 1,x,y,,,,,metric=a", "value: '' is not a number"),
        ("Table 1,x,y,4/5,,,,metric=a", "value: '4/5' is not a number"),
        ("Table 1,x,y,nan,,,,metric=a", "value: 'nan' is not"),
        ("Table 1,x,y,1e3,,,,metric=a", "value: '1e3' is not"),
        ("Table 1,x,y,４,,,,metric=a", "value: '４' is not"),
        ("Table 1,x,y,0.5±0.1,,,,metric=a", "value: '0.5±0.1' is not"),
        ("Table 1,x,y,0.5,-0.1,,,metric=a", "variance: '-0.1' is not"),
        ("Table 1,x,y,0.5,,0,,metric=a", "n: '0' is not a whole number"),
        ("Table 1,x,y,0.5,,2.5,,metric=a", "n: '2.5' is not a whole number"),
        (",x,y,0.5,,,,metric=a", "table: '' is not a name"),
        ("Table 1,x, ,0.5,,,,metric=a", "column: ' ' is not a name"),
        ("Table 1,x,y,0.5,,, ,metric=a", "judge: ' ' is not a name"),
        ("Table 1,x,y,0.5,,,,", "facets: '' is not key=value"),
        ("Table 1,x,y,0.5,,,,metric=a;", "facets: '' is not key=value"),
        ("Table 1,x,y,0.5,,,,metric=a=b", "facets: 'metric=a=b' is not key=value"),
        ("Table 1,x,y,0.5,,,,metric=a;metric=b", "facets: a key is given twice"),
        ("Table 1,x,y,0.5,,,,task=a", "facets: names no metric"),
        (GOOD, "column: Table 1, x, y is given twice"),
        ("Table 1,x,y,0.5,,,metric=a", "has 7 cells, not 8"),
        ('Table 1,"x"y,y,0.5,,,,metric=a', "is no CSV"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, place: str) -> None:
    path = written(tmp_path, HEADER, GOOD, line)
    with pytest.raises(DataError, match=re.escape(f"figures.csv:3: {place}")):
        load_published(path)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_column_is_named(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, ",".join(c for c in COLUMNS if c != name), GOOD)
    with pytest.raises(DataError, match=rf"figures\.csv:1: {name}: column is missing"):
        load_published(path)


def test_other_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"figures\.csv:1: source: unknown column"):
        load_published(written(tmp_path, f"{HEADER},source", f"{GOOD},x"))
    with pytest.raises(DataError, match=r"figures\.csv:1: n: column is given twice"):
        load_published(written(tmp_path, f"{HEADER},n", f"{GOOD},3"))
    (tmp_path / "figures.csv").write_text("")
    with pytest.raises(DataError, match=r"figures\.csv:1: table: column is missing"):
        load_published(tmp_path / "figures.csv")
    (tmp_path / "figures.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"figures\.csv: cannot be read"):
        load_published(tmp_path / "figures.csv")
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        load_published(tmp_path / "none.csv")


def estimate(metric: str, basis: str = "scored", **changes: object) -> Estimate:
    fields: dict[str, object] = {
        "value": 3.25, "low": 2.5, "high": 4.125, "interval": "cluster bootstrap", "n": 1000,
        "clusters": 100, "facets": {},
    }  # fmt: skip
    return Estimate(metric=metric, basis=basis, **(fields | changes))  # type: ignore[arg-type]


def condition(**changes: str) -> dict[str, str]:
    facets = {
        "preference": "original", "task": "open_ended", "method": "rag", "context": "extended",
        "expression": "direct_statement",
    }  # fmt: skip
    return facets | changes


def places(rows: Sequence[PublishedRow], *estimates: Estimate) -> list[tuple[str, str, str]]:
    pairs = matching(rows, estimates)
    return [(p.row.table, p.row.row, p.row.column) for p in pairs]


def test_a_number_meets_only_its_own_condition(rows: list[PublishedRow]) -> None:
    aware = estimate("preference_awareness", facets=condition())
    assert places(rows, aware) == [("Table 15", "RAG", "Type 1")]
    assert places(rows, estimate("preference_alignment", facets=condition())) == []
    shorter = condition(context="long")
    assert places(rows, estimate("preference_awareness", facets=shorter)) == []


def test_checks_of_the_data_do_not_meet_ordinary_accuracies(rows: list[PublishedRow]) -> None:
    facets = condition(
        task="multiple_choice", method="zero_shot", context="simple",
        expression="stylistic_expression",
    )  # fmt: skip
    assert places(rows, estimate("accuracy", facets=facets)) == []
    found = places(rows, estimate("accuracy", facets=facets | {"check": "easy_test"}))
    assert found == [("Table 8", row, "MCQ (Type 3)") for row in ("Human", "Gemini 2.5 Flash-Lite")]


@pytest.mark.parametrize("order", [("all", "scored"), ("scored", "all")])
def test_a_rate_is_paired_by_its_headline(rows: list[PublishedRow], order: list[str]) -> None:
    facets = condition(
        task="true_or_false", method="zero_shot", context="normal",
        expression="experience_feedback",
    )  # fmt: skip
    both = [estimate("accuracy", basis, facets=facets) for basis in order]
    pairs = matching(rows, both)
    assert [(p.row.row, p.row.column, p.estimate.basis) for p in pairs] == [
        ("GPT-5 mini", "TF", "all"), ("DeepSeek-V4-Pro", "TF", "all"),
    ]  # fmt: skip


facet_maps = st.dictionaries(st.sampled_from("abcde"), st.sampled_from("xyz"), max_size=5)


@given(facet_maps, facet_maps)
def test_a_row_matches_if_the_estimate_has_all_its_facets(
    asked: dict[str, str], had: dict[str, str]
) -> None:
    row = PublishedRow("Table 1", "r", "c", 0.5, "0.5", facets={**asked, "metric": "m"})
    matched = bool(matching([row], [estimate("m", facets=had)]))
    assert matched == all(had.get(name) == value for name, value in asked.items())
    assert matching([row], [estimate("other", facets=had)]) == []


@pytest.mark.parametrize(
    ("of", "judge", "paper_data", "expected"),
    [
        ("Claude Sonnet 4", "qwen3_32b", False, "other data, other judge"),
        ("Claude Sonnet 4", None, False, "other data, other judge"),
        ("Claude Sonnet 4", "Claude Sonnet 4", False, "other data"),
        ("Claude Sonnet 4", "qwen3_32b", True, "other judge"),
        ("Claude Sonnet 4", "Claude Sonnet 4", True, ""),
        ("", "qwen3_32b", False, "other data"),
        ("", None, True, ""),
    ],
)
def test_marks(of: str, judge: str | None, paper_data: bool, expected: str) -> None:
    row = PublishedRow("Table 1", "r", "c", 0.5, "0.5", judge=of, facets={"metric": "m"})
    assert mark(row, judge, "0a1b", paper_data=paper_data) == expected


def test_a_known_hash_is_the_papers_data(monkeypatch: pytest.MonkeyPatch) -> None:
    row = PublishedRow("Table 1", "r", "c", 0.5, "0.5", facets={"metric": "m"})
    monkeypatch.setattr(published, "PAPER_DATA_HASHES", frozenset({"0a1b"}))
    assert (mark(row, None, "0a1b"), mark(row, None, "0a1c")) == ("", "other data")


def shown(
    name: str, rows: Sequence[PublishedRow], estimates: Sequence[Estimate], width: int = 100
) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(published_table(name, rows, estimates, "qwen3_32b", "0a1b"))
    return capture.get()


def line_with(text: str, *parts: str) -> str:
    [line] = [line for line in text.splitlines() if all(part in line for part in parts)]
    return line


def test_published_and_own_values_stand_side_by_side(rows: list[PublishedRow]) -> None:
    text = shown("Table 15", rows, [estimate("preference_awareness", facets=condition())])
    line = line_with(text, "4.452")
    assert "Type 1" in line
    assert "3.250 [2.500, 4.125]  n=1000" in line
    assert "other data, other judge" in line
    assert "other" not in line_with(text, "4.222")  # nothing of this run beside it
    assert "Table 16" not in text
    assert "variance" not in text


def test_several_own_values_say_what_sets_them_apart(rows: list[PublishedRow]) -> None:
    both = [
        estimate("preference_awareness", facets=condition(preference=kind), value=value)
        for kind, value in (("original", 3.25), ("generalized", None))
    ]
    text = shown("Table 15", rows, both)
    assert "original:" in line_with(text, "4.452")
    assert "generalized:" in text
    assert "n/a" in text


def test_the_spread_is_named_as_the_paper_names_it(rows: list[PublishedRow]) -> None:
    text = shown("Table 16", rows, [])
    assert "0.857 ± 0.025" in line_with(text, "0.857")
    assert "± what the paper calls variance" in text


@pytest.mark.parametrize("width", [100, 200])
@pytest.mark.parametrize("name", COUNTS)
def test_tables_keep_within_100_columns(rows: list[PublishedRow], name: str, width: int) -> None:
    own = [
        estimate(row.facets["metric"], facets={**row.facets, "preference": kind})
        for row in rows
        for kind in ("original", "a_kind_with_a_name_that_is_longer_than_its_column")
    ]
    text = shown(name, rows, own, width)
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("n=1000") >= 2 * COUNTS[name]


def test_markup_in_a_name_stays_text(tmp_path: Path) -> None:
    line = "Table [1],[bold]x,[red]y[/],0.5,,,,metric=m"
    [row] = load_published(written(tmp_path, HEADER, line))
    own = [estimate("m", facets={"model": name}) for name in ("[i]a", "[i]b")]
    text = shown("Table [1]", [row], own)
    for name in ("Table [1]", "[bold]x", "[red]y[/]", "[i]a:", "[i]b:"):
        assert name in text
