from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, judge_prompt
from persona_lab.benchmarks.realpref.records import load_users
from persona_lab.benchmarks.realpref.sheets import (
    IMPLICIT,
    Pair,
    draw_answer_scores,
    draw_blind_pairs,
    draw_easy_test,
    read_answer_scores,
    read_blind_pairs,
    read_easy_test,
    shared_pairs,
)
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.experiment import Score
from persona_lab.parsing.csv_sheet import Sheets, write_sheet
from persona_lab.reporting.run_folder import write_scores
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "realpref_sample"
Fill = Callable[[Mapping[str, str]], Mapping[str, str]]


def run_folder(folder: Path, answers: int = 12, unjudged: int = 2) -> Path:
    """A run with `answers` judged answers to four users' questions, and more that are unjudged."""
    folder.mkdir()
    scores, asked = [], []
    for n in range(answers + unjudged):
        case, user = f"case-{n:02}/zero_shot/open_ended", f"0000{n % 4}"
        value = 4.25 if n < answers else None
        for metric in (*DIMENSIONS, "overall"):
            scores.append(
                Score(case, f"q{n % 4}", metric, user, value, "ok" if value else "unparsed", "")
            )
        asked.append({"case": case, "role": "target", "asked": f"Query {n}?"})
        for dimension in DIMENSIONS:
            text = judge_prompt(dimension, f"P {n}. Really.", f"Query {n}?", f"=A {n}.\n\nA: B.")
            asked.append({"case": case, "role": "judge", "asked": text})
    scores.append(Score("case-00/multiple_choice", "q0", "accuracy", "00000", 1.0, "ok"))
    write_scores(folder, scores)
    pd.DataFrame(asked).to_parquet(folder / "transcripts.parquet")
    return folder


def written(folder: Path, sheets: Sheets, fill: Fill) -> tuple[list[Path], Path]:
    """The sheets as annotators give them back, and the key."""
    folder.mkdir(exist_ok=True)
    key = folder / "key.csv"
    write_sheet(key, sheets.key)
    for name, rows in sheets.filled_in.items():
        write_sheet(folder / f"{name}.csv", [{**row, **fill(row)} for row in rows])
    return [folder / f"{name}.csv" for name in sheets.filled_in], key


def items(rows: object) -> list[str]:
    return [row["item"] for row in rows]  # type: ignore[attr-defined]


def test_answers_are_split_with_some_in_both_sheets(tmp_path: Path) -> None:
    sheets = draw_answer_scores(run_folder(tmp_path / "run"), items=9, shared=4, seed=0)
    first, second = sheets.filled_in["answer_scores_1"], sheets.filled_in["answer_scores_2"]
    assert (len(first), len(second)) == (4 + 3, 4 + 2)  # 9 - 4 = 5 are split
    both = set(items(first)) & set(items(second))
    assert len(both) == 4
    assert set(items(first)) | set(items(second)) == set(items(sheets.key))
    assert len(set(items(sheets.key))) == 9
    assert sheets.notes == [
        "2 answers lack a score of the judge's and cannot be drawn.",
        "4 of 9 answers are in both sheets.",
    ]


def test_an_answer_sheet_shows_what_the_judge_saw_and_no_score(tmp_path: Path) -> None:
    sheets = draw_answer_scores(run_folder(tmp_path / "run"), items=12, shared=12, seed=0)
    cases = {row["item"]: row["case"] for row in sheets.key}
    for row in sheets.filled_in["answer_scores_1"]:
        n = int(cases[row["item"]][5:7])
        assert row == {
            "item": row["item"],
            "preference": f"P {n}. Really.",
            "query": f"Query {n}?",
            "answer": f"=A {n}.\n\nA: B.",
            "preference_awareness": "",
            "preference_alignment": "",
            "answer_quality": "",
        }
    assert "4.25" not in str(sheets)
    assert "zero_shot" not in str(sheets.filled_in)


