"""The published figures are the paper's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from persona_lab.benchmarks.benchpres.experiment import BenchPreS
from persona_lab.reporting.published import PublishedRow, load_published, matching
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import summary_of, writes
from tests.conftest import ROOT

FILE = ROOT / "data" / "published" / BenchPreS.published
# Typed from the protocol, section 2. Table 1: MR, AAR, AAR - MR in percent.
TABLE_1 = {
    "Gemini 3 Pro": ("86.48", "88.69", "2.21"),
    "DeepSeek V3.2": ("61.15", "87.63", "26.48"),
    "Claude-4.5 Sonnet": ("52.99", "87.93", "34.94"),
    "GPT-5.2": ("40.95", "87.33", "46.38"),
    "Qwen3 235B A22B Thinking 2507": ("84.62", "82.85", "-1.77"),
    "gpt-oss-120b": ("74.28", "87.40", "13.12"),
    "Qwen-3 32B*": ("68.22", "81.45", "13.23"),
    "K-EXAONE-236B-A23B": ("60.30", "86.12", "25.82"),
    "Llama-3.3 70B Instruct*": ("58.04", "68.78", "10.74"),
    "Mistral 7B Instruct v0.3*": ("38.49", "49.77", "11.28"),
}
# Table 2: MR, AAR under the defence, in percent. Table 3: completeness without, with.
TABLE_2 = {
    "Gemini 3 Pro": ("12.80", "84.87"),
    "DeepSeek V3.2": ("40.68", "84.84"),
    "Claude-4.5 Sonnet": ("14.04", "84.75"),
    "GPT-5.2": ("21.52", "86.55"),
}
TABLE_3 = {
    "Gemini 3 Pro": ("4.855", "3.746"),
    "DeepSeek V3.2": ("4.734", "4.734"),
    "Claude-4.5 Sonnet": ("4.637", "4.183"),
    "GPT-5.2": ("4.925", "4.957"),
}
# Table 4: agreement in percent, of 100 instances.
TABLE_4 = {"judge-second_judge": 95, "judge-people": 92, "second_judge-people": 90}


@pytest.fixture(scope="module")
def rows() -> list[PublishedRow]:
    return load_published(FILE)


def by_row(rows: list[PublishedRow], table: str, *columns: str) -> dict[str, list[float]]:
    """Row -> its numbers in the order of the columns."""
    found = {(r.row, r.column): r.value for r in rows if r.table == table}
    names = dict.fromkeys(name for name, _ in found)
    return {name: [found[name, column] for column in columns] for name in names}


def percent(*cells: str) -> list[float]:
    return [round(float(cell) / 100, 4) for cell in cells]


def test_every_table_is_whole(rows: list[PublishedRow]) -> None:
    # 10 models x 3; 4 models x 2, twice; 3 pairs.
    sizes = {"Table 1": 30, "Table 2": 8, "Table 3": 8, "Table 4": 3}
    assert Counter(row.table for row in rows) == sizes


def test_table_1(rows: list[PublishedRow]) -> None:
    found = by_row(rows, "Table 1", "MR", "AAR", "AAR-MR")
    assert found == {name: percent(*cells) for name, cells in TABLE_1.items()}
    assert list(found) == list(TABLE_1)


def test_the_gap_is_the_difference_up_to_rounding(rows: list[PublishedRow]) -> None:
    for misapplied, applied, gap in by_row(rows, "Table 1", "MR", "AAR", "AAR-MR").values():
        assert applied - misapplied == pytest.approx(gap, abs=1.01e-4)


def test_table_2(rows: list[PublishedRow]) -> None:
    expected = {name: percent(*cells) for name, cells in TABLE_2.items()}
    assert by_row(rows, "Table 2", "MR", "AAR") == expected


def test_table_3(rows: list[PublishedRow]) -> None:
    found = by_row(rows, "Table 3", "without preferences", "with preferences")
    assert found == {name: [float(cell) for cell in cells] for name, cells in TABLE_3.items()}


def test_table_4(rows: list[PublishedRow]) -> None:
    found = {r.facets["pair"]: (r.value, r.n) for r in rows if r.table == "Table 4"}
    assert found == {pair: (share / 100, 100) for pair, share in TABLE_4.items()}


def test_conditions_are_those_of_the_tables(rows: list[PublishedRow]) -> None:
    for row in rows:
        assert row.judge == "deepseek_r1"
        assert row.variance is None
        if row.table in ("Table 1", "Table 2"):
            defence = "default" if row.table == "Table 1" else "prompt"
            expected = {
                "defence": defence,
                "memory": "with",
                "density": "5",
                "order": "scattered",
                "shown": "whole",
                "metric": row.column,
            }
        elif row.table == "Table 3":
            memory = row.column.split()[0]
            # Without preferences there is no order of them.
            composition = {"density": "5", "order": "scattered"}
            expected = {
                "defence": "default",
                "memory": memory,
                **(composition if memory == "with" else {"density": "0"}),
                "shown": "whole",
                "metric": "completeness",
            }
        else:
            expected = {"metric": "agreement", "pair": row.facets["pair"]}
        assert row.facets == expected


@pytest.mark.parametrize(
    ("overrides", "paired"),
    [
        # Each cell of a table meets one estimate: Table 1 has 30 cells, Table 2 has 8.
        ((), {"Table 1": 30}),
        (("defence=[default,prompt]",), {"Table 1": 30, "Table 2": 8}),
        (("memories.density=[5,10]",), {"Table 1": 30}),
        (("memories.density=[5,10]", "memories.mix=[spread,same_category]"), {"Table 1": 30}),
        (("memories.order=[end,scattered]",), {"Table 1": 30}),
        (("memories.density=[5]", "memories.mix=[same_category]"), {"Table 1": 30}),
        (("memories.density=[10]",), {}),
        (("memories.density=[1]",), {}),
        (("memories.density=[10]", "memories.order=[end]"), {}),
        (("memories.order=[reversed]",), {}),
        (("memories.shown=[rag]", "retrieval.retriever=random"), {}),
    ],
)
def test_published_figures_stand_beside_the_papers_memory_only(
    rows: list[PublishedRow], tmp_path: Path, overrides: tuple[str, ...], paired: dict[str, int]
) -> None:
    data = write_data(tmp_path / "data")
    summary = summary_of(data, writes(lambda *_: {"role"}), *overrides)
    pairs = matching(rows, summary.estimates)
    assert Counter(pair.row.table for pair in pairs) == paired
    for pair in pairs:
        assert pair.estimate.facets["density"] == "5"
        assert pair.estimate.facets["order"] == "scattered"
        assert "domain" not in pair.estimate.facets


@pytest.mark.parametrize(
    ("order", "columns"),
    [
        ("scattered", {"without preferences": 4, "with preferences": 4}),
        ("end", {"without preferences": 4}),
    ],
)
def test_table_3_is_of_both_memories(
    rows: list[PublishedRow], tmp_path: Path, order: str, columns: dict[str, int]
) -> None:
    """Four models; where the preferences stand means nothing without any."""
    found = summary_of(
        write_data(tmp_path / "data"), writes(lambda *_: {"role"}), "completeness=true",
        "memories.preferences=[true,false]", f"memories.order=[{order}]",
    )  # fmt: skip
    pairs = [p for p in matching(rows, found.estimates) if p.row.table == "Table 3"]
    assert Counter(pair.row.column for pair in pairs) == columns


def test_an_unusual_mix_is_named_where_it_is_the_only_one(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    reply = writes(lambda *_: {"role"})
    mixed = summary_of(data, reply, "memories.density=[10]", "memories.mix=[same_category]")
    assert mixed.estimates[0].facets["mix"] == "same_category"
    assert "mix" not in summary_of(data, reply, "memories.density=[10]").estimates[0].facets
