from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from persona_lab.annotate import main
from persona_lab.benchmarks.benchpres.label_sheets import (
    LISTED,
    annotator_tables,
    draw_labels,
    gold_labels,
    read_labels,
)
from persona_lab.benchmarks.benchpres.loading import load_data
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.parsing.csv_sheet import read_sheet
from persona_lab.parsing.sheet_key import Sheets
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.realpref.annotators import items, written

# 2 profiles x 3 contexts x 5 categories.
INSTANCES = 30
# Instance -> the three annotators' labels; all others are 0 0 0.
GIVEN = {
    "p01/context_1/style": "111",
    "p01/context_2/style": "110",
    "p02/context_3/nickname": "001",
}


def drawn(folder: Path, annotators: int = 3, seed: int = 0) -> Sheets:
    return draw_labels(write_data(folder / "data"), annotators, seed)


def instances(sheets: Sheets) -> dict[str, str]:
    """Item -> instance."""
    columns = ("profile", "context", "category")
    return {row["item"]: "/".join(row[name] for name in columns) for row in sheets.key}


def filled(folder: Path, sheets: Sheets, given: Mapping[str, str] = GIVEN) -> list[Path]:
    """Each annotator's sheet, filled in as GIVEN says, and last the key."""
    names = instances(sheets)
    key = folder / "key.csv"
    for place, (name, rows) in enumerate(sheets.filled_in.items()):
        one = Sheets({name: rows}, sheets.key)

        def fill(row: Mapping[str, str], place: int = place) -> Mapping[str, str]:
            return {"label": given.get(names[row["item"]], "000")[place]}

        key.unlink(missing_ok=True)
        written(folder, one, fill)
    return [*(folder / f"{name}.csv" for name in sheets.filled_in), key]


def read(folder: Path, given: Mapping[str, str] = GIVEN) -> Summary:
    *files, key = filled(folder / "back", drawn(folder), given)
    return read_labels(files, key)


def rows_of(tables: list[RowsTable], start: str) -> list[dict[str, object]]:
    [found] = [table.rows for table in tables if table.title.startswith(start)]
    return [dict(row) for row in found]


