from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from persona_lab.annotate import main
from persona_lab.benchmarks.persevalbench.role_sheets import draw_roles, read_roles
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.parsing.csv_sheet import write_sheet
from persona_lab.parsing.sheet_key import Sheets
from tests.benchmarks.persevalbench.data import filled_in, write_scenarios

# The benchmark: A dominates in s01, s03, s05 and supports in s02, s04, s06; B, which s01 lacks, is
# ignored. What annotators say otherwise:
OTHERWISE = {
    "persevalbench_roles_1": {"s05/A": "Support"},
    "persevalbench_roles_2": {"s05/A": "Support", "s02/A": "Dominate", "s03/B": "Dominate"},
}
FILES = [f"s/{name}.csv" for name in OTHERWISE]


def answer(name: str, source: Mapping[str, str]) -> Mapping[str, str]:
    state = f"{source['scenario']}/{source['state']}"
    return {"role": OTHERWISE[name].get(state, source["role"]).lower()}


def drawn(folder: Path) -> Sheets:
    return draw_roles(write_scenarios(folder / "data"), 100, 2, 0)


def read(folder: Path) -> Summary:
    """s03/B is settled as Ignore, s02/A is not."""
    sheets = drawn(folder)
    files, key = filled_in(folder / "back", sheets, answer)
    [item] = [row["item"] for row in sheets.key if (row["scenario"], row["state"]) == ("s03", "B")]
    settled = folder / "back" / "adjudicated.csv"
    write_sheet(settled, [{"item": item, "role": "Ignore"}])
    return read_roles([*files, settled], key)


def rows_of(tables: list[RowsTable], start: str) -> list[dict[str, object]]:
    [found] = [table.rows for table in tables if table.title.startswith(start)]
    return [dict(row) for row in found]


