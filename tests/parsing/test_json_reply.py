"""Whatever a model writes, the parsers of JSON give a value or a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.core.prompt import Reply
from persona_lab.memory.replies import read_decision, read_facts, read_summary
from persona_lab.methods.appropriateness import parse_suitable
from persona_lab.parsing.json_reply import json_objects
from persona_lab.parsing.label import parse_label
from persona_lab.parsing.score import parse_score

PARSERS: dict[str, Callable[[str], Any]] = {
    "score": parse_score,
    "label": lambda text: parse_label(text, ["follow", "do_not_follow"]),
    "suitable": lambda text: parse_suitable(text, 3),
    "facts": lambda text: read_facts(Reply(text)),
    "event": lambda text: read_decision(Reply(text)),
    "summary": lambda text: read_summary(Reply(text)),
}


@pytest.mark.parametrize("key", PARSERS)
@pytest.mark.parametrize(
    "reply",
    [
        "{{'KEY': [1]}}",  # doubled braces of a template: a set of a dict, which cannot be
        "{[1]: 2, 'KEY': 4}",
        '{"KEY": [1' + "0" * 400 + "]}",  # more than a float holds
        '{"KEY": -1' + "0" * 400 + "}",
        '{"KEY": 1e999}',
        '{"KEY": [' + "[" * 2_000,
        '{"KEY": {"KEY": {}}}',
        "{'KEY': b'4'}",
    ],
)
def test_a_strange_reply_has_a_value_or_a_reason(key: str, reply: str) -> None:
    parsed = PARSERS[key](reply.replace("KEY", key))
    assert (parsed.value is None) == bool(parsed.reason)
    if key == "suitable":
        assert parsed.value is None


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{}[]\"':,0-9e. scoreluitabfv", max_size=60))
def test_no_text_raises(text: str) -> None:
    json_objects(text)
    for parse in PARSERS.values():
        parse(text)
        parse('{"' + text)


def test_repair_is_flagged() -> None:
    assert json_objects("{'score': 4}") == ([{"score": 4}], ("repaired",))
    assert json_objects("{{'score': 4}}") == ([], ())
