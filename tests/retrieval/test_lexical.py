from __future__ import annotations

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.retrieval.lexical import bm25, words

pytest.importorskip("bm25s")


def test_scores_by_hand() -> None:
    # N = 3, mean length (3 + 1 + 2) / 3 = 2. "tea" is in texts 0 (twice) and 1: df = 2,
    # idf = ln(1 + 1.5 / 2.5) = ln 1.6. With k1 = 1.5, b = 0.75:
    # text 0: tf 2, length 3: 2 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2)) = 2 / 4.0625
    # text 1: tf 1, length 1: 1 / (1 + 1.5 * (0.25 + 0.75 * 1 / 2)) = 1 / 1.9375
    hits = bm25("Tea!", ["green tea tea", "tea", "black coffee"], 5)
    assert [hit.position for hit in hits] == [1, 0]
    assert hits[0].score == pytest.approx(log(1.6) / 1.9375)
    assert hits[1].score == pytest.approx(log(1.6) * 2 / 4.0625)


def test_rare_words_count_more() -> None:
    texts = ["the hotel", "the beach", "the train", "the bus"]
    assert [hit.position for hit in bm25("the beach", texts, 2)] == [1, 0]


def test_texts_without_a_query_word_are_no_hits() -> None:
    assert [hit.position for hit in bm25("tea", ["coffee", "tea", "!?"], 5)] == [1]
    assert bm25("tea", ["coffee", "water"], 5) == []


@pytest.mark.parametrize(
    ("query", "texts"),
    [("tea", []), ("", ["tea"]), ("?!", ["tea"]), ("tea", ["", " "]), ("tea", ["…", "🦊"])],
)
def test_nothing_to_find(query: str, texts: list[str]) -> None:
    assert bm25(query, texts, 3) == []


def test_ties_by_position() -> None:
    assert [hit.position for hit in bm25("tea", ["x", "tea a", "tea b", "tea c"], 2)] == [1, 2]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("花生", "我对花生过敏，叫我小明"),
        ("ピーナッツ", "私はピーナッツが苦手です"),
        ("땅콩", "저는 땅콩 알레르기가 있어요"),
        ("มะพร้าว", "ฉันชอบมะพร้าวมาก"),
        ("मूंगफली", "मुझे मूंगफली से एलर्जी है"),
        ("ORÉGANO", "sans orégano"),
        ("ｔｅａ", "green TEA"),
        ("STRASSE", "die Straße"),
    ],
)
def test_words_of_many_scripts(query: str, text: str) -> None:
    assert [hit.position for hit in bm25(query, ["something else", text], 2)] == [1]


def test_words() -> None:
    assert words("It's 5 o'clock_sharp") == ("it", "s", "5", "o", "clock", "sharp")
    assert words("叫我小明 ok") == ("叫", "我", "小", "明", "ok")
    assert words("मूंगफली") == ("मूंगफली",)


def test_k_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="k=0: at least 1"):
        bm25("tea", ["tea"], 0)


_TEXT = st.lists(st.sampled_from(["tea", "hotel", "小", "?"]), max_size=5).map(" ".join)


@settings(deadline=None)  # the first example imports the library
@given(_TEXT, st.lists(_TEXT, max_size=8), st.integers(1, 9))
def test_hits_are_the_texts_that_share_a_word(query: str, texts: list[str], k: int) -> None:
    sharing = {i for i, text in enumerate(texts) if set(words(text)) & set(words(query))}
    everything = bm25(query, texts, len(texts) + 1)
    assert {hit.position for hit in everything} == sharing
    keys = [(-hit.score, hit.position) for hit in everything]
    assert keys == sorted(keys)
    assert bm25(query, texts, k) == everything[:k]
