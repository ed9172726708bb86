from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.annotate import main
from persona_lab.benchmarks.benchpres.agreement_sample import Item, agreement_sample
from persona_lab.benchmarks.benchpres.prompts import completeness_prompt, judge_prompt
from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.benchmarks.benchpres.response_sheets import draw_responses, read_responses
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import Score, Summary
from persona_lab.parsing.csv_sheet import write_sheet
from persona_lab.reporting.run_folder import write_scores
from tests.benchmarks.realpref.annotators import items, written

PARTS = [(user, context, sample) for user in (1, 2) for context in (1, 2, 3) for sample in (1, 2)]


def message(case: str) -> str:
    """A response that looks like the prompt around it."""
    return f"=Dear {case},\n\nPreference: P.\nResponse: R.\nYours"


def run_folder(
    folder: Path, unscored: tuple[str, ...] = (), categories: tuple[str, ...] = CATEGORIES
) -> Path:
    """A run of 12 messages: 6 instances of each category and gold value, every other applied.

    Args:
        unscored: cases without a verdict. categories: what is in memory.
    """
    folder.mkdir()
    scores, asked = [], []
    for user, context, sample in PARTS:
        case, cluster = f"p0{user}/context_{context}/default/{sample}", f"p0{user}"
        for i, category in enumerate(categories):
            label = str((user + context + i) % 2)
            value = None if case in unscored else float((context + sample + i) % 2)
            statement = f"I like {category} number {user}."
            facets = {
                "memory": "with", "category": category, "preference": statement, "label": label,
            }  # fmt: skip
            question, metric = f"{cluster}/context_{context}/{category}", ("MR", "AAR")[int(label)]
            outcome = "ok" if value is not None else "unparsed"
            scores.append(
                Score(case, question, metric, cluster, value, outcome, "", facets)  # type: ignore[arg-type]
            )
            if category != "nickname":
                text = judge_prompt(statement, message(case))
                asked += [{"case": case, "role": r, "asked": text} for r in ("judge", "second")]
        rated = completeness_prompt("Purpose", message(case))
        asked.append({"case": case, "role": "judge", "asked": rated})
        asked.append({"case": case, "role": "target", "asked": "Write."})
        scores.append(Score(case, f"{cluster}/completeness", "completeness", cluster, 5.0, "ok"))
        again = [s for s in scores if s.case == case and s.metric == "MR"]
        scores += [Score(s.case, s.question, "second_judge/MR", cluster, 1.0, "ok") for s in again]
    write_scores(folder, scores)
    pd.DataFrame(asked).to_parquet(folder / "transcripts.parquet")
    return folder


def cells(key: object) -> Counter[tuple[str, str]]:
    return Counter((row["category"], row["label"]) for row in key)  # type: ignore[attr-defined]


