from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from persona_lab.benchmarks.realpref.answer_sheets import (
    Pair,
    annotator_agreement,
    draw_answer_scores,
    read_answer_scores,
    shared_pairs,
)
from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, RUBRICS, judge_prompt
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import Score
from persona_lab.reporting.run_folder import write_scores
from tests.benchmarks.realpref.annotators import items, written


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


def test_the_rubrics_go_with_the_sheets(tmp_path: Path) -> None:
    sheets = draw_answer_scores(run_folder(tmp_path / "run"), items=9, shared=4, seed=0)
    assert list(sheets.guidelines) == ["rubrics.txt"]
    parts = sheets.guidelines["rubrics.txt"].removesuffix("\n").split("\n\n\n")
    assert [part.split("\n\n", 1) for part in parts] == [[d, RUBRICS[d]] for d in DIMENSIONS]


def test_a_draw_depends_on_its_seed_alone(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    assert draw_answer_scores(run, 6, 2, 0) == draw_answer_scores(run, 6, 2, 0)
    assert draw_answer_scores(run, 6, 2, 0) != draw_answer_scores(run, 6, 2, 1)


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


def test_kappa_of_two_annotators_by_hand() -> None:
    # One dimension, first 1 1 2 2, second 1 2 2 2: agreement 3/4; by chance
    # (2/4)(1/4) + (2/4)(3/4) = 1/2; kappa (3/4 - 1/2) / (1 - 1/2) = 1/2.
    given = zip((1, 1, 2, 2), (1, 2, 2, 2), strict=True)
    pairs = [Pair(str(i), "answer_quality", *both) for i, both in enumerate(given)]
    [table] = annotator_agreement(pairs)
    rows = {str(row["dimension"]): row for row in table.rows}
    assert (rows["answer_quality"]["kappa"], rows["answer_quality"]["agreement"]) == (0.5, 0.75)
    assert rows["all dimensions"]["kappa"] == 0.5
    assert rows["preference_awareness"]["kappa"] is None
    assert rows["preference_awareness"]["why not"]
    assert annotator_agreement([]) == []


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