def test_an_annotator_sees_states_without_name_and_role(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    assert len(sheets.key) == 11
    sources = {row["item"]: row for row in sheets.key}
    for row in sheets.filled_in["persevalbench_roles_2"]:
        source = sources[row["item"]]
        assert list(row) == ["item", "dialogue", "request", "user_state", "role"]
        heard = {"A": "wants it quiet", "B": "once wanted it loud"}[source["state"]]
        assert row["user_state"] == f"{source['scenario']} {heard}."
        assert row["role"] == ""
    [guidelines] = sheets.guidelines.values()
    assert all(f"{role} " in guidelines for role in ("Ignore", "Support", "Dominate"))


def test_states_of_a_dialogue_stay_together_in_either_order(tmp_path: Path) -> None:
    sheets = draw_roles(write_scenarios(tmp_path, 19), 100, 2, 0)
    sources = {row["item"]: row for row in sheets.key}
    first_of = []
    for rows in sheets.filled_in.values():
        places = [(sources[r["item"]]["scenario"], sources[r["item"]]["state"]) for r in rows]
        blocks = [s for n, (s, _) in enumerate(places) if n == 0 or places[n - 1][0] != s]
        assert len(blocks) == len(set(blocks)) == 19
        first_of.append(dict(reversed(places)))
    assert all(set(first.values()) == {"A", "B"} for first in first_of)
    assert first_of[0] != first_of[1]


def test_match_with_the_benchmark_by_hand(tmp_path: Path) -> None:
    # Of 11 states s02/A is unsettled and s05/A is Support for both: 9 match, of 10 settled ones.
    summary = read(tmp_path)
    found = {
        (e.facets.get("role", ""), e.basis): (e.value, e.n, e.clusters) for e in summary.estimates
    }
    assert found == {
        ("", "all"): (pytest.approx(9 / 11), 11, 6),
        ("", "scored"): (pytest.approx(9 / 10), 10, 6),
        ("Ignore", "all"): (1.0, 5, 5),
        ("Ignore", "scored"): (1.0, 5, 5),
        ("Support", "all"): (pytest.approx(2 / 3), 3, 3),
        ("Support", "scored"): (1.0, 2, 2),
        ("Dominate", "all"): (pytest.approx(2 / 3), 3, 3),
        ("Dominate", "scored"): (pytest.approx(2 / 3), 3, 3),
    }
    columns = ("benchmark", "states", "Ignore", "Support", "Dominate", "unsettled")
    table = rows_of(summary.tables, "The consensus where the benchmark gives a role")
    assert table == [
        dict(zip(columns, row, strict=True))
        for row in [
            ("Ignore", 5, 5, 0, 0, 0),
            ("Support", 3, 0, 2, 0, 1),
            ("Dominate", 3, 0, 1, 2, 0),
        ]
    ]


def test_agreement_and_linear_kappa_by_hand(tmp_path: Path) -> None:
    # The first says I S D 5 4 2 times, the second 4 3 4 times. They differ by one step and by two
    # on one state each: 9/11 agree, 3 steps. By chance, in 11ths: one step apart are
    # 5*3 + 4*4 + 4*4 + 2*3 = 53 pairs, two steps 5*4 + 2*4 = 28, so 53 + 2*28 = 109 steps of 11.
    # Kappa 1 - 3 * 11 / 109 = 76/109.
    summary = read(tmp_path)
    [row] = rows_of(summary.tables, "Agreement of two annotators on three roles")
    assert row["kappa"] == pytest.approx(76 / 109)
    assert row["agreement"] == pytest.approx(9 / 11)
    [title] = [t.title for t in summary.tables if t.title.startswith("Agreement")]
    assert title.endswith("(Cohen's kappa, linear weights)")
    assert summary.notes[0].startswith("Annotators differ on 2 of 11 items, 1 of them unsettled")
    assert summary.notes[1] == (
        "Kappa has linear weights; the paper does not say which its .709 has."
    )
    [unsettled] = rows_of(summary.tables, "Unsettled")
    assert unsettled["said"] == "Support Dominate"


def test_roles_are_rows_by_annotator_and_consensus(tmp_path: Path) -> None:
    scores = read(tmp_path).scores
    assert len(scores) == 11 * 3
    about = {"subtype": "stale_superseded", "family": "misapplied", "relation": "cross_domain"}
    mine = [s for s in scores if s.question == "s02/A"]
    assert [s.value for s in mine] == [1.0, 0.0, None]
    assert [s.facets["given"] for s in mine] == ["Support", "Dominate", ""]
    facets = {**about, "annotator": "persevalbench_roles_2", "role": "Support", "given": "Dominate"}
    assert mine[1] == Score("s02/A", "s02/A", "role_match", "s02", 0.0, "ok", "", facets)
    assert (mine[2].outcome, mine[2].reason) == ("unparsed", "unsettled")


def test_a_role_is_one_of_three(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    files, key = filled_in(tmp_path / "back", sheets, lambda *_: {"role": "use"})
    with pytest.raises(DataError, match=r"role: 'use' is none of Ignore, Support, Dominate"):
        read_roles(files, key)
    with pytest.raises(ConfigError, match="roles needs the sheets of 2 annotators, not 1"):
        read_roles(files[:1], key)


def test_a_round_trip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scenarios(Path("data"))
    write = ["write", "persevalbench_roles", "--data", "data", "--out", "s", "--items", "6"]
    assert main(write) == 0
    out = capsys.readouterr().out
    assert "s/persevalbench_roles_1.csv: 11 items" in out
    assert "s/role_guidelines.txt: for annotators" in out
    filled_in(Path("s"), draw_roles(Path("data"), 6, 2, 0), answer)
    assert main(["read", "persevalbench_roles", *FILES]) == 0
    out = capsys.readouterr().out
    assert "33 scores: s/persevalbench_roles.scores.csv" in out
    assert max(map(len, out.splitlines())) <= 100
    frame = pd.read_csv("s/persevalbench_roles.scores.csv")
    consensus = frame[frame["annotator"] == "consensus"]
    assert (len(consensus), consensus["value"].sum()) == (11, 8)
