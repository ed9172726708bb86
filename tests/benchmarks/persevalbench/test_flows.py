"""Every formulation and protocol on the scripted engine, with a malformed reply in each place."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.core.errors import ConfigError
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Score
from tests.benchmarks.persevalbench.scripted import (
    always,
    experiment,
    outcomes_of,
    says,
    shown,
    write_composition,
)

CUT = Reply('{"verdict": "RI', "length", "truncated", "truncated")
DEAD = Reply.failed("the engine refused it")


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return write_composition(tmp_path / "one", {"stale_superseded": 1})


def scores(one: Path, reply: object, *overrides: str) -> list[Score]:
    made = experiment(one, *overrides)
    outcomes = outcomes_of(made, one.parent / "replies", reply)  # type: ignore[arg-type]
    found = {o.case.id: o.result or [] for o in outcomes}
    return [s for case in made.cases() for s in found[case.id]]


@pytest.mark.parametrize("formulation", ["end_to_end", "evidence_first", "state_table"])
@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (says("RIGHT"), "ok", ""),
        (Reply("The response is fine."), "unparsed", "no_answer"),
        (Reply(""), "unparsed", "empty"),
        (
            Reply('{"verdict": "RIGHT" or "OVER_PERSONALIZED" or "UNDER_PERSONALIZED"}'),
            "unparsed",
            "*",
        ),
        (CUT, "truncated", "truncated"),
        (DEAD, "failed", "the engine refused it"),
    ],
)
def test_a_verdict(one: Path, formulation: str, reply: Reply, outcome: str, reason: str) -> None:
    def answer(request: Request) -> Reply:
        return Reply("- wants it, turn 1, current") if "Extract all" in shown(request) else reply

    right, error = scores(one, answer, f"formulations={formulation}")
    assert (right.metric, error.metric) == ("FAR", "ERR")
    for score in (right, error):
        assert score.outcome == outcome
        assert reason in ("*", score.reason)
        assert score.facets["formulation"] == formulation
    if outcome == "ok":
        assert (right.value, error.value) == (0.0, 0.0)


def test_evidence_first_takes_two_steps(one: Path) -> None:
    made = experiment(one, "formulations=evidence_first")

    def answer(request: Request) -> Reply:
        if "Extract all" in shown(request):
            return Reply("  - the user wants {s000}, turn 1\n")
        return says("OVER_PERSONALIZED")

    outcomes = outcomes_of(made, one.parent / "replies", answer)
    for outcome in outcomes:
        first, second = (request for request, _ in outcome.exchanges)
        assert "Conversation context: Turn 1 (user): I want s000." in shown(first)
        assert (
            "Extracted evidence: - the user wants {s000}, turn 1\nUser request: So which?"
            in shown(second)
        )
        assert "Conversation context" not in shown(second)
        assert first.schema is None
        assert second.schema is None
    # The first step is the same for both responses: asked once.
    assert len({o.exchanges[0][0].key for o in outcomes}) == 1


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (Reply(""), "unparsed"),
        (DEAD, "failed"),
        (Reply("", "length", "truncated", "truncated_reasoning"), "truncated"),
    ],
)
def test_without_evidence_there_is_no_second_step(one: Path, first: Reply, outcome: str) -> None:
    def answer(request: Request) -> Reply:
        assert "Extract all" in shown(request)
        return first

    assert {s.outcome for s in scores(one, answer, "formulations=evidence_first")} == {outcome}


def test_evidence_that_was_cut_off_is_taken_as_far_as_it_goes(one: Path) -> None:
    def answer(request: Request) -> Reply:
        if "Extract all" in shown(request):
            return Reply("- wants it", "length", "truncated", "truncated")
        return says("RIGHT")

    assert {s.outcome for s in scores(one, answer, "formulations=evidence_first")} == {"ok"}


@pytest.mark.parametrize(
    ("reply", "value", "outcome"),
    [
        (Reply('{"score": 4}'), 4.0, "ok"),
        (Reply('{"score": 7}'), None, "unparsed"),
        (Reply("good"), None, "unparsed"),
        (CUT, None, "truncated"),
        (DEAD, None, "failed"),
    ],
)
def test_a_rating(one: Path, reply: Reply, value: float | None, outcome: str) -> None:
    made = scores(one, lambda r: reply, "protocols=pointwise")
    assert [(s.metric, s.value, s.outcome) for s in made] == [("rating", value, outcome)] * 2


@pytest.mark.parametrize(
    ("reply", "values", "outcome"),
    [
        (Reply('{"answer": "A"}'), [1.0, 0.0], "ok"),
        (Reply("B"), [0.0, 1.0], "ok"),
        (Reply('{"answer": "C"}'), [None, None], "unparsed"),
        (Reply("A or B"), [None, None], "unparsed"),
        (DEAD, [None, None], "failed"),
    ],
)
def test_a_choice(one: Path, reply: Reply, values: list[float | None], outcome: str) -> None:
    made = scores(one, lambda r: reply, "protocols=pairwise")
    assert [s.facets["subject"] for s in made] == ["right_first", "error_first"]
    assert [(s.value, s.outcome) for s in made] == [(v, outcome) for v in values]


def test_both_orders_show_both_responses(one: Path) -> None:
    made = experiment(one, "protocols=pairwise")
    outcomes = outcomes_of(made, one.parent / "replies", lambda r: Reply("A"))
    asked = {o.case.subject: shown(o.exchanges[0][0]) for o in outcomes}
    first, second = asked["right_first"], asked["error_first"]
    assert first.index("right response of") < first.index("error response of")
    assert second.index("error response of") < second.index("right response of")


def test_what_is_stored_and_not_scored(one: Path) -> None:
    reply = Reply(
        '{"verdict": "under", "subtypes": ["under.underweighting"], "confidence": 0.75, '
        '"reasoning": "weak"}'
    )
    _, error = scores(one, lambda r: reply)
    assert error.facets["named_subtype"] == "under.underweighting"
    assert error.facets["confidence"] == "0.75"
    # Stale use is a misapplied error: either direction recognises it.
    assert (error.value, error.facets["verdict"]) == (1.0, "UNDER_PERSONALIZED")


def test_what_cannot_be_run(one: Path) -> None:
    for overrides, problem in (
        (["samples=3"], "temperature 0"),
        (["panel=true"], "judge=NAME"),
        (["benchmark.scenarios=[s999]"], "s999 not in the data"),
        (["contexts=[full,full]"], "names a value twice"),
    ):
        with pytest.raises(ConfigError, match=problem):
            experiment(one, *overrides)


def test_one_model_in_two_roles_has_two_names(one: Path) -> None:
    made = experiment(one, "judge=qwen3_32b")
    assert made.evaluators == {"target": "qwen3_32b/target", "judge": "qwen3_32b/judge"}
    assert {s.facets["evaluator"] for o in outcomes_of(made, one.parent / "r", always("RIGHT"))
            for s in o.result or []} == set(made.evaluators.values())  # fmt: skip
