"""Whether a text mentions a nickname: BenchPreS's exact string matching, made precise.

The paper matches nicknames by string. A plain substring finds Jo in John, and the usual word
boundary fails for names in Chinese, emoji and names that end in punctuation. The rule here, whose
name is stored with every result, matches case-sensitively in normalised text, and a match ends
where a written sign and, in scripts with spaces, a word ends.
"""

from __future__ import annotations

import re
import unicodedata

RULE = "nfc-case-word-1"

_QUOTES = str.maketrans(dict.fromkeys("‘’‚‛ʼ", "'") | dict.fromkeys("“”„‟", '"'))
_INVISIBLE = re.compile("[\u200b\u200c\u2060\ufeff\u00ad\ufe0e\ufe0f]")
_ZWJ = "\u200d"
_EMOJI = "[\u2190-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
"""Where the parts of joined emoji are; flag letters, which are never joined, are left out."""
_LOOSE_ZWJ = re.compile(f"(?<!{_EMOJI}){_ZWJ}|{_ZWJ}(?!{_EMOJI})")
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]")
_BLANK = "\u2800\u115f\u1160\u3164\uffa0"
"""The empty Braille cell and Hangul's fillers: letters and signs by category, yet blank."""
_STACKERS = "\u1039\u17d2"
"""Myanmar's and Khmer's signs that put the next consonant below the one before."""
_EXTENDERS = re.compile(
    "[\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # joined emoji, skin tones, flag tags
    "\u0e33\u0eb3\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7ff]"  # am, half-width voicing, Hangul parts
)
_UNSPACED = {
    "CJK", "IDEOGRAPHIC", "HIRAGANA", "HENTAIGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL",
    "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN",
}  # fmt: skip


def mentions(name: str, text: str) -> bool:
    """Whether the text mentions the name.

    A letter, mark or digit beside the name continues the word, so Jo is not in John nor R2 in
    R2D2. It does not if it, or the edge of the name, is of a script written without spaces; nor
    in Hangul, where particles are joined to names. There a name is also found inside a longer
    one, since only a dictionary could tell. Punctuation is an edge, and so are the underscores
    and asterisks of markdown: Ann is found in Mary-Ann.

    A name that begins or ends in punctuation keeps this rule: C++ is not in C++11 nor J. in J.R.,
    which are other names as R2D2 is. An emoji is no part of a word, whatever stands beside it.

    Raises:
        ValueError: the name has no visible character.
    """
    if not visible_name(name):
        raise ValueError("a nickname without a visible character cannot be searched for; give one")
    name, text = normalized(name), normalized(text)
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if not (
            _inside_a_sign(text, start)
            or _inside_a_sign(text, end)
            or _continues(name[0], _last_base(text, start))
            or _continues(_last_base(name, len(name)), text[end : end + 1])
        ):
            return True
        start = text.find(name, start + 1)
    return False


def visible_name(name: str) -> bool:
    """Whether a name has a sign that can be seen: no blanks, fillers and format characters only."""
    return any(
        character not in _BLANK and unicodedata.category(character)[0] not in "CZ"
        for character in normalized(name)
    )


def normalized(text: str) -> str:
    """The form in which names are compared.

    NFC; the selectors between an emoji and its text form, and zero-width characters, dropped
    (a zero-width joiner stays inside a joined emoji); quotes straight; white space one space.
    """
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    text = unicodedata.normalize("NFC", _LOOSE_ZWJ.sub("", text))
    return " ".join(text.translate(_QUOTES).split())


def _inside_a_sign(text: str, at: int) -> bool:
    """Whether a place lies within one written sign, such as a joined emoji or a flag."""
    if at in (0, len(text)) or " " in text[at - 1 : at + 1]:
        return False
    if text[at - 1] in _ZWJ + _STACKERS or _EXTENDERS.match(text, at) or _is_mark(text[at]):
        return True
    if not _FLAG_LETTER.match(text, at):
        return False
    first = at
    while first and _FLAG_LETTER.match(text, first - 1):
        first -= 1
    return (at - first) % 2 == 1  # they pair up from the left


def _continues(edge: str, neighbour: str) -> bool:
    """Whether the character beside a name makes a longer word of it; "" at an end of the text."""
    if not _is_word(neighbour) or not (_is_word(edge) or _is_punctuation(edge)):
        return False
    return _script(edge) not in _UNSPACED and _script(neighbour) not in _UNSPACED


def _last_base(text: str, end: int) -> str:
    """The last character before a place that is no mark; the mark if there is none; "" at 0."""
    at = end - 1
    while at > 0 and unicodedata.category(text[at]) in ("Mn", "Mc"):
        at -= 1
    return text[at] if end else ""


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _is_word(character: str) -> bool:
    """A letter, mark or digit; an enclosing mark is none, it makes a sign of its own."""
    return bool(character) and re.match("[LN]|M[nc]", unicodedata.category(character)) is not None


def _is_punctuation(character: str) -> bool:
    """Punctuation, or a mathematical or currency sign, such as the end of C++."""
    return re.match("P|S[mc]", unicodedata.category(character)) is not None


def _script(character: str) -> str:
    words = unicodedata.name(character, "").split() or [""]
    return words[1] if words[0] in ("HALFWIDTH", "FULLWIDTH") else words[0]
