"""What evaluators answer to Prompts 10 to 12, and what is read of it; nothing is guessed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.benchmarks.persevalbench.prompts import END_TO_END, STATE_TABLE
from persona_lab.benchmarks.persevalbench.verdicts import (
    EXAMPLE_VERDICT,
    OVER,
    RIGHT,
    UNDER,
    VERDICTS,
    read_verdict,
    verdict_probabilities,
)
from persona_lab.core.prompt import Reply

Step = dict[str, float]

STATED = {
    '{"verdict": "RIGHT"}': RIGHT,
    '{"verdict": "UNDER_PERSONALIZED"}': UNDER,
    '{"verdict": "OVER_PERSONALIZED", "subtypes": ["over.scope_leakage"]}': OVER,
    '```json\n{"verdict": "OVER_PERSONALIZED"}\n```': OVER,
    '```json {"verdict": "RIGHT"}```': RIGHT,
    'Here is my verdict:\n{"verdict": "UNDER_PERSONALIZED"}\nHope this helps!': UNDER,
    '{"verdict": "right"}': RIGHT,
    '{"Verdict": "under_personalized"}': UNDER,
    '{"verdict": "over-personalized"}': OVER,
    '{"verdict": "Over personalized"}': OVER,
    '{"verdict": "ＲＩＧＨＴ"}': RIGHT,
    '{"verdict": "OVER_PERSONALIZED."}': OVER,
    '{"result": {"verdict": "UNDER_PERSONALIZED"}}': UNDER,
    '{"state_table": [{"state": "RIGHT", "policy": "IGNORE"}], "verdict": "OVER"}': OVER,
    '{"state_table": [{"verdict": "UNDER_PERSONALIZED"}], "verdict": "RIGHT"}': RIGHT,
    '{"reasoning": "no \\"verdict\\": \\"RIGHT\\" here", "verdict": "OVER_PERSONALIZED"}': OVER,
    '<think>{"verdict": "RIGHT"}</think>\n{"verdict": "OVER_PERSONALIZED"}': OVER,
    'It is {"verdict": "RIGHT"}.</think>{"verdict": "UNDER_PERSONALIZED"}': UNDER,
    "{'verdict': 'OVER_PERSONALIZED', 'subtypes': []}": OVER,
    '{"verdict": "RIGHT",}': RIGHT,
    "**Verdict:** UNDER_PERSONALIZED": UNDER,
    "Verdict: OVER_PERSONALIZED (scope leakage)": OVER,
    "UNDER_PERSONALIZED": UNDER,
    '{"verdict": "RIGHT"} No, wait. {"verdict": "OVER_PERSONALIZED"}': OVER,
}  # fmt: skip

CONTRACT = '- "verdict": one of "RIGHT", "OVER_PERSONALIZED", "UNDER_PERSONALIZED"'
ECHO_12 = '"verdict": "RIGHT" or "OVER_PERSONALIZED" or "UNDER_PERSONALIZED"'
SILENT = {
    "": "empty",
    " \n\t": "empty",
    "<think>\nSo it is RIGHT": "truncated_reasoning",
    '{"verdict": ': "truncated",
    '{"verdict": "UNDER_PERSON': "truncated",
    '{"verdict": "RIGHT", "reasoning": "The response': "truncated",
    '```json\n{"state_table": [{"state": "quiet"}], "verd': "truncated",
    '{"verdict": null}': "no_answer",
    '{"verdict": ""}': "no_answer",
    '{"verdict": true}': "no_answer",
    '{"verdict": ["RIGHT"]}': "no_answer",
    '{"verdict": {"value": "RIGHT"}}': "no_answer",
    '{"verdict": "WRONG"}': "no_answer",
    '{"verdict": "not RIGHT"}': "no_answer",
    '{"verdict": "RIGHT_PERSONALIZED"}': "no_answer",
    '{"verdict": "MISAPPLIED"}': "no_answer",
    '{"confidence": 0.9}': "no_answer",
    '{"verdict": "RIGHT", "verdict": "OVER_PERSONALIZED"}': "ambiguous",
    '{"verdict": "UNDER_PERSONALIZED, OVER_PERSONALIZED"}': "ambiguous",
    '{"verdict": "UNDER or OVER"}': "ambiguous",
    "The response is RIGHT to leave the budget out.": "no_answer",
    "The user moved over to hybrid work.": "no_answer",
    "I cannot help with that.": "no_answer",
    CONTRACT: "no_answer",
    f"Respond with a JSON object containing:\n{CONTRACT}\n": "no_answer",
    ECHO_12: "ambiguous",
    f"{{{ECHO_12}}}": "ambiguous",
}


@pytest.mark.parametrize(("text", "verdict"), STATED.items())
def test_a_stated_verdict(text: str, verdict: str) -> None:
    assert read_verdict(text).verdict.value == verdict


@pytest.mark.parametrize(("text", "reason"), SILENT.items())
def test_no_verdict_and_why(text: str, reason: str) -> None:
    found = read_verdict(text)
    assert (found.verdict.value, found.verdict.reason) == (None, reason)


@pytest.mark.parametrize("template", [END_TO_END, STATE_TABLE])
def test_an_echo_of_the_prompt_is_no_verdict(template: str) -> None:
    """Small models repeat what they were asked; so they do the end of it alone."""
    names = dict.fromkeys(("context", "user_request", "response"), "x")
    lines = template.format(**names).split("\n")
    for start in range(len(lines)):
        assert read_verdict("\n".join(lines[start:])).verdict.value is None


@pytest.mark.parametrize(
    ("text", "verdict", "flags"),
    [
        ('{"verdict": "UNDER"}', UNDER, ("short",)),
        ('{"verdict": "over"}', OVER, ("short",)),
        ("Verdict: OVER", OVER, ("short",)),
        ("{'verdict': 'UNDER'}", UNDER, ("repaired", "short")),
        ('{"verdict": "RIGHT"} {"verdict": "UNDER"}', UNDER, ("differing", "short")),
        ('{"verdict": "RIGHT"} {"verdict": "OVER_PERSONALIZED"}', OVER, ("differing",)),
        ('{"verdict": "RIGHT"} {"verdict": "RIGHT"}', RIGHT, ()),
        ('{"verdict": "RIGHT",}', RIGHT, ("repaired",)),
        ('{"verdict": "UNDER_PERSONALIZED"}', UNDER, ()),
        # One verdict in both of its names differs from nothing.
        ('{"verdict": "UNDER"} {"verdict": "UNDER_PERSONALIZED"}', UNDER, ()),
    ],
)
def test_flags_of_a_verdict(text: str, verdict: str, flags: tuple[str, ...]) -> None:
    found = read_verdict(text).verdict
    assert (found.value, found.flags) == (verdict, flags)


@given(st.sampled_from(VERDICTS), st.text(), st.floats(0, 1))
def test_any_reply_to_the_contract_is_read(verdict: str, reasoning: str, confidence: float) -> None:
    reply = {
        "verdict": verdict, "subtypes": ["under.x"], "confidence": confidence,
        "reasoning": reasoning.replace("</think>", ""),
    }  # fmt: skip
    found = read_verdict(json.dumps(reply))
    assert (found.verdict.value, found.verdict.flags) == (verdict, ())
    assert (found.subtype, found.confidence) == ("under.x", confidence)


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    found = read_verdict(text)
    assert (found.verdict.value is None) == bool(found.verdict.reason)
    assert found.confidence is None or 0 <= found.confidence <= 1


@given(st.integers(0, len(EXAMPLE_VERDICT) - 1))
def test_a_reply_that_is_cut_off_has_no_verdict(length: int) -> None:
    assert read_verdict(EXAMPLE_VERDICT[:length]).verdict.value is None
    assert read_verdict(EXAMPLE_VERDICT).verdict.value == RIGHT


@pytest.mark.parametrize(
    ("subtypes", "named"),
    [
        ('["over.irrelevant_use", "over.scope_leakage"]', "over.irrelevant_use"),
        ('"under.partial_omission"', "under.partial_omission"),
        ('" under.partial_omission "', "under.partial_omission"),
        ("[]", ""),
        ('""', ""),
        ("null", ""),
        ("7", ""),
        ("[null, 3]", ""),
        ('{"primary": "over.x"}', ""),
        ('[null, "over.scope_leakage"]', "over.scope_leakage"),
    ],
)
def test_the_subtype_that_is_named(subtypes: str, named: str) -> None:
    found = read_verdict(f'{{"verdict": "OVER_PERSONALIZED", "subtypes": {subtypes}}}')
    assert (found.subtype, found.verdict.value) == (named, OVER)


def test_a_subtype_may_be_missing_or_in_the_singular() -> None:
    assert read_verdict('{"verdict": "RIGHT"}').subtype == ""
    assert read_verdict('{"verdict": "OVER", "subtype": "over.x"}').subtype == "over.x"


@pytest.mark.parametrize(
    ("stated", "confidence"),
    [
        ("0", 0.0), ("1", 1.0), ("0.7", 0.7), ("1.0", 1.0), ('"0.7"', 0.7), ('" 0.7 "', 0.7),
        ("70", None), ("-0.1", None), ("1.01", None), ('"70%"', None), ('"high"', None),
        ('"0,7"', None), ("NaN", None), ('"NaN"', None), ("Infinity", None), ('"inf"', None),
        ("1e999", None), ("true", None), ("false", None), ("null", None), ("[0.7]", None),
        ('""', None), ('{"value": 0.7}', None),
    ],
)  # fmt: skip
def test_confidence(stated: str, confidence: float | None) -> None:
    found = read_verdict(f'{{"verdict": "RIGHT", "confidence": {stated}}}')
    assert (found.confidence, found.verdict.value) == (confidence, RIGHT)


def test_confidence_that_is_missing_or_given_twice() -> None:
    assert read_verdict('{"verdict": "RIGHT"}').confidence is None
    assert read_verdict('{"verdict": "RIGHT", "confidence": 1, "confidence": 0}').confidence is None
    assert read_verdict("Verdict: RIGHT. Confidence: 0.9").confidence is None


def test_the_last_object_wins() -> None:
    first = '{"verdict": "OVER", "subtypes": ["over.x"], "confidence": 0.9}'
    last = '{"verdict": "UNDER", "subtypes": ["under.y"], "confidence": 0.4}'
    found = read_verdict(f"{first}\nOn reflection:\n{last}")
    assert (found.verdict.value, found.subtype, found.confidence) == (UNDER, "under.y", 0.4)


def test_subtype_and_confidence_are_those_of_the_verdict() -> None:
    """What an earlier, withdrawn verdict came with does not become the last one's."""
    first = '{"verdict": "OVER", "subtypes": ["over.x"], "confidence": 0.9}'
    found = read_verdict(f'{first}\nOn reflection:\n{{"verdict": "RIGHT"}}')
    assert (found.verdict.value, found.subtype, found.confidence) == (RIGHT, "", None)


