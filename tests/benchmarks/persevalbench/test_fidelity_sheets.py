from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from persona_lab.annotate import main
from persona_lab.benchmarks.persevalbench.cases import stratified
from persona_lab.benchmarks.persevalbench.context import context_text
from persona_lab.benchmarks.persevalbench.fidelity_sheets import (
    DEFINITIONS,
    draw_fidelity,
    read_fidelity,
)
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.records import SUBTYPES
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import RowsTable, Score
from persona_lab.parsing.csv_sheet import write_sheet
from persona_lab.parsing.sheet_key import Sheets
from tests.benchmarks.persevalbench.data import filled_in, write_scenarios

# s01 to s06, by annotator: v valid, i invalid.
SAID = {"persevalbench_fidelity_1": "vvivii", "persevalbench_fidelity_2": "vviivi"}
FILES = [f"s/{name}.csv" for name in SAID]


def drawn(folder: Path, items: int = 100, seed: int = 0) -> Sheets:
    return draw_fidelity(write_scenarios(folder / "data"), items, 2, seed)


def answer(name: str, source: Mapping[str, str]) -> Mapping[str, str]:
    if SAID[name][int(source["scenario"][1:]) - 1] == "v":
        return {"valid": "Valid", "mismatch": ""}
    return {"valid": " invalid", "mismatch": "It is loud, and they asked for it."}


def adjudicated(folder: Path, sheets: Sheets, labels: Mapping[str, str]) -> Path:
    """A sheet with the label of some scenarios."""
    rows = [
        {"item": row["item"], "valid": labels[row["scenario"]]}
        for row in sheets.key
        if row["scenario"] in labels
    ]
    write_sheet(folder / "adjudicated.csv", rows, replace=True)
    return folder / "adjudicated.csv"


def rows_of(tables: list[RowsTable], start: str) -> list[dict[str, object]]:
    [found] = [table.rows for table in tables if table.title.startswith(start)]
    return [dict(row) for row in found]


