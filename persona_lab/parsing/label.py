"""The label that a judge states, where one label may be the end of another.

BenchPreS's judge answers `{label: 'follow' | 'do_not_follow'}` (Figure 12), which is no JSON, so
that judges copy its bare key and single quotes. A label counts only where it is stated: as the
value of the key, or as the whole reply. Words such as `does not follow` are never read as one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from persona_lab.parsing.json_reply import DIFFERING, json_objects, unfinished
from persona_lab.parsing.parsed import Parsed, folded, visible

Statement = frozenset[str]
"""The labels that one statement names: one; none it can be read as; or several, as an echo does."""
_UNCLEAR: Statement = frozenset({"one", "another"})
_SEPARATOR = r"[ \t_\-‐\\]+"  # markdown writes do\_not\_follow
_MARKUP = r"[\s*`_]*"
_JOINED = r"(?:\s*[|/,&]\s*|(?:\s*,)?\s+(?:or|and)\s+|\s+[-–—]\s+)"
_FENCE = re.compile(r"```(?:json|text|plaintext)?", re.IGNORECASE)
_AFTER = (
    r"(?=[\s\"'*`_]*\Z|[ \t]*[\n,;)\]}]|[ \t]*[.!](?:[\s\"'*`)}]|\Z)"
    r"|\s+(?:\(|#|//|[-–—]\s|because\b))"
)
"""What may follow a stated label; any other word would change it, as in `follow up`."""
_STRING = re.compile(r"(?<=[{,:=\s])(['\"])(.*?)\1(?=\s*[,}:=])", re.DOTALL)


def parse_label(text: str, labels: Sequence[str], key: str = "label") -> Parsed[str]:
    """Reads one of the labels; its case, and space or hyphen for underscore, do not matter.

    JSON is read first, then what is nearly JSON (`{label: 'follow'}`, `**Label:** follow`), then
    a reply that is nothing but a label. The last statement wins, earlier different ones are
    flagged `differing`; `repaired` says that it stood in braces and was no JSON.

    Returns:
        A label as `labels` spells it, or None with `empty`, `no_answer`, `ambiguous`,
        `truncated` or `truncated_reasoning`.
    """
    text, problem = visible(text)
    if problem:
        return Parsed(None, problem)
    objects, repaired = json_objects(text)
    if not repaired:  # repair reads a key given twice as its last value
        values = [value for found in objects for value in _values(found, key.lower())]
        if values:
            return _last([_of_value(value, labels) for value in values])
    if unfinished(folded(text)):
        return Parsed(None, "truncated")
    if stated := list(_nearly_json(folded(_without_json(text)), labels, key)):
        in_braces = stated[-1][1]
        return _last([names for names, _ in stated], ("repaired",) if in_braces else ())
    return _last([_alone(_FENCE.sub("", folded(text)), labels)])


def _last(stated: list[Statement], flags: tuple[str, ...] = ()) -> Parsed[str]:
    last = stated[-1]
    if len(last) != 1:
        return Parsed(None, "ambiguous" if last else "no_answer")
    if any(names != last for names in stated if len(names) < 2):  # an echo differs from nothing
        flags = (*flags, "differing")
    return Parsed(next(iter(last)), "", flags)


def _values(found: dict[str, Any], key: str) -> Iterator[Any]:
    """The values of the key in an object, or in the objects within it."""
    if key in found:
        yield found[key]
        return
    for inner in found.values():
        if isinstance(inner, dict):
            yield from _values(inner, key)


def _of_value(value: Any, labels: Sequence[str]) -> Statement:
    if value is DIFFERING:
        return _UNCLEAR
    return _alone(folded(value), labels) if isinstance(value, str) else frozenset()


def _alone(text: str, labels: Sequence[str]) -> Statement:
    """The labels of a text that is nothing but labels."""
    bare = text.strip(" \t\r\n\"'*`_.")
    return _named(bare, labels) if re.fullmatch(_listed(labels), bare, re.I) else frozenset()


def _without_json(text: str) -> str:
    """The text with its valid JSON objects blanked: what their strings quote is not stated."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    while at >= 0:
        try:
            end = decoder.raw_decode(text, at)[1]
            text = f"{text[:at]}\n{text[end:]}"
        except (ValueError, RecursionError):
            pass
        at = text.find("{", at + 1)
    return text


def _nearly_json(text: str, labels: Sequence[str], key: str) -> Iterator[tuple[Statement, bool]]:
    """(labels, whether in braces) of each statement; two in one pair of braces are one."""
    for piece in re.split(r"(\{[^{}]*\})", text):
        in_braces = piece.startswith("{") and piece.endswith("}")
        stated = list(_keyed(_unquoting(piece) if in_braces else piece, labels, key, in_braces))
        if in_braces and len(set(stated)) > 1:
            yield _UNCLEAR, True
        else:
            yield from ((names, in_braces) for names in stated)


def _unquoting(braces: str) -> str:
    """What stands in braces, without its strings that quote a statement: they make none."""
    return _STRING.sub(lambda match: "''" if re.search("[:=]", match[2]) else match[0], braces)


def _keyed(text: str, labels: Sequence[str], key: str, in_braces: bool) -> Iterator[Statement]:
    """The value behind each key; what is no label counts where the key begins a line or member."""
    cue = rf"(?<![^\W_])(?<![^\W_][_-]){re.escape(key)}[\s\"'*`_]*[:=]"
    value = re.compile(rf"{_listed(labels)}{_AFTER}", re.IGNORECASE)
    for match in re.finditer(cue, text, re.IGNORECASE):
        before = text[: match.start()].rstrip(" \t\"'*`_" if in_braces else " \t\"'*`_#>-")
        begins = before[-1:] in (("{", ",", ";", "\n") if in_braces else ("", "\n"))
        named = value.match(text, match.end())
        if begins or (named and not in_braces):
            yield _named(named[0], labels) if named else frozenset()


def _listed(labels: Sequence[str]) -> str:
    """A pattern of one label or several joined ones, quoted or not, taken as a whole."""
    label = "(?>" + "|".join(map(_words, sorted(labels, key=len, reverse=True))) + ")"
    item = rf"{_MARKUP}(?:\"\s*{label}\s*\.?\s*\"|'\s*{label}\s*\.?\s*'|{label})[*`_]*"
    return rf"(?>{item}(?:{_JOINED}{item})*)"


def _named(listed: str, labels: Sequence[str]) -> Statement:
    """The labels in a text that is a list of them; the longest is tried first."""
    one = "|".join(map(_words, sorted(labels, key=len, reverse=True)))
    spelled = [match[0] for match in re.finditer(one, listed, re.IGNORECASE)]
    return frozenset(
        label for label in labels for s in spelled if re.fullmatch(_words(label), s, re.I)
    )


def _words(label: str) -> str:
    return _SEPARATOR.join(re.escape(word) for word in re.split(r"[\s_-]+", label))
