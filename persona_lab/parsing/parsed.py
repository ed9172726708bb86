"""What a parser returns, and the part of a reply that parsers may look at."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")
_QUOTES = str.maketrans("‘’“”。", "''\"\".")


@dataclass(frozen=True)
class Parsed(Generic[V]):
    """A value, or None with the reason why there is none.

    Attributes:
        reason: `empty`, `no_answer`, `ambiguous`, `truncated_reasoning`, `out_of_range`, ...
        flags: notes that do not change the value, such as `repaired` or `differing`.
    """

    value: V | None
    reason: str = ""
    flags: tuple[str, ...] = ()


def visible(text: str) -> tuple[str, str]:
    """The answer part of a reply, and the reason if there is none.

    What stands before a closing `</think>` is reasoning, with or without an opening tag; an
    opened block that never closes leaves nothing (`truncated_reasoning`).
    """
    if "</think>" in text:
        text = text.rsplit("</think>", 1)[1]
    elif re.match(r"\s*<think>", text):
        return "", "truncated_reasoning"
    text = text.strip()
    return (text, "") if text else ("", "empty")


def folded(text: str) -> str:
    """NFKC, so that full-width and circled letters and digits read as plain ones; plain quotes."""
    return unicodedata.normalize("NFKC", text).translate(_QUOTES)
