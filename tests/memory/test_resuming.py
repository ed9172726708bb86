"""A memory that was written once is read again from the store; a stop loses nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from persona_lab.core.errors import Stopped
from persona_lab.core.prompt import Reply, Request
from persona_lab.memory.prompts import EXTRACT
from persona_lab.memory.records import KINDS, Ingested
from tests.memory.scripted import Remembering, Talk, script, shown, talk, text_of

FACTS = {f"{n} {i}": [f"{n} fact {i}", f"{n} also {i % 3}"] for n in "abc" for i in range(7)}
TALKS = [
    talk(n, *(f"{n} {i}" for i in range(length)))
    for n, length in zip("abc", (7, 2, 4), strict=True)
]
DECISIONS = {
    "a fact 3": ("UPDATE", "a fact 1", "a facts 1 and 3"),
    "a fact 4": ("DELETE", "a fact 2", ""),
    "c fact 1": ("UPDATE", "99", "lost?"),
}


def test_a_replay_asks_nothing_and_gives_the_same(tmp_path: Path) -> None:
    first = Remembering(tmp_path, script(FACTS, DECISIONS))
    made = first.of(*TALKS)
    again = Remembering(tmp_path, script({}))
    assert again.of(*TALKS) == made
    assert again.requests == []
    assert made["c"].failures[0].reason == "unknown_id"


@pytest.mark.parametrize("window", [1, 2])
def test_the_window_and_the_order_of_users_change_nothing(tmp_path: Path, window: int) -> None:
    together = Remembering(tmp_path / "1", script(FACTS, DECISIONS)).of(*TALKS)
    other = Remembering(tmp_path / "2", script(FACTS, DECISIONS)).of(*TALKS[::-1], window=window)
    assert other == together


@pytest.mark.parametrize("answered", [1, 9, 20, 33])
def test_a_stop_in_the_middle_serves_no_saved_request_again(tmp_path: Path, answered: int) -> None:
    whole = Remembering(tmp_path / "whole", script(FACTS, DECISIONS))
    made = whole.of(*TALKS)
    stopped = Remembering(tmp_path / "cut", script(FACTS, DECISIONS))
    with pytest.raises(Stopped):
        stopped.of(*TALKS, stop=lambda: len(stopped.requests) >= answered)
    rest = Remembering(tmp_path / "cut", script(FACTS, DECISIONS))
    assert rest.of(*TALKS) == made
    keys = Counter(request.key for request in [*stopped.requests, *rest.requests])
    assert keys == Counter(request.key for request in whole.requests)
    assert max(keys.values()) == 1


def test_a_failed_request_is_asked_again_by_the_next_run(tmp_path: Path) -> None:
    def fails(request: Request) -> Reply:
        if "## New exchange\nUser: b 1\n" in text_of(request):
            return Reply.failed("out of memory")
        return script(FACTS)(request)

    first = Remembering(tmp_path, fails).of(TALKS[1])["b"]
    assert [(f.source, f.reason) for f in first.failures] == [("s2/t1", "out of memory")]
    healed = Remembering(tmp_path, script(FACTS))
    second = healed.of(TALKS[1])["b"]
    assert second.failures == ()
    assert len(healed.requests) == 1 + 2  # b 1 again, then a decision on each of its two facts
    assert {m.id for m in first.memories} <= {m.id for m in second.memories}


steps = st.lists(
    st.lists(
        st.tuples(
            st.text(alphabet="abc", min_size=1, max_size=2),
            st.sampled_from(KINDS),
            st.integers(0, 4),
        ),
        max_size=3,
    ),
    max_size=6,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps)
def test_any_conversation_and_its_replay(
    tmp_path_factory: pytest.TempPathFactory, made: list[list[tuple[str, str, int]]]
) -> None:
    """Each fact decided on by its own step, on whatever memories it is shown."""
    decided = {text: (kind, number) for facts in made for text, kind, number in facts}

    def reply(request: Request) -> Reply:
        prompt = text_of(request)
        if prompt.startswith(EXTRACT):
            said = int(prompt.split("## New exchange\nUser: ")[1].split("\n")[0])
            return Reply(json.dumps({"facts": [text for text, _, _ in made[said]]}))
        if "## New fact\n" not in prompt:
            return Reply('{"summary": "so far"}')
        fact = prompt.split("## New fact\n")[1]
        kind, number = decided[fact]
        there = min(number, len(shown(prompt)))
        return Reply(json.dumps({"event": kind, "id": str(there), "text": f"{fact} renewed"}))

    folder = tmp_path_factory.mktemp("replies")
    case: Talk = talk("ann", *map(str, range(len(made))))
    first = Remembering(folder, reply).of(case)["ann"]
    again = Remembering(folder, script({}))
    assert again.of(case)["ann"] == first
    assert again.requests == []
    check(first, sum(map(len, made)))


def check(ingested: Ingested, facts: int) -> None:
    everything = [*ingested.memories, *ingested.removed]
    assert len({memory.id for memory in everything}) == len(everything)
    for memory in everything:
        after = memory.history[-1].after
        assert after == ("" if memory in ingested.removed else memory.text)
    assert ingested.counts.facts == facts
    assert all(failure.reason == "unknown_id" for failure in ingested.failures)
