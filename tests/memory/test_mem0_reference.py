"""persona_lab.memory beside mem0ai 1.0.11, the last release with the paper's two phases.

Both run on the same conversations, the same vectors and one script of facts and decisions, each
told in its own format (`tests.bench.latency_server`). Where a decision means the same to both, the
final memory texts, the events and the histories agree. Skipped without mem0ai; in an environment of
its own, since mem0ai holds protobuf below 7:

    pip install -e '.[reference]'
    python -m pytest tests/memory/test_mem0_reference.py

Differences of design; those with a test are marked *:

                    mem0ai 1.0.11                          here (after the paper)
decisions       *   one call about all facts of an         one call a fact; each sees what the
                    exchange, on the memories before it    facts before it did
similar memories*   5 a fact, put together                 10 a fact
ids                 0, 1, ... for uuids, of one call       1, 2, ... for stable digests, of one call
unknown id      *   the decision is lost in the log        a failure; at UPDATE the fact is added
ADD             *   stores the model's wording             stores the fact as it was extracted
DELETE              the new fact needs an ADD of its own   the new fact is repeated as the text;
                    in the same reply                      without either it is not remembered
NOOP                called NONE; left without a trace      an event in the memory's history
same text twice *   two memories                           one memory, and no call
summary             none; extraction sees the new pair     rolling, with the last 10 messages
unreadable reply*   no facts, in the log only              a failure that names its exchange
date                today's, in every extraction prompt    none: the same prompt tomorrow
extraction          one exchange at a time                 all exchanges up to the next summary
users               one store for all, filtered; with      nothing shared
                    faiss the filter comes after the cut
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from persona_lab.core.drive import drive
from persona_lab.core.flow import Model
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.memory.records import Exchange, Ingested
from tests.bench.latency_server import Fact, Messages, Script
from tests.bench.memory_vs_mem0 import (
    HashVectors,
    User,
    mem0_texts,
    open_mem0,
    remember,
    response_format,
)

REFERENCE = "1.0.11"
Talk = Sequence[Sequence[Fact]]
"""The facts of each exchange."""
Answer = Callable[[Messages, Mapping[str, Any]], tuple[str, str]]


def add(text: str) -> Fact:
    return Fact(text)


def update(text: str, target: str, new: str) -> Fact:
    return Fact(text, "UPDATE", target, new)


def delete(text: str, target: str, new: str = "") -> Fact:
    return Fact(text, "DELETE", target, new)


def noop(text: str, target: str) -> Fact:
    return Fact(text, "NOOP", target)


TALKS: dict[str, Talk] = {
    "nothing to remember": [[], [], []],
    "add": [[add("Likes tea")], [], [add("Has a sister in Lima")]],
    "several facts in one exchange": [
        [add("Likes tea"), add("Is a nurse"), add("Runs on Sundays")],
        [
            noop("Works as a nurse", "Is a nurse"),
            update("Prefers green tea", "Likes tea", "Likes green tea"),
            delete("Gave up running", "Runs on Sundays"),
            add("Swims"),
        ],
    ],
    "update twice": [
        [add("Likes tea")],
        [update("Likes green tea best", "Likes tea", "Likes tea, green best")],
        [update("No sugar", "Likes tea, green best", "Likes tea, green best, no sugar")],
    ],
    "delete, the denial is not remembered": [
        [add("Is a nurse"), add("Likes tea")],
        [delete("No nurse any more", "Is a nurse")],
    ],
    "delete, the new fact takes its place": [
        [add("Lives in Lima"), add("Likes tea")],
        [delete("Lives in Quito", "Lives in Lima", "Lives in Quito")],
    ],
    "delete, then the same again": [
        [add("Likes tea")],
        [delete("Gave up tea", "Likes tea")],
        [add("Likes tea")],
    ],
    "noop": [[add("Likes tea"), add("Has a cat")], [noop("Drinks tea gladly", "Likes tea")]],
    "another language": [
        [add("我对花生过敏"), add("叫我小明")],
        [update("也对核桃过敏", "我对花生过敏", "我对花生和核桃过敏")],
    ],
    "quotes and line ends": [
        [add('Says "cheers", not \'bye\''), add("Lives in St. John's")],
        [update("Says \"ta\"", 'Says "cheers", not \'bye\'', 'Says "ta"\\, not "bye"')],
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def open_memory(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    """Opens mem0ai's Memory, empty and in memory; telemetry is off before it is imported."""
    try:
        found = version("mem0ai")
    except PackageNotFoundError:
        pytest.skip("mem0ai is not installed")
    if found != REFERENCE:
        pytest.skip(f"mem0ai {found} is not {REFERENCE}: later ones have another algorithm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("home")))
        import mem0  # noqa: F401
    return lambda: open_mem0(tmp_path_factory.mktemp("mem0"))


@dataclass
class Told:
    """mem0ai's model, as the script has it; it notes each call's kind and prompt."""

    answer: Answer
    calls: list[tuple[str, str]] = field(default_factory=list)

    def generate_response(
        self, messages: Messages, response_format: Mapping[str, Any] | None = None, **_: Any
    ) -> str:
        kind, text = self.answer(messages, response_format or {})
        self.calls.append((kind, messages[-1]["content"]))
        return text


@dataclass(frozen=True)
class Both:
    """What both made of the same conversations, and the calls that it took.

    Attributes:
        added: mem0ai's own reports, user -> (event, text).
    """

    memory: Any
    added: dict[str, list[tuple[str, str]]]
    mem0_calls: list[tuple[str, str]]
    ours: dict[str, Ingested]
    our_calls: list[tuple[str, str]]

    def texts(self, user: str = "ann") -> tuple[list[str], list[str]]:
        """mem0ai's and ours, sorted."""
        return mem0_texts(self.memory, user), sorted(m.text for m in self.ours[user].memories)


Run = Callable[..., Both]


@pytest.fixture
def run(open_memory: Callable[[], Any], tmp_path: Path) -> Run:
    """Drives both with the talks of several users, by a script or by another answer."""

    def made(talks: Mapping[str, Talk], answer: Answer | None = None) -> Both:
        said = {user: _said(user, talk) for user, talk in talks.items()}
        facts = {e.user: f for user, talk in talks.items() for e, f in _pairs(said[user], talk)}
        answer = answer or Script(facts).answer
        memory, told = open_memory(), Told(answer)
        memory.llm = told
        added = {user: _mem0_adds(memory, user, said[user]) for user in said}
        ours, calls = _drive([User(u, tuple(e)) for u, e in said.items()], answer, tmp_path)
        return Both(memory, added, told.calls, ours, calls)

    return made


def _said(user: str, talk: Talk) -> list[Exchange]:
    return [Exchange(f"This is {user}, {n}.", "I see.", f"t{n}") for n in range(len(talk))]


def _pairs(said: Sequence[Exchange], talk: Talk) -> list[tuple[Exchange, Sequence[Fact]]]:
    return list(zip(said, talk, strict=True))


def _mem0_adds(memory: Any, user: str, said: Sequence[Exchange]) -> list[tuple[str, str]]:
    events = []
    for exchange in said:
        messages = [
            {"role": "user", "content": exchange.user},
            {"role": "assistant", "content": exchange.assistant},
        ]
        found = memory.add(messages, user_id=user)["results"]
        events += [(entry["event"], entry["memory"]) for entry in found]
    return events


def _drive(
    users: Sequence[User], answer: Answer, folder: Path
) -> tuple[dict[str, Ingested], list[tuple[str, str]]]:
    calls: list[tuple[str, str]] = []

    def reply(request: Request) -> Reply:
        messages = [{"role": m.role, "content": m.content} for m in request.prompt]
        kind, text = answer(messages, response_format(request))
        calls.append((kind, messages[-1]["content"]))
        return Reply(text)

    models = {"memory": Model("scripted", "scripted", lambda: ScriptedEngine(reply))}
    with Store(folder, "w") as store:
        outcomes = list(drive(users, remember, models, store, encoders={"hash": HashVectors()}))
    assert [o.error for o in outcomes] == [""] * len(users)
    return {o.case.id: o.result for o in outcomes if o.result}, calls


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
def test_the_final_texts_and_the_events_agree(run: Run, talk: Talk) -> None:
    both = run({"ann": talk})
    theirs, ours = both.texts()
    assert ours == theirs
    done = Counter(event for event, _ in both.added["ann"])
    counted = both.ours["ann"].counts.events
    assert {kind: n for kind, n in counted.items() if n and kind != "NOOP"} == done
    assert both.ours["ann"].failures == ()


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
def test_the_histories_agree(run: Run, talk: Talk) -> None:
    both = run({"ann": talk})
    theirs = {
        m["memory"]: sorted(
            (e["event"], e["old_memory"] or "", e["new_memory"] or "")
            for e in both.memory.history(m["id"])
        )
        for m in both.memory.get_all(user_id="ann")["results"]
    }
    ours = {
        m.text: sorted((e.kind, e.before, e.after) for e in m.history if e.kind != "NOOP")
        for m in both.ours["ann"].memories
    }
    assert ours == theirs


def test_two_users_keep_their_own(run: Run) -> None:
    # The same words of both users: ann's update and bob's delete touch their own memories only.
    tea = [add("Likes tea"), add("Has a cat")]
    both = run(
        {
            "ann": [tea, [update("Likes green tea", "Likes tea", "Likes green tea")]],
            "bob": [tea, [], [delete("Gave up tea", "Likes tea"), add("Has a dog")], []],
        }
    )
    assert both.texts("ann") == (["Has a cat", "Likes green tea"],) * 2
    assert both.texts("bob") == (["Has a cat", "Has a dog"],) * 2


def test_difference_one_decision_for_all_facts_or_one_for_each(run: Run) -> None:
    both = run({"ann": [[add("Likes tea"), add("Has a cat"), add("Swims")], []]})
    assert Counter(kind for kind, _ in both.mem0_calls) == {"extract": 2, "decide": 1}
    assert Counter(kind for kind, _ in both.our_calls) == {"extract": 2, "decide": 3}


def test_difference_a_decision_sees_what_the_facts_before_it_did(run: Run) -> None:
    named = update("The dog is called Rex", "Has a dog", "Has a dog called Rex")
    theirs, ours = run({"ann": [[add("Has a dog"), named]]}).texts()
    assert theirs == ["Has a dog", "The dog is called Rex"]  # it was not shown: added
    assert ours == ["Has a dog called Rex"]


def test_difference_5_or_10_similar_memories_are_shown(run: Run) -> None:
    # 11 memories; "Zzzzz 11" shares letters with the memories "Zzzzz 0" to "Zzzzz 9" alone.
    memories = ["Likes tea", *(f"Zzzzz {n}" for n in range(10))]
    both = run({"ann": [[add(text) for text in memories], [add("Zzzzz 11")]]})
    [_, theirs] = [text for kind, text in both.mem0_calls if kind == "decide"]
    ours = [text for kind, text in both.our_calls if kind == "decide"][-1]
    assert [sum(repr(text) in theirs for text in memories), "Likes tea" in theirs] == [5, False]
    assert [f": {text}\n" in ours for text in memories] == [False] + [True] * 10


def test_difference_an_update_of_an_unknown_id(run: Run) -> None:
    both = run({"ann": [[add("Likes tea")], [update("Likes green tea", "", "Likes green tea")]]})
    assert both.texts() == (["Likes tea"], ["Likes green tea", "Likes tea"])
    [failure] = both.ours["ann"].failures
    assert (failure.source, failure.stage, failure.reason) == ("t1", "decide", "unknown_id")


def test_difference_a_delete_of_an_unknown_id_is_a_failure_here(run: Run) -> None:
    both = run({"ann": [[add("Likes tea")], [delete("Gave up tea", "")]]})
    assert both.texts() == (["Likes tea"],) * 2
    assert [failure.reason for failure in both.ours["ann"].failures] == ["unknown_id"]


def test_difference_the_wording_of_add(run: Run) -> None:
    both = run({"ann": [[Fact("Likes tea", "ADD", new="The user likes tea")]]})
    assert both.texts() == (["The user likes tea"], ["Likes tea"])


def test_difference_the_same_text_twice(run: Run) -> None:
    both = run({"ann": [[add("Likes tea")], [add("Likes tea")]]})
    assert both.texts() == (["Likes tea", "Likes tea"], ["Likes tea"])
    assert both.ours["ann"].counts.duplicates == 1
    assert [kind for kind, _ in both.our_calls].count("decide") == 1


def test_difference_an_unreadable_reply(run: Run) -> None:
    both = run({"ann": [[]]}, lambda messages, wanted: ("extract", "Sure! No facts."))
    assert both.texts() == ([], [])
    assert both.added == {"ann": []}
    assert [(f.source, f.stage) for f in both.ours["ann"].failures] == [("t0", "extract")]


def test_fences_and_words_around_the_json_are_read_by_both(run: Run) -> None:
    def answer(messages: Messages, wanted: Mapping[str, Any]) -> tuple[str, str]:
        kind, text = script.answer(messages, wanted)
        return kind, f"Here you are:\n```json\n{json.dumps(json.loads(text), indent=1)}\n```"

    script = Script({"This is ann, 0.": [add("Likes tea"), add("Has a cat")]})
    both = run({"ann": [[]]}, answer)
    assert both.texts() == (["Has a cat", "Likes tea"],) * 2
