"""An appropriateness filter: which statements of a memory suit the reader of what is to be written,
and its purpose?

What is similar to a request need not suit its reader, so the model that writes is asked first,
once, about numbered statements; only those that it names go on. A sub-flow for any benchmark, in
this project's own words: no paper prints such a question. The model is the one under test, so that
no schema constrains its reply; one that cannot be read chooses nothing and rejects nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from persona_lab.core.flow import Flow
from persona_lab.core.prompt import Prompt, Reply, Request
from persona_lab.core.scores import ScoreOutcome
from persona_lab.parsing.json_reply import DIFFERING, json_objects, unfinished
from persona_lab.parsing.parsed import Parsed, folded, visible

KEY = "suitable"
QUESTION = """\
A text is to be written for a user. A memory of this user holds statements: facts about the user, \
and how the user likes texts to be. Which of them suit this text? A statement suits it if whoever \
reads the text would find its use fitting and if it helps the purpose. What the reader would find \
out of place, or has no need of, does not suit, however much the user likes it.

What is asked for: {request}

Statements:
{statements}

Which of these statements suit? Reply with their numbers as a JSON object and nothing else: \
{{"suitable": [NUMBERS]}}. If none suits, the list is empty."""
"""What all questions share, what those of one request share, the statements; the form of the reply
stands last, since small models otherwise go on with the list."""
_STATED = re.compile(rf"""(?:["']{KEY}["']|\{{\s*{KEY})\s*:""", re.IGNORECASE)


@dataclass(frozen=True)
class Suitable:
    """What the filter chose.

    Attributes:
        positions: 0-based, of the statements that suit, in their order; None: there is no choice.
        outcome, reason: why there is none, such as `unparsed` and `out_of_range`.
    """

    positions: tuple[int, ...] | None
    outcome: ScoreOutcome = "ok"
    reason: str = ""


def question(statements: Sequence[str], request: str) -> Prompt:
    """Asks which of the statements, numbered from 1 and one a line, suit what is asked for."""
    listed = (f"{n}. {' '.join(text.split())}" for n, text in enumerate(statements, 1))
    return Prompt.ask(QUESTION.format(request=request, statements="\n".join(listed)))


def suitable(
    statements: Sequence[str], request: str, ask: Callable[[Prompt, str], Request]
) -> Flow[Suitable]:
    """The statements that the model finds suitable; without any, nothing is asked.

    Args:
        request: who is to read the text and what it is for, as the model will be asked for it.
        ask: makes the request of a prompt and an example of its reply.
    """
    if not statements:
        return Suitable(())
    example = json.dumps({KEY: list(range(1, len(statements) + 1))})
    replies: list[Reply] = yield [ask(question(statements, request), example)]
    reply = replies[0]
    if reply.outcome != "ok":
        return Suitable(None, reply.outcome, reply.reason)
    parsed = parse_suitable(reply.text, len(statements))
    if parsed.value is None:
        cut = parsed.reason.startswith("truncated")
        return Suitable(None, "truncated" if cut else "unparsed", parsed.reason)
    return Suitable(tuple(sorted(number - 1 for number in parsed.value)))


def parse_suitable(text: str, count: int) -> Parsed[list[int]]:
    """Reads `{"suitable": [1, 4]}`, bare, fenced or between other words; the last one wins. What
    stands behind it and could be another statement that cannot be read leaves no answer.

    A list that names anything but statements, or one of them twice, is no answer as a whole.

    Args:
        count: of the statements; their numbers are 1 to `count`.

    Returns:
        The numbers as they stand, or None with `empty`, `no_answer`, `truncated`,
        `truncated_reasoning`, `ambiguous`, `not_a_list`, `not_a_number`, `not_an_integer`,
        `out_of_range` or `named_twice`. Earlier different lists are flagged `differing`.
    """
    text, problem = visible(text)
    if problem:
        return Parsed(None, problem)
    objects, flags = json_objects(text)
    stated = [found[KEY] for found in objects if KEY in found]
    if not stated or _stated_later(text, repaired=bool(flags)):
        return Parsed(None, "truncated" if unfinished(text) else "no_answer")
    if any(value != stated[-1] for value in stated):
        flags = (*flags, "differing")
    return _checked(stated[-1], count, flags)


def _stated_later(text: str, *, repaired: bool) -> bool:
    """Whether another statement stands behind the last one that could be read, such as one that is
    cut off; where JSON had to be repaired, the one that was is among those counted."""
    decoder, end, at = json.JSONDecoder(strict=False), 0, text.find("{")
    while at >= 0:
        try:
            end = decoder.raw_decode(text, at)[1]
            at = text.find("{", end)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
    return len(_STATED.findall(text[end:])) > repaired


def _checked(value: Any, count: int, flags: tuple[str, ...]) -> Parsed[list[int]]:
    if value is DIFFERING:
        return Parsed(None, "ambiguous", flags)
    if not isinstance(value, list):
        return Parsed(None, "not_a_list", flags)
    numbers = list[int]()
    for item in value:
        number = _number(item)
        if isinstance(number, str):
            return Parsed(None, number, flags)
        if not 1 <= number <= count:
            return Parsed(None, "out_of_range", flags)
        numbers.append(number)
    if len(set(numbers)) < len(numbers):
        return Parsed(None, "named_twice", flags)
    return Parsed(numbers, "", flags)


def _number(item: Any) -> int | str:
    """A number of a statement, also as text (`"4"`) or as 4.0; else why it is none."""
    if isinstance(item, str):
        digits = folded(item).strip()
        return int(digits) if re.fullmatch(r"[0-9]{1,9}", digits) else "not_a_number"
    if isinstance(item, bool) or not isinstance(item, int | float):
        return "not_a_number"
    if isinstance(item, int):
        return item  # of any size, unlike what a float can hold
    if not math.isfinite(item):
        return "out_of_range"
    return int(item) if item == int(item) else "not_an_integer"
