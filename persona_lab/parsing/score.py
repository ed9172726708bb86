"""A judge's score: an integer on a known scale, from JSON or from plain words."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from persona_lab.parsing.json_reply import DIFFERING, json_objects, unfinished
from persona_lab.parsing.parsed import Parsed, folded, visible

_NUMBER = r"(-?\d+(?:\.\d+)?)(?![\d%])"
_SCALE = re.compile(
    r"\(?\b(?:on a scale (?:of|from) )?\d\s*(?:-|–|—|to)\s*\d\b\)?|\(?\bout of \d+\)?",
    re.IGNORECASE,
)
_RATIO = re.compile(r"(?:" + _NUMBER + r"\s*)?(?:/|\bout of)\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_BETWEEN = r"(?:[^\w-]|-(?=\s))*"
_CUE = re.compile(
    r"(?:(?:\bscore|\brating|\[result\]|\bresult)"
    rf"{_BETWEEN}(?:(?:is|of|as|would be)\b{_BETWEEN})?"
    rf"|\b(?:give|rate|award|assign)\w*\s+(?:[a-z]+\s+){{0,4}}?){_NUMBER}(?!/)",
    re.IGNORECASE,
)
_RATING = re.compile(r"\brating\W{0,4}\[\[\s*(-?\d{1,9}(?:\.\d+)?)\s*\]\]", re.IGNORECASE)
_ALONE = re.compile(
    r"^[\s*_`\[\](){}\"'$]*" + _NUMBER + r"[\s*_`\[\](){}\"'$.]*(?:$|[-–—:(]\s*(?![\s\d]))"
)


def parse_score(text: str, low: int = 1, high: int = 5) -> Parsed[int]:
    """Reads a score in [low, high] from a reply; the key `Score` counts in any case.

    Returns:
        The score, or None with `empty`, `no_answer`, `truncated`, `truncated_reasoning`,
        `ambiguous`, `out_of_range`, `wrong_scale`, `not_an_integer` or `not_a_number`. The last
        stated score wins; earlier different ones are flagged `differing`.
    """
    text, problem = visible(text)
    if problem:
        return Parsed(None, problem)
    objects, flags = json_objects(text)
    stated = [o["score"] for o in objects if "score" in o]
    if stated:
        if any(value != stated[-1] for value in stated):
            flags = (*flags, "differing")
        return _checked(stated[-1], low, high, flags)
    if unfinished(text):
        return Parsed(None, "truncated")
    read = _from_words(folded(text), low, high)
    return replace(read, flags=(*read.flags, "repaired")) if "{" in text and read.value else read


def parse_rating(text: str, low: int = 1, high: int = 5) -> Parsed[int]:
    """Reads `Rating: [[X]]`, which a prompt asks for on the last line; the last one counts. A reply
    without one is read as `parse_score` reads it."""
    shown, problem = visible(text)
    rated = [] if problem else _RATING.findall(folded(shown))
    if not rated:
        return parse_score(text, low, high)
    flags = ("differing",) if len(set(map(float, rated))) > 1 else ()
    return _checked(float(rated[-1]), low, high, flags)


def _checked(value: Any, low: int, high: int, flags: tuple[str, ...]) -> Parsed[int]:
    if value is DIFFERING:
        return Parsed(None, "ambiguous", flags)
    if isinstance(value, str):
        read = _from_words(folded(value.strip()), low, high) if value.strip() else None
        return Parsed(read.value, read.reason, flags) if read else Parsed(None, "empty", flags)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Parsed(None, "not_a_number", flags)
    if isinstance(value, float) and not math.isfinite(value):
        return Parsed(None, "out_of_range", flags)
    if value != int(value):
        return Parsed(None, "not_an_integer", flags)
    if not low <= value <= high:
        return Parsed(None, "out_of_range", flags)
    return Parsed(int(value), "", flags)


def _from_words(text: str, low: int, high: int) -> Parsed[int]:
    ratios = list(_RATIO.finditer(text))
    if ratios and float(ratios[-1][2]) != high:
        return Parsed(None, "wrong_scale")
    stated = [ratio for ratio in ratios if ratio[1]]
    stated = stated or list(_CUE.finditer(_SCALE.sub(" ", text)))
    if stated:
        return _checked(float(stated[-1][1]), low, high, _differing(stated))
    if alone := _ALONE.match(text):
        return _checked(float(alone[1]), low, high, ())
    return Parsed(None, "no_answer")


def _differing(matches: list[re.Match[str]]) -> tuple[str, ...]:
    return ("differing",) if len({float(m[1]) for m in matches}) > 1 else ()
