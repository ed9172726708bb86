"""What is made of replies that are lost, weighed, or not there."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from persona_lab.core.prompt import Reply, Request
from tests.benchmarks.persevalbench.scripted import (
    VERDICT,
    estimate,
    experiment,
    outcomes_of,
    rows,
    says,
    shown,
    summary_of,
    write_composition,
)

LOST = Reply("Hard to say.")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two irrelevant uses, which Over recognises: s000 and s001."""
    return write_composition(tmp_path / "two", {"irrelevant_use": 2})


def perfect(request: Request) -> Reply:
    return says(VERDICT["right" if "right response of" in shown(request) else "over"])


def weighed(verdict: str, p: float) -> Reply:
    """A verdict of this probability; another one has the rest."""
    other = "RIGHT" if verdict != "RIGHT" else "OVER"
    steps = ((('{"verdict": "', 0.0),), ((verdict, log(p)), (other, log(1 - p))), (('"}', 0.0),))
    return Reply(f'{{"verdict": "{verdict}"}}', logprobs=steps)


# Operating curve


def test_lost_samples_count_as_the_worse_outcome(two: Path, tmp_path: Path) -> None:
    """Of two samples the second is lost on s000's error and on s001's Right response: flagged 1/2
    and 1 of the errors, 0 and 1/2 of the Right ones. Of the four pairs of an error and a Right
    response three are in order and one is tied: area 3.5 / 4."""

    def reply(request: Request) -> Reply:
        text = shown(request)
        lost = "error response of s000" in text or "right response of s001" in text
        return LOST if lost and request.sample == 1 else perfect(request)

    found = summary_of(two, tmp_path, reply, "samples=2", "model.temperature=0.7")
    [area] = rows(found, "Operating curve: area")
    assert area["area"] == pytest.approx(3.5 / 4)
    assert (area["replies"], area["lost"], area["weighed"]) == (8, 2, 0)
    points = [(p["threshold"], p["FAR"], p["ERR"]) for p in rows(found, "Operating curve: points")]
    assert points[1:] == [(1.0, 0.0, 0.5), (0.5, 0.5, 1.0), (0.0, 1.0, 1.0)]


def test_replies_without_probabilities_are_told_apart(two: Path, tmp_path: Path) -> None:
    """Errors are flagged with 0.8; of the Right responses one is plainly Right and one is lost, so
    that it is flagged in full: two of four pairs in order."""

    def reply(request: Request) -> Reply:
        if "error response of" in shown(request):
            return weighed("OVER", 0.8)
        return LOST if "s001" in shown(request) else says("RIGHT")

    [area] = rows(summary_of(two, tmp_path, reply, "logprobs=5"), "Operating curve: area")
    assert area["area"] == pytest.approx(2 / 4)
    assert (area["replies"], area["lost"], area["weighed"]) == (4, 1, 2)


# A part of a run


def test_a_panel_has_no_row_where_a_member_has_none(two: Path, tmp_path: Path) -> None:
    made = experiment(two, "judge=qwen3_8b", "panel=true", "logprobs=5")
    outcomes = outcomes_of(made, tmp_path, lambda r: weighed("OVER", 0.8))
    left = [o for o in outcomes if o.case.role == "target" or o.case.scenario.id == "s000"]
    scores = [s for s in made.summarize(left).scores if s.metric in ("ERR", "FAR")]
    panel = [s for s in scores if s.facets["evaluator"].startswith("panel_")]
    assert {s.question for s in panel} == {"s000/right", "s000/error"}
    # What one member said beside its verdict is not the panel's.
    assert {*scores[0].facets} - {*panel[0].facets} == {
        "named_subtype", "confidence", *(f"p_{verdict}" for verdict in sorted(VERDICT.values())),
    }  # fmt: skip


def test_nothing_is_shown_of_what_was_not_asked(two: Path, tmp_path: Path) -> None:
    """One error response is left out, then everything: no constant row, no empty table."""
    made = experiment(two)
    outcomes = outcomes_of(made, tmp_path, perfect)
    found = made.summarize([o for o in outcomes if o.case.question != "s001/error"])
    numbers = [estimate(found, m, evaluator="constant_over").n for m in ("ERR", "FAR")]
    assert numbers == [1, 2]
    assert estimate(found, "pair_accuracy", evaluator="constant_over").n == 1
    found = made.summarize([])
    assert (found.estimates, found.tables, found.card) == ([], [], {})
