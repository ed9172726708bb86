"""The words of data and messages: their stems, their content, and whether they state a preference.

A query is held against its preference by content words (Appendix F.1), users' messages in
expression types 3 and 4 against the words that state one (Appendix E.3.3).
"""

from __future__ import annotations

import re

_GRAMMAR = """
a an the this that these those some any each every all both no not nor none one ones other
i me my mine myself we us our ours you your yours he him his she her hers it its they them
their theirs himself herself themselves who whom whose which what when where why how there here
and or but so if because since as than then while until though although whether only just also
too very much many more most less least such own same rather even still ever never always
of in on at by for from to with without into onto over under about up down out off after before
between through during against per via near
be am is are was were been being do does did doing done have has had having can ca could will
wo would shall sha should may might must go goes going gone went get gets getting got let lets
make makes making made take takes taking took want wants wanted need needs needed
find finds finding found look looks looking looked feel feels feeling felt
prefer prefers preferring like likes liking dislike dislikes disliking love loves loving
hate hates hating enjoy enjoys enjoying avoid avoids avoiding
"""
STOP_WORDS = frozenset(_GRAMMAR.split())
"""Words without content: grammar, light verbs, and the verbs that frame a preference (Table 1)."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CONTRACTED = re.compile(r"(?:n't|'[a-z]{1,2})$")
_CUT = re.compile(r"(.*[aeiouy].*)(?:ing|(?<!e)ed)")
_SHORT = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")

_LIKING = "like|love|hate|enjoy|adore|detest|loathe|despise"
_BETWEEN = (
    "do|did|don't|didn't|not|never|neither|always|often|just|still|also|both|all|so|quite|rather|"
    "much|even|have|had|haven't|would|wouldn't|used to|tend to|come to|came to|grown to|grew to|"
    r"learned to|learnt to|kind of|sort of|\w+ly"
)
_NAMED = re.compile(r"\b(?:prefer|dislik|favou?rite)\w*", re.I)
_STATED = re.compile(
    r"(?P<asked>\b(?:if|whether|would|will|might|could|wh\w+ever) )?"
    rf"\b(?:i|we)\b(?P<between>(?:'ve|'d)?(?:,? (?:{_BETWEEN}))*)(?: |, (?!like\b))"
    rf"(?P<verb>(?:{_LIKING})(?:d|ed)?)\b(?P<idea> (?:the|your|that|this) (?:idea|thought)\b)?",
    re.I,
)
_BARE = re.compile(
    rf"(?:^|[.!?:;—] ?)(?:(?:just|\w+ly),? )?(?:(?:{_LIKING})e?d\b|"
    r"(?:love|hate|enjoy|adore) (?:it|that|this|these|those|the|how|my)\b(?! idea| thought))|"
    rf"\b(?:i|we)\b[^.!?:;]* (?:and|but) (?:\w+ly )?(?:{_LIKING})e?d\b",
    re.I,
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, curly apostrophes straightened."""
    return _WORD.findall(_straight(text).lower())


def stem(word: str) -> str:
    """A lower-case word without plural s, -ed, -ing and -ly: `plans`, `planned` -> `plan`.

    A short consonant-vowel-consonant keeps or regains its e (`taking` -> `take`, so that `plane`
    is not `plan`); elsewhere a final e goes (`dance`, `dancing` -> `danc`), a final ie is y, and
    a final double consonant is single. Irregular forms and other endings stay as they are.
    """
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "siu":
        word = word[:-1]
    if word.endswith("ied"):
        word = word[:-1]
    elif cut := _CUT.fullmatch(word):
        word = cut[1] + ("e" if _SHORT.fullmatch(cut[1]) else "")
    word = re.sub(r"(?<=....)ly$", "", re.sub(r"ie$", "y", word))
    if len(word) > 3 and word[-1] == "e" and not _SHORT.fullmatch(word[:-1]):
        word = word[:-1]
    return re.sub(r"([^aeiou])\1$", r"\1", word)


def content_words(text: str) -> dict[str, str]:
    """Stem -> first spelling, of all words but STOP_WORDS; endings like 's and n't are dropped."""
    found: dict[str, str] = {}
    for word in (_CONTRACTED.sub("", w) for w in words(text)):
        if word not in STOP_WORDS:
            found.setdefault(stem(word), word)
    return found


def stated_preference(message: str) -> str | None:
    """The first words of a user message that state a preference, with some that follow.

    `prefer`, `dislike` and `favourite` do so in every form, verbs of liking after `I` or `we` or
    at the head of a sentence ("Loved it."). `like` as a preposition, "I like the idea", requests
    ("I'd like some tips") and open questions ("if I like it") do not.
    """
    text = " ".join(_straight(message).split())
    found = [*_NAMED.finditer(text), *_BARE.finditer(text)]
    found += [match for match in _STATED.finditer(text) if _states(match)]
    if not found:
        return None
    first = min(found, key=lambda match: match.start())
    return text[first.start() : max(first.end(), first.start() + 60)].lstrip(".!?:;— ")


def _states(match: re.Match[str]) -> bool:
    between, verb = match["between"].lower(), match["verb"].lower()
    if match["asked"]:
        return False
    if re.search(r"n't|\b(?:not|never|neither)\b", between):
        return True
    requested = verb in ("like", "love") and ("'d" in between or "would" in between)
    welcomed = match["idea"] and verb.startswith(("like", "love"))
    return not (requested or welcomed)


def _straight(text: str) -> str:
    return text.replace("’", "'").replace("‘", "'")