def test_as_many_of_each_category_and_gold_value_are_drawn(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    sheets = draw_responses(run, items=2, annotators=1, seed=0)
    assert cells(sheets.key) == {(c, g): 2 for c in CATEGORIES for g in "01"}
    assert sheets.notes == []
    frame = pd.read_parquet(run / "scores.parquet")
    frame = frame[frame["metric"].isin(["MR", "AAR"])]
    columns = (frame[name] for name in ("case", "question", "category", "label"))
    sample = agreement_sample(zip(*columns, strict=True), 2)
    assert {(row["case"], row["question"]) for row in sheets.key} == sample


def test_a_response_sheet_shows_what_the_judge_saw_and_no_verdict(tmp_path: Path) -> None:
    sheets = draw_responses(run_folder(tmp_path / "run"), items=6, annotators=1, seed=0)
    sources = {row["item"]: row for row in sheets.key}
    assert len(sources) == 60
    for row in sheets.filled_in["benchpres_responses_1"]:
        source = sources[row["item"]]
        assert row == {
            "item": row["item"],
            "preference": f"I like {source['category']} number {source['user'][-1]}.",
            "response": message(source["case"]),
            "follows": "",
        }
        user, context, category = source["question"].split("/")
        assert (user, category) == (source["user"], source["category"])
        by_hand = int(context[-1]) + int(source["case"][-1]) + CATEGORIES.index(category)
        assert source["applied"] == str(by_hand % 2)
        assert source["run"] == "run"
    [guidelines] = sheets.guidelines.values()
    assert "yes   " in guidelines


def test_annotators_get_the_same_items_in_different_orders(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    sheets = draw_responses(run, items=2, annotators=3, seed=0)
    orders = [items(rows) for rows in sheets.filled_in.values()]
    assert all(sorted(order) == sorted(items(sheets.key)) for order in orders)
    assert len(set(map(tuple, orders))) == 3
    assert draw_responses(run, 2, 3, 0) == sheets
    others = draw_responses(run, items=2, annotators=1, seed=1)
    assert others.key == sheets.key  # a seed is of the orders alone
    assert items(others.filled_in["benchpres_responses_1"]) not in orders


def test_instances_without_a_verdict_are_left_out_and_said(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", unscored=("p01/context_1/default/1",))
    sheets = draw_responses(run, items=6, annotators=1, seed=0)
    # User 1, context 1: labels 0 1 0 1 0 in the order of the categories; each cell is left with 5.
    assert sheets.notes == [
        "5 drawn instances have no verdict and are left out.",
        "Fewer instances than the 6 wanted: role with g = 0 (5), style with g = 1 (5), "
        "tone with g = 0 (5), markers with g = 1 (5), nickname with g = 0 (5).",
    ]
    assert len(sheets.key) == 55


def test_nicknames_that_no_judge_saw_are_left_out_and_said(tmp_path: Path) -> None:
    run, case = run_folder(tmp_path / "run"), "p02/context_3/default/2"
    asked = pd.read_parquet(run / "transcripts.parquet")
    asked[asked["case"] != case].to_parquet(run / "transcripts.parquet")
    scores = pd.read_parquet(run / "scores.parquet")
    alone = (scores["case"] != case) | (scores["category"] == "nickname")
    scores[alone].to_parquet(run / "scores.parquet")
    sheets = draw_responses(run, items=6, annotators=1, seed=0)
    assert case not in {row["case"] for row in sheets.key}
    assert sheets.notes[0] == ("1 drawn nicknames are left out: no judge was shown their response.")


def test_a_run_that_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"scores\.parquet: no such file; --run names"):
        draw_responses(tmp_path, 5, 1, 0)
    unscored = tuple(f"p0{u}/context_{c}/default/{s}" for u, c, s in PARTS)
    with pytest.raises(DataError, match=r"scores\.parquet: has no instance with a verdict"):
        draw_responses(run_folder(tmp_path / "none", unscored), 5, 1, 0)
    with pytest.raises(DataError, match=r"scores\.parquet: has no instance with a verdict"):
        draw_responses(run_folder(tmp_path / "names", categories=("nickname",)), 5, 1, 0)
    run = run_folder(tmp_path / "run")
    frame = pd.read_parquet(run / "transcripts.parquet")
    frame["asked"] = frame["asked"].str.replace("You are given:", "Be kind.")
    frame.to_parquet(run / "transcripts.parquet")
    with pytest.raises(DataError, match=r"transcripts\.parquet: p01/context_1.*version's judge"):
        draw_responses(run, 6, 1, 0)
    (run / "transcripts.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"transcripts\.parquet: cannot be read"):
        draw_responses(run, 6, 1, 0)


def test_a_run_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    write_scores(tmp_path, [Score("a/zero_shot/open_ended", "q", "overall", "00001", 4.0, "ok")])
    with pytest.raises(DataError, match=r"no column category; is it a run of this bench"):
        draw_responses(tmp_path, 5, 1, 0)
    write_scores(tmp_path, [])
    with pytest.raises(DataError, match="no column case"):
        draw_responses(tmp_path, 5, 1, 0)


def read_by_hand(folder: Path, category: str, run: str, *people: str) -> Summary:
    """What `read_responses` makes of y and n by the run and by people, one a place."""
    applied = {"y": "1", "n": "0"}
    key = [
        {
            "item": f"item-{n}",
            "case": f"case-{n}",
            "question": f"q{n}",
            "user": f"p0{n % 2}",
            "category": category,
            "label": "0",
            "applied": applied[said],
            "message": f"digest-{n}",
        }
        for n, said in enumerate(run)
    ]
    folder.mkdir(exist_ok=True)
    write_sheet(folder / "key.csv", key, replace=True)
    words = {"y": "Yes", "n": " no"}
    files = []
    for number, given_by_one in enumerate(people, 1):
        rows = [
            {"item": f"item-{n}", "follows": words[said]} for n, said in enumerate(given_by_one)
        ]
        files.append(folder / f"person_{number}.csv")
        write_sheet(files[-1], rows, replace=True)
    return read_responses(files, folder / "key.csv")


def test_verdicts_of_people_are_rows_under_the_runs_names(tmp_path: Path) -> None:
    summary = read_by_hand(tmp_path, "tone", "yn", "yy")
    facets = {"annotator": "person_1", "category": "tone", "label": "0"}
    first, second = ({**facets, "message": f"digest-{n}"} for n in range(2))
    assert summary.scores == [
        Score("case-0", "q0", "applied", "p00", 1.0, "ok", "", first),
        Score("case-1", "q1", "applied", "p01", 1.0, "ok", "", second),
    ]
    assert summary.notes == []
    less = read_by_hand(tmp_path, "tone", "yny", "yy")
    assert less.notes == ["1 of 3 items of the key are in none of the sheets."]


def test_agreement_of_a_run_with_people_by_hand(tmp_path: Path) -> None:
    # Run y y n n, person y n n n: agreement 3/4; by chance (2/4)(1/4) + (2/4)(3/4) = 1/2; kappa
    # (3/4 - 1/2) / (1 - 1/2) = 1/2.
    summary = read_by_hand(tmp_path, "tone", "yynn", "ynnn")
    [table] = summary.tables
    assert table.title.startswith("Agreement of the run's verdicts with people")
    by_hand = {"kappa": 0.5, "agreement": 0.75, "instances": 4, "why not": ""}
    assert table.rows == [
        {"annotator": "person_1", "category": "all but nickname", **by_hand},
        {"annotator": "person_1", "category": "tone", **by_hand},
    ]
    overall = summary.estimates[0]
    assert (overall.metric, overall.value, overall.n) == ("agreement", 0.75, 4)
    assert overall.facets == {"verdict_by": "judge", "annotator": "person_1"}


def test_the_exact_match_is_held_to_people_by_itself(tmp_path: Path) -> None:
    summary = read_by_hand(tmp_path, "nickname", "yyn", "yyy")
    [table] = summary.tables
    [row] = table.rows
    assert (row["category"], row["instances"]) == ("nickname (exact match)", 3)
    assert row["agreement"] == pytest.approx(2 / 3)
    assert {e.facets["verdict_by"] for e in summary.estimates} == {"exact_match"}


def test_responses_to_one_question_are_items_of_their_own(tmp_path: Path) -> None:
    sheets = draw_responses(run_folder(tmp_path / "run"), items=6, annotators=1, seed=0)
    files, key = written(tmp_path / "back", sheets, lambda row: {"follows": "yes"})
    numbers = {e.facets["verdict_by"]: e.n for e in read_responses(files, key).estimates}
    assert numbers == {"judge": 48, "exact_match": 12}  # 12 messages, 4 and 1 preferences each


def test_agreement_of_annotators_by_hand(tmp_path: Path) -> None:
    # y y n n and y n n n: agreement 3/4. Cohen's kappa 1/2, as above; Fleiss': 3 of 8 are y,
    # chance (3/8)^2 + (5/8)^2 = 34/64; kappa (48 - 34) / (64 - 34) = 7/15.
    summary = read_by_hand(tmp_path, "tone", "yynn", "yynn", "ynnn")
    verdicts, fleiss, pairs = summary.tables
    assert [row["kappa"] for row in verdicts.rows] == [1.0, 1.0, 0.5, 0.5]
    assert fleiss.rows[0]["kappa"] == pytest.approx(7 / 15)
    [pair] = pairs.rows
    assert (pair["first"], pair["second"], pair["kappa"]) == ("person_1", "person_2", 0.5)
    by_person = {e.facets["annotator"]: e.value for e in summary.estimates}
    assert by_person == {"person_1": 1.0, "person_2": 0.75}


@pytest.mark.parametrize(
    ("answer", "problem"), [("", "is empty"), ("1", "'1' is none of yes, no"), ("maybe", "'maybe'")]
)
def test_an_answer_is_yes_or_no(tmp_path: Path, answer: str, problem: str) -> None:
    sheets = draw_responses(run_folder(tmp_path / "run"), items=1, annotators=1, seed=0)
    files, key = written(tmp_path / "back", sheets, lambda row: {"follows": answer})
    with pytest.raises(DataError, match=rf"benchpres_responses_1\.csv:2: follows: {problem}"):
        read_responses(files, key)
    with pytest.raises(ConfigError, match="another has it too"):
        read_responses([files[0], files[0]], key)


def test_a_round_trip_gives_the_labels_that_a_recipe_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_folder(Path("run"))
    draw = ["write", "benchpres_responses", "--run", "run", "--out", "s", "--items", "3"]
    assert main([*draw, "--annotators", "2"]) == 0
    out = capsys.readouterr().out
    assert "s/benchpres_responses_2.csv: 30 items" in out
    assert "s/response_guidelines.txt: for annotators" in out
    for path in ("s/benchpres_responses_1.csv", "s/benchpres_responses_2.csv"):
        text = Path(path).read_text(encoding="utf-8-sig")
        Path(path).write_text(text.replace('Yours",', 'Yours",NO'))
    files = ["s/benchpres_responses_1.csv", "s/benchpres_responses_2.csv"]
    assert main(["read", "benchpres_responses", *files]) == 0
    out = capsys.readouterr().out
    assert "60 scores: s/benchpres_responses.scores.csv" in out
    assert "Fleiss' kappa" in out
    assert max(map(len, out.splitlines())) <= 100
    frame = pd.read_csv("s/benchpres_responses.scores.csv")
    assert set(frame["value"]) == {0.0}
    assert set(frame["metric"]) == {"applied"}
    assert set(frame["annotator"]) == {"benchpres_responses_1", "benchpres_responses_2"}
    own = pd.read_parquet(run / "scores.parquet")
    own = own[own["metric"].isin(["MR", "AAR"])]
    assert len(frame.merge(own, on=["case", "question", "cluster"])) == len(frame)
    assert main(["write", "benchpres_responses", "--run", "none", "--out", "t"]) == 2
    assert "scores.parquet: no such file" in capsys.readouterr().err


names = st.text("ab/1", min_size=1, max_size=4)
instances = st.dictionaries(
    st.tuples(names, names), st.tuples(st.sampled_from(CATEGORIES), st.sampled_from("01"))
)


def _items(drawn: Mapping[tuple[str, str], tuple[str, str]]) -> list[Item]:
    return [(*name, *cell) for name, cell in drawn.items()]


@given(instances, st.integers(1, 4), st.randoms())
def test_a_sample_depends_on_names_alone_and_grows(
    drawn: dict[tuple[str, str], tuple[str, str]], number: int, rng: object
) -> None:
    sample = agreement_sample(_items(drawn), number)
    shuffled = _items(drawn)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert agreement_sample(shuffled, number) == sample
    assert sample <= agreement_sample(_items(drawn), number + 1)
    there = Counter(drawn.values())
    assert Counter(drawn[name] for name in sample) == {
        cell: min(count, number) for cell, count in there.items()
    }


def test_a_sample_is_the_same_in_every_process() -> None:
    # `printf case-N/q | b2sum -l 64` begins with 697b, 3475, 1efc, c537 for N = 0, 1, 2, 3.
    drawn = [(f"case-{n}", "q", "tone", "0") for n in range(4)]
    assert agreement_sample(drawn, 2) == {("case-1", "q"), ("case-2", "q")}
