"""The baselines against hand counts."""

from __future__ import annotations

import pytest

from persona_lab.benchmarks.realpref.option_baselines import (
    longest_option_baseline,
    odd_one_out_baseline,
)
from persona_lab.benchmarks.realpref.records import Query


def choices(*options: str, correct: str) -> Query:
    return Query.model_validate(
        {
            "Preference": "Likes water.",
            "Query": "What next?",
            "Explanation": "",
            "MCQ_options": dict(zip("ABCD", options, strict=True)),
            "Correct_Answer": correct,
            "T_Query": "True?",
            "F_Query": "False?",
        }
    )


def test_longest_option_baseline() -> None:
    first = choices("oar", "boat", "canoe", "raft", correct="C")  # 5 is longest: 1
    second = choices("oar", "boat", "raft", "sea", correct="B")  # two of 4: 1/2
    third = choices("oar", "boat", "canoe", "raft", correct="A")  # 0
    assert longest_option_baseline([first]) == 1.0
    assert longest_option_baseline([first, second, third]) == 0.5  # (1 + 1/2 + 0) / 3


def test_odd_one_out_baseline() -> None:
    # Content words: A {red, boat}, B {red, car}, C {red, boat}, D {blue, sky}.
    # A-B 1/3, A-C 1, B-C 1/3, D-any 0: means A 4/9, B 2/9, C 4/9, D 0. D is odd.
    spread = ("A red boat.", "The red car.", "Red boats.", "One blue sky.")
    assert odd_one_out_baseline([choices(*spread, correct="D")]) == 1.0
    assert odd_one_out_baseline([choices(*spread, correct="B")]) == 0.0
    # A {oar}, B {oar}, C {sail}, D {kite}: A and B mean 1/3, C and D mean 0: a tie of two.
    tied = choices("Oar.", "An oar.", "A sail.", "Kites.", correct="C")
    assert odd_one_out_baseline([tied]) == 0.5
    # A {oar, pier}, B {oar, sail}, C {sail, kite}, D {kite, pier}: a ring, 1/3 + 1/3 + 0 each.
    ring = choices("Oar, pier.", "Oar, sail.", "Sail, kite.", "Kite, pier.", correct="A")
    assert odd_one_out_baseline([ring]) == 0.25
    three = [choices(*spread, correct="D"), tied, ring]
    assert odd_one_out_baseline(three) == pytest.approx((1 + 0.5 + 0.25) / 3, abs=1e-15)


def test_options_without_content_words_are_alike() -> None:
    # A and B have no content word: 1 together, 0 with {oar} and {oar}; all means are 1/3.
    bare = choices("That one.", "The other.", "An oar.", "Oars.", correct="A")
    assert odd_one_out_baseline([bare]) == 0.25


def test_no_queries_have_no_baseline() -> None:
    assert longest_option_baseline([]) is None
    assert odd_one_out_baseline([]) is None
