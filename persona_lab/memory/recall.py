"""The memories that a question calls up (RealPref, Appendix H.2.3: they join the query prompt)."""

from __future__ import annotations

from persona_lab.core.flow import Encode, Flow
from persona_lab.memory.records import Ingested, Memory
from persona_lab.retrieval.encoders import check_texts
from persona_lab.retrieval.search import search


def recall(question: str, ingested: Ingested, encoder: str, k: int = 5) -> Flow[list[Memory]]:
    """The k memories most similar to the question, most similar first; all, if there are fewer.

    Raises:
        ValueError: k is below 1, or the question is blank.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least 1 memory is recalled")
    if not ingested.memories:
        return []
    texts = (question, *(memory.text for memory in ingested.memories))
    check_texts(texts)  # before other flows' texts join: a blank question fails this case only
    vectors = yield Encode(encoder, texts)
    [found] = search(vectors[0], vectors[1:], k)
    return [ingested.memories[hit.position] for hit in found]
