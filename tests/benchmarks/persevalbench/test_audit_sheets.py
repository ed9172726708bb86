from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from persona_lab.annotate import main
from persona_lab.benchmarks.persevalbench.audit_sheets import audited, draw_audit, read_audit
from persona_lab.benchmarks.persevalbench.fidelity_sheets import DEFINITIONS
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import Score, Summary
from persona_lab.parsing.csv_sheet import read_sheet
from persona_lab.parsing.sheet_key import Sheets
from tests.benchmarks.persevalbench.data import CELLS, filled_in, write_scenarios

KIND = "persevalbench_audit"
NAMES = ("s01", "s04", "s07", "s11", "s13", "s15")
"""The under-personalization errors among the 19 legal pairs."""
# By annotator, of NAMES: whether the Under error, and whether an Over error is there.
SAID = {
    f"{KIND}_1": {"under_present": "yyyyyn", "over_present": "nynnnn"},
    f"{KIND}_2": {"under_present": "yynyyy", "over_present": "nnnynn"},
}
WORDS = {"y": "Yes", "n": "no"}
MADE = {
    "s01": ("no", "yes"),
    "s04": ("yes", "yes"),
    "s07": ("no", "no"),
    "s11": ("yes", "yes"),
    "s13": ("no", "yes"),
    "s15": ("no", "no"),
}
"""Scenario -> flagged by either, confirmed by both."""


def answer(name: str, source: Mapping[str, str]) -> Mapping[str, str]:
    place = NAMES.index(source["scenario"])
    return {column: WORDS[said[place]] for column, said in SAID[name].items()}


def drawn(folder: Path) -> Sheets:
    return draw_audit(write_scenarios(folder / "data", len(CELLS)), 2, 0)


def read(folder: Path) -> Summary:
    return read_audit(*filled_in(folder / "back", drawn(folder), answer))


def test_all_under_personalization_errors_are_audited(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    assert tuple(row["scenario"] for row in sheets.key) == NAMES
    subtypes = {row["item"]: row["subtype"] for row in sheets.key}
    for row in sheets.filled_in[f"{KIND}_1"]:
        assert row["response"].endswith("should go to the loud place.")
        assert row["definition"] == DEFINITIONS[subtypes[row["item"]]]  # type: ignore[index]
        assert (row["under_present"], row["over_present"]) == ("", "")
    orders = [[row["item"] for row in rows] for rows in sheets.filled_in.values()]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    without = write_scenarios(tmp_path / "without", 2, [("re_entry", "underweighting")])
    with pytest.raises(DataError, match=r"scenarios\.json: has no under-personalization error"):
        draw_audit(without, 2, 0)


def test_either_flags_and_both_confirm(tmp_path: Path) -> None:
    summary = read(tmp_path)
    columns = ("scenario", "flagged_over", "confirmed_under")
    assert audited(summary) == (
        "audit",
        [dict(zip(columns, (name, *said), strict=True)) for name, said in MADE.items()],
    )
    assert summary.notes == [
        "2 of 6 responses are flagged with a secondary Over error by an annotator; 2 lack the "
        "confirmation of all that the Under error is there."
    ]
    [table] = [t for t in summary.tables if t.title == "Flagged or not confirmed"]
    assert [row["scenario"] for row in table.rows] == ["s04", "s07", "s11", "s15"]


def test_shares_by_annotator_by_hand(tmp_path: Path) -> None:
    summary = read(tmp_path)
    found = {
        (e.metric, e.facets["annotator"]): e.value for e in summary.estimates if e.basis == "all"
    }
    assert found == {
        ("under_present", f"{KIND}_1"): pytest.approx(5 / 6),
        ("over_present", f"{KIND}_1"): pytest.approx(1 / 6),
        ("under_present", f"{KIND}_2"): pytest.approx(5 / 6),
        ("over_present", f"{KIND}_2"): pytest.approx(1 / 6),
        ("under_present", "all of them"): pytest.approx(4 / 6),
        ("over_present", "any of them"): pytest.approx(2 / 6),
    }
    assert len(summary.scores) == 6 * 2 * 3
    about = {"subtype": "explicit_violation", "family": "under", "relation": "re_entry"}
    name, facets = "s07/error", {**about, "annotator": f"{KIND}_2"}
    assert Score(name, name, "under_present", "s07", 0.0, "ok", "", facets) in summary.scores


def test_agreement_by_hand(tmp_path: Path) -> None:
    # In both columns 4 of 6 agree, and each annotator gives one answer 5 times: chance
    # (25 + 1) / 36 = 26/36; kappa (24 - 26) / (36 - 26) = -1/5.
    tables = [t for t in read(tmp_path).tables if t.title.startswith("Agreement")]
    assert [t.title.split()[5] for t in tables] == ["under_present", "over_present"]
    for table in tables:
        [row] = table.rows
        assert row["kappa"] == pytest.approx(-1 / 5)
        assert row["agreement"] == pytest.approx(4 / 6)


def test_a_sheet_that_is_not_filled_in_is_refused(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    files, key = filled_in(
        tmp_path / "back", sheets, lambda *_: {"under_present": "yes", "over_present": ""}
    )
    with pytest.raises(DataError, match=r"audit_1\.csv:\d+: over_present: is empty"):
        read_audit(files, key)
    with pytest.raises(ConfigError, match="audit needs the sheets of 2 annotators, not 1"):
        read_audit(files[:1], key)


def test_a_round_trip_ends_in_a_file_that_a_recipe_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scenarios(Path("data"), len(CELLS))
    assert main(["write", KIND, "--data", "data", "--out", "s"]) == 0
    assert f"s/{KIND}_2.csv: 6 items" in capsys.readouterr().out
    filled_in(Path("s"), draw_audit(Path("data"), 2, 0), answer)
    assert main(["read", KIND, f"s/{KIND}_1.csv", f"s/{KIND}_2.csv"]) == 0
    out = capsys.readouterr().out
    assert f"36 scores: s/{KIND}.scores.csv" in out
    assert f"6 audit: s/{KIND}.audit.csv" in out
    assert max(map(len, out.splitlines())) <= 100
    columns = ("scenario", "flagged_over", "confirmed_under")
    rows = read_sheet(Path(f"s/{KIND}.audit.csv"), columns, "scenario")
    assert {r.text("scenario"): (r.text(columns[1]), r.text(columns[2])) for r in rows} == MADE
    with pytest.raises(SystemExit):
        main(["write", KIND, "--data", "data", "--out", "t", "--items", "3"])
