"""Literal inputs come from the project's list of known failures; the rest are of the same kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.parsing.choice import parse_choice

STATED = {
    "<answer>B</answer>": "B",
    "<think>A? so A</think>\n\nB": "B",
    "So maybe A...\n</think>\n\nB": "B",
    "<think>\nAnswer: A maybe\n</think>\nAnswer: B": "B",
    "Answer: A\nAnswer: B": "B",
    "Answer seems to be A.\n\nAnswer: B": "B",
    "Antwort:\n\nAntwort: B": "B",
    "At first (A) looked right, but no. Final answer: B.": "B",
    "B) Hiking": "B",
    "B.": "B",
    "B/B": "B",
    "B": "B",
    "b": "B",
    "- B": "B",
    "B - A traditional ryokan": "B",
    "Option B": "B",
    "option b.": "B",
    "The answer is B because a bus stops.": "B",
    '```json\n{"answer": "B"}\n```': "B",
    '{"answer": "B) Hiking"}': "B",
    "Ⓑ": "B",
    "只有选项B是对的": "B",
    "答案：Ｂ": "B",
    "我选择C": "C",
    "ANSWER: $B$": "B",
    "**B**": "B",
    "(B)": "B",
    "ANSWER: **B**": "B",
    r"\boxed{B}": "B",
    "**Answer: (C)**": "C",
    "The answer is (B) because A is wrong.": "B",
    "Answer: A is right": "A",
    "Option A is wrong, option C is right": "C",
    "The answer isn't A, it's B.": "B",
    "I would not choose A. I'd pick C.": "C",
    "I would recommend option B over option A.": "B",
    "The correct option is B": "B",
    "The correct answer would be option C.": "C",
    "B because you like A": "B",
    "A. x\nB. y\nC. z\nAnswer: C": "C",
    "The correct answer is: **B) Hiking**": "B",
    "Answer: B, not A": "B",
    "I'd say B": "B",
    "My pick is C": "C",
    "C, because it fits": "C",
    "答えはBです": "B",
    "我认为B选项最好": "B",
    "I think A is wrong and B is right": "B",
    "Option A sounds good": "A",
    "Ｂ。": "B",
    "【B】": "B",
    "“B”": "B",
    "B：徒步": "B",
    "Answer: D": "D",
}

SILENT = {
    "": "empty",
    " \n\t": "empty",
    "<think>A or": "truncated_reasoning",
    "<think>\nMaybe A. Or rather B": "truncated_reasoning",
    "A/B": "ambiguous",
    "Answer: A or B": "ambiguous",
    "Both option A and option B": "ambiguous",
    "A. one\nB. two\nC. three\nD. four": "ambiguous",
    "Actually I'm unsure": "no_answer",
    "Don't know": "no_answer",
    "I can't help with that.": "no_answer",
    "None of the above": "no_answer",
    "ANSWER: None of the above": "no_answer",
    "Error: rate limited": "no_answer",
    "The answer is a bus.": "no_answer",
    "A bus would be good": "no_answer",
    "Answer:\nA user who likes tea": "no_answer",
    "I choose a hotel": "no_answer",
    "That's a good idea": "no_answer",
    "Neither A nor B": "no_answer",
    "B.C. 300": "no_answer",
    "选项A和选项B": "ambiguous",
    '{"answer": "A", "answer": "B"}': "ambiguous",
    "I think C++ is a language; because of D'Artagnan": "no_answer",
}


@pytest.mark.parametrize(("reply", "label"), STATED.items())
def test_stated_letter_is_read(reply: str, label: str) -> None:
    assert parse_choice(reply).value == label


@pytest.mark.parametrize(("reply", "reason"), SILENT.items())
def test_no_stated_letter_is_none_with_a_reason(reply: str, reason: str) -> None:
    parsed = parse_choice(reply)
    assert parsed.value is None
    assert parsed.reason == reason


def test_the_pronoun_is_no_option() -> None:
    assert parse_choice("The answer is C because I checked.", "ABCDEFGHIJ").value == "C"
    assert parse_choice("I cannot tell.", "ABCDEFGHIJ").value is None


def test_a_reply_that_is_one_option_chooses_it() -> None:
    options = {"A": "A cat.", "B": "A dog that barks."}
    assert parse_choice("a dog that barks", options=options).value == "B"
    assert parse_choice("a dog", options=options).value is None


def test_a_hundred_empty_replies_give_no_answer() -> None:
    assert [parse_choice("").value for _ in range(100)] == [None] * 100


@given(st.text(max_size=80))
def test_any_text_gives_a_label_or_a_reason(text: str) -> None:
    parsed = parse_choice(text)
    assert (parsed.value in set("ABCD")) != bool(parsed.reason)


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"), st.text("xyz \n", max_size=30))
def test_the_last_stated_answer_wins(first: str, last: str, between: str) -> None:
    assert parse_choice(f"Answer: {first}\n{between}\nAnswer: {last}").value == last
