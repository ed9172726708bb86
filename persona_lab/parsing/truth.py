"""The verdict that a reply to a true-or-false or yes-or-no question states."""

from __future__ import annotations

import re

from persona_lab.parsing.json_reply import DIFFERING, json_value
from persona_lab.parsing.parsed import Parsed, folded, visible

_KEYS = ("answer", "verdict", "label", "final_answer", "result")
_WORDS = {
    "true": True, "yes": True, "correct": True, "right": True, "yep": True, "yeah": True,
    "false": False, "no": False, "incorrect": False, "wrong": False, "nope": False, "untrue": False,
    "wahr": True, "falsch": False, "ja": True, "nein": False,
}  # fmt: skip
_HAN = {
    "不是": False, "不对": False, "不正确": False, "错误": False, "错": False, "否": False,
    "不": False, "是错": False, "是错误": False, "是假": False,
    "是": True, "正确": True, "对": True, "是对": True, "是正确": True, "是真": True,
}  # fmt: skip
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_HAN_WORD = "|".join(sorted(_HAN, key=len, reverse=True))
_VERDICT = (
    r"(?P<not>not\s+(?:really\s+|quite\s+)?)?"
    rf"(?:\b(?P<word>{_WORD})\b|(?P<han>{_HAN_WORD})[的了]?(?![\u3400-\u9fff]))"
)
_ECHO = re.compile(
    r"\b(?:true\s*(?:or|/)\s*false|yes\s*(?:or|/)\s*no|false\s*(?:or|/)\s*true)\b\W*", re.I
)
_OTHERS = r"(?!\s*(?:/|or\b|and\s+(?:no|yes)\b|problem|worries|doubt|idea|matter|one\b))"
_OPEN = re.compile(r"^[\W_]*" + _VERDICT + _OTHERS, re.I)
_NOT = re.compile(
    r"^[\W_]*(?:absolutely |definitely |certainly |of course )?not\b"
    r"(?:\s+(?:really|quite|exactly|at all|necessarily))?[\W_]*(?:$|\n|[.,;!])",
    re.I,
)
_CUE = re.compile(
    r"(?:answer|antwort|verdict|答案|结论)(?:\s+(?:is|would be|seems to be|ist))?"
    r"[\s*_`:：=\"'(\[]*" + _VERDICT,
    re.I,
)
_PREDICATE = re.compile(
    r"(?:\bis|\bwas|'s|\bbe|\bstatement|\bsay|\bas)(?P<neg>n't)?\s+[\"'*_]*" + _VERDICT, re.I
)
_HEDGE = re.compile(
    r"(?:\b(?:not|n't|never|hardly)\s+(?:sure|certain|know|tell)|n't\s+(?:know|tell)|\bunsure"
    r"|\bwhether|\bif|not the case)\b[^.!?\n]*$",
    re.I,
)
_DOUBT = re.compile(r"(?:n't|\bnot|\bnever)\s+(?:think|believe|say|call)\b[^.!?\n]*$", re.I)


def parse_truth(text: str) -> Parsed[bool]:
    """Reads True or False; yes, no, correct, incorrect and their negations count.

    Returns:
        The verdict, or None with `empty`, `no_answer`, `ambiguous` or `truncated_reasoning`. A
        stated answer (`Answer: ...`) counts before the opening word, the last one wins.
    """
    text, problem = visible(text)
    if problem:
        return Parsed(None, problem)
    given, value = json_value(text, _KEYS)
    if value is DIFFERING:
        return Parsed(None, "ambiguous")
    if given:
        return Parsed(value) if isinstance(value, bool) else _stated(str(value))
    return _stated(text)


def _stated(text: str) -> Parsed[bool]:
    text = _ECHO.sub("", folded(text)).strip()
    if letter := re.fullmatch(r"[\W_]*([TF])[\W_]*", text):
        return Parsed(letter[1] == "T")
    cues = [m for m in _CUE.finditer(text) if not re.match(r"\s*(?:/|or\b)", text[m.end() :], re.I)]
    if cues:
        return Parsed(_value(cues[-1]))
    if opening := _OPEN.match(text):
        return _unless_taken_back(opening, text)
    if _NOT.match(text):
        return Parsed(False)
    verdicts = {
        _value(m) is not bool(_DOUBT.search(text[: m.start()]))
        for m in _PREDICATE.finditer(text)
        if not _HEDGE.search(text[: m.start()])
    }
    if len(verdicts) == 1:
        return Parsed(verdicts.pop())
    return Parsed(None, "ambiguous" if verdicts else "no_answer")


def _unless_taken_back(opening: re.Match[str], text: str) -> Parsed[bool]:
    """The opening verdict, unless another line is nothing but the opposite one."""
    alone = [m for line in text.split("\n")[1:] if (m := _OPEN.match(line)) and _bare(line, m)]
    return Parsed(_value(alone[-1] if alone else opening))


def _bare(line: str, match: re.Match[str]) -> bool:
    return not re.sub(r"[\W_]", "", line[match.end() :])


def _value(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    value = _WORDS[groups["word"].lower()] if groups["word"] else _HAN[groups["han"]]
    negations = bool(groups["not"]) + bool(groups.get("neg"))
    return value if negations % 2 == 0 else not value
