"""Tokenising a prompt piece by piece, so that a shared history costs about one tokenisation.

Text between added tokens tokenises independently in fast tokenizers: each distinct piece is
encoded once and remembered. The first prompts of a model are checked against the plain path; if
they differ, everything is encoded whole from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_CHECKED_PROMPTS = 8
_MOST_CHARACTERS = 200_000_000


class PieceEncoder:
    """Encodes text without adding special tokens.

    Args:
        tokenizer: a tokenizer of transformers.

    Attributes:
        in_pieces: whether pieces are (still) found to tokenise alone.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.in_pieces = bool(getattr(tokenizer, "is_fast", False))
        self._cuts = any_of(str(token) for token in tokenizer.added_tokens_decoder.values())
        self._known: dict[str, list[int]] = {}
        self._characters = 0
        self._to_check = _CHECKED_PROMPTS

    def __call__(self, text: str) -> list[int]:
        """Token ids of a text, [T]."""
        if not self.in_pieces:
            return self.whole(text)
        ids = [i for piece in self._split(text) for i in self._piece(piece)]
        if self._to_check > 0:
            self._to_check -= 1
            whole = self.whole(text)
            if whole != ids:
                self.in_pieces, self._known = False, {}
            return whole
        return ids

    def whole(self, text: str) -> list[int]:
        """Token ids by the plain path."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _split(self, text: str) -> list[str]:
        parts, at = [], 0
        for match in self._cuts.finditer(text):
            parts += [text[at : match.start()], match[0]]
            at = match.end()
        return [part for part in [*parts, text[at:]] if part]

    def _piece(self, piece: str) -> list[int]:
        if piece not in self._known:
            self._characters += len(piece)
            if self._characters > _MOST_CHARACTERS:
                self._known, self._characters = {}, len(piece)
            self._known[piece] = self.whole(piece)
        return self._known[piece]


def any_of(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the words, longest first; matches nothing when there are none."""
    ordered = sorted(filter(None, words), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
