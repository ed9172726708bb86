"""What is read from replies, and what never is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.prompt import Reply
from persona_lab.memory.replies import (
    Decision,
    Facts,
    read_decision,
    read_facts,
    read_summary,
)
from persona_lab.memory.wording import folded


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ('{"facts": ["likes tea"]}', ("likes tea",)),
        ('```json\n{"facts": ["likes tea"]}\n```', ("likes tea",)),
        ('```json {"facts": ["likes tea"]}```', ("likes tea",)),
        ('Here they are:\n{"Facts": ["likes tea"]}\nAnything else?', ("likes tea",)),
        ('{"facts": ["likes \\ud83c tea"]}', ("likes \ufffd tea",)),
        ('{"facts": ["likes \\ud83c\\udf75"]}', ("likes 🍵",)),
        ('{"facts": ["likes\\n tea\\t "]}', ("likes tea",)),
        ('{"facts": ["says ```x``` and {y}, }"]}', ("says ```x``` and {y}, }",)),
        ('{"facts": ["likes tea",]}', ("likes tea",)),
        ('{"facts": ["我对花生过敏", "叫小明"]}', ("我对花生过敏", "叫小明")),
        ('<think>{"facts": ["a cat"]}</think>{"facts": ["a dog"]}', ("a dog",)),
        ('{"facts": ["first try"]} No, rather: {"facts": ["a dog"]}', ("a dog",)),
        ('{"facts": []}', ()),
    ],
)
def test_facts(text: str, facts: tuple[str, ...]) -> None:
    assert read_facts(Reply(text)).value == Facts(facts, 0)


def test_entries_that_are_no_fact_are_skipped_and_counted() -> None:
    reply = Reply('{"facts": ["", " \\n", ".", 7, null, {"fact": "x"}, ["y"], "likes tea"]}')
    assert read_facts(reply).value == Facts(("likes tea",), 7)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("Sure! No facts."), "unparsed"),
        (Reply(""), "empty"),
        (Reply("  \n"), "empty"),
        (Reply("<think>none?</think>"), "empty"),
        (Reply('<think>{"facts": ["a cat"]}'), "truncated_reasoning"),
        (Reply('["likes tea"]'), "unparsed"),
        (Reply('{"facts": "likes tea"}'), "unparsed"),
        (Reply('{"facts": null}'), "unparsed"),
        (Reply('{"facts": ["a"], "facts": ["b"]}'), "unparsed"),
        (Reply('{"memories": ["likes tea"]}'), "unparsed"),
        (Reply('{"facts": ["likes tea", "and'), "unparsed"),
        (Reply('{"facts": ["likes tea", "and', "length", "truncated"), "truncated"),
        (Reply('{"facts": ["likes tea"]}\nAnd', "length", "truncated"), "truncated"),
        (Reply("", "length", "truncated", "truncated_reasoning"), "truncated_reasoning"),
        (Reply.failed("engine restarted"), "engine restarted"),
    ],
)
def test_what_says_no_facts_is_no_empty_list(reply: Reply, reason: str) -> None:
    read = read_facts(reply)
    assert (read.value, read.reason) == (None, reason)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ('{"event": "ADD", "id": "", "text": ""}', Decision("ADD", None, "")),
        ('{"event": "add"}', Decision("ADD", None, "")),
        ('{"event": "UPDATE", "id": "2", "text": "a  b"}', Decision("UPDATE", 2, "a b")),
        ('{"event": "DELETE", "id": 3, "text": null}', Decision("DELETE", 3, "")),
        ('{"event": "NOOP", "id": " 1 ", "text": "."}', Decision("NOOP", 1, "")),
        ('{"event": "NONE", "id": "first"}', Decision("NOOP", None, "")),
        ('{"event": "DELETE", "id": true}', Decision("DELETE", None, "")),
        ('{"event": "DELETE", "id": "' + "9" * 5000 + '"}', Decision("DELETE", None, "")),
        ('{"event": "ADD", "id": "1"}\nor {"event": "NOOP"}', Decision("NOOP", None, "")),
        ('```json\n{"event": "UPDATE", "id": "1", "text": "x"}\n```', Decision("UPDATE", 1, "x")),
    ],
)
def test_decisions(text: str, decision: Decision) -> None:
    assert read_decision(Reply(text)).value == decision


@pytest.mark.parametrize(
    "text", ["ADD", '{"event": "KEEP"}', '{"event": null}', '{"id": "1"}', '{"event": ["ADD"]}']
)
def test_what_is_no_decision(text: str) -> None:
    assert (read_decision(Reply(text)).value, read_decision(Reply(text)).reason) == (
        None,
        "unparsed",
    )


def test_summaries() -> None:
    assert read_summary(Reply('{"summary": " Tea.\\nRome. "}')).value == "Tea.\nRome."
    assert read_summary(Reply('{"summary": " "}')).reason == "empty"
    assert read_summary(Reply("They talked.")).reason == "unparsed"
    assert read_summary(Reply('{"summary": "They', "length", "truncated")).reason == "truncated"


@given(st.lists(st.text(st.characters())))
def test_every_text_that_is_not_blank_is_a_fact(entries: list[str]) -> None:
    """Lone surrogates too, as JSON writes them; what is kept can be written to a file."""
    read = read_facts(Reply(json.dumps({"facts": entries}))).value
    assert read is not None
    assert len(read.texts) + read.skipped == len(entries)
    assert all(text.encode() and text == text.strip() for text in read.texts)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Likes tea", "likes  TEA.", True),
        ("我喜欢茶。", "我喜欢茶", True),
        ("Straße", "STRASSE", True),
        ("café", "cafe\u0301", True),
        ("Likes tea", "Likes teas", False),
        ("Likes C", "Likes C#", False),
        ("Likes tea!", "Likes tea", False),
    ],
)
def test_the_same_words(one: str, other: str, same: bool) -> None:
    assert (folded(one) == folded(other)) is same
