"""What a reply of the memory's model says, or why it says nothing.

Code fences and words around the JSON do no harm. A reply that was cut off says nothing, even where
its JSON is whole: what is missing could have been a second thought. No facts are read only where
the reply says so: `{"facts": []}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from persona_lab.core.prompt import Reply
from persona_lab.memory.records import KINDS, Kind
from persona_lab.memory.wording import folded, mended, one_line
from persona_lab.parsing.json_reply import json_objects
from persona_lab.parsing.parsed import Parsed, visible

UNPARSED = "unparsed"
# mem0ai's prompt calls NOOP so, and models have seen that prompt.
_NAMES: dict[str, Kind] = {**{kind: kind for kind in KINDS}, "NONE": "NOOP"}


@dataclass(frozen=True)
class Facts:
    """The facts of a reply, and how many entries of its list are none."""

    texts: tuple[str, ...]
    skipped: int


@dataclass(frozen=True)
class Decision:
    """What to do with a fact.

    Attributes:
        number: of the memory that is meant, as it was shown; None where no number is given.
        text: one line; may be empty.
    """

    kind: Kind
    number: int | None
    text: str


def read_facts(reply: Reply) -> Parsed[Facts]:
    """The facts that phase 1 found; entries that are blank or no text are skipped."""
    found, problem = _last_object(reply, "facts")
    listed = found.get("facts")
    if problem or not isinstance(listed, list):
        return Parsed(None, problem or UNPARSED)
    lines = [_statement(entry) for entry in listed]
    texts = tuple(line for line in lines if line)
    return Parsed(Facts(texts, len(lines) - len(texts)))


def read_decision(reply: Reply) -> Parsed[Decision]:
    """Phase 2's decision; whether there is a memory with its number is not known here."""
    found, problem = _last_object(reply, "event")
    event = found.get("event")
    kind = _NAMES.get(event.strip().upper()) if isinstance(event, str) else None
    if problem or kind is None:
        return Parsed(None, problem or UNPARSED)
    return Parsed(Decision(kind, _number(found.get("id")), _statement(found.get("text"))))


def read_summary(reply: Reply) -> Parsed[str]:
    """The refreshed summary; a blank one is none."""
    found, problem = _last_object(reply, "summary")
    summary = found.get("summary")
    if problem or not isinstance(summary, str):
        return Parsed(None, problem or UNPARSED)
    return Parsed(mended(summary).strip()) if summary.strip() else Parsed(None, "empty")


def _last_object(reply: Reply, key: str) -> tuple[dict[str, Any], str]:
    """The last JSON object of a reply that has the key, or nothing and why."""
    if reply.outcome != "ok":
        return {}, reply.reason or reply.outcome
    text, problem = visible(reply.text)
    having = [found for found in json_objects(text)[0] if key in found]
    return (having[-1], "") if having else ({}, problem or UNPARSED)


def _statement(value: Any) -> str:
    """A value as one line; empty where it is no text, or has nothing but blanks."""
    line = one_line(value) if isinstance(value, str) else ""
    return line if folded(line) else ""


def _number(value: Any) -> int | None:
    """`3`, `"3"` and `" 3 "` are 3."""
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"\s*\d{1,9}\s*", value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
