"""The text of a statement: broken characters mended, one line, and when two say the same."""

from __future__ import annotations

import unicodedata

_FULL_STOPS = ".。．｡।۔ "


def mended(text: str) -> str:
    """Half of a surrogate pair, which a broken escape leaves behind, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str) -> str:
    """A mended text in one line, blanks collapsed, as one item of a list has to be."""
    return " ".join(mended(text).split())


def folded(text: str) -> str:
    """Equal for texts that differ in case, blanks or a final full stop only; empty for blanks."""
    return one_line(unicodedata.normalize("NFC", text)).casefold().rstrip(_FULL_STOPS)
