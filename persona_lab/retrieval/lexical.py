"""BM25 over the words of a text: the retriever that needs no model.

Scores are bm25s' default, Lucene's form (Kamphuis et al. 2020): the sum over the query's words of
ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length)).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from persona_lab.retrieval.search import Hit

K1, B = 1.5, 0.75
# Chinese characters, kana, and the scripts of South-East Asia that put no space between words.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, case and width folded; scripts without spaces go character by character.

    A word is a run of letters, marks and digits: Python's own word class would tear Devanagari at
    its vowel signs.
    """
    spaced = _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", text).casefold())
    if not spaced.isascii():
        kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in spaced)
        return tuple("".join(kept).split())
    return tuple(re.findall(r"[a-z0-9]+", spaced))


def bm25(query: str, texts: Sequence[str], k: int) -> list[Hit]:
    """The k texts with the highest score, best first, ties by position.

    A text without any word of the query is no hit, so there may be fewer than k. A word that the
    query repeats counts as often.

    Raises:
        ValueError: k is below 1.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least 1 is needed")
    index = _indexed(tuple(texts))
    known = [word for word in words(query) if index is not None and word in index.vocab_dict]
    if not known:
        return []
    scores = index.get_scores(known).tolist()
    hits = [Hit(position, score) for position, score in enumerate(scores) if score > 0]
    return sorted(hits, key=lambda hit: (-hit.score, hit.position))[:k]


@lru_cache(maxsize=8)
def _indexed(texts: tuple[str, ...]) -> Any:
    """The index of one history, kept for its next query; None where there are no words at all."""
    import bm25s

    corpus = [list(words(text)) for text in texts]
    if not any(corpus):
        return None
    index = bm25s.BM25(k1=K1, b=B, method="lucene", dtype="float64", backend="numpy")
    index.index(corpus, show_progress=False)
    return index
