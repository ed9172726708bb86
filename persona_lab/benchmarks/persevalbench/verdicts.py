"""What an evaluator's reply says: verdict, the subtype it names, its confidence (Prompts 10-12).

Only the three-way verdict counts; the subtype is stored and never scored (section 4). Nothing is
guessed: a reply without one of the three words has no verdict.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from persona_lab.core.prompt import Reply
from persona_lab.parsing.json_reply import json_objects
from persona_lab.parsing.label import parse_label
from persona_lab.parsing.parsed import Parsed, visible

Verdict = Literal["RIGHT", "UNDER_PERSONALIZED", "OVER_PERSONALIZED"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
RIGHT, UNDER, OVER = VERDICTS
_SHORT = {"UNDER": UNDER, "OVER": OVER}
"""What Prompt 12 itself calls them."""
_VALUE = re.compile(r'"verdict"\s*:\s*"\s*', re.IGNORECASE)
_NOT_A_LETTER = " \t\r\n\"'`:{},"
EXAMPLE_VERDICT = json.dumps(
    {
        "verdict": RIGHT,
        "subtypes": [],
        "confidence": 0.8,
        "reasoning": "It follows what applies here and leaves the rest out.",
    }
)
EXAMPLE_EVIDENCE = (
    "- The user wants it quiet (turn 3), current.\n- An earlier budget (turn 5), stale."
)


@dataclass(frozen=True)
class Judged:
    """A reply, read.

    Attributes:
        subtype: the primary one that it names; empty if none.
        confidence: in [0, 1], or None where it states none that can be read.
    """

    verdict: Parsed[str]
    subtype: str = ""
    confidence: float | None = None


def read_verdict(text: str) -> Judged:
    """Reads a reply to Prompts 10 to 12; subtype and confidence are those stated with the verdict
    that counts."""
    parsed = parse_label(text, [*VERDICTS, *_SHORT], key="verdict")
    stated = _stated(visible(text)[0])
    flags = parsed.flags
    if len({_named(o["verdict"]) for o in stated}) == 1:
        flags = tuple(flag for flag in flags if flag != "differing")
    if parsed.value in _SHORT:
        flags = (*flags, "short")
    value = None if parsed.value is None else _named(parsed.value)
    last = stated[-1] if stated else {}
    verdict = Parsed(value, parsed.reason, flags)
    return Judged(verdict, _subtype(last), _confidence(last))


def verdict_probabilities(reply: Reply) -> dict[str, float] | None:
    """The probability of each verdict where the reply begins to state the one that it is read as,
    if log-probabilities were asked for: those of the tokens that begin a verdict, normalised.

    Returns:
        RIGHT, UNDER_PERSONALIZED and OVER_PERSONALIZED -> probability; None where there are none,
        the place is not found, or what stands there is not the verdict that was read.
    """
    read = read_verdict(reply.text).verdict.value
    places = list(_VALUE.finditer(reply.text, reply.text.rfind("</think>") + 1))
    if read is None or not places or not reply.logprobs:
        return None
    start = places[-1].end()
    place = _token_at(reply, start)
    if place is None or _beginning(reply.text[start:]) != read:
        return None
    step, before = place
    mass: dict[str, float] = dict.fromkeys(VERDICTS, 0.0)
    for token, logprob in reply.logprobs[step]:
        rest = token.removeprefix(before) if token.startswith(before) else token
        begun = _spelt(rest.strip(_NOT_A_LETTER))
        found = [v for v in VERDICTS if begun and (v.startswith(begun) or begun.startswith(v))]
        if len(found) == 1:
            mass[found[0]] += math.exp(logprob)
    if not mass[read]:
        return None
    total = sum(mass.values())
    return {v: m / total for v, m in mass.items()}


def _beginning(text: str) -> str | None:
    """The verdict that a text begins with."""
    spelt = _spelt(text[:40].split('"', maxsplit=1)[0])
    return next((v for v in VERDICTS if spelt and (v == spelt or _SHORT.get(spelt) == v)), None)


def _stated(text: str) -> list[dict[str, Any]]:
    """JSON objects with a verdict, in order; of an object without one, those within it."""
    return [stated for outer in json_objects(text)[0] for stated in _with_verdict(outer)]


def _with_verdict(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    keyed = {str(key).strip().lower(): value for key, value in found.items()}
    if "verdict" in keyed:
        yield keyed
        return
    for inner in keyed.values():
        if isinstance(inner, dict):
            yield from _with_verdict(inner)


def _token_at(reply: Reply, place: int) -> tuple[int, str] | None:
    """The step whose token holds the character at a place of the text, and what of the token
    stands before it.

    Which candidate was drawn at a step is not kept: the path of candidates is sought that spells
    the text. Steps before it, such as reasoning, and behind it, such as an end token, are passed.
    """
    steps, text = reply.logprobs or (), reply.text
    came: list[dict[int, tuple[int, str]]] = []  # end -> (start, token), by step
    reached: set[int] = set()
    for candidates in steps:
        here: dict[int, tuple[int, str]] = {}
        for start in (*reached, 0):
            for token, _ in candidates:
                if token and text.startswith(token, start):
                    here.setdefault(start + len(token), (start, token))
        if any(not token for token, _ in candidates):  # a token without text keeps the place
            for start in reached:
                here.setdefault(start, (start, ""))
        came.append(here)
        reached = set(here)
    last = next((n for n in reversed(range(len(came))) if len(text) in came[n]), None)
    if last is None:
        return None
    end, step = len(text), last
    while True:
        start, token = came[step][end]
        if start <= place < end:
            return step, token[: place - start]
        if start == 0:
            return None
        end, step = start, step - 1


def _named(verdict: Any) -> Any:
    """A verdict by its whole name, however it is spelt; anything else as it is."""
    if not isinstance(verdict, str):
        return repr(verdict)
    spelt = _spelt(verdict)
    return _SHORT.get(spelt, spelt)


def _spelt(verdict: str) -> str:
    """In capitals, words joined by underscores; a trailing one stays, as a token may end there."""
    return re.sub(r"[\s_-]+", "_", verdict.strip().upper())


def _subtype(stated: Mapping[str, Any]) -> str:
    """The first subtype that is named."""
    named = stated.get("subtypes", stated.get("subtype"))
    if isinstance(named, list):
        named = next((item for item in named if isinstance(item, str)), "")
    return named.strip() if isinstance(named, str) else ""


def _confidence(stated: Mapping[str, Any]) -> float | None:
    value = _number(stated.get("confidence"))
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _number(stated: Any) -> float | None:
    if isinstance(stated, bool) or not isinstance(stated, int | float | str):
        return None
    try:
        value = float(stated)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
