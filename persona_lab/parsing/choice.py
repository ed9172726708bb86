"""The letter that a reply to a multiple-choice question states.

A letter counts only where it is stated: after a cue (`the answer is`, `option`, `答案`), as an
answer tag, as a boxed or lone letter, or as the label that the reply begins with. Letters inside
words, the article "a" and the pronoun "I" never count. The last stated answer wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from persona_lab.parsing.json_reply import DIFFERING, json_value
from persona_lab.parsing.parsed import Parsed, folded, visible

_KEYS = ("answer", "choice", "option", "letter", "final_answer")
_SPACE = r"[\s*_`$(\[{\"'<:=【]*"
_WRAP = rf"{_SPACE}(?:\\(?:boxed|text|mathbf)\{{)?{_SPACE}"
_LATIN = r"A-Za-zÀ-ɏͰ-ӿ0-9_'"
_AFTER = rf"(?![{_LATIN}])"
_NAMED = r"(?:option|choice|letter|选项)"
_STRONG = (
    r"(?:answer|antwort|choice|答案|答え|正解|正答|정답|réponse|respuesta|risposta|ответ)s?\W*"
    r"(?:(?:is|was|seems to be|would be|should be|must be|ist|est|es|为|是|应该是)\b|[为是は는])?"
    rf"(?:\s*{_NAMED}\b)?"
    r"|\b(?:choose|pick|select|recommend|suggest|say|go with|going with)(?:\s+is)?"
    rf"(?:\s+{_NAMED})?"
    r"|选择?(?!项)"
    rf"|\b(?:it|that)(?:'s| is| would be)(?:\s+{_NAMED})?"
    r"|\\boxed\{|<answer>"
)
_WEAK = rf"{_NAMED}(?:\s+(?:is|would be|should be)\b|是|为)?"
_BEHIND = r"\)?(?:\s+is\s+(?:the\s+)?(?:correct|right|best|better)\b|\s*选项)"
"""What may follow a letter and states it."""
_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnever|\bavoid|\brule out|\binstead of|\bover|\bthan|不)\s*$", re.IGNORECASE
)
_REJECTED = re.compile(
    r"^[\s*_)\]}\"']*(?:is|was|seems|looks|are)?\s*(?:not|n't|wrong|incorrect|false|out\b|bad|不)",
    re.IGNORECASE,
)
_CONNECTIVE = r"(?:because|since|as|for|which|and|or|but|is|was|due|given|based|with)\b"


def parse_choice(
    text: str, labels: str = "ABCD", options: Mapping[str, str] | None = None
) -> Parsed[str]:
    """Reads the chosen label.

    Args:
        text: the reply.
        labels: the labels on offer, such as `ABCD`.
        options: label -> option text; a reply that is nothing but one option's text chooses it.

    Returns:
        A label, or None with `empty`, `no_answer`, `ambiguous` or `truncated_reasoning`.
    """
    text, problem = visible(text)
    if problem:
        return Parsed(None, problem)
    given, value = json_value(text, _KEYS)
    if value is DIFFERING:
        return Parsed(None, "ambiguous")
    if given:
        return _stated(folded(value).strip() if isinstance(value, str) else "", labels, options)
    return _stated(folded(text), labels, options)


def _stated(text: str, labels: str, options: Mapping[str, str] | None) -> Parsed[str]:
    strong = [*_cued(text, labels, _STRONG), *_called_best(text, labels), *_lone(text, labels)]
    if strong:
        return _one(max(strong, key=lambda statement: statement[0])[1])
    weak = _cued(text, labels, _WEAK)
    if weak:
        return _one(set().union(*(letters for _, letters in weak)))
    if options and (named := [k for k, option in options.items() if _same(text, option)]):
        return _one(set(named))
    return Parsed(None, "ambiguous" if _labels_of_lines(text, labels) else "no_answer")


def _one(letters: set[str]) -> Parsed[str]:
    if len(letters) == 1:
        return Parsed(next(iter(letters)))
    return Parsed(None, "ambiguous")


def _cued(text: str, labels: str, cue: str) -> list[tuple[int, set[str]]]:
    """(position, letters) of every statement behind a cue; rejected letters do not count."""
    letter = f"([{labels}{labels.lower()}])"
    found = []
    for match in re.finditer(f"(?:{cue}){_WRAP}{letter}{_AFTER}", text, re.IGNORECASE):
        if _NEGATED.search(text[: match.start()]) or not _is_label(text, match, labels):
            continue
        if _REJECTED.match(text[match.end() :]):
            continue
        found.append((match.start(1), {match[1].upper(), *_more(text[match.end() :], labels)}))
    return found


def _called_best(text: str, labels: str) -> list[tuple[int, set[str]]]:
    """Letters that are called right by what follows them: `B is correct`, `B选项`."""
    pattern = re.compile(rf"(?<![{_LATIN}])\(?([{labels}])(?={_BEHIND})")
    return [
        (match.start(1), {match[1]})
        for match in pattern.finditer(text)
        if not _NEGATED.search(text[: match.start()])
    ]


def _is_label(text: str, match: re.Match[str], labels: str) -> bool:
    """Not an article or a pronoun: what follows is no plain word."""
    rest = text[match.end() :]
    if not re.match(r"[ \t]+[A-Za-z]", rest):
        return True
    if match[1] not in labels:
        return False  # a lower-case letter before a word
    if match[1] not in "AI" or re.search(_NAMED + r"\s*$", text[: match.start(1)], re.IGNORECASE):
        return True
    return re.match(r"[ \t]+" + _CONNECTIVE, rest, re.IGNORECASE) is not None


def _more(rest: str, labels: str) -> set[str]:
    """Further letters joined to a stated one: `A/B`, `A or B`, `A, B and C`."""
    more = set()
    joined = re.compile(
        rf"[\s*_)\].]*(?:/|,|&|\bor\b|\band\b|\bund\b|或|和)\s*(?:option\s+)?[*_(\[]*([{labels}]){_AFTER}"
        r"(?!\s+(?:is|was|are)\b)"
    )
    while match := joined.match(rest):
        more.add(match[1].upper())
        rest = rest[match.end() :]
    return more


def _lone(text: str, labels: str) -> list[tuple[int, set[str]]]:
    """Lines that are nothing but letters, and the one label that labelled lines begin with."""
    found = []
    at = 0
    for line in text.split("\n"):
        bare = re.sub(r"[\s*_`$()\[\]{}\"'.:,;!#<>\\•【】-]|boxed|text", "", line)
        if re.fullmatch(rf"[{labels}{labels.lower()}](?:/[{labels}{labels.lower()}])*", bare):
            found.append((at, set(bare.upper().replace("/", ""))))
        at += len(line) + 1
    labelled = _labels_of_lines(text, labels)
    if len(labelled) == 1 and not found:
        found.append((0, labelled))
    if opening := re.match(rf"[\s*_(]*([{labels}])[)*_]*[,;]?\s+(?:because|since|is)\b", text):
        found.append((0, {opening[1]}))
    return found


def _labels_of_lines(text: str, labels: str) -> set[str]:
    pattern = rf"^[\s*_(\[#>-]*([{labels}])[*_]*(?:\s*[.):\]]+|\s+[-–—])[*_]*{_AFTER}"
    return {match[1] for match in re.finditer(pattern, text, re.MULTILINE)}


def _same(reply: str, option: str) -> bool:
    def bare(text: str) -> str:
        return re.sub(r"[\W_]+", " ", text.casefold()).strip()

    return bool(bare(option)) and bare(reply) == bare(folded(option))
