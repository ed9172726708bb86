"""Mem0's algorithm from conversation to memories, on scripted replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.prompt import Reply
from persona_lab.engines.scripted import example_reply
from persona_lab.memory.ingest import _Vectors, ingest
from persona_lab.memory.prompts import DECIDE
from persona_lab.memory.records import Event, Failure, Ingested, whence
from tests.memory.scripted import (
    Decisions,
    Facts,
    Remembering,
    Talk,
    ask,
    script,
    shown,
    talk,
    text_of,
    texts,
)

COFFEE, TEA = "Drinks coffee", "Drinks tea, no coffee"


def remember(
    tmp_path: Path, facts: Facts, decisions: Decisions | None = None, **options: Any
) -> Ingested:
    """The memory of one user who says each key of `facts`, in order."""
    run = Remembering(tmp_path, script(facts, decisions), options)
    return run.of(talk("ann", *facts))["ann"]


def test_add_update_delete_noop(tmp_path: Path) -> None:
    made = remember(
        tmp_path,
        {
            "coffee please": [COFFEE],
            "I moved to Rome": ["Lives in Rome", "Speaks Italian"],
            "tea now": ["Drinks tea now"],
            "I left Rome": ["Left Rome"],
            "ciao": ["Talks Italian"],
        },
        {
            "Drinks tea now": ("UPDATE", COFFEE, TEA),
            "Left Rome": ("DELETE", "Lives in Rome", ""),
            "Talks Italian": ("NOOP", "Speaks Italian", ""),
        },
    )
    assert texts(made) == [TEA, "Speaks Italian"]
    [gone] = made.removed
    assert (gone.text, gone.source) == ("Lives in Rome", "s2/t1")
    tea, italian = made.memories
    assert tea.source == "s1/t1"
    assert whence(made, tea.id) == [
        Event("ADD", "s1/t1", "", COFFEE),
        Event("UPDATE", "s3/t1", COFFEE, TEA),
    ]
    assert whence(made, gone.id) == [
        Event("ADD", "s2/t1", "", "Lives in Rome"),
        Event("DELETE", "s4/t1", "Lives in Rome", ""),
    ]
    assert [event.kind for event in whence(made, italian.id)] == ["ADD", "NOOP"]
    assert made.failures == ()
    assert (made.counts.exchanges, made.counts.facts) == (5, 6)
    assert made.counts.events == {"ADD": 3, "UPDATE": 1, "DELETE": 1, "NOOP": 1}


def test_nobody_has_an_unknown_id(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no memory has the id 'x1'"):
        whence(remember(tmp_path, {"hello": []}), "x1")


def test_decisions_of_one_exchange_see_those_before(tmp_path: Path) -> None:
    """The second fact updates the memory that the first has just become."""
    facts = {"both": ["Has a cat", "The cat is called Mia"]}
    decision = ("UPDATE", "Has a cat", "Has a cat called Mia")
    made = remember(tmp_path, facts, {"The cat is called Mia": decision})
    assert texts(made) == ["Has a cat called Mia"]
    assert [e.source for e in made.memories[0].history] == ["s1/t1", "s1/t1"]


def test_a_decision_sees_the_s_most_similar_memories_oldest_first(tmp_path: Path) -> None:
    facts = {"a": ["aaaa bb"], "b": ["zzzz"], "c": ["aaaa"], "d": ["aaaaa"]}
    run = Remembering(tmp_path, script(facts), {"similar": 2})
    run.of(talk("ann", *facts))
    prompts = [text_of(r) for r in run.requests if text_of(r).startswith(DECIDE)]
    assert [shown(p) for p in prompts] == [
        [],
        ["aaaa bb"],
        ["aaaa bb", "zzzz"],
        ["aaaa bb", "aaaa"],
    ]


@pytest.mark.parametrize("variant", ["two_stage", "add_only"])
def test_the_same_fact_twice_stays_one_memory(tmp_path: Path, variant: str) -> None:
    """Whatever the model would say of it: here, that the first is to go."""
    again = {"likes  TEA.": ("DELETE", "Likes tea", ""), "Likes tea": ("ADD", "", "")}
    facts = {"X": ["Likes tea"], "X again": ["Likes tea"], "X!": ["likes  TEA.", "Likes tea"]}
    made = remember(tmp_path, facts, again, variant=variant)
    assert texts(made) == ["Likes tea"]
    assert (made.removed, made.failures) == ((), ())
    assert (made.counts.facts, made.counts.duplicates) == (4, 3)
    assert made.counts.events == {"ADD": 1, "UPDATE": 0, "DELETE": 0, "NOOP": 3}
    assert [e.source for e in made.memories[0].history] == ["s1/t1", "s2/t1", "s3/t1", "s3/t1"]


def test_add_only_adds_everything_and_decides_nothing(tmp_path: Path) -> None:
    facts = {"a": [COFFEE], "b": [TEA, "Has a cat"]}
    run = Remembering(tmp_path, script(facts), {"variant": "add_only"})
    made = run.of(talk("ann", *facts))["ann"]
    assert texts(made) == [COFFEE, TEA, "Has a cat"]
    assert (len(run.requests), run.encoder.calls) == (2, [])


def test_a_decision_that_cannot_be_read_is_listed_with_its_fact(tmp_path: Path) -> None:
    facts = {"a": [COFFEE, "Has a cat", "Likes jazz"], "b": ["Lives in Rome", "Is 30"]}
    made = remember(
        tmp_path,
        facts,
        {
            COFFEE: "I would add it.",
            "Has a cat": '{"event": "KEEP", "id": "", "text": ""}',
            "Lives in Rome": Reply('{"event": "ADD", "id"', "length", "truncated"),
            "Is 30": Reply.failed("no memory"),
        },
    )
    assert texts(made) == ["Likes jazz"]
    assert made.failures == (
        Failure("s1/t1", "decide", "unparsed", COFFEE),
        Failure("s1/t1", "decide", "unparsed", "Has a cat"),
        Failure("s2/t1", "decide", "truncated", "Lives in Rome"),
        Failure("s2/t1", "decide", "no memory", "Is 30"),
    )
    assert sum(made.counts.events.values()) == 1


def test_users_share_nothing_and_go_at_their_own_pace(tmp_path: Path) -> None:
    """Each user's memory is that of the user alone, whoever else is there."""
    facts = {f"{n} {i}": [f"{n} fact {i}"] for n in "abc" for i in range(12)}
    lengths = {"a": 1, "b": 12, "c": 5}
    talks = [talk(name, *(f"{name} {i}" for i in range(n))) for name, n in lengths.items()]
    together = Remembering(tmp_path / "all", script(facts)).of(*talks)
    for case in talks:
        alone = Remembering(tmp_path / case.id, script(facts)).of(case)
        assert together[case.id] == alone[case.id]
        assert all(text.startswith(case.id) for text in texts(together[case.id]))
    assert {name: len(made.memories) for name, made in together.items()} == lengths


