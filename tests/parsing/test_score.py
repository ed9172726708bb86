"""Literal inputs come from the project's list of known failures; the rest are of the same kinds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.parsing.json_reply import json_objects
from persona_lab.parsing.score import parse_score

STATED = {
    "4/5": 4,
    '5 = great. {"score": 3}': 3,
    "Score (1-5): 4": 4,
    "Score: 4": 4,
    "4.0": 4,
    "I rate it 4 out of 5.": 4,
    "４": 4,
    "Rating: [[4]]": 4,
    "**Score:** 4": 4,
    "On a scale of 1 to 5, score: 2": 2,
    "Weak. [RESULT] 2": 2,
    '```json\n{"score": 4, "reason": "ok"}\n```': 4,
    '```json {"score": 4}```': 4,
    'Here is my verdict:\n{"score": 4}\nHope this helps!': 4,
    '{"Score": "4"}': 4,
    '{"score": "4/5"}': 4,
    '{"score": 4.0}': 4,
    "I give it a 4.": 4,
    "I'd rate this response 4": 4,
    "Score (out of 5): 4": 4,
    "Score - 4": 4,
    "4 - Good": 4,
    "[[4]]": 4,
    '{"score": "4 (good)"}': 4,
    '{"score": 4}': 4,
    '{"Judge_Reason": "x", "Score": 3,}': 3,
    "{'Score': 4}": 4,
    '<think>\n{"score": 1}\n</think>{"score": 5}': 5,
}

SILENT = {
    "": "empty",
    "4/10": "wrong_scale",
    '{"score": 0}': "out_of_range",
    '{"score": 6}': "out_of_range",
    '{"score": -1}': "out_of_range",
    '{"score": 999}': "out_of_range",
    "Score: 7": "out_of_range",
    "Score: -1": "out_of_range",
    "Score (out of 10): 4": "wrong_scale",
    "Score: 4%": "no_answer",
    "The answer mentions 3 options.": "no_answer",
    '{"score": 1e999}': "out_of_range",
    '{"score": 2, "score": 5}': "ambiguous",
    '{"score": 2, "Score": 5}': "ambiguous",
    '{"score": [4]}': "not_a_number",
    '{"score": true}': "not_a_number",
    '{"score": null}': "not_a_number",
    '{"score": NaN}': "not_a_number",
    "Score: 4.5": "not_an_integer",
    '{"score": ': "truncated",
    "not JSON": "no_answer",
    "<think>\nOkay, the": "truncated_reasoning",
}


@pytest.mark.parametrize(("reply", "score"), STATED.items())
def test_stated_score_is_read(reply: str, score: int) -> None:
    assert parse_score(reply).value == score


@pytest.mark.parametrize(("reply", "reason"), SILENT.items())
def test_no_valid_score_is_none_with_a_reason(reply: str, reason: str) -> None:
    parsed = parse_score(reply)
    assert parsed.value is None
    assert parsed.reason == reason


def test_the_last_of_two_scores_wins_and_is_flagged() -> None:
    parsed = parse_score('{"score": 5} ... {"score": 2}')
    assert parsed.value == 2
    assert parsed.flags == ("differing",)


@pytest.mark.parametrize("reason", ["gave two,} then more", "saw ```x``` and ```y```"])
def test_valid_json_is_never_repaired(reason: str) -> None:
    objects, flags = json_objects(json.dumps({"reason": reason, "score": 4}))
    assert objects == [{"reason": reason, "score": 4}]
    assert flags == ()


def test_repair_is_flagged() -> None:
    assert parse_score('{"Score": 3,}').flags == ("repaired",)


@given(st.text(max_size=80))
def test_any_text_gives_a_score_on_the_scale_or_a_reason(text: str) -> None:
    parsed = parse_score(text)
    assert (parsed.value is None) == bool(parsed.reason)
    assert parsed.value is None or 1 <= parsed.value <= 5


@given(st.integers(-3, 9), st.text(max_size=40))
def test_json_scores_round_trip(score: int, reason: str) -> None:
    parsed = parse_score(json.dumps({"Judge_Reason": reason, "Score": score}))
    assert parsed.value == (score if 1 <= score <= 5 else None)
