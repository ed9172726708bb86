"""What an evaluator's reply says: verdict, the subtype it names, its confidence (Prompts 10-12).

Only the three-way verdict counts; the subtype is stored and never scored (section 4). Nothing is
guessed: a reply without one of the three words has no verdict.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from persona_lab.core.prompt import Reply
from persona_lab.parsing.json_reply import json_value
from persona_lab.parsing.label import parse_label
from persona_lab.parsing.parsed import Parsed, visible

Verdict = Literal["RIGHT", "UNDER_PERSONALIZED", "OVER_PERSONALIZED"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
RIGHT, UNDER, OVER = VERDICTS
_SHORT = {"UNDER": UNDER, "OVER": OVER}
"""What Prompt 12 itself calls them."""
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
    """Reads a reply to Prompts 10 to 12."""
    parsed = parse_label(text, [*VERDICTS, *_SHORT], key="verdict")
    if parsed.value in _SHORT:
        parsed = Parsed(_SHORT[parsed.value], parsed.reason, (*parsed.flags, "short"))
    shown, _ = visible(text)
    return Judged(parsed, _subtype(shown), _confidence(shown))


def verdict_probabilities(reply: Reply) -> dict[str, float] | None:
    """The probability of each verdict where the reply begins to state it, if log-probabilities
    were asked for and the place is found: those of the tokens that begin a verdict, normalised.

    Returns:
        RIGHT, UNDER_PERSONALIZED and OVER_PERSONALIZED -> probability; None without them.
    """
    if not reply.logprobs:
        return None
    at = reply.text.rfind('"verdict"')
    if at < 0:
        return None
    start = reply.text.find('"', at + len('"verdict"')) + 1
    place = _token_at(reply, start)
    if not start or place is None:
        return None
    step, skipped = place
    mass = dict.fromkeys(VERDICTS, 0.0)
    for token, logprob in reply.logprobs[step]:
        begun = token[skipped:].strip().strip('"')
        found = [v for v in VERDICTS if begun and (v.startswith(begun) or begun.startswith(v))]
        if len(found) == 1:
            mass[found[0]] += math.exp(logprob)
    total = sum(mass.values())
    return {v: m / total for v, m in mass.items()} if total > 0 else None


def _token_at(reply: Reply, place: int) -> tuple[int, int] | None:
    """The token that holds the character at a place of the text, and where in it that stands."""
    done = 0
    for step, candidates in enumerate(reply.logprobs or ()):
        texts = [t for t, _ in candidates if t and reply.text.startswith(t, done)]
        if not texts:
            return None
        token = max(texts, key=len) if len(texts) > 1 else texts[0]
        if done + len(token) > place:
            return step, place - done
        done += len(token)
    return None


def _subtype(text: str) -> str:
    """The first subtype that the last JSON object names."""
    there, named = json_value(text, ["subtypes", "subtype"])
    if isinstance(named, list):
        named = next((item for item in named if isinstance(item, str)), "")
    return named.strip() if there and isinstance(named, str) else ""


def _confidence(text: str) -> float | None:
    there, stated = json_value(text, ["confidence"])
    value = _number(stated) if there else None
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _number(stated: Any) -> float | None:
    if isinstance(stated, bool) or not isinstance(stated, int | float | str):
        return None
    try:
        value = float(stated)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