def test_users_with_the_same_source_and_fact_keep_apart(tmp_path: Path) -> None:
    facts = {"tea": ["Likes tea"], "no tea": ["Hates tea"]}
    run = Remembering(tmp_path, script(facts, {"Hates tea": ("DELETE", "Likes tea", "")}))
    made = run.of(talk("ann", "tea"), talk("bob", "tea", "no tea"))
    assert (texts(made["ann"]), texts(made["bob"])) == (["Likes tea"], [])


def test_no_exchange_asks_nothing(tmp_path: Path) -> None:
    run = Remembering(tmp_path, script({}))
    made = run.of(Talk("ann", ()))["ann"]
    assert (made.memories, made.counts.exchanges, run.requests) == ((), 0, [])


def test_its_own_examples_make_memories(tmp_path: Path) -> None:
    """A plan answers with the examples: one fact and one decision for each exchange."""
    run = Remembering(tmp_path, example_reply)
    made = run.of(talk("ann", *(f"message {i}" for i in range(12))), talk("bob", "我对花生过敏"))
    assert len(made["ann"].memories) == 12
    assert made["bob"].failures == made["ann"].failures == ()
    assert made["bob"].counts.language_mismatch == 0
    assert len(run.requests) == 12 + 12 + 2 + 2  # ann's summaries are due after 5 and after 10


@pytest.mark.parametrize(
    "wrong", [{"variant": "three_stage"}, {"messages": -1}, {"similar": 0}, {"summary_every": 0}]
)
def test_wrong_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        next(ingest([], ask, "letters", **wrong))


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), max_size=8))
def test_rows_are_those_of_the_texts_whatever_was_asked_before(lists: list[list[int]]) -> None:
    vectors = _Vectors()
    vectors.update({str(n): np.full(3, n, dtype=np.float32) for n in range(10)})
    for numbers in lists:
        texts = [str(n) for n in numbers]
        for asked in (texts, [*texts, "4", "2"], texts[:-1] or texts):
            expected = np.stack([vectors[text] for text in asked])
            assert np.array_equal(vectors.rows(asked), expected)
