"""Evaluators against people, from files in the form that `annotate read` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.core.errors import DataError
from persona_lab.core.prompt import Reply, Request
from persona_lab.parsing.csv_sheet import write_sheet
from tests.benchmarks.persevalbench.scripted import (
    VERDICT,
    always,
    rows,
    says,
    shown,
    summary_of,
    write_composition,
)

PEOPLE = {
    "ann": {"s000/error": 1, "s001/error": 1, "s002/error": 1, "s003/error": 0, "s000/right": 0},
    "bob": {"s000/error": 1, "s001/error": 0, "s002/error": 1, "s003/error": 1, "s000/right": 1},
}
"""Annotator -> question -> ERR of an error response, FAR of a Right one."""


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """Three complete omissions and one irrelevant use: s000 to s003."""
    return write_composition(tmp_path / "four", {"complete_omission": 3, "irrelevant_use": 1})


def verdict_file(folder: Path, people: dict[str, dict[str, int]] = PEOPLE) -> Path:
    path = folder / "verdicts.scores.csv"
    cells = [
        {
            "case": question,
            "question": question,
            "metric": "ERR" if question.endswith("error") else "FAR",
            "value": str(value),
            "annotator": annotator,
        }
        for annotator, given in people.items()
        for question, value in given.items()
    ]
    write_sheet(path, cells)
    return path


def test_mcnemar_by_family_and_annotator(four: Path, tmp_path: Path) -> None:
    """The evaluator always says Over: it recognises s003 and no under error. Under, n = 3: only ann
    is right on 3, only bob on 2: exact p = 2 x (1/2)^3 = 0.25 and 2 x (1/2)^2 = 0.5. Over, n = 1:
    only the evaluator against ann (p = 1), nobody alone against bob (p = 1)."""
    path = verdict_file(tmp_path)
    found = summary_of(four, tmp_path / "r", always(VERDICT["over"]), f"human_verdicts={path}")
    made = {
        (r["annotator"], r["family"]): (r["n"], r["only annotator"], r["only evaluator"], r["p"])
        for r in rows(found, "Recognised errors")
    }
    assert made == {
        ("ann", "under"): (3, 3, 0, 0.25),
        ("ann", "over"): (1, 0, 1, 1.0),
        ("bob", "under"): (3, 2, 0, 0.5),
        ("bob", "over"): (1, 0, 0, 1.0),
    }


def test_where_an_evaluator_differs_from_the_benchmark(four: Path, tmp_path: Path) -> None:
    """Always Over: it differs on the three under errors and on all four Right responses. Both
    annotators judged s000, s001, s002 errors and s000's Right response: both support the benchmark
    on s000 and s002 (2 of 4), neither rejects it on both anywhere (0 of 4)."""
    path = verdict_file(tmp_path)
    found = summary_of(four, tmp_path / "r", always(VERDICT["over"]), f"human_verdicts={path}")
    [row] = rows(found, "Where an evaluator differs")
    assert (row["disagrees"], row["judged by all"]) == (7, 4)
    assert (row["all support the benchmark"], row["all reject it"]) == (0.5, 0.0)


def test_under_judged_over_without_flagged_responses(four: Path, tmp_path: Path) -> None:
    """Over on s000 and s001, Under on s002: 2/3 of the audited; without s000, which is flagged,
    1/2; of those confirmed too only s002 is left: 0/1."""

    def reply(request: Request) -> Reply:
        under = "error response of s002" in shown(request)
        return says(VERDICT["under" if under else "over"])

    path = tmp_path / "audit.csv"
    cells = [
        {"scenario": "s000", "flagged_over": "yes", "confirmed_under": "yes"},
        {"scenario": "s001", "flagged_over": "no", "confirmed_under": "no"},
        {"scenario": "s002", "flagged_over": "no", "confirmed_under": "yes"},
    ]
    write_sheet(path, cells)
    found = summary_of(four, tmp_path / "r", reply, f"under_audit={path}")
    made = [(r["responses"], r["judged Over"], r["n"]) for r in rows(found, "Under errors judged")]
    assert made == [
        ("all audited", pytest.approx(2 / 3), 3),
        ("no secondary Over", pytest.approx(1 / 2), 2),
        ("no secondary Over, Under confirmed", 0.0, 1),
    ]


def test_a_value_that_is_no_verdict_is_refused(four: Path, tmp_path: Path) -> None:
    path = verdict_file(tmp_path, {"ann": {"s000/error": 2}})
    with pytest.raises(DataError, match="value: '2' is no whole number from 0 to 1"):
        summary_of(four, tmp_path / "r", always("RIGHT"), f"human_verdicts={path}")
