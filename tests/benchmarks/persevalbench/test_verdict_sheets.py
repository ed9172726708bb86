from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from persona_lab.annotate import main
from persona_lab.benchmarks.persevalbench.verdict_sheets import draw_verdicts, read_verdicts
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Score, Summary
from persona_lab.parsing.sheet_key import Sheets
from tests.benchmarks.persevalbench.data import CELLS, filled_in, write_scenarios

KIND = "persevalbench_verdicts"
WORDS = {"R": "Right", "U": "under", "O": "Over "}
# By annotator, the error and the Right responses of s01 to s06: under s01, s04; over s03, s06;
# misapplied s02, s05.
SAID = {
    f"{KIND}_1": {"error": "UUOORU", "right": "RRORRR"},
    f"{KIND}_2": {"error": "UOOUUO", "right": "RRORRR"},
}
FILES = [f"s/{name}{which}.csv" for which in ("", "_round2") for name in SAID]


def answer(name: str, source: Mapping[str, str]) -> Mapping[str, str]:
    said = SAID[name.removesuffix("_round2")][source["side"]]
    return {"verdict": WORDS[said[int(source["scenario"][1:]) - 1]]}


def drawn(folder: Path) -> Sheets:
    return draw_verdicts(write_scenarios(folder / "data"), 100, 2, 0)


def read(folder: Path) -> Summary:
    return read_verdicts(*filled_in(folder / "back", drawn(folder), answer))


def values(summary: Summary) -> dict[tuple[str, str, str], float | None]:
    """By metric, annotator and family; both bases are the same where all is filled in."""
    found = {}
    for e in summary.estimates:
        found.setdefault((e.metric, e.facets["annotator"], e.facets["family"]), set()).add(e.value)
    return {name: value for name, (value,) in found.items()}