# Probabilities of the verdicts


def reply(steps: list[Step], text: str | None = None) -> Reply:
    """A reply whose tokens are the first of each step; token -> probability."""
    logprobs = tuple(tuple((t, math.log(p)) for t, p in step.items()) for step in steps)
    return Reply("".join(next(iter(s)) for s in steps) if text is None else text, logprobs=logprobs)


HEAD: list[Step] = [{'{"': 0.9, "{": 0.1}, {"verdict": 1.0}, {'":': 1.0}]
TAIL: list[Step] = [{'"}': 1.0}]
# R 0.6, U 0.3, O 0.1 in all of them, however the tokens are cut.
SPLITS: dict[str, list[Step]] = {
    "words": [{' "': 1.0}, {"RIGHT": 0.6, "UNDER": 0.3, "OVER": 0.1}],
    "syllables": [{' "': 1.0}, {"RI": 0.6, "UND": 0.3, "OVER": 0.1}, {"GHT": 0.99, "FLE": 0.01}],
    "letters": [
        {" ": 1.0}, {'"': 1.0}, {"R": 0.6, "U": 0.3, "O": 0.1}, {"I": 1.0}, {"G": 1.0}, {"HT": 1.0},
    ],
    "quoted": [{' "RIGHT': 0.6, ' "UNDER': 0.3, ' "OVER': 0.1}],
    "whole": [{' "': 1.0}, {"RIGHT": 0.6, "UNDER_PERSONALIZED": 0.3, "OVER_PERSONALIZED": 0.1}],
    "closed": [{' "': 1.0}, {'RIGHT"': 0.6, 'UNDER_PERSONALIZED"': 0.3, "OVER": 0.1}, {"": 1.0}],
    "several": [{' "': 1.0}, {"RIGHT": 0.4, "RI": 0.2, "UNDER": 0.2, "UN": 0.1, "OVER": 0.1}],
    # What begins no verdict has no share: 0.3, 0.15 and 0.05 of 0.5.
    "others": [{' "': 1.0}, {"RIGHT": 0.3, "WRONG": 0.3, "": 0.2, "UNDER": 0.15, "OVER": 0.05}],
}  # fmt: skip


