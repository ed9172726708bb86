"""Replies and data at the edges of what is read: nested, oddly spelt, huge, or nearly the same."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from persona_lab.benchmarks.persevalbench.loading import FILE, load_scenarios
from persona_lab.benchmarks.persevalbench.verdicts import (
    OVER,
    RIGHT,
    UNDER,
    read_verdict,
    verdict_probabilities,
)
from persona_lab.core.errors import DataError
from persona_lab.core.prompt import Reply
from persona_lab.parsing.json_file import read_json
from tests.benchmarks.persevalbench.data import write_scenarios
from tests.benchmarks.persevalbench.scripted import experiment, outcomes_of, write_composition

Step = dict[str, float]
SHARES = {RIGHT: 0.3, UNDER: 0.6, OVER: 0.1}


def reply(steps: list[Step]) -> Reply:
    """A reply whose tokens are the first of each step; token -> probability."""
    logprobs = tuple(tuple((t, math.log(p)) for t, p in step.items()) for step in steps)
    return Reply("".join(next(iter(step)) for step in steps), logprobs=logprobs)


def test_a_nested_verdict_has_its_subtype_and_confidence() -> None:
    inner = '{"Verdict": "under-personalized", "subtypes": ["under.x"], "confidence": 0.4}'
    found = read_verdict(f'{{"result": {inner}, "confidence": 0.9}}')
    assert (found.verdict.value, found.subtype, found.confidence) == (UNDER, "under.x", 0.4)
    found = read_verdict("{'result': {'Verdict': 'OVER', 'Confidence': 0.4}}")
    assert (found.verdict.value, found.confidence) == (OVER, 0.4)
    # It can differ from the last one, but not by its spelling.
    found = read_verdict('{"draft": {"verdict": "OVER"}} {"verdict": "UNDER_PERSONALIZED"}')
    assert (found.verdict.value, found.verdict.flags) == (UNDER, ("differing",))
    found = read_verdict('{"draft": {"verdict": "under"}} {"verdict": "Under-Personalized"}')
    assert (found.verdict.value, found.verdict.flags) == (UNDER, ())


def test_an_object_with_a_verdict_keeps_its_own_parts() -> None:
    draft = '"draft": {"verdict": "OVER", "subtypes": ["over.x"], "confidence": 0.2}'
    found = read_verdict(f'{{"verdict": "RIGHT", "subtypes": [], "confidence": 0.9, {draft}}}')
    assert (found.verdict.value, found.subtype, found.confidence) == (RIGHT, "", 0.9)
    deep = '{"a": {"b": {"verdict": "OVER", "confidence": 0.4}}}'
    found = read_verdict(deep)
    assert (found.verdict.value, found.confidence) == (OVER, 0.4)
    found = read_verdict(f'{deep} {{"verdict": "UNDER_PERSONALIZED"}}')
    assert (found.verdict.value, found.verdict.flags) == (UNDER, ("differing",))


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_confidence_with_many_digits_is_none(digits: int) -> None:
    """More than a float holds, and more than Python turns into an integer."""
    found = read_verdict(f'{{"verdict": "RIGHT", "confidence": {"9" * digits}}}')
    assert (found.verdict.value, found.confidence) == (RIGHT, None)


@pytest.mark.parametrize(
    ("stated", "reason"),
    [("9" * 400, "out_of_range"), ("1e999", "out_of_range"), ("NaN", "not_a_number")],
)
def test_a_rating_that_is_no_rating_loses_no_case(tmp_path: Path, stated: str, reason: str) -> None:
    made = experiment(
        write_composition(tmp_path / "d", {"over_dominance": 1}), "protocols=pointwise"
    )
    for outcome in outcomes_of(made, tmp_path / "r", lambda r: Reply(f'{{"score": {stated}}}')):
        assert outcome.error == ""
        assert [(s.outcome, s.reason) for s in outcome.result or []] == [("unparsed", reason)]


def choices(folder: Path, text: str) -> dict[str, list[float | None]]:
    """Subject -> the values of a pair in this order, where every reply is the text."""
    data = write_composition(folder / "d", {"over_dominance": 1})
    found = outcomes_of(experiment(data, "protocols=pairwise"), folder / "r", lambda r: Reply(text))
    return {o.case.subject: [s.value for s in o.result or []] for o in found}


@pytest.mark.parametrize(
    "text",
    [
        "Response A",
        "**Response A**",
        '{"answer": "Response A"}',
        "Answer: response A",
        "response a.",
    ],
)
def test_a_choice_may_be_called_as_the_prompt_calls_it(tmp_path: Path, text: str) -> None:
    assert choices(tmp_path, text) == {
        "right_first": [1.0],
        "error_first": [0.0],
    }


@pytest.mark.parametrize(
    "text",
    [
        "Response A is worse than Response B.",
        "Response A ignores the request.",
        "The user asked for tea; Response B gives it.",
    ],
)
def test_what_is_said_of_a_response_is_no_choice(tmp_path: Path, text: str) -> None:
    assert choices(tmp_path, text) == {"right_first": [None], "error_first": [None]}


# Probabilities of the verdicts


@pytest.mark.parametrize(
    "steps",
    [
        [{"under": 0.6, "Right": 0.3, "over": 0.1}, {"-personalized": 1.0}],
        [{"Under Person": 0.6, "right": 0.3, "OVER-PERSON": 0.1}, {"alized": 1.0}],
        [{"UNDER-": 0.4, "under_": 0.2, "Right": 0.3, "Over ": 0.1}, {"personalized": 1.0}],
    ],
)
def test_probabilities_of_verdicts_in_any_spelling(steps: list[Step]) -> None:
    found = verdict_probabilities(reply([{'{"Verdict" : "': 1.0}, *steps, {'"}': 1.0}]))
    assert found == pytest.approx(SHARES)


@pytest.mark.parametrize("place", range(7))
def test_a_token_without_text_keeps_the_place(place: int) -> None:
    """As a control token, or half of a character, has none."""
    steps: list[Step] = [
        {'{"': 1.0}, {"verdict": 1.0}, {'": "': 1.0}, {"UND": 0.6, "RI": 0.3, "OVER": 0.1},
        {"ER": 1.0}, {'"}': 1.0},
    ]  # fmt: skip
    steps.insert(place, {"": 0.9, "x": 0.1})
    assert verdict_probabilities(reply(steps)) == pytest.approx(SHARES)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"verdict": "RIGHT", "draft": {"verdict": "OVER_PERSONALIZED"}}', RIGHT),
        ('{"verdict": "OVER_PERSONALIZED"} It is not "verdict": "RIGHT"', OVER),
        ('{"verdict": "UNDER or OVER"}', None),
        ('{"verdict": "RIGHT_PERSONALIZED"}', None),
    ],
)
def test_no_probabilities_of_another_verdict_than_the_one_read(text: str, read: str | None) -> None:
    assert read_verdict(text).verdict.value == read
    steps: list[Step] = [{token: 1.0} for token in re.findall(r"\w+|\W+", text)]
    assert verdict_probabilities(reply(steps)) is None


# Data


@pytest.mark.parametrize(
    ("right", "error"),
    [
        ("The caf\u00e9 is quiet.", "The cafe\u0301 is quiet."),
        ("It's QUIET there.", "It\u2019s  quiet\u00a0there."),
        ("Go there.", "Go\u200b there."),
    ],
)
def test_responses_that_look_the_same_are_refused(tmp_path: Path, right: str, error: str) -> None:
    path = write_scenarios(tmp_path, 1) / FILE
    [record] = json.loads(path.read_text(encoding="utf-8"))
    record.update(right_response=right, error_response=error)
    path.write_text(json.dumps([record]), encoding="utf-8")
    with pytest.raises(DataError, match="error_response: s01: is the same as right_response"):
        load_scenarios(tmp_path)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_file_nested_too_deeply_is_refused(tmp_path: Path, opening: str) -> None:
    path = tmp_path / FILE
    path.write_text(opening * 100_000)
    with pytest.raises(DataError, match="is nested too deeply to be read"):
        read_json(path, list[int])
