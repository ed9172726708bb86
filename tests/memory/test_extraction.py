"""Phase 1: what extraction sees, when the summary is refreshed, and what prompts share."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from persona_lab.core.prompt import Reply, Request
from persona_lab.memory.prompts import DECIDE, EXTRACT, SUMMARISE
from persona_lab.memory.records import Failure
from tests.memory.scripted import Facts, Remembering, script, talk, text_of, texts

MESSAGES = [f"message {n}" for n in range(1, 13)]
FACTS = {message: [f"fact of {message}"] for message in MESSAGES}


def prompts(run: Remembering, head: str) -> list[str]:
    return [text_of(r) for r in run.requests if text_of(r).startswith(head)]


def asked_about(run: Remembering, message: str) -> str:
    """The extraction prompt of one message."""
    [found] = [p for p in prompts(run, EXTRACT) if f"## New exchange\nUser: {message}\n" in p]
    return found.removeprefix(EXTRACT)


def test_an_extraction_sees_summary_last_messages_and_the_new_exchange(tmp_path: Path) -> None:
    run = Remembering(tmp_path, script(FACTS), {"messages": 3, "summary_every": 100})
    run.of(talk("ann", *MESSAGES[:4]))
    assert asked_about(run, "message 1") == (
        "\n## Summary of the conversations so far\n(none)\n"
        "\n## Earlier messages\n(none)\n"
        "\n## New exchange\nUser: message 1\nAssistant: I see."
    )
    assert asked_about(run, "message 4") == (
        "\n## Summary of the conversations so far\n(none)\n"
        "\n## Earlier messages\nAssistant: I see.\nUser: message 3\nAssistant: I see.\n"
        "\n## New exchange\nUser: message 4\nAssistant: I see."
    )


@pytest.mark.parametrize(("messages", "seen"), [(0, 0), (1, 1), (10, 10), (100, 22)])
def test_the_last_m_messages(tmp_path: Path, messages: int, seen: int) -> None:
    run = Remembering(tmp_path, script(FACTS), {"messages": messages, "summary_every": 100})
    run.of(talk("ann", *MESSAGES))
    earlier = asked_about(run, "message 12").split("## Earlier messages\n")[1].split("\n\n")[0]
    assert len(earlier.replace("(none)", "").splitlines()) == seen


@pytest.mark.parametrize(
    ("every", "ends"), [(1, range(1, 12)), (3, range(2, 12, 2)), (10, (5, 10)), (24, ()), (100, ())]
)
def test_the_summary_is_refreshed_from_the_messages_since(
    tmp_path: Path, every: int, ends: range | tuple[int, ...]
) -> None:
    """12 exchanges; every 3 messages means behind every second exchange, and nobody would read the
    one behind the last."""

    def reply(request: Request) -> Reply:
        said = text_of(request).split("\nUser: ")
        if text_of(request).startswith(SUMMARISE):
            return Reply(json.dumps({"summary": f"up to {said[-1].split()[1]}"}))
        return script(FACTS)(request)

    run = Remembering(tmp_path, reply, {"summary_every": every})
    run.of(talk("ann", *MESSAGES))
    refreshed = prompts(run, SUMMARISE)
    assert len(refreshed) == len(ends)
    for before, (prompt, end) in zip([0, *ends], zip(refreshed, ends, strict=True), strict=False):
        old = f"up to {before}" if before else "(none)"
        assert f"## Summary so far\n{old}\n" in prompt
        covered = prompt.split("## New messages\n")[1].split("\n")[::2]
        assert covered == [f"User: {message}" for message in MESSAGES[before:end]]
    for number, message in enumerate(MESSAGES):
        last = max([0, *(end for end in ends if end <= number)])
        summary = f"up to {last}" if last else "(none)"
        assert f"so far\n{summary}\n" in asked_about(run, message)


def test_a_lost_summary_leaves_the_old_one_and_the_next_covers_its_messages(
    tmp_path: Path,
) -> None:
    def reply(request: Request) -> Reply:
        prompt = text_of(request)
        if prompt.startswith(SUMMARISE) and "message 5" not in prompt:
            return Reply("They talked.")
        return script(FACTS)(request)

    run = Remembering(tmp_path, reply, {"summary_every": 4})
    made = run.of(talk("ann", *MESSAGES[:7]))["ann"]
    assert made.failures == (
        Failure("s2/t1", "summary", "unparsed"),
        Failure("s4/t1", "summary", "unparsed"),
    )
    covered = prompts(run, SUMMARISE)[-1].split("## New messages\n")[1].split("\n")[::2]
    assert covered == [f"User: {message}" for message in MESSAGES[:6]]
    assert "so far\n(none)\n" in asked_about(run, "message 6")
    assert "so far\nSummary of" in asked_about(run, "message 7")


def test_a_failure_names_its_exchange_and_loses_no_other(tmp_path: Path) -> None:
    facts: Facts = {
        "a": "Sure! No facts.",
        "b": [],
        "c": Reply('{"facts": ["likes', "length", "truncated"),
        "d": Reply(""),
        "e": Reply.failed("too long"),
        "f": '```json\n{"facts": ["likes tea"]}\n```',
        "g": '{"facts": ["likes \\ud83c tea", "", 3]}',
    }
    made = Remembering(tmp_path, script(facts)).of(talk("ann", *facts))["ann"]
    assert made.failures == (
        Failure("s1/t1", "extract", "unparsed"),
        Failure("s3/t1", "extract", "truncated"),
        Failure("s4/t1", "extract", "empty"),
        Failure("s5/t1", "extract", "too long"),
    )
    assert texts(made) == ["likes tea", "likes \ufffd tea"]
    assert (made.counts.exchanges, made.counts.facts, made.counts.skipped) == (7, 2, 2)


def test_prompts_begin_with_what_changes_least(tmp_path: Path) -> None:
    """All users share the instruction, one user's stretch its summary, decisions the memories."""
    run = Remembering(tmp_path, script(FACTS))
    run.of(talk("ann", *MESSAGES), talk("bob", "hello", "goodbye"))
    kinds = [prompts(run, head) for head in (EXTRACT, DECIDE, SUMMARISE)]
    assert sum(map(len, kinds)) == len(run.requests)
    stretch = [asked_about(run, f"message {n}") for n in (7, 8, 9, 10)]
    summary = stretch[0].split("\n## Earlier")[0]
    assert "\nSummary of " in summary
    assert all(prompt.startswith(summary) for prompt in stretch)


def test_decisions_on_few_memories_grow_at_their_end(tmp_path: Path) -> None:
    run = Remembering(tmp_path, script(FACTS))
    run.of(talk("ann", *MESSAGES[:8]))
    lists = [prompt.split("\n\n## New fact")[0] for prompt in prompts(run, DECIDE)][1:]
    assert all(later.startswith(earlier) for earlier, later in pairwise(lists))


def test_facts_of_all_exchanges_are_encoded_together(tmp_path: Path) -> None:
    facts = {"a": ["one", "two", "three"], "b": ["four", "two"]}
    run = Remembering(tmp_path, script(facts, {"four": ("UPDATE", "one", "one and four")}))
    run.of(talk("ann", *facts))
    assert run.encoder.calls == [["one", "two", "three", "four"]]
