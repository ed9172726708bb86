"""The memories that a question calls up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from persona_lab.core.flow import Encode
from persona_lab.memory.recall import recall
from persona_lab.memory.records import Counts, Ingested, Memory
from tests.memory.scripted import Letters, Remembering, script, talk

NOTHING = Counts(0, 0, 0, {}, 0, 0)


def ingested(*statements: str) -> Ingested:
    memories = tuple(Memory(str(n), text, f"s{n}/t1", ()) for n, text in enumerate(statements))
    return Ingested(memories, (), (), NOTHING)


def recalled(question: str, memories: Ingested, k: int = 5) -> list[str]:
    flow = recall(question, memories, "letters", k)
    wanted = next(flow)
    assert isinstance(wanted, Encode)
    with pytest.raises(StopIteration) as end:
        flow.send(Letters().vectors(wanted.texts))
    return [memory.text for memory in end.value.value]


def test_most_similar_first_and_never_more_than_there_are() -> None:
    """Letters in common with `aab`: cosines 1, 2 / sqrt(5), 1 / sqrt(5) and 0."""
    memories = ingested("zzz", "b", "a", "baa")
    assert recalled("aab", memories) == ["baa", "a", "b", "zzz"]
    assert recalled("aab", memories, k=2) == ["baa", "a"]


def test_ties_go_to_the_older() -> None:
    assert recalled("ab", ingested("b", "a", "aa", "ba"), k=3) == ["ba", "b", "a"]


def test_nothing_is_called_up_where_nothing_is() -> None:
    with pytest.raises(StopIteration) as end:
        next(recall("tea?", ingested(), "letters"))
    assert end.value.value == []


def test_at_least_one_is_asked_for() -> None:
    with pytest.raises(ValueError, match="k=0"):
        next(recall("tea?", ingested("tea"), "letters", 0))


def test_removed_memories_are_never_recalled(tmp_path: Path) -> None:
    facts = {"tea": ["Likes tea"], "cat": ["Has a cat"], "no tea": ["Hates tea"]}
    script_ = script(facts, {"Hates tea": ("DELETE", "Likes tea", "")})
    made = Remembering(tmp_path, script_).of(talk("ann", *facts))["ann"]
    assert recalled("Likes tea", made) == ["Has a cat"]


def test_it_is_exact_on_many() -> None:
    """Held to numpy's own dot products."""
    statements = [f"{n:b} {n:x}" for n in range(300)]
    vectors = Letters().vectors(["1010 a", *statements]).astype(np.float64)
    scores = np.round(vectors[1:] @ vectors[0], 6)
    best = [statements[i] for i in np.lexsort((np.arange(300), -scores))[:5]]
    found = recalled("1010 a", ingested(*statements))
    assert [scores[statements.index(text)] for text in found] == [
        scores[statements.index(text)] for text in best
    ]
