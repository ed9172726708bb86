"""The command for human checks, from a run of the scripted engine to scores and back."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from persona_lab import run
from persona_lab.annotate import main
from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, RUBRICS
from tests.conftest import ROOT

SAMPLE = str(ROOT / "data" / "realpref_sample")
Rows = list[dict[str, str]]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cells(path: Path | str) -> Rows:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: str, answer: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
    """Saves a sheet like a spreadsheet program in a country of decimal commas."""
    rows = [{**row, **answer(row)} for row in cells(path)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def blind_sources() -> list[str]:
    for name in ("ours", "theirs"):
        items = [{"preference": f"{name} {n}", "conversation": f"User: {n}"} for n in range(8)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    return ["--first", "ours.jsonl", "--second", "theirs.jsonl"]


def test_answers_of_a_run_are_drawn_and_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["recipe=quickstart", "engine=scripted", "limit=60"]) == 0
    [folder] = Path("runs").glob("quickstart-*")
    draw = ["write", "answer_scores", "--run", str(folder), "--out", "s", "--items", "8"]
    capsys.readouterr()
    assert main([*draw, "--shared", "2"]) == 0
    out = capsys.readouterr().out
    assert "s/answer_scores_1.csv: 5 items" in out
    assert "s/rubrics.txt: for annotators, with their sheet" in out
    assert "s/answer_scores.key.csv: the key, not for annotators" in out
    assert "2 of 8 answers are in both sheets." in out
    rubrics = Path("s/rubrics.txt").read_text(encoding="utf-8")
    assert all(f"{dimension}\n\n{RUBRICS[dimension]}\n" in rubrics for dimension in DIMENSIONS)
    files = ["s/answer_scores_1.csv", "s/answer_scores_2.csv"]
    for path in files:
        fill(path, lambda row: dict.fromkeys(DIMENSIONS, "4,0"))
    assert main(["read", "answer_scores", *files]) == 0
    out = capsys.readouterr().out
    assert "2 answers were scored by both annotators." in out
    assert "answer_scores.scores.csv" in out
    frame = pd.read_csv("s/answer_scores.scores.csv", dtype={"cluster": str})
    assert len(frame) == (5 + 5) * 3
    assert set(frame["value"]) == {4.0}
    assert set(frame["annotator"]) == {"answer_scores_1", "answer_scores_2"}
    judged = pd.read_parquet(folder / "scores.parquet")
    joined = frame.merge(judged, on=["case", "question", "metric", "cluster"])
    assert len(joined) == len(frame)  # the names of the judge's own scores


def test_the_easy_test_is_drawn_and_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", "easy_test", "--data", SAMPLE, "--out", "s"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "s/easy_test.csv: 40 items" in out
    assert "Only 20 of the 100 wanted stylistic_expression items exist." in out
    places = {row["item"]: row for row in cells("s/easy_test.key.csv")}
    fill("s/easy_test.csv", lambda row: {"answer": places[row["item"]]["correct"]})
    Path("s/easy_test.csv").rename("ann.csv")
    assert main(["read", "easy_test", "ann.csv", "--key", "s/easy_test.key.csv"]) == 0
    out = capsys.readouterr().out
    assert "accuracy" in out
    assert "1.000" in out
    frame = pd.read_csv("ann.scores.csv")
    assert (len(frame), frame["value"].mean()) == (40, 1.0)


def test_blind_pairs_are_drawn_and_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", "blind_pairs", *blind_sources(), "--out", "s"]) == 0
    sides = {row["item"]: row["first_side"] for row in cells("s/blind_pairs.key.csv")}
    fill("s/blind_pairs.csv", lambda row: {"answer": f"{sides[row['item']]} wins"})
    capsys.readouterr()
    assert main(["read", "blind_pairs", "s/blind_pairs.csv"]) == 0
    out = capsys.readouterr().out
    # Wilson's interval of 8 of 8: scipy.stats.binomtest(8, 8).proportion_ci(method="wilson")
    assert "1.000 [0.676, 1.000]  n=8" in out
    assert "A win is one of ours.jsonl over theirs.jsonl." in out
    assert max(map(len, out.splitlines())) <= 100
    again = Path("s/blind_pairs.scores.csv").read_bytes()
    assert main(["read", "blind_pairs", "s/blind_pairs.csv"]) == 0
    assert Path("s/blind_pairs.scores.csv").read_bytes() == again


def test_a_sheet_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    draw = ["write", "blind_pairs", *blind_sources(), "--out", "s"]
    assert main(draw) == 0
    before = {path: path.read_bytes() for path in Path("s").iterdir()}
    capsys.readouterr()
    assert main([*draw, "--seed", "1"]) == 2
    assert "is there already and may be filled in" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("s").iterdir()} == before


def test_the_key_of_another_draw_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    draw = ["write", "blind_pairs", *blind_sources()]
    assert main([*draw, "--out", "a"]) == 0
    assert main([*draw, "--out", "b", "--seed", "1"]) == 0
    fill("a/blind_pairs.csv", lambda row: {"answer": "tie"})
    arguments = ["read", "blind_pairs", "a/blind_pairs.csv"]
    assert main([*arguments, "--key", "b/blind_pairs.key.csv"]) == 2
    assert "is not in the key: give the one written with this sheet" in capsys.readouterr().err
    Path("a/blind_pairs.key.csv").unlink()
    assert main(arguments) == 2
    assert "a/blind_pairs.key.csv: no such file; give the key" in capsys.readouterr().err


def test_cells_that_a_spreadsheet_would_cut_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = blind_sources()
    item = {"preference": "tea", "conversation": "x" * 32_768}  # Excel keeps 32,767 characters
    Path("ours.jsonl").write_text(json.dumps(item))
    assert main(["write", "blind_pairs", *arguments, "--out", "s"]) == 0
    assert "1 cells are longer than the 32,767 characters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["write", "easy_test", "--data", "none", "--out", "s"], "none: no such folder"),
        (["write", "answer_scores", "--run", "none", "--out", "s"], "scores.parquet: no such file"),
        (
            ["write", "blind_pairs", "--first", "no.csv", "--second", "no.csv", "--out", "s"],
            "no.csv: no such file",
        ),
        (["read", "easy_test", "s.csv"], "easy_test.key.csv: no such file; give the key"),
        (["read", "easy_test", "s.csv", "--key", "key.csv"], "s.csv:3: answer: is empty"),
        (["read", "blind_pairs", "s.csv", "--key", "key.csv"], "key.csv:1: first_side: no such"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = "a,q,u,stylistic_expression,A\nb,q,u,stylistic_expression,A\n"
    Path("key.csv").write_text(f"item,question,user,expression,correct\n{places}")
    Path("s.csv").write_text("item,answer\na,B\nb,\n")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("cannot run: ")
    assert message in error
    assert error.count("\n") == 1
    assert not Path("s").exists()
    assert not Path("s.scores.csv").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["write"],
        ["write", "easy_test", "--data", SAMPLE],
        ["write", "easy_test", "--data", SAMPLE, "--out", "s", "--items", "0"],
        ["write", "easy_test", "--data", SAMPLE, "--out", "s", "--shared", "2"],
        ["read", "another", "s.csv"],
        ["read", "easy_test"],
    ],
)
def test_a_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_a_disk_that_refuses_is_one_message_and_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s").write_text("a file where the folder should be")
    assert main(["write", "blind_pairs", *blind_sources(), "--out", "s"]) == 1
    assert capsys.readouterr().err.startswith("failed: s")


def test_help_names_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["write", "--help"], ["write", "blind_pairs", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "Exit codes" in out
    assert all(kind in out for kind in ("answer_scores", "easy_test", "blind_pairs"))