@pytest.mark.parametrize("name", SPLITS)
def test_probabilities_by_hand(name: str) -> None:
    tail: list[Step] = [{"}": 1.0}] if name == "closed" else TAIL
    found = verdict_probabilities(reply([*HEAD, *SPLITS[name], *tail]))
    assert found == pytest.approx({RIGHT: 0.6, UNDER: 0.3, OVER: 0.1})


def test_probabilities_are_of_the_place_where_the_verdict_is_stated() -> None:
    """A table before it, and words behind it, that name other verdicts."""
    table: list[Step] = [{'{"policy": "': 1.0}, {"OVER": 0.9, "RIGHT": 0.1}, {'", "': 1.0}]
    stated: list[Step] = [{"verdict": 1.0}, {'": "': 1.0}, {"UNDER": 0.8, "OVER": 0.2}]
    end: list[Step] = [{'", "reasoning": "': 1.0}, {"RIGHT": 0.7, "OVER": 0.3}, {'"}': 1.0}]
    found = verdict_probabilities(reply([*table, *stated, *end]))
    assert found == pytest.approx({RIGHT: 0.0, UNDER: 0.8, OVER: 0.2})


def test_a_candidate_that_begins_with_no_space_counts_too() -> None:
    """The place of the verdict in a token is another in `"UNDER` than in ` "RIGHT`."""
    step: Step = {' "RIGHT': 0.6, '"UNDER': 0.3, '  "OVER': 0.1}
    found = verdict_probabilities(reply([*HEAD, step, *TAIL]))
    assert found == pytest.approx({RIGHT: 0.6, UNDER: 0.3, OVER: 0.1})


