"""Literal inputs come from the project's list of known failures; the rest are of the same kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.parsing.truth import parse_truth

STATED = {
    "**False**": False,
    "INCORRECT": False,
    "Not correct.": False,
    "CORRECT": True,
    "No,": False,
    "TRUE": True,
    "True or False? True": True,
    "Yes": True,
    "not true": False,
    "true.": True,
    "不是": False,
    "不对": False,
    "是": True,
    "Not really": False,
    "Not really, no.": False,
    "Not exactly.": False,
    "No. Yesterday the user said so.": False,
    "It isn't true": False,
    "The statement is not true.": False,
    "That's correct.": True,
    "Answer: False": False,
    "Yes. But wait. Final answer: No": False,
    "True\n\nFalse": False,
    '{"verdict": "incorrect"}': False,
    '{"answer": true}': True,
    "I don't think that's true": False,
    "I wouldn't say it's true.": False,
    "That's not false": True,
    "是对的": True,
    "不，": False,
    "Absolutely not.": False,
    "T": True,
    "maybe true\n</think>\nFalse": False,
}

SILENT = {
    "": "empty",
    "<think>\nOkay, the": "truncated_reasoning",
    "Yesterday I said so": "no_answer",
    "I'm not sure if it is true": "no_answer",
    "I have no idea": "no_answer",
    "Neither": "no_answer",
    "No problem!": "no_answer",
    "对不起，我不知道": "no_answer",
    "It is not the case that this is true": "no_answer",
    "True / False": "no_answer",
    "Yes and no": "no_answer",
}


@pytest.mark.parametrize(("reply", "verdict"), STATED.items())
def test_stated_verdict_is_read(reply: str, verdict: bool) -> None:
    assert parse_truth(reply).value is verdict


@pytest.mark.parametrize(("reply", "reason"), SILENT.items())
def test_no_stated_verdict_is_none_with_a_reason(reply: str, reason: str) -> None:
    parsed = parse_truth(reply)
    assert parsed.value is None
    assert parsed.reason == reason


@given(st.text(max_size=80))
def test_any_text_gives_a_verdict_or_a_reason(text: str) -> None:
    parsed = parse_truth(text)
    assert (parsed.value is None) == bool(parsed.reason)