def test_a_draw_depends_on_its_seed_alone(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    assert draw_answer_scores(run, 6, 2, 0) == draw_answer_scores(run, 6, 2, 0)
    assert draw_answer_scores(run, 6, 2, 0) != draw_answer_scores(run, 6, 2, 1)
    assert draw_easy_test(SAMPLE, 6, 0) == draw_easy_test(SAMPLE, 6, 0)
    assert draw_easy_test(SAMPLE, 6, 0) != draw_easy_test(SAMPLE, 6, 1)


def test_fewer_answers_than_wanted_are_said(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", unjudged=0)
    sheets = draw_answer_scores(run, items=100, shared=20, seed=0)
    assert len(sheets.key) == 12
    assert sheets.notes == [
        f"Only 12 of the 100 wanted answers are in {run}.",
        "12 of 12 answers are in both sheets.",
    ]
    one = draw_answer_scores(run, items=1, shared=0, seed=0)
    assert list(one.filled_in) == ["answer_scores_1"]
    with pytest.raises(ConfigError, match="--shared 5: is more than --items 4"):
        draw_answer_scores(run, items=4, shared=5, seed=0)


def test_a_folder_without_judged_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"scores\.parquet: no such file; --run names"):
        draw_answer_scores(tmp_path, 5, 2, 0)
    with pytest.raises(DataError, match=r"scores\.parquet: has no open-ended answer"):
        draw_answer_scores(run_folder(tmp_path / "none", answers=0), 5, 2, 0)
    run = run_folder(tmp_path / "run")
    frame = pd.read_parquet(run / "transcripts.parquet")
    frame["asked"] = frame["asked"].str.replace("You are a strict evaluator.", "Be kind.")
    frame.to_parquet(run / "transcripts.parquet")
    with pytest.raises(DataError, match=r"transcripts\.parquet: case-00/.*this version's judge"):
        draw_answer_scores(run, 12, 2, 0)
    frame[["case"]].to_parquet(run / "transcripts.parquet")
    with pytest.raises(DataError, match=r"transcripts\.parquet: cannot be read"):
        draw_answer_scores(run, 12, 2, 0)
    (run / "scores.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"scores\.parquet: cannot be read"):
        draw_answer_scores(run, 12, 2, 0)


def test_answer_scores_are_read_by_dimension_and_annotator(tmp_path: Path) -> None:
    sheets = draw_answer_scores(run_folder(tmp_path / "run"), items=9, shared=4, seed=0)
    given = dict(zip(DIMENSIONS, ("1", "3.0", " 5 "), strict=True))
    files, key = written(tmp_path / "back", sheets, lambda row: given)
    second = files[1].read_text(encoding="utf-8-sig").replace(",1,3.0,", ",2,3.0,")
    files[1].write_text(second)
    summary = read_answer_scores(files, key)
    assert len(summary.scores) == (7 + 6) * 3
    cases = {row["case"]: row for row in sheets.key}
    for score in summary.scores:
        source = cases[score.case]
        assert (score.question, score.cluster) == (source["question"], source["user"])
        by_hand = {
            ("answer_scores_1", "preference_awareness"): 1.0,
            ("answer_scores_2", "preference_awareness"): 2.0,
            ("answer_scores_1", "preference_alignment"): 3.0,
            ("answer_scores_2", "preference_alignment"): 3.0,
            ("answer_scores_1", "answer_quality"): 5.0,
            ("answer_scores_2", "answer_quality"): 5.0,
        }
        assert score.value == by_hand[score.facets["annotator"], score.metric]
        assert score.outcome == "ok"
    pairs = shared_pairs(summary.scores)
    assert Counter((p.metric, p.first, p.second) for p in pairs) == {
        ("preference_awareness", 1, 2): 4,
        ("preference_alignment", 3, 3): 4,
        ("answer_quality", 5, 5): 4,
    }
    assert summary.notes == ["4 answers were scored by both annotators."]
    assert {e.value for e in summary.estimates} == {1.0, 2.0, 3.0, 5.0}
    numbers = {(e.facets["annotator"], e.n) for e in summary.estimates}
    assert numbers == {("answer_scores_1", 7), ("answer_scores_2", 6)}  # answers, not questions


def test_one_annotator_gives_no_pairs(tmp_path: Path) -> None:
    sheets = draw_answer_scores(run_folder(tmp_path / "run"), items=9, shared=4, seed=0)
    files, key = written(tmp_path / "back", sheets, lambda row: dict.fromkeys(DIMENSIONS, "2"))
    summary = read_answer_scores(files[:1], key)
    assert shared_pairs(summary.scores) == []
    assert summary.notes == ["2 of 9 items of the key are in none of the sheets."]
    with pytest.raises(ConfigError, match="has two annotators, not 3"):
        read_answer_scores([*files, key], key)


def test_pairs_keep_the_order_of_the_sheets() -> None:
    def score(case: str, annotator: str, value: float) -> Score:
        return Score(case, "q", "answer_quality", "u", value, "ok", "", {"annotator": annotator})

    scores = [
        score("a", "zoe", 1.0), score("b", "zoe", 2.0), score("c", "ann", 3.0),
        score("b", "ann", 4.0), score("a", "ann", 5.0),
    ]  # fmt: skip
    assert shared_pairs(scores) == [
        Pair("a", "answer_quality", 1, 5), Pair("b", "answer_quality", 2, 4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "problem"),
    [("", "is empty"), ("6", "'6' is no whole number from 1 to 5"), ("3.5", "'3.5' is no")],
)
def test_an_answer_left_out_is_refused(tmp_path: Path, given: str, problem: str) -> None:
    sheets = draw_answer_scores(run_folder(tmp_path / "run"), items=4, shared=4, seed=0)
    scores = {**dict.fromkeys(DIMENSIONS, "2"), "answer_quality": given}
    files, key = written(tmp_path / "back", sheets, lambda row: scores)
    with pytest.raises(DataError, match=rf"answer_scores_1\.csv:2: answer_quality: {problem}"):
        read_answer_scores(files, key)


def test_a_key_does_not_fit_the_sheet_of_another_run(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    sheets = draw_answer_scores(run, items=12, shared=4, seed=0)
    frame = pd.read_parquet(run / "transcripts.parquet")
    frame["asked"] = frame["asked"].str.replace("A: B.", "A: C.")
    frame.to_parquet(run / "transcripts.parquet")
    others = draw_answer_scores(run, items=12, shared=4, seed=0)
    assert [row["case"] for row in sheets.key] == [row["case"] for row in others.key]
    files, _ = written(tmp_path / "back", sheets, lambda row: dict.fromkeys(DIMENSIONS, "2"))
    _, key = written(tmp_path / "others", others, lambda row: {})
    with pytest.raises(DataError, match="is not in the key"):
        read_answer_scores(files, key)


def test_the_easy_test_is_half_of_each_type() -> None:
    sheets = draw_easy_test(SAMPLE, items=16, seed=3)
    assert Counter(row["expression"] for row in sheets.key) == dict.fromkeys(IMPLICIT, 8)
    assert len({row["question"] for row in sheets.key}) == 16  # of 20: none is asked twice
    assert sheets.notes == []
    assert Counter(row["expression"] for row in draw_easy_test(SAMPLE, 5, 0).key) == {
        IMPLICIT[0]: 3, IMPLICIT[1]: 2
    }  # fmt: skip


def test_fewer_questions_than_wanted_are_said() -> None:
    sheets = draw_easy_test(SAMPLE, items=200, seed=0)
    assert len(sheets.key) == 40  # 2 users, 10 original preferences each, 2 types
    assert sheets.notes == [
        "Only 20 of the 100 wanted stylistic_expression items exist.",
        "Only 20 of the 100 wanted experience_feedback items exist.",
    ]


def test_an_easy_question_shows_all_sessions_of_its_preference_alone() -> None:
    sheets = draw_easy_test(SAMPLE, items=40, seed=0)
    places = {row["item"]: row for row in sheets.key}
    asked = {a.id: (u, a.query) for u in load_users(SAMPLE) for a in u.asked}
    for row in sheets.filled_in["easy_test"]:
        assert list(row) == ["item", "conversation", "query", "options", "answer"]
        assert row["answer"] == ""
        place = places[row["item"]]
        user, query = asked[place["question"]]
        assert row["query"] == query.query
        assert row["options"].splitlines() == [f"{k}. {query.options[k]}" for k in "ABCD"]
        assert place["correct"] == query.correct
        sessions = user.expressions[query.preference][place["expression"]]  # type: ignore[index]
        messages = [m for s in sessions for t in s.turns for m in (t.user, t.assistant)]
        assert all(message in row["conversation"] for message in messages)
        bare = row["conversation"].replace("User: ", "").replace("Assistant: ", "")
        heads = [f"Session {n}" for n in range(1, len(sessions) + 1)]
        for text in [*messages, *heads]:
            bare = bare.replace(text, "", 1)
        assert bare.strip() == ""
        assert query.preference not in row["conversation"]


def test_sessions_that_voice_nothing_are_refused(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    path = copy / "expression_sessions.json"
    content = json.loads(path.read_text())
    for entry in (e for entries in content.values() for e in entries):
        del entry["Sessions"]["stylistic_expression"]
    path.write_text(json.dumps(content))
    sheets = draw_easy_test(copy, items=8, seed=0)
    assert sheets.notes == ["Only 0 of the 4 wanted stylistic_expression items exist."]
    for entry in (e for entries in content.values() for e in entries):
        entry["Sessions"] = {}
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"expression_sessions\.json: has no stylistic_expression"):
        draw_easy_test(copy, items=8, seed=0)


def test_easy_answers_become_accuracy(tmp_path: Path) -> None:
    """Always right on type 3; on type 4 right on the first user only."""
    sheets = draw_easy_test(SAMPLE, items=40, seed=0)
    places = {row["item"]: row for row in sheets.key}

    def fill(row: Mapping[str, str]) -> Mapping[str, str]:
        place = places[row["item"]]
        wrong = place["expression"] == IMPLICIT[1] and place["user"] == "00002"
        letter = "ABCDA"["ABCD".index(place["correct"]) + wrong]
        return {"answer": f" {letter.lower()}"}

    files, key = written(tmp_path / "back", sheets, fill)
    summary = read_easy_test(files, key)
    assert len(summary.scores) == 40
    found = {(e.facets["expression"], e.basis): (e.value, e.n) for e in summary.estimates}
    assert found == {
        (IMPLICIT[0], "all"): (1.0, 20),
        (IMPLICIT[0], "scored"): (1.0, 20),
        (IMPLICIT[1], "all"): (0.5, 20),
        (IMPLICIT[1], "scored"): (0.5, 20),
    }
    assert {s.facets["annotator"] for s in summary.scores} == {"easy_test"}


def sources(folder: Path, first: int = 6, second: int = 6) -> tuple[Path, Path]:
    ours, theirs = folder / "ours.jsonl", folder / "theirs.csv"
    items = [{"preference": f"ours {n}", "conversation": f"O {n}"} for n in range(first)]
    ours.write_text("".join(json.dumps(item) + "\n" for item in items))
    write_sheet(
        theirs,
        [{"preference": f"theirs {n}", "conversation": f"-T {n}"} for n in range(second)],
    )
    return ours, theirs


def test_pairs_are_of_one_line_with_sides_and_order_shuffled(tmp_path: Path) -> None:
    sheets = draw_blind_pairs(*sources(tmp_path, 40, 40), items=40, seed=0)
    rows = sheets.filled_in["blind_pairs"]
    places = {row["item"]: row for row in sheets.key}
    seen = []
    for row in rows:
        assert list(row) == [
            "item", "preference_1", "conversation_1", "preference_2", "conversation_2", "answer"
        ]  # fmt: skip
        place = places[row["item"]]
        mine, other = ("1", "2") if place["first_side"] == "1" else ("2", "1")
        number = row[f"preference_{mine}"].removeprefix("ours ")
        assert row[f"conversation_{mine}"] == f"O {number}"
        assert row[f"preference_{other}"] == f"theirs {number}"
        assert row[f"conversation_{other}"] == f"-T {number}"
        # One item a line; the CSV has a header line before its own.
        assert place["first_line"] == str(int(number) + 1)
        assert place["second_line"] == str(int(number) + 2)
        seen.append(int(number))
    assert sorted(seen) == list(range(40))
    assert seen != sorted(seen)
    assert Counter(row["first_side"] for row in sheets.key) == {"1": 20, "2": 20}
    assert not any(".jsonl" in text or ".csv" in text for row in rows for text in row.values())


def test_sources_of_two_lengths_are_said(tmp_path: Path) -> None:
    ours, theirs = sources(tmp_path, 6, 4)
    sheets = draw_blind_pairs(ours, theirs, items=100, seed=0)
    assert len(sheets.key) == 4
    assert sheets.notes == [
        "Only 4 of the 100 wanted pairs are there.",
        "The last 2 items of ours.jsonl have no partner.",
    ]
    theirs.write_text("preference,conversation\n")
    with pytest.raises(DataError, match=r"theirs\.csv: has no items"):
        draw_blind_pairs(ours, theirs, items=100, seed=0)
    theirs.write_text("preference,text\n")
    with pytest.raises(DataError, match=r"theirs\.csv:1: conversation: no such column"):
        draw_blind_pairs(ours, theirs, items=100, seed=0)


def test_verdicts_become_shares_of_the_first_source(tmp_path: Path) -> None:
    """Of 6 pairs: ours 0, 1 and 2 win, 3 and 4 tie, 5 loses."""
    sheets = draw_blind_pairs(*sources(tmp_path), items=6, seed=0)

    def fill(row: Mapping[str, str]) -> Mapping[str, str]:
        mine, other = ("1", "2") if row["preference_1"].startswith("ours") else ("2", "1")
        number = int(row[f"preference_{mine}"].removeprefix("ours "))
        answers = [f"{mine} wins"] * 3 + ["Tie"] * 2 + [f"{other} WINS"]
        return {"answer": answers[number]}

    files, key = written(tmp_path / "back", sheets, fill)
    summary = read_blind_pairs(files, key)
    shares = {e.metric: (e.value, e.n) for e in summary.estimates if e.basis == "all"}
    assert shares == {"win": (3 / 6, 6), "loss": (1 / 6, 6), "tie": (2 / 6, 6)}
    assert {e.interval for e in summary.estimates} == {"Wilson"}
    assert summary.notes == ["A win is one of ours.jsonl over theirs.csv."]
    written(tmp_path / "odd", sheets, lambda row: {"answer": "1"})
    with pytest.raises(DataError, match=r"blind_pairs\.csv:2: answer: '1' is none of 1 wins, 2 w"):
        read_blind_pairs([tmp_path / "odd" / "blind_pairs.csv"], key)
