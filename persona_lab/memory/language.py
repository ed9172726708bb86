"""Is a fact written in the script that its user writes in?

Facts from a talk in another language tend to be stored in English, and names and exact words are
lost. A script is not a language, but it needs no model, and it shows the losses that hurt most.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache

from persona_lab.memory.records import Exchange

AT_HOME = 0.2
"""Share of a user message that a script needs for facts to be written in it: below it, it only
lends names, as Latin does in 我喜欢喝茶，叫我 Tom."""

_SCRIPTS = {
    "LATIN": "Latin",
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HIRAGANA": "Kana",
    "KATAKANA": "Kana",
    "KATAKANA-HIRAGANA": "Kana",
    "HANGUL": "Hangul",
    "CYRILLIC": "Cyrillic",
    "ARABIC": "Arabic",
    "DEVANAGARI": "Devanagari",
    "GREEK": "Greek",
}
_UNSPACED = ("Han", "Kana")


def foreign(text: str, exchange: Exchange) -> bool:
    """Whether a text is mainly in a script that the user hardly writes in.

    Han is at home beside Kana, since a short Japanese sentence can do without Kana. A user message
    without letters leaves the assistant's answer to compare with; without any, nothing is foreign.
    """
    written, home = scripts(text), scripts(exchange.user) or scripts(exchange.assistant)
    if not written or not home:
        return False
    main = max(written, key=lambda script: written[script])
    at_home = home[main] + (home["Kana"] if main == "Han" else 0)
    return at_home < AT_HOME * home.total()


def scripts(text: str) -> Counter[str]:
    """How often each script occurs: signs of Han and Kana, words of all others."""
    counts: Counter[str] = Counter()
    for word in text.split():
        letters = [_script(sign) for sign in word if sign.isalpha()]
        counts.update(script for script in letters if script in _UNSPACED)
        counts.update(dict.fromkeys((s for s in letters if s not in _UNSPACED), 1))
    return counts


@cache
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
    return _SCRIPTS.get(name.split(" ")[0], "other")
