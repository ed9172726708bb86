"""The filter's question, and its reply: what is no list of statements chooses nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.prompt import Prompt, Reply, Request, Sampling
from persona_lab.methods.appropriateness import Suitable, parse_suitable, question, suitable

STATEMENTS = ["I have a dog.", "I like puns.", "Call me Sam.", "I have a dog."]
REQUEST = "Write a message to the Tax Office."


def ask(prompt: Prompt, example: str) -> Request:
    return Request("target", prompt, Sampling(64), example)


def chosen(reply: Reply, statements: list[str] = STATEMENTS) -> Suitable:
    flow = suitable(statements, REQUEST, ask)
    asked = next(flow)
    assert len(asked) == 1  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as finished:
        flow.send([reply])
    found: Suitable = finished.value.value
    return found


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('{"suitable": [1, 4]}', [1, 4]),
        ('{"suitable": []}', []),
        ('```json\n{"suitable": [2]}\n```', [2]),
        ('Here it is:\n{"suitable": [3, 1]}\nHope this helps!', [3, 1]),
        ('{"Suitable": ["1", "４", 2.0], "why": "short"}', [1, 4, 2]),
        ('{"why": "a {brace} and \\"suitable\\": [9]", "suitable": [1]}', [1]),
        ('{"suitable": [1], "note": "\'suitable\': none of the rest"}', [1]),
        ('{"suitable": [1]} or rather {"suitable": [2]}', [2]),
        ('{"suitable": [NUMBERS]} means {"suitable": [2]}', [2]),
        ('{"suitable": [1, 2]}\nNot suitable: 3.', [1, 2]),
        ("{'suitable': [1, 3]}", [1, 3]),
        ('{"suitable": [1, 3,]}', [1, 3]),
        ('<think>\n{"suitable": [1]} maybe\n</think>\n{"suitable": [2]}', [2]),
        ('{"suitable": [1]}? So no.</think>{"suitable": []}', []),
    ],
)
def test_a_list_is_read_wherever_it_stands(text: str, numbers: list[int]) -> None:
    found = parse_suitable(text, 4)
    assert (found.value, found.reason) == (numbers, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>\nStatement 1 suits, so", "truncated_reasoning"),
        ('<think>{"suitable": [1]}</think>', "empty"),
        ('{"suitable": [1, ', "truncated"),
        ('{"suitable": [1], "why": "because it', "truncated"),
        ('{"suitable": [1]} Wait, I mean {"suitable": [2, 3', "truncated"),
        ('{"suitable": [1]} Wait: {"suitable": all}', "no_answer"),
        ("{'suitable': [1]} or {suitable: 2}", "no_answer"),
        ('{"suitable": [NUMBERS]}', "no_answer"),
        ("{suitable: 1, 2}", "no_answer"),
        ("1, 4", "no_answer"),
        ("[1, 4]", "no_answer"),
        ("Statements 1 and 4 suit.", "no_answer"),
        ("None of them.", "no_answer"),
        ("I can't help with that.", "no_answer"),
        ('{"unsuitable": [1]}', "no_answer"),
        ('{"answer": {"suitable": [1]}}', "no_answer"),
        ('{"suitable": [1, 5]}', "out_of_range"),
        ('{"suitable": [0]}', "out_of_range"),
        ('{"suitable": [-1]}', "out_of_range"),
        ('{"suitable": [1e999]}', "out_of_range"),
        ('{"suitable": [true]}', "not_a_number"),
        ('{"suitable": [1, null]}', "not_a_number"),
        ('{"suitable": [NaN]}', "not_a_number"),
        ('{"suitable": ["I have a dog."]}', "not_a_number"),
        ('{"suitable": ["1-3"]}', "not_a_number"),
        ('{"suitable": [[1]]}', "not_a_number"),
        ('{"suitable": [1.5]}', "not_an_integer"),
        ('{"suitable": [2, 2]}', "named_twice"),
        ('{"suitable": [2, "2"]}', "named_twice"),
        ('{"suitable": 1}', "not_a_list"),
        ('{"suitable": "1, 4"}', "not_a_list"),
        ('{"suitable": null}', "not_a_list"),
        ('{"suitable": true}', "not_a_list"),
        ('{"suitable": {"1": true}}', "not_a_list"),
        ('{"suitable": [1], "suitable": [2]}', "ambiguous"),
    ],
)
def test_what_is_no_list_of_statements_is_refused_with_its_reason(text: str, reason: str) -> None:
    found = parse_suitable(text, 4)
    assert (found.value, found.reason) == (None, reason)
    assert chosen(Reply(text)).positions is None


def test_an_earlier_list_that_differs_is_flagged() -> None:
    assert "differing" in parse_suitable('{"suitable": [1]} {"suitable": [2]}', 4).flags
    assert parse_suitable('{"suitable": [1]} {"suitable": [1]}', 4).flags == ()
    assert parse_suitable("{'suitable': [1]}", 4).flags == ("repaired",)


@given(
    st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), st.permutations(range(1, n + 1))))
)
def test_every_choice_is_read_back(drawn: tuple[int, list[int]]) -> None:
    count, order = drawn
    for k in range(count + 1):
        assert parse_suitable(json.dumps({"suitable": order[:k]}), count).value == order[:k]


@given(st.text(max_size=40))
def test_no_text_makes_up_a_number(text: str) -> None:
    found = parse_suitable(text, 3)
    assert found.value is None or set(found.value) <= {1, 2, 3}


def test_positions_are_counted_from_zero_in_the_order_of_the_statements() -> None:
    assert chosen(Reply('{"suitable": [4, 2]}')) == Suitable((1, 3))
    assert chosen(Reply('{"suitable": []}')) == Suitable(())


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (Reply.failed("the engine died"), "failed", "the engine died"),
        (
            Reply('{"suitable": [1]}', "length", "truncated", "max_tokens"),
            "truncated",
            "max_tokens",
        ),
        (Reply('{"suitable": [1, '), "truncated", "truncated"),
        (Reply("", reasoning='{"suitable": [1]}'), "unparsed", "empty"),
        (Reply("<think>All of"), "truncated", "truncated_reasoning"),
        (Reply("All of them."), "unparsed", "no_answer"),
    ],
)
def test_a_reply_that_cannot_be_read_has_an_outcome(
    reply: Reply, outcome: str, reason: str
) -> None:
    found = chosen(reply)
    assert (found.positions, found.outcome, found.reason) == (None, outcome, reason)


def test_without_statements_nothing_is_asked() -> None:
    with pytest.raises(StopIteration) as finished:
        next(suitable([], REQUEST, ask))
    assert finished.value.value == Suitable(())


def test_the_example_is_accepted_and_keeps_everything() -> None:
    asked = next(suitable(STATEMENTS, REQUEST, ask))
    [request] = asked  # type: ignore[misc]
    assert request.schema is None
    assert chosen(Reply(request.example)) == Suitable((0, 1, 2, 3))


def test_statements_are_numbered_one_a_line_behind_what_is_shared() -> None:
    """What all questions share comes first, then what those of one request share."""
    [one] = question(["I like {puns}\nand 100 % tea.", "I have a dog."], REQUEST)
    [two] = question(["Call me Sam."], REQUEST)
    [other] = question(["Call me Sam."], "Write a message to a friend.")
    assert "\n1. I like {puns} and 100 % tea.\n2. I have a dog.\n" in one.content
    shared = one.content.index("1. ")
    assert one.content[:shared] == two.content[:shared]
    assert REQUEST in one.content[:shared]
    instruction = one.content.index(REQUEST)
    assert one.content[:instruction] == other.content[:instruction]
    assert instruction > 300
    assert one.content.endswith('{"suitable": [NUMBERS]}. If none suits, the list is empty.')
    assert parse_suitable(one.content, 2).value is None  # an echo of the question is no answer