def test_single_responses_are_shuffled_and_misapplied_ones_apart(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    assert {name: len(rows) for name, rows in sheets.filled_in.items()} == {
        f"{KIND}_1": 8, f"{KIND}_2": 8, f"{KIND}_1_round2": 4, f"{KIND}_2_round2": 4,
    }  # fmt: skip
    sources = {row["item"]: row for row in sheets.key}
    assert len(sources) == 12
    for name, rows in sheets.filled_in.items():
        for row in rows:
            source = sources[row["item"]]
            assert (source["scenario"] in ("s02", "s05")) == name.endswith("_round2")
            assert list(row) == ["item", "dialogue", "request", "response", "verdict"]
            place = {"right": "quiet", "error": "loud"}[source["side"]]
            assert row["response"] == f"{source['scenario']} should go to the {place} place."
    orders = [[row["item"] for row in rows] for rows in sheets.filled_in.values()]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    [guidelines] = sheets.guidelines.values()
    assert "misapplied" not in guidelines


def test_there_is_no_sheet_of_a_round_without_responses(tmp_path: Path) -> None:
    under = write_scenarios(tmp_path / "under", 3, [("re_entry", "complete_omission")])
    assert list(draw_verdicts(under, 100, 1, 0).filled_in) == [f"{KIND}_1"]
    misapplied = write_scenarios(tmp_path / "misapplied", 3, [("re_entry", "underweighting")])
    assert list(draw_verdicts(misapplied, 100, 1, 0).filled_in) == [f"{KIND}_1_round2"]


def test_recognition_and_false_alarms_by_hand(tmp_path: Path) -> None:
    # The first's error verdicts U U O O R U: of under, s01 is recognised and s04 judged Over; of
    # over, s03 is and s06 is judged Under; of misapplied, s02 takes either and s05 is judged Right:
    # 1/2 each, 3/6 of all. The second's U O O U U O are right throughout. Both flag the Right
    # response of s03: FAR 1/6.
    summary = read(tmp_path)
    first, second, mean = f"{KIND}_1", f"{KIND}_2", "mean of annotators"
    by_hand = {
        **{("ERR", first, family): 1 / 2 for family in ("under", "over", "misapplied", "all")},
        ("FAR", first, "all"): 1 / 6,
        **{("ERR", second, family): 1.0 for family in ("under", "over", "misapplied", "all")},
        ("FAR", second, "all"): 1 / 6,
        **{("ERR", mean, family): 3 / 4 for family in ("under", "over", "misapplied", "all")},
        ("FAR", mean, "all"): 1 / 6,
    }
    assert values(summary) == pytest.approx(by_hand)
    [everything] = [
        e
        for e in summary.estimates
        if e.facets == {"annotator": first, "family": "all"}
        and (e.metric, e.basis) == ("ERR", "all")
    ]
    # scipy.stats.binomtest(3, 6).proportion_ci(method="wilson")
    assert everything.low == pytest.approx(0.1876, abs=1e-4)
    assert everything.high == pytest.approx(0.8124, abs=1e-4)
    assert (everything.interval, everything.n, everything.clusters) == ("Wilson", 6, 6)
    assert summary.notes == []


def test_agreement_over_all_responses_by_hand(tmp_path: Path) -> None:
    # All Right responses agree, and of the errors s01 and s03: 8 of 12. The first says R U O
    # 6 3 3 times, the second 5 3 4 times: chance (30 + 9 + 12) / 144 = 51/144; kappa
    # (96 - 51) / (144 - 51) = 45/93 = 15/31.
    [table] = read(tmp_path).tables
    [row] = table.rows
    assert row["kappa"] == pytest.approx(15 / 31)
    assert row["agreement"] == pytest.approx(8 / 12)
    assert (row["items"], row["not shared"]) == (12, 0)


def test_always_over_scores_as_the_constant_evaluator_does(tmp_path: Path) -> None:
    # Of the 19 legal pairs 6 are under, 7 over, 6 misapplied errors: 13 of 19 take Over.
    sheets = draw_verdicts(write_scenarios(tmp_path, len(CELLS)), 100, 1, 0)
    files, key = filled_in(tmp_path / "back", sheets, lambda *_: {"verdict": "Over"})
    summary = read_verdicts(files, key)
    assert {name[::2]: value for name, value in values(summary).items()} == {
        ("ERR", "under"): 0.0,
        ("ERR", "over"): 1.0,
        ("ERR", "misapplied"): 1.0,
        ("ERR", "all"): pytest.approx(13 / 19),
        ("FAR", "all"): 1.0,
    }
    assert summary.tables == []


def test_verdicts_are_rows_that_a_run_can_be_paired_with(tmp_path: Path) -> None:
    scores = read(tmp_path).scores
    assert len(scores) == 12 * 2
    about = {"subtype": "partial_omission", "family": "under", "relation": "re_entry"}
    name, facets = "s04/error", {**about, "annotator": f"{KIND}_1", "verdict": "OVER_PERSONALIZED"}
    assert Score(name, name, "ERR", "s04", 0.0, "ok", "", facets) in scores
    name, facets = "s04/right", {**about, "annotator": f"{KIND}_2", "verdict": "RIGHT"}
    assert Score(name, name, "FAR", "s04", 0.0, "ok", "", facets) in scores


def test_responses_without_a_verdict_are_said(tmp_path: Path) -> None:
    files, key = filled_in(tmp_path / "back", drawn(tmp_path), answer)
    summary = read_verdicts([f for f in files if f.stem != f"{KIND}_2_round2"], key)
    assert summary.notes == [f"{KIND}_2 has no verdict on 4 of 12 responses."]
    [row] = summary.tables[0].rows
    assert (row["items"], row["not shared"]) == (8, 4)


def test_a_sheet_that_is_not_filled_in_is_refused(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    files, key = filled_in(tmp_path / "back", sheets, answer)
    twice = files[0].with_name(f"{KIND}_1_round2.csv")
    twice.write_bytes(files[0].read_bytes())
    with pytest.raises(DataError, match=rf"_round2\.csv:2: item: .* other sheet of {KIND}_1 alr"):
        read_verdicts([files[0], twice], key)
    filled_in(tmp_path / "back", sheets, lambda *_: {"verdict": "wrong"})
    with pytest.raises(DataError, match=r"verdict: 'wrong' is none of Right, Under, Over"):
        read_verdicts(files, key)


def test_a_round_trip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scenarios(Path("data"))
    assert main(["write", KIND, "--data", "data", "--out", "s"]) == 0
    out = capsys.readouterr().out
    assert f"s/{KIND}_1.csv: 8 items" in out
    assert f"s/{KIND}_1_round2.csv: 4 items" in out
    filled_in(Path("s"), draw_verdicts(Path("data"), 100, 2, 0), answer)
    assert main(["read", KIND, *FILES]) == 0
    out = capsys.readouterr().out
    assert f"24 scores: s/{KIND}.scores.csv" in out
    assert "mean of annotators" in out
    assert max(map(len, out.splitlines())) <= 100
    frame = pd.read_csv(f"s/{KIND}.scores.csv")
    assert set(frame["annotator"]) == set(SAID)
    assert frame.groupby("metric")["value"].mean().to_dict() == {
        "ERR": pytest.approx(9 / 12),
        "FAR": pytest.approx(2 / 12),
    }
