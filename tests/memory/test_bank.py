"""What decisions do to memories, and what holds after any sequence of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.memory.bank import Bank
from persona_lab.memory.records import KINDS, Event, Exchange, Fact, Kind, Memory, fact_id
from persona_lab.memory.replies import Decision
from persona_lab.memory.wording import folded

SHOWN = 4


def fact(text: str, number: int = 0, position: int = 0) -> Fact:
    source = f"s{number}/t1"
    return Fact(text, Exchange("hello", "hi", source), fact_id(source, number, position, text))


def bank(*statements: str) -> Bank:
    made = Bank()
    for number, text in enumerate(statements):
        made.add(fact(text, number))
    return made


def decided(made: Bank, text: str, *decision: object) -> tuple[list[str], list[str], list[str]]:
    """Texts, removed texts and reasons of failures after one decision about a new fact."""
    kind, number, new = decision
    made.decide(fact(text, 9), Decision(kind, number, new), list(made.live.values()))  # type: ignore[arg-type]
    return (
        [memory.text for memory in made.live.values()],
        [memory.text for memory in made.removed],
        [failure.reason for failure in made.failures],
    )


@pytest.mark.parametrize("number", [None, 0, 3, -1])
def test_an_update_of_what_does_not_exist_adds_the_fact_and_is_a_failure(
    number: int | None,
) -> None:
    made = bank("a", "b")
    assert decided(made, "c", "UPDATE", number, "b, c") == (["a", "b", "c"], [], ["unknown_id"])
    event = list(made.live.values())[-1].history[-1]
    assert event.note == "UPDATE of a memory that does not exist: added instead"
    assert (event.kind, event.before, event.after) == ("ADD", "", "c")


def test_an_update_without_a_text_adds_the_fact_and_is_a_failure() -> None:
    made = bank("a")
    assert decided(made, "c", "UPDATE", 1, "") == (["a", "c"], [], ["no_text"])
    assert list(made.live.values())[-1].history[-1].note == "UPDATE without a text: added instead"


@pytest.mark.parametrize("number", [None, 3])
def test_a_delete_of_what_does_not_exist_is_a_failure(number: int | None) -> None:
    assert decided(bank("a"), "c", "DELETE", number, "") == (["a"], [], ["unknown_id"])


def test_a_delete_adds_the_fact_only_where_the_model_repeats_it() -> None:
    assert decided(bank("a", "b"), "not a", "DELETE", 1, "") == (["b"], ["a"], [])
    assert decided(bank("a", "b"), "not a", "DELETE", 1, "a") == (["b"], ["a"], [])
    assert decided(bank("a", "b"), "not a", "DELETE", 1, "Not a.") == (["b", "not a"], ["a"], [])


def test_an_update_to_what_another_memory_says_leaves_one() -> None:
    made = bank("likes tea", "likes green tea")
    assert decided(made, "tea, the green one", "UPDATE", 1, "Likes green tea.") == (
        ["likes green tea"],
        ["likes tea"],
        [],
    )
    [kept], [gone] = made.live.values(), made.removed
    assert [event.kind for event in kept.history] == ["ADD", "NOOP"]
    assert gone.history[-1].note == f"UPDATE to what memory {kept.id} says: removed instead"
    assert made.duplicates == 1


def test_an_update_that_changes_nothing_is_none() -> None:
    made = bank("a")
    assert decided(made, "b", "UPDATE", 1, "a") == (["a"], [], [])
    assert (made.events["UPDATE"], made.events["NOOP"]) == (0, 1)


def test_an_update_may_change_case_and_keeps_its_place() -> None:
    made = bank("likes tea", "b")
    assert decided(made, "x", "UPDATE", 1, "Likes tea.")[0] == ["Likes tea.", "b"]
    assert made.meet(fact("likes tea", 3))


def test_what_was_removed_or_renewed_can_be_said_again() -> None:
    made = bank("a", "b")
    decided(made, "x", "DELETE", 1, "")
    assert not made.meet(fact("a", 5))
    decided(made, "x", "UPDATE", 1, "c")
    assert not made.meet(fact("b", 6))


def test_a_noop_without_a_memory_is_counted() -> None:
    made = bank("a")
    assert decided(made, "x", "NOOP", None, "") == (["a"], [], [])
    assert made.events["NOOP"] == 1


def test_ids_are_stable_and_differ_by_source_exchange_position_and_text() -> None:
    """The digest is hashlib.blake2b's of the four, parted by NUL, 8 bytes."""
    assert fact_id("s1/t1", 0, 0, "a") == fact_id("s1/t1", 0, 0, "a")
    others = [("s1/t2", 0, 0, "a"), ("s1/t1", 1, 0, "a"), ("s1/t1", 0, 1, "a"), ("s1/t1", 0, 0, "")]
    assert len({fact_id(*other) for other in [("s1/t1", 0, 0, "a"), *others]}) == 5
    assert len(fact_id("\ud83c", 0, 0, "a")) == 16


words = st.text(alphabet="abA .", min_size=1, max_size=3).filter(folded)
numbers = st.integers(1, SHOWN + 1)
steps = st.lists(
    st.tuples(words, st.sampled_from(KINDS), numbers, words | st.just("")), max_size=30
)


def replayed(events: Sequence[Event]) -> str:
    """The text that a history leads to; each event begins where the one before it ended."""
    text = ""
    for event in events:
        assert event.before == text
        text = event.after
    return text


@given(steps)
def test_whatever_is_decided_histories_lead_to_the_memories(
    made: list[tuple[str, Kind, int, str]],
) -> None:
    kept = Bank()
    for number, (text, kind, chosen, new) in enumerate(made):
        said = fact(text, number)
        if not kept.meet(said):
            kept.decide(said, Decision(kind, chosen, new), list(kept.live.values())[:SHOWN])
    live = list(kept.live.values())
    everything: list[Memory] = [*live, *kept.removed]
    assert len({memory.id for memory in everything}) == len(everything)
    assert len({folded(memory.text) for memory in live}) == len(live)
    assert [replayed(memory.history) for memory in live] == [memory.text for memory in live]
    assert {replayed(memory.history) for memory in kept.removed} <= {""}
    assert all(kept.twin(memory.text) is memory for memory in live)
    happened = [event.kind for memory in everything for event in memory.history]
    assert len([kind for kind in happened if kind == "ADD"]) == len(everything)
    assert len([kind for kind in happened if kind == "DELETE"]) == len(kept.removed)
    for kind in ("ADD", "UPDATE", "DELETE"):
        assert kept.events[kind] == happened.count(kind)
    assert kept.events["NOOP"] >= happened.count("NOOP")