def test_a_longer_candidate_is_not_taken_for_the_token() -> None:
    """` "U` begins the rest of the text as ` "` does, but no token goes on from there."""
    steps: list[Step] = [*HEAD, {' "': 0.9, ' "U': 0.1}, {"UNDER": 0.5, "RIGHT": 0.5}, *TAIL]
    assert verdict_probabilities(reply(steps)) == pytest.approx({RIGHT: 0.5, UNDER: 0.5, OVER: 0.0})


def test_tokens_that_could_be_read_in_two_ways_before_the_verdict() -> None:
    steps: list[Step] = [{"{": 0.6, '{"': 0.4}, {'"': 1.0}, *HEAD[1:], *SPLITS["words"], *TAIL]
    found = verdict_probabilities(reply(steps))
    assert found == pytest.approx({RIGHT: 0.6, UNDER: 0.3, OVER: 0.1})


def test_a_candidate_that_begins_two_verdicts_counts_for_none() -> None:
    """No two of the verdicts share a first letter, so only what is empty begins several."""
    steps: list[Step] = [*HEAD, {' "': 1.0}, {"RIGHT": 0.5, "": 0.2, " ": 0.1, '"': 0.1}, *TAIL]
    assert len({v[0] for v in VERDICTS}) == len(VERDICTS)
    assert verdict_probabilities(reply(steps)) == {RIGHT: 1.0, UNDER: 0.0, OVER: 0.0}


@pytest.mark.parametrize(
    "found",
    [
        Reply('{"verdict": "RIGHT"}'),
        Reply('{"verdict": "RIGHT"}', logprobs=()),
        # The verdict is not stated, is no text, or its tokens are not there.
        reply([{'{"confidence": ': 1.0}, {"1": 1.0}, {"}": 1.0}]),
        reply([{'{"verdict"': 1.0}, {": ": 1.0}, {"null": 1.0}, {"}": 1.0}]),
        reply([*HEAD, {' "': 1.0}]),
        reply([{"RIGHT": 1.0}]),
        # Tokens that do not spell the text, as where it was sampled from beyond the listed ones.
        reply([*HEAD, *SPLITS["words"]], '{ "verdict": "RIGHT"}'),
        reply([*HEAD, {' "': 1.0}, {"UNDER": 0.9, "OVER": 0.1}, *TAIL], '{"verdict": "RIGHT"}'),
        # No candidate begins a verdict.
        reply([*HEAD, {' "': 1.0}, {"WRONG": 1.0}, *TAIL]),
    ],
)
def test_no_probabilities(found: Reply) -> None:
    assert verdict_probabilities(found) is None


@given(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3))
def test_probabilities_are_normalised(masses: list[float]) -> None:
    shares = [m / sum(masses) * 0.9 for m in masses]
    step = dict(zip(("RIGHT", "UNDER", "OVER"), shares, strict=True))
    found = verdict_probabilities(reply([*HEAD, {' "': 1.0}, step, *TAIL]))
    assert found is not None
    assert sum(found.values()) == pytest.approx(1.0)
    assert [*found.values()] == pytest.approx([m / sum(masses) for m in masses])
