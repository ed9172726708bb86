"""JSON objects inside a reply: bare, fenced, or between other words."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from typing import Any

_TRAILING_COMMA = re.compile(r",\s*([}\]])")


class Differing:
    """Stands where one object gives a key twice with different values."""


DIFFERING = Differing()


def json_objects(text: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """All JSON objects of a text, keys in lower case, in order, and flags.

    The text is parsed as it is first. Repair (trailing commas, Python quotes) is tried only if
    nothing parsed, and flagged `repaired`. NaN and infinity become None.
    """
    if found := _scan(text):
        return found, ()
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        body = _TRAILING_COMMA.sub(r"\1", text[start : end + 1])
        if found := _scan(body):
            return found, ("repaired",)
        try:
            literal = ast.literal_eval(body)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return [], ()
        if isinstance(literal, dict):
            return [{str(k).strip().lower(): v for k, v in literal.items()}], ("repaired",)
    return [], ()


def json_value(text: str, keys: Sequence[str]) -> tuple[bool, Any]:
    """Whether an object of the text has one of the keys, and the value in the last that does."""
    for found in reversed(json_objects(text)[0]):
        for key in keys:
            if key in found:
                return True, found[key]
    return False, None


def unfinished(text: str) -> bool:
    """Whether the text opens a JSON object that it does not close."""
    return text.count("{") > text.count("}")


def _scan(text: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_constant=lambda name: None, strict=False
    )
    found, at = [], text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            found.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().lower()
        made[name] = DIFFERING if name in made and made[name] != value else value
    return made