def test_an_annotator_sees_dialogue_error_response_and_definition(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    scenarios = {s.id: s for s in load_scenarios(tmp_path / "data")[0]}
    sources = {row["item"]: row["scenario"] for row in sheets.key}
    for row in sheets.filled_in["persevalbench_fidelity_1"]:
        scenario = scenarios[sources[row["item"]]]
        assert row == {
            "item": row["item"],
            "dialogue": context_text(scenario, "full"),
            "request": f"Where should {scenario.id} go?",
            "response": f"{scenario.id} should go to the loud place.",
            "intended_error": scenario.subtype.replace("_", " "),
            "definition": DEFINITIONS[scenario.subtype],
            "valid": "",
            "mismatch": "",
        }
        assert row["dialogue"].startswith("Turn 1 (user): Turn 1 of s")
        assert row["request"] not in row["dialogue"]
    [guidelines] = sheets.guidelines.values()
    assert set(DEFINITIONS) == set(SUBTYPES)
    assert all(definition in guidelines for definition in DEFINITIONS.values())


def test_annotators_get_the_same_items_in_orders_of_their_own(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    orders = [[row["item"] for row in rows] for rows in sheets.filled_in.values()]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(row["item"] for row in sheets.key)
    assert orders[0] != orders[1]
    assert drawn(tmp_path) == sheets
    assert drawn(tmp_path, seed=1).filled_in != sheets.filled_in


def test_the_sample_is_the_one_that_a_run_evaluates(tmp_path: Path) -> None:
    data = write_scenarios(tmp_path / "data", 38)
    scenarios, _ = load_scenarios(data)
    for seed in (0, 1):
        sheets = draw_fidelity(data, 19, 2, seed)
        names = [row["scenario"] for row in sheets.key]
        assert names == [s.id for s in stratified(scenarios, 19, seed)]
        assert sheets.notes == []
        # Two of each of the 19 legal pairs: half of them is one of each pair.
        cells = {(row["relation"], row["subtype"]) for row in sheets.key}
        assert (len(names), len(cells)) == (19, 19)
    assert draw_fidelity(data, 100, 2, 0).notes == [
        "The data has 38 scenarios, fewer than the 100 wanted: all are drawn."
    ]


def test_confirmed_shares_by_hand(tmp_path: Path) -> None:
    # Differing on s04 and s05; s04 is settled as valid. s03 and s06 are invalid for both:
    # s01, s02 and s04 of six are confirmed, of five that are settled.
    sheets = drawn(tmp_path)
    files, key = filled_in(tmp_path / "back", sheets, answer)
    settled = adjudicated(tmp_path / "back", sheets, {"s01": "", "s03": "valid", "s04": "valid"})
    summary = read_fidelity([*files, settled], key)
    overall, scored = summary.estimates[:2]
    assert (overall.metric, overall.basis, scored.basis) == ("confirmed", "all", "scored")
    assert (overall.value, overall.n, overall.unparsed) == (pytest.approx(3 / 6), 6, 1)
    assert (scored.value, scored.n) == (pytest.approx(3 / 5), 5)
    # scipy.stats.binomtest(3, 6).proportion_ci(method="wilson")
    assert (overall.low, overall.high) == (
        pytest.approx(0.1876, abs=1e-4),
        pytest.approx(0.8124, abs=1e-4),
    )
    by_hand = [
        ("complete_omission", 1, 1.0, 0, 0),
        ("partial_omission", 1, 1.0, 0, 0),
        ("irrelevant_use", 1, 0.0, 1, 0),
        ("scope_leakage", 1, 0.0, 1, 0),
        ("stale_superseded", 1, 1.0, 0, 0),
        ("over_dominance", 1, 0.0, 0, 1),
        ("overall", 6, pytest.approx(3 / 6), 2, 1),
    ]
    columns = ("subtype", "n", "confirmed", "to revise", "unsettled")
    table = rows_of(summary.tables, "Intervention fidelity (Table 12)")
    assert table == [dict(zip(columns, row, strict=True)) for row in by_hand]
    by_subtype = [e for e in summary.estimates if e.facets and e.basis == "all"]
    assert [e.facets["subtype"] for e in by_subtype] == [name for name, *_ in by_hand[:-1]]
    item = next(row["item"] for row in sheets.key if row["scenario"] == "s05")
    assert rows_of(summary.tables, "Unsettled") == [{"item": item, "said": "invalid valid"}]
    assert summary.notes == [
        "Annotators differ on 2 of 6 items, 1 of them unsettled: they have no label and count as "
        "unparsed. Rows in a sheet adjudicated.csv settle them."
    ]


def test_agreement_by_hand(tmp_path: Path) -> None:
    # v v i v i i and v v i i v i: 4 of 6 agree; each says v three times: chance 1/2, so kappa is
    # (4/6 - 1/2) / (1 - 1/2) = 1/3.
    files, key = filled_in(tmp_path / "back", drawn(tmp_path), answer)
    [row] = rows_of(read_fidelity(files, key).tables, "Agreement of two annotators on validity")
    assert row["kappa"] == pytest.approx(1 / 3)
    assert row["agreement"] == pytest.approx(4 / 6)
    assert (row["first"], row["second"]) == tuple(SAID)
    assert (row["items"], row["not shared"]) == (6, 0)


def test_labels_are_rows_with_the_mismatch_as_reason(tmp_path: Path) -> None:
    files, key = filled_in(tmp_path / "back", drawn(tmp_path), answer)
    scores = read_fidelity(files, key).scores
    assert len(scores) == 6 * 3
    about = {"subtype": "over_dominance", "family": "misapplied", "relation": "cross_domain"}
    first, second, consensus = [s for s in scores if s.cluster == "s05"]
    name, mismatch = "s05/error", "It is loud, and they asked for it."
    facets = {**about, "annotator": "persevalbench_fidelity_1"}
    assert first == Score(name, name, "valid", "s05", 0.0, "ok", mismatch, facets)
    assert (second.value, second.reason) == (1.0, "")
    facets = {**about, "annotator": "consensus"}
    assert consensus == Score(name, name, "confirmed", "s05", None, "unparsed", "unsettled", facets)


def test_what_is_settled_leaves_nothing_to_list(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    files, key = filled_in(tmp_path / "back", sheets, answer)
    settled = adjudicated(tmp_path / "back", sheets, {"s04": "valid", "s05": "invalid"})
    summary = read_fidelity([settled, *files], key)
    assert summary.notes == ["Annotators differ on 2 of 6 items; all are settled."]
    assert not [table for table in summary.tables if table.title.startswith("Unsettled")]
    adjudicated(tmp_path / "back", sheets, {"s04": "maybe"})
    with pytest.raises(DataError, match=r"adjudicated\.csv:2: valid: 'maybe' is none of valid"):
        read_fidelity([*files, settled], key)


def test_a_sheet_that_is_not_filled_in_is_refused(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    files, key = filled_in(tmp_path / "back", sheets, answer)
    settled = adjudicated(tmp_path / "back", sheets, {"s04": "valid"})
    with pytest.raises(ConfigError, match="fidelity needs the sheets of 2 annotators, not 1"):
        read_fidelity([files[0], settled], key)
    filled_in(tmp_path / "back", sheets, lambda *_: {"valid": "invalid"})
    with pytest.raises(DataError, match=r"fidelity_1\.csv:\d+: mismatch: is empty; say what does"):
        read_fidelity(files, key)
    filled_in(tmp_path / "back", sheets, lambda *_: {"valid": "yes"})
    with pytest.raises(DataError, match=r"valid: 'yes' is none of valid, invalid"):
        read_fidelity(files, key)
    filled_in(tmp_path / "back", sheets, answer)
    cut = {**sheets.filled_in, files[1].stem: sheets.filled_in[files[1].stem][:-2]}
    filled_in(tmp_path / "back", Sheets(cut, sheets.key), answer)
    with pytest.raises(DataError, match=r"fidelity_2\.csv: has no row for item-\w+ and 1 more; ev"):
        read_fidelity(files, key)


def test_a_round_trip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scenarios(Path("data"))
    write = ["write", "persevalbench_fidelity", "--data", "data", "--out", "s"]
    assert main(write) == 0
    out = capsys.readouterr().out
    assert "s/persevalbench_fidelity_2.csv: 6 items" in out
    assert "s/fidelity_guidelines.txt: for annotators" in out
    assert "fewer than the 100 wanted" in out
    filled_in(Path("s"), draw_fidelity(Path("data"), 100, 2, 0), answer)
    assert main(["read", "persevalbench_fidelity", *FILES]) == 0
    out = capsys.readouterr().out
    assert "18 scores: s/persevalbench_fidelity.scores.csv" in out
    assert "Intervention fidelity (Table 12)" in out
    assert max(map(len, out.splitlines())) <= 100
    frame = pd.read_csv("s/persevalbench_fidelity.scores.csv")
    assert frame[frame["metric"] == "confirmed"]["value"].sum() == 2
    assert main(["read", "persevalbench_fidelity", FILES[0]]) == 2
    assert main([*write[:3], "none", "--out", "t"]) == 2
    assert "scenarios.json: no such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*write, "--annotators", "1"])


def test_the_papers_table_stands_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, key = filled_in(tmp_path / "back", drawn(tmp_path), answer)
    command = ["read", "persevalbench_fidelity", *map(str, files), "--key", str(key)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    below = shown[shown.index("Table 12 as published (other data)") :]
    assert re.search(r"Scope leakage\W+0\.70\W+3\b", below)
