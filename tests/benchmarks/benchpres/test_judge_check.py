"""Labels of people, agreement and correction, where labels are lost or of other messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from persona_lab.benchmarks.benchpres.judge_check import (
    HumanLabel,
    agreement,
    as_second,
    corrected,
    opinions,
    read_labels,
)
from persona_lab.benchmarks.benchpres.scoring import message_digest
from persona_lab.core.errors import DataError
from persona_lab.core.experiment import selected
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Score
from persona_lab.parsing.csv_sheet import write_sheet
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import experiment, outcomes_of, summary_of, writes

APPLIED = {"y": 1.0, "n": 0.0, "-": None}


def scores(said: str) -> list[Score]:
    """Tone where g = 0, a message an item, all of one user, in the order of `said`."""
    return [
        Score(
            f"case-{n}", f"q{n}", "MR", "p01", APPLIED[one], "unparsed" if one == "-" else "ok",
            "no_answer" if one == "-" else "",
            {"category": "tone", "defence": "default", "message": f"digest-{n}"},
        )
        for n, one in enumerate(said)
    ]  # fmt: skip


def people(said: str) -> list[HumanLabel]:
    given = [(n, APPLIED[one]) for n, one in enumerate(said)]
    return [HumanLabel(f"case-{n}", f"q{n}", f"digest-{n}", v) for n, v in given if v is not None]


def values(given: Mapping[str, Score]) -> list[float | None]:
    return [score.value for score in given.values()]


def labels_file(folder: Path, *rows: Sequence[str]) -> Path:
    """Rows of case, question, metric, value, message."""
    columns = ("case", "question", "metric", "value", "message")
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    write_sheet(folder / "labels.csv", cells, replace=True)
    return folder / "labels.csv"


def test_a_label_counts_for_its_own_message_only() -> None:
    own = scores("yyn")
    strangers = [
        HumanLabel("case-1", "q1", "digest-0", 0.0),  # the same question, another message
        HumanLabel("case-2", "q1", "digest-2", 0.0),
        HumanLabel("case-9", "q0", "digest-0", 0.0),
    ]
    [label] = people("n")
    found = opinions(own, [label, *strangers])
    assert list(found["people"]) == ["case-0|q0"]
    assert values(found["people"]) == [0.0]
    assert "people" not in opinions(own, strangers)


def test_a_label_stands_where_the_judge_lost_its_own() -> None:
    [found] = opinions(scores("-"), people("y"))["people"].values()
    assert (found.value, found.outcome, found.reason, found.metric) == (1.0, "ok", "", "MR")


def test_all_scores_of_a_message_carry_its_digest(tmp_path: Path) -> None:
    plain = writes(lambda request, *_: {"tone", "nickname"} if request.sample else set())

    def reply(request: Request) -> Reply:
        cut = request.role == "target" and "to Recipient 2 " in request.prompt.tail[-1].content
        return Reply("Dear", "length", "truncated", "max_tokens") if cut else plain(request)

    data = write_data(tmp_path / "data", profiles=1, contexts=2)
    sampled = ("samples=2", "model.temperature=1.0", "completeness=true")
    checked = ("second_judge=qwen3_8b", "agreement.items=10")
    found = summary_of(data, reply, *sampled, *checked)
    digests = {
        (context, sample): {
            s.facets["message"]
            for s in found.scores
            if (s.facets["context"], s.facets["sample"]) == (context, sample)
        }
        for context in ("context_1", "context_2")
        for sample in ("1", "2")
    }
    assert {s.metric for s in found.scores} > {"MR", "AAR", "completeness", "second_judge/MR"}
    assert digests["context_1", "1"] == {message_digest("Dear all,\n")}
    assert digests["context_1", "2"] == {message_digest(" Dear all,\nI like tone number 1.\nNick1")}
    assert digests["context_2", "1"] == digests["context_2", "2"] == {""}


def test_labels_of_an_earlier_run_are_counted_out_in_a_note(tmp_path: Path) -> None:
    """Only role is applied; people say of both rated messages that it is not."""
    data, replies = write_data(tmp_path / "data", contexts=1), writes(lambda *_: {"role"})
    plain = summary_of(data, replies)
    ours, other = (s for s in plain.scores if s.question.endswith("/role"))
    rows = [(s.case, s.question, "applied", "0", s.facets["message"]) for s in (ours, other)]
    rows[1] = (*rows[1][:4], message_digest("Another one."))
    labels = labels_file(tmp_path, *rows)
    found = summary_of(data, replies, f"agreement.human_labels={labels}")
    assert "1 of 2 human labels are of no message of this run and count nowhere." in found.notes
    [table] = [t for t in found.tables if t.title.startswith("Agreement")]
    [overall, role] = table.rows
    assert (overall["n"], overall["agreement"], role["category"]) == (1, 0.0, "role")
    assert not any("human labels" in note for note in plain.notes)


def test_labels_are_read_once_an_item(tmp_path: Path) -> None:
    """Two annotators of one item who agree, and a row that is no label."""
    path = labels_file(
        tmp_path, ("c", "q", "applied", "1", "m"), ("c", "q", "applied", "1.0", "m"),
        ("c", "r", "applied", "0.0", "m"), ("c", "q", "overall", "4", ""),
    )  # fmt: skip
    assert read_labels(path) == [HumanLabel("c", "q", "m", 1.0), HumanLabel("c", "r", "m", 0.0)]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [("c", "q", "applied", "1", "m"), ("c", "q", "applied", "0", "m")],
            r":3: value: annotators differ on c\|q: keep one label",
        ),
        ([("c", "q", "applied", "2", "m")], r":2: value: '2' is no whole number from 0 to 1"),
        ([("c", "q", "applied", "0.5", "m")], r":2: value: '0\.5' is no whole number from 0 to 1"),
        ([("c", "q", "applied", "", "m")], ":2: value: is empty"),
        ([("c", "q", "applied", "1", "")], ":2: message: is empty"),
        ([("c", "q", "MR", "1", "m")], "has no labels; give what annotate read"),
    ],
)
def test_bad_labels_are_refused(tmp_path: Path, rows: list[Sequence[str]], problem: str) -> None:
    """Whether or not they are of this run: no score is needed to refuse them."""
    with pytest.raises(DataError, match=rf"labels\.csv{problem}|labels\.csv: {problem}"):
        read_labels(labels_file(tmp_path, *rows))


def test_labels_without_their_message_are_refused(tmp_path: Path) -> None:
    row = {"case": "c", "question": "q", "metric": "applied", "value": "1"}
    write_sheet(tmp_path / "labels.csv", [row])
    with pytest.raises(DataError, match="message"):
        read_labels(tmp_path / "labels.csv")


def test_lost_labels_agree_with_nothing() -> None:
    """Judge y y n n - y -, second y n n n y - -: of four pairs three are the same, 3/4; by chance
    (2/4)(1/4) + (2/4)(3/4) = 1/2; kappa 1/2. Over all items, three of which have lost one, 3/7."""
    given = opinions([*scores("yynn-y-"), *as_second(scores("ynnny--"))], None)
    made, [table] = agreement(given, seed=0)
    overall, tone = table.rows
    counts = {"n": 4, "lost": 3, "agreement": 0.75, "kappa": 0.5}
    assert counts.items() <= overall.items()
    assert counts.items() <= tone.items()
    found = {e.basis: e for e in made}
    assert (found["all"].value, found["all"].n) == (pytest.approx(3 / 7), 7)
    assert (found["scored"].value, found["scored"].n, found["scored"].unparsed) == (0.75, 4, 3)


def test_a_judge_that_lost_every_label_has_a_row_that_says_so() -> None:
    made, [table] = agreement(opinions(scores("--"), people("yn")), seed=0)
    assert [(r["n"], r["lost"], r["kappa"], r["why_not"]) for r in table.rows] == [
        (0, 2, None, "no pairs")
    ] * 2
    assert {e.basis: e.value for e in made} == {"all": 0.0, "scored": None}


@pytest.mark.parametrize("reference", ["people", "second_judge"])
def test_lost_labels_are_in_no_error_table(reference: str) -> None:
    """Judge y y y y n n - n, reference y y y n n n y -: of 3 applied all are found, of 3 others 2
    cleared; the lost seventh and eighth are in neither. Raw 4 of 7; corrected
    (4/7 + 2/3 - 1) / (1 + 2/3 - 1) = 5/14."""
    own, said = scores("yyyynn-n"), "yyynnny-"
    given = opinions([*own, *as_second(scores(said))], people(said))
    [table] = corrected(own, given, reference, ["defence"])
    mr, aar = table.rows
    assert (mr["sens."], mr["spec."], mr["labels"]) == (1.0, pytest.approx(2 / 3), 6)
    assert (mr["raw"], mr["corrected"]) == pytest.approx((4 / 7, 5 / 14))
    assert (mr["n"], mr["unparsed"], mr["truncated"], mr["failed"]) == (7, 1, 0, 0)
    assert (aar["labels"], aar["corrected"]) == (0, None)
    assert set(table.kept_back) <= set(mr)


@pytest.mark.parametrize("part", ["limit=1", "shard=1/2", "shard=2/2"])
def test_the_sample_is_drawn_over_the_cases_that_run(tmp_path: Path, part: str) -> None:
    """One instance of each category and gold value that these cases have, and none elsewhere."""
    data = write_data(tmp_path / "data")
    made = experiment(data, "second_judge=qwen3_8b", "agreement.items=1", part)
    run = {case.id for case in selected(made.cases(), made.run.limit, made.run.shard)}
    assert 0 < len(run) < 6
    outcomes = outcomes_of(made, tmp_path, writes(lambda *_: set()))
    found = [s for outcome in outcomes for s in outcome.result or []]
    second = [s for s in found if s.metric.startswith("second_judge/")]
    there = {cell(s) for s in found if s.case in run and s.facets["category"] != "nickname"}
    assert sorted(map(cell, second)) == sorted(there)
    assert {s.case for s in second} <= run


def cell(score: Score) -> tuple[str, str]:
    return score.facets["category"], score.facets["label"]