def test_every_annotator_gets_all_instances_in_an_order_of_their_own(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    assert list(sheets.filled_in) == [f"benchpres_labels_{n}" for n in (1, 2, 3)]
    orders = [items(rows) for rows in sheets.filled_in.values()]
    assert all(sorted(order) == sorted(items(sheets.key)) for order in orders)
    assert len({tuple(order) for order in [*orders, items(sheets.key)]}) == 4
    assert len(set(orders[0])) == INSTANCES
    assert drawn(tmp_path) == sheets
    assert drawn(tmp_path, seed=1) != sheets
    more = drawn(tmp_path, annotators=4)
    assert list(more.filled_in.values())[:3] == list(sheets.filled_in.values())


def test_an_annotator_sees_neither_profile_nor_category_nor_label(tmp_path: Path) -> None:
    sheets = drawn(tmp_path)
    names = instances(sheets)
    for row in sheets.filled_in["benchpres_labels_1"]:
        profile, context, category = names[row["item"]].split("/")
        number = int(profile.removeprefix("p"))
        statement = f"I like {category} number {number}."
        assert row == {
            "item": row["item"],
            "recipient": f"Recipient {context[-1]}",
            "task": f"Purpose {context[-1]}",
            "preference": f"Please call me Nick{number}." if category == "nickname" else statement,
            "label": "",
        }
    [guidelines] = sheets.guidelines.values()
    assert "1   " in guidelines
    assert "0   " in guidelines


def test_the_authors_labels_are_not_needed(tmp_path: Path) -> None:
    with_labels = drawn(tmp_path)
    for name in ("labels.csv", "profiles.json"):
        (tmp_path / "data" / name).unlink()
    assert draw_labels(tmp_path / "data", 3, 0) == with_labels
    with pytest.raises(DataError, match=r"contexts\.csv: no such file"):
        draw_labels(tmp_path / "none", 3, 0)


def test_only_unanimous_labels_stay(tmp_path: Path) -> None:
    summary = read(tmp_path)
    name, rows = gold_labels(summary)
    assert name == "labels"
    made = {f"{r['profile']}/{r['context']}/{r['category']}": r["label"] for r in rows}
    expected = {"111": "1", "110": "excluded", "001": "excluded", "000": "0"}
    assert len(made) == INSTANCES
    assert made == {instance: expected[GIVEN.get(instance, "000")] for instance in made}
    assert rows_of(summary.tables, "Excluded") == [
        {"instance": "p01/context_2/style", "labels": "1 1 0"},
        {"instance": "p02/context_3/nickname", "labels": "0 0 1"},
    ]
    assert summary.notes == ["2 of 30 instances are excluded: annotators disagree."]


def test_labels_are_rows_by_annotator(tmp_path: Path) -> None:
    scores = read(tmp_path).scores
    assert len(scores) == INSTANCES * 3
    facets = {"annotator": "benchpres_labels_3", "context": "context_2", "category": "style"}
    name = "p01/context_2/style"
    assert Score(name, name, "label", "p01", 0.0, "ok", "", facets) in scores
    assert {s.metric for s in scores} == {"label"}


def test_the_share_of_unanimous_instances(tmp_path: Path) -> None:
    [overall, scored] = read(tmp_path).estimates
    assert (overall.metric, overall.basis, scored.basis) == ("unanimous", "all", "scored")
    assert overall.value == pytest.approx(28 / 30)
    assert (overall.n, overall.clusters) == (30, 2)


def test_agreement_of_annotators_by_hand(tmp_path: Path) -> None:
    # Three raters on 30 items: 27 times 000, once each 111, 110, 001. Of the 3 pairs of raters an
    # item has, all agree on 28 items and 1 does on 2: observed (28 + 2/3) / 30 = 86/90. Ones are
    # 3 + 2 + 1 = 6 of 90: chance (6/90)^2 + (84/90)^2 = 7092/8100. Kappa
    # (86/90 - 7092/8100) / (1 - 7092/8100) = (7740 - 7092) / (8100 - 7092) = 648/1008 = 9/14.
    tables = read(tmp_path).tables
    [fleiss] = rows_of(tables, "Agreement of all")
    assert fleiss["kappa"] == pytest.approx(9 / 14)
    assert fleiss["agreement"] == pytest.approx(86 / 90)
    assert (fleiss["annotators"], fleiss["items"]) == (3, 30)
    # 1 and 2 agree always. 1 and 3: 111 and 27 x 000 agree, 28/30; each says 1 twice: chance
    # (2/30)^2 + (28/30)^2 = 788/900; kappa (840 - 788) / (900 - 788) = 52/112 = 13/28.
    pairs = rows_of(tables, "Agreement of two")
    assert [p["kappa"] for p in pairs] == [1.0, pytest.approx(13 / 28), pytest.approx(13 / 28)]
    assert [p["agreement"] for p in pairs] == [1.0, pytest.approx(28 / 30), pytest.approx(28 / 30)]
    names = [(str(p["first"])[-1], str(p["second"])[-1]) for p in pairs]
    assert names == [("1", "2"), ("1", "3"), ("2", "3")]


def test_items_that_not_all_rated_are_left_out_of_fleiss_kappa() -> None:
    def score(item: str, annotator: str, value: float) -> Score:
        return Score(item, item, "label", "u", value, "ok", "", {"annotator": annotator})

    # On the shared items ann says 0 0 1 1 and bob 0 1 1 1. Observed 3/4; 5 of 8 say 1: chance
    # (5/8)^2 + (3/8)^2 = 34/64; kappa (48 - 34) / (64 - 34) = 7/15.
    scores = [score(str(i), "ann", float(v)) for i, v in enumerate("0011")]
    scores += [score(str(i), "bob", float(v)) for i, v in enumerate("01110")]
    [fleiss], [pair] = (table.rows for table in annotator_tables(scores))
    assert fleiss["kappa"] == pytest.approx(7 / 15)
    assert fleiss["items"] == 4
    assert (pair["items"], pair["not shared"]) == (4, 1)
    [alone], [empty] = (table.rows for table in annotator_tables([scores[0], scores[-1]]))
    assert (alone["kappa"], alone["items"], empty["kappa"]) == (None, 0, None)


def test_of_many_excluded_instances_the_first_are_listed(tmp_path: Path) -> None:
    sheets = draw_labels(write_data(tmp_path / "data", contexts=6), 3, 0)
    given = dict.fromkeys(instances(sheets).values(), "011")
    *files, key = filled(tmp_path / "back", sheets, given)
    summary = read_labels(files, key)
    assert len(rows_of(summary.tables, "Excluded")) == LISTED
    assert summary.notes == [
        "60 of 60 instances are excluded: annotators disagree.",
        "Of the 60 excluded instances, the first 40 are listed.",
    ]
    unanimous = read(tmp_path / "unanimous", {})
    assert not [table for table in unanimous.tables if table.title.startswith("Excluded")]
    assert unanimous.notes == ["0 of 30 instances are excluded: annotators disagree."]


def test_fewer_than_three_annotators_are_refused(tmp_path: Path) -> None:
    *files, key = filled(tmp_path / "back", drawn(tmp_path))
    with pytest.raises(ConfigError, match="needs the sheets of 3 annotators, not 2"):
        read_labels(files[:2], key)


def test_an_item_that_somebody_has_not_labelled_is_refused(tmp_path: Path) -> None:
    *files, key = filled(tmp_path / "back", drawn(tmp_path))
    lines = files[1].read_text(encoding="utf-8-sig").splitlines()
    [first] = [row.text("item") for row in read_sheet(key, ("item",)) if row.line == 2]
    kept = [line for line in lines if not line.startswith(first)]
    files[1].write_text("\n".join(kept))
    with pytest.raises(DataError, match=rf"labels_2\.csv: has no row for {first}; every annot"):
        read_labels(files, key)
    files[1].write_text("\n".join(lines[:-2]))
    with pytest.raises(DataError, match=r"labels_2\.csv: has no row for item-\w+ and 1 more;"):
        read_labels(files, key)


@pytest.mark.parametrize(
    ("given", "problem"),
    [("", "is empty"), ("2", "'2' is no whole number from 0 to 1"), ("yes", "'yes' is no whole")],
)
def test_a_label_is_0_or_1(tmp_path: Path, given: str, problem: str) -> None:
    files, key = written(tmp_path / "back", drawn(tmp_path), lambda row: {"label": given})
    with pytest.raises(DataError, match=rf"benchpres_labels_1\.csv:2: label: {problem}"):
        read_labels(files, key)


def test_a_round_trip_ends_in_labels_that_are_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_data(Path("data"))
    assert main(["write", "benchpres_labels", "--data", "data", "--out", "s"]) == 0
    out = capsys.readouterr().out
    assert "s/benchpres_labels_3.csv: 30 items" in out
    assert "s/label_guidelines.txt: for annotators" in out
    columns = ("profile", "context", "category")
    key = read_sheet(Path("s/benchpres_labels.key.csv"), ("item", *columns))
    names = {row.text("item"): "/".join(map(row.text, columns)) for row in key}
    files = [f"s/benchpres_labels_{n}.csv" for n in (1, 2, 3)]
    for place, file in enumerate(files):
        labels = {i: GIVEN.get(name, "000")[place] for i, name in names.items()}
        Path(file).write_text("item;label\n" + "".join(f"{i};{g},0\n" for i, g in labels.items()))
    assert main(["read", "benchpres_labels", *files]) == 0
    out = capsys.readouterr().out
    assert "30 labels: s/benchpres_labels.labels.csv" in out
    assert "90 scores: s/benchpres_labels.scores.csv" in out
    assert "2 of 30 instances are excluded" in out
    assert max(map(len, out.splitlines())) <= 100
    (data / "labels.csv").write_bytes(Path("s/benchpres_labels.labels.csv").read_bytes())
    found = {i.id: i.label for i in load_data(data).all_instances if i.label != "0"}
    assert found == {
        "p01/context_1/style": "1",
        "p01/context_2/style": "excluded",
        "p02/context_3/nickname": "excluded",
    }
    assert main(["read", "benchpres_labels", *files[:2]]) == 2
    assert "needs the sheets of 3 annotators" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["write", "benchpres_labels", "--data", "data", "--out", "t", "--annotators", "2"])
