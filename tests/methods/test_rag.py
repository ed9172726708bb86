from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.flow import Encode, Flow
from persona_lab.methods.rag import encoder_of, retrieve
from persona_lab.retrieval.search import Hit

pytest.importorskip("faiss")
pytest.importorskip("bm25s")

VECTORS = {
    "tea?": [1.0, 0.0, 0.0, 0.0],
    "tea": [0.6, 0.8, 0.0, 0.0],
    "coffee": [0.0, 1.0, 0.0, 0.0],
    "green leaves": [0.8, 0.6, 0.0, 0.0],
}
TEXTS = ["coffee", "tea", "green leaves"]


def driven(flow: Flow[list[Hit]]) -> tuple[list[Hit], list[str]]:
    """What a flow returns, and the encoders that it asked."""
    asked, sent = [], None
    try:
        while True:
            wanted: Any = flow.send(sent)
            assert isinstance(wanted, Encode)
            asked.append(wanted.encoder)
            sent = np.array([VECTORS[text] for text in wanted.texts], dtype=np.float32)
    except StopIteration as finished:
        return finished.value, asked


def found(*args: Any, **given: Any) -> list[Hit]:
    return driven(retrieve(*args, **given))[0]


def test_an_encoder_ranks_by_cosine() -> None:
    hits, asked = driven(retrieve("minilm", "tea?", TEXTS, 9))
    assert [hit.position for hit in hits] == [2, 1, 0]
    assert [hit.score for hit in hits] == pytest.approx([0.8, 0.6, 0.0])
    assert asked == ["minilm"]


def test_bm25_finds_the_word() -> None:
    hits, asked = driven(retrieve("bm25", "tea?", TEXTS, 9))
    assert ([hit.position for hit in hits], asked) == ([1], [])


def test_fusion_takes_whole_rankings() -> None:
    # Encoder: 2, 1, 0. BM25: 1 alone. So 1 gets 1/62 + 1/61, 2 gets 1/61, 0 gets 1/63.
    hits, asked = driven(retrieve("fusion", "tea?", TEXTS, 2, encoder="simcse"))
    assert [hit.position for hit in hits] == [1, 2]
    assert hits[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert asked == ["simcse"]
    with pytest.raises(ValueError, match="needs an encoder"):
        found("fusion", "tea?", TEXTS, 2)


def test_the_oracle_gives_the_evidence_alone() -> None:
    assert found("oracle", "tea?", TEXTS, 5, evidence=[2, 0]) == [Hit(0, 1.0), Hit(2, 1.0)]
    assert found("oracle", "tea?", TEXTS, 1, evidence=[2, 0]) == [Hit(0, 1.0)]
    with pytest.raises(ValueError, match=r"evidence at \[3\], but there are 3 texts"):
        found("oracle", "tea?", TEXTS, 5, evidence=[3])


@given(st.text(max_size=5), st.integers(0, 12), st.integers(1, 13), st.integers(0, 3))
def test_random_is_a_seeded_order(query: str, count: int, k: int, seed: int) -> None:
    texts = [str(i) for i in range(count)]
    whole = [hit.position for hit in found("random", query, texts, count + 1, seed=seed)]
    assert sorted(whole) == list(range(count))
    first = [hit.position for hit in found("random", query, texts, k, seed=seed)]
    assert first == whole[:k]


def test_random_differs_by_seed_and_query() -> None:
    texts = [str(i) for i in range(50)]
    orders = {
        tuple(hit.position for hit in found("random", query, texts, 50, seed=seed))
        for seed in (0, 1)
        for query in ("a", "b")
    }
    assert len(orders) == 4


@pytest.mark.parametrize("name", ["minilm", "bm25", "fusion", "random", "oracle"])
def test_no_texts_and_no_k(name: str) -> None:
    assert found(name, "tea?", [], 5, encoder="minilm") == []
    with pytest.raises(ValueError, match="k=0"):
        found(name, "tea?", TEXTS, 0, encoder="minilm")


def test_which_encoder_a_retriever_asks() -> None:
    names = ("simcse", "mine", "fusion", "bm25", "random", "oracle")
    assert [encoder_of(n, "minilm") for n in names] == ["simcse", "mine", "minilm", "", "", ""]
