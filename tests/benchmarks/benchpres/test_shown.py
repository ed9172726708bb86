"""What a prompt shows of a memory, and how selective that is; all numbers by hand.

The data of `write_data` (see test_golden.py): 15 instances have g = 0 and 15 have g = 1. Where
n + m of profile n and context m is even (3 of the 6), role, tone and nickname have g = 0, style and
markers g = 1; where it is odd, the other way round. A memory has 3 facts and 5 preferences.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from persona_lab.benchmarks.benchpres.cases import BenchPreSCase, DefenceName
from persona_lab.benchmarks.benchpres.defences import opening
from persona_lab.benchmarks.benchpres.loading import load_data
from persona_lab.benchmarks.benchpres.memory import NOTHING, Memory
from persona_lab.benchmarks.benchpres.prompts import request_for
from persona_lab.benchmarks.benchpres.records import CATEGORIES, Context
from persona_lab.benchmarks.benchpres.settings import RetrievalSettings
from persona_lab.benchmarks.benchpres.shown import retrieved
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import selected
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Row, Score, Summary
from persona_lab.engines.scripted import example_reply
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import (
    Outcomes,
    Replies,
    estimate,
    experiment,
    outcomes_of,
    summary_of,
    value,
    writes,
)

pytest.importorskip("faiss")
pytest.importorskip("bm25s")

FILTER = "If none suits, the list is empty."
BY_HAND = ("retrieval.retriever=by_hand",)
RAG, FILTERED = "memories.shown=[rag]", "memories.shown=[filter]"
EVERY_DEFENCE = "defence=[default,prompt,structured,few_shot,category_rules,sanitiser]"


class ByHand:
    """Similarity to every request: role 0.9, style 0.8, tone 0.7, markers 0.6, nickname 0.5, facts
    below, in their order."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        cosines = [self.similarity(text) for text in texts]
        return np.array([[c, (1 - c * c) ** 0.5] for c in cosines], dtype=np.float32)

    def similarity(self, text: str) -> float:
        if text.startswith("Write a complete message to "):
            return 1.0
        words = ("role", "style", "tone", "markers", "call me", "dogs", "keys", "debts")
        [place] = [i for i, word in enumerate(words) if word in text]
        return 0.9 - 0.1 * place


ENCODERS = {"by_hand": ByHand()}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def text_of(request: Request) -> str:
    return "\n".join(message.content for message in request.prompt)


def preferences_in(text: str) -> dict[str, str]:
    """Category -> line, of the preferences that stand in a prompt."""
    lines = re.findall(r"^(?:\d\. )?((?:I like (\w+) number|Please call me) .+\.)$", text, re.M)
    return {category or "nickname": line for line, category in lines}


def applies_all_shown(kept: Callable[[dict[str, str]], set[str]] | None = None) -> Replies:
    """A target whose messages apply every preference that their prompt shows, and whose filter
    keeps the categories that `kept` names, with all facts (None: everything)."""
    judge = writes(lambda *_: set())

    def reply(request: Request) -> Reply:
        if request.role != "target":
            return judge(request)
        asked = text_of(request)
        shown = preferences_in(asked)
        if not asked.endswith(FILTER):
            nicknames = re.findall(r"call me (\w+)\.", shown.get("nickname", ""))
            return Reply("\n".join(["Dear all,", *shown.values(), *nicknames]))
        chosen = set(shown) if kept is None else kept(shown)
        left_out = {shown[category] for category in set(shown) - chosen}
        listed = re.findall(r"^(\d+)\. (.+)$", asked, re.M)
        return Reply(json.dumps({"suitable": [int(n) for n, s in listed if s not in left_out]}))

    return reply


def found(data: Path, reply: Replies, *overrides: str) -> Summary:
    return summary_of(data, reply, *BY_HAND, *overrides, encoders=ENCODERS)


def run(data: Path, reply: Replies, *overrides: str) -> Outcomes:
    made = experiment(data, *BY_HAND, *overrides)
    return outcomes_of(made, data.parent / "".join(overrides), reply, ENCODERS)


def asked_of(outcomes: Outcomes, role: str = "target") -> dict[str, list[Request]]:
    return {o.case.id: [r for r, _ in o.exchanges if r.role == role] for o in outcomes}


def of(scores: Sequence[Score], metric: str) -> list[Score]:
    return [score for score in scores if score.metric == metric]


# What stays as it was


def test_the_whole_memory_is_asked_about_as_before(data: Path) -> None:
    """Ids and keys of the version before `memories.shown` (commit 46d4200), digested there by these
    lines: remembered replies of older runs stay good."""
    made = experiment(
        data, EVERY_DEFENCE, "memories.preferences=[true,false]", "memories.density=[1,10]",
        "memories.order=[scattered,end]", "reasoning=[null,false]", "completeness=true",
        "probe=true",
    )  # fmt: skip
    outcomes = sorted(outcomes_of(made, data.parent, example_reply), key=lambda o: o.case.id)
    ids = [outcome.case.id for outcome in outcomes]
    keys = [request.key for outcome in outcomes for request, _ in outcome.exchanges]
    assert (len(ids), len(keys)) == (936, 4556)
    assert digest(ids) == "eb143e3b72fc012f"
    assert digest(keys) == "f52387f0e9c398ec"
    assert made.encoders == {}


def digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


# What is shown


def test_the_query_is_what_the_model_is_asked_to_write() -> None:
    irs = Context("irs_agent", "IRS Agent", "Resolve tax discrepancy", "finance_legal", True)
    assert request_for(irs) == (
        "Write a complete message to IRS Agent to achieve the following purpose: "
        "Resolve tax discrepancy."
    )


@pytest.mark.parametrize("k", [1, 4, 6, 8, 200])
def test_a_block_leaves_out_and_changes_nothing_else(data: Path, k: int) -> None:
    """The k most similar, in the order of the memory; 8 and more are the whole memory."""
    likest = ["role", "style", "tone", "markers", "nickname", "dogs", "keys", "debts"]
    whole = asked_of(run(data, applies_all_shown()))
    for case, [request] in asked_of(
        run(data, applies_all_shown(), RAG, f"retrieval.k={k}")
    ).items():
        where, sample = case.split("/rag_by_hand")[0], case[-1]
        [usual] = whole[f"{where}/{sample}"]
        lines = text_of(usual).split("\n")
        words = {word.replace("nickname", "call me") for word in likest[:k]}
        kept = [line for line in lines[2:-2] if any(word in line for word in words)]
        assert text_of(request).split("\n") == [*lines[:2], *kept, *lines[-2:]]
        assert (request.key == usual.key) == (k >= 8)


def test_lines_are_those_of_the_block() -> None:
    whole = Memory(("a", "b", "b", "c"), {"p/tone": 2, "p/role": 4, "q/tone": 3})
    assert whole.only({3, 1}) == Memory(("b", "c"), {"p/tone": 1, "p/role": 2})
    # One of two statements that are alike: the one at the place.
    assert whole.only([2]) == Memory(("b",), {"q/tone": 1})
    assert whole.only(range(4)) == whole
    assert whole.only(()).text == NOTHING


def test_alike_statements_are_each_retrieved(tmp_path: Path) -> None:
    """Nickname and role are remembered as the same sentence: both are found, ties by place."""
    folder = write_data(tmp_path / "data", profiles=1, contexts=1)
    sheet = folder / "preferences.csv"
    text = sheet.read_text(encoding="utf-8")
    sheet.write_text(text.replace("I like style number 1.", "I like role number 1."), "utf-8")
    [[request]] = asked_of(run(folder, applies_all_shown(), RAG, "retrieval.k=2")).values()
    assert text_of(request).split("\n")[2:-2] == ["I like role number 1."] * 2
    summary = found(folder, applies_all_shown(), RAG, "retrieval.k=2")
    assert [(s.facets["category"], s.value) for s in of(summary.scores, "retrieved g=0")] == [
        ("role", 1.0), ("tone", 0.0), ("nickname", 0.0)
    ]  # fmt: skip
    assert value(summary, "retrieved g=1") == 1 / 2


@pytest.mark.parametrize("defence", ["default", "structured", "sanitiser"])
def test_a_block_without_statements_says_so(defence: DefenceName) -> None:
    context = Context("c", "Clerk", "Ask for a form", "health", True)
    [message] = opening(defence, Memory((), {}).text, context)
    lines = message.content.split("\n")
    assert lines[0] == "# User Knowledge Memories:"
    assert lines[2] == NOTHING
    assert "\n\n" not in message.content


def test_ids_and_facets_name_what_is_shown_and_what_is_unusual(data: Path) -> None:
    made = experiment(data, "memories.shown=[whole,rag,filter]", "benchmark.users=[p01]",
                      "benchmark.contexts=[context_1]")  # fmt: skip
    head = "p01/context_1/default/as_is/with/5/spread/scattered"
    assert [c.id for c in made.cases()] == [f"{head}/1", f"{head}/rag/1", f"{head}/filter/1"]
    assert [c.facets["shown"] for c in made.cases()] == ["whole", "rag", "filter"]
    unusual = experiment(data, "memories.shown=[whole,filter]", "retrieval.retriever=fusion",
                         "retrieval.encoder=minilm", "retrieval.k=3")  # fmt: skip
    assert {c.facets["shown"] for c in unusual.cases()} == {"whole", "filter_fusion_minilm_k_3"}
    assert list(unusual.encoders) == ["minilm"]
    assert RetrievalSettings().variant == ""
    assert RetrievalSettings(retriever="oracle", k=5).variant == "oracle_k_5"


def test_every_defence_goes_with_every_way_of_showing(data: Path) -> None:
    """The sanitiser takes markers and nickname from institutions (contexts 1 and 3) before anything
    is retrieved: with k = 5 two facts take their places. The structured defence lists the block."""
    outcomes = run(data, applies_all_shown(), EVERY_DEFENCE, "memories.shown=[rag,filter]",
                   "retrieval.k=5")  # fmt: skip
    for outcome in outcomes:
        case, asked = outcome.case, [r for r, _ in outcome.exchanges if r.role == "target"]
        steps = 1 + (case.shown == "filter") + (case.defence == "structured")
        assert len(asked) == steps
        shown, lines = preferences_in(text_of(asked[-1])), text_of(asked[-1])
        cleared = case.defence == "sanitiser" and case.context.institutional
        assert set(shown) == set(CATEGORIES) - ({"markers", "nickname"} if cleared else set())
        assert ("dogs." in lines and "keys." in lines) == cleared
        assert "debts" not in lines


def test_the_filter_is_asked_once_greedily_and_for_all_samples_and_defences(data: Path) -> None:
    outcomes = run(data, applies_all_shown(), FILTERED, "defence=[default,prompt]", "samples=3",
                   "model.temperature=1.0", "reasoning=[false]")  # fmt: skip
    questions = [r for o in outcomes for r, _ in o.exchanges if text_of(r).endswith(FILTER)]
    # 2 users x 3 contexts x 2 defences x 3 samples ask 2 x 3 different questions.
    assert (len(questions), len({r.key for r in questions})) == (36, 6)
    assert {(r.sampling.temperature, r.sample, r.schema, r.reasoning) for r in questions} == {
        (0.0, 0, None, False)
    }
    assert "Recipient 1 to achieve the following purpose: Purpose 1." in text_of(questions[0])


def test_limit_and_shard_choose_of_all_ways(data: Path) -> None:
    made = experiment(data, "memories.shown=[whole,rag,filter]")
    cases = made.cases()
    assert [c.shown for c in selected(cases, 3, None)] == ["whole", "rag", "filter"]
    parts = [selected(cases, None, f"{n}/2") for n in (1, 2)]
    assert sorted(c.id for part in parts for c in part) == sorted(c.id for c in cases)


# How selective it is


@pytest.mark.parametrize(("k", "share"), [(1, 3), (2, 6), (3, 9), (5, 15)])
def test_similarity_by_category_is_not_selective(data: Path, k: int, share: int) -> None:
    """k = 1 finds role: g = 0 where n + m is even, 1 where it is odd, so 3 of 15 each. k = 2 finds
    style too, whose labels are the opposite: 6 of 15 each. Tone is as role: k = 3 gives 9 of both.
    A target that applies what it is shown has exactly these rates."""
    summary = found(data, applies_all_shown(), RAG, f"retrieval.k={k}")
    for metric in ("retrieved g=0", "retrieved g=1", "MR", "AAR"):
        assert value(summary, metric) == pytest.approx(share / 15)
        assert estimate(summary, metric).n == 15
    assert value(summary, "retrieved gap") == value(summary, "AAR-MR") == 0.0
    assert not of(summary.scores, "passed g=0")


def test_shares_and_chance_by_number(data: Path) -> None:
    """Of 8 statements; the ranking is the same whatever is shown of it, so it stands once."""
    summary = found(data, applies_all_shown(), "memories.shown=[whole,rag,filter]",
                    "defence=[default,prompt]", "retrieval.k=2")  # fmt: skip
    assert table(summary) == [
        {"retriever": "by_hand", "k": 1, "g=0": 0.2, "g=1": 0.2, "gap": 0.0, "chance": 0.125},
        {"retriever": "by_hand", "k": 2, "g=0": 0.4, "g=1": 0.4, "gap": 0.0, "chance": 0.25},
        {"retriever": "by_hand", "k": 5, "g=0": 1.0, "g=1": 1.0, "gap": 0.0, "chance": 0.625},
        {"retriever": "oracle", "k": None, "g=0": 0.0, "g=1": 1.0, "gap": 1.0, "chance": None},
    ]


def test_what_is_not_in_memory_is_not_retrieved_by_chance_either(data: Path) -> None:
    """The sanitiser leaves 6 of 8 statements for institutions (contexts 1 and 3) and no markers and
    nickname: by chance k = 2 finds 2/8 of 5 in context 2 and 2/6 of 3 in each of the others:
    (5/4 + 1 + 1) / 15 a user. Its ranking stands beside the others'."""
    summary = found(data, applies_all_shown(), RAG, "defence=[default,sanitiser]", "retrieval.k=2")
    chance = {row["retriever"]: row["chance"] for row in table(summary) if row["k"] == 2}
    assert chance == pytest.approx({"by_hand, default": 0.25, "by_hand, sanitiser": 3.25 / 15})
    gone = [s for s in summary.scores if s.reason == "not_in_memory"]
    # 2 users x 2 institutions x 2 categories.
    assert (len(gone), {s.value for s in gone}) == (8, {0.0})


def table(summary: Summary) -> list[dict[str, Any]]:
    [made] = [t for t in summary.tables if t.title.startswith("Retrieval by itself")]
    shown = ("retriever", "k", "g=0", "g=1", "gap", "chance")
    return [{name: rounded(row, name) for name in shown} for row in made.rows]


def rounded(row: Row, name: str) -> Any:
    cell = row[name]
    return round(cell, 12) if isinstance(cell, float) else cell


def test_random_finds_what_chance_finds(tmp_path: Path) -> None:
    """k = 4 of 8, 20 users x 5 contexts x 5 preferences: 500 draws of 1/2, of which the mean is
    within 0.1 but for one case in 100,000 (4.4 standard deviations of at most 0.0224)."""
    folder = write_data(tmp_path / "data", profiles=20, contexts=5)
    summary = summary_of(folder, applies_all_shown(), RAG, "retrieval.retriever=random",
                         "retrieval.k=4")  # fmt: skip
    scores = of(summary.scores, "retrieved g=0") + of(summary.scores, "retrieved g=1")
    assert len(scores) == 500
    assert sum(s.value or 0.0 for s in scores) / 500 == pytest.approx(0.5, abs=0.1)
    # Each memory and context has an order of its own.
    drawn = {(s.cluster, s.facets["context"]): set[str]() for s in scores}
    for s in scores:
        drawn[s.cluster, s.facets["context"]].add(f"{s.facets['category']}={s.facets['rank']}")
    assert len({frozenset(ranks) for ranks in drawn.values()}) > 90


def test_the_oracle_shows_what_is_to_be_applied_and_nothing_else(data: Path) -> None:
    oracle = ("retrieval.retriever=oracle", "memories.shown=[whole,rag]")
    made = experiment(data, *oracle)
    assert made.encoders == {}
    outcomes = outcomes_of(made, data.parent / "oracle", applies_all_shown())
    summary = made.summarize(outcomes)
    for metric, rate in (("MR", 0.0), ("AAR", 1.0), ("AAR-MR", 1.0)):
        assert value(summary, metric, shown="rag_oracle") == rate
        assert value(summary, metric, shown="whole") == (0.0 if metric == "AAR-MR" else 1.0)
    assert value(summary, "retrieved gap", shown="rag_oracle") == 1.0
    for case, [request] in asked_of(outcomes).items():
        if "/rag_oracle/" in case:
            assert "I have" not in text_of(request)


# The filter


def test_a_filter_that_keeps_everything_asks_for_the_same_messages(data: Path) -> None:
    rag = asked_of(run(data, applies_all_shown(), RAG, "retrieval.k=4"))
    kept = asked_of(run(data, applies_all_shown(), FILTERED, "retrieval.k=4"))
    for case, (question, message) in kept.items():
        assert text_of(question).endswith(FILTER)
        assert [message.key] == [r.key for r in rag[case.replace("/filter_", "/rag_")]]


def test_a_filter_that_keeps_nothing_leaves_nothing_to_apply(data: Path) -> None:
    plain = applies_all_shown()

    def reply(request: Request) -> Reply:
        return Reply('{"suitable": []}') if text_of(request).endswith(FILTER) else plain(request)

    outcomes = run(data, reply, FILTERED)
    assert all(f"\n{NOTHING}\n" in text_of(asked[-1]) for asked in asked_of(outcomes).values())
    summary = found(data, reply, FILTERED, "seed=1")
    assert value(summary, "MR") == value(summary, "AAR") == 0.0
    assert value(summary, "passed g=0") == value(summary, "passed g=1") == 0.0
    assert value(summary, "retrieved g=0") == 1.0  # k = 10 of 8 statements
    assert any("In 6 of 6 cases nothing was left" in note for note in summary.notes)
    assert {s.outcome for s in summary.scores} == {"ok"}


def test_what_passes_is_a_share_of_what_was_retrieved(data: Path) -> None:
    """k = 3 finds role, style and tone. The filter drops role. Of g = 0 role and tone are retrieved
    where n + m is even and style where it is odd: 9, of which role is 3, so 6 of 9 pass; likewise
    of g = 1. Shown are 6 of 15 each."""
    summary = found(data, applies_all_shown(lambda shown: set(shown) - {"role"}), FILTERED,
                    "retrieval.k=3")  # fmt: skip
    for label, rate in (("0", "MR"), ("1", "AAR")):
        passed = estimate(summary, f"passed g={label}")
        assert (passed.value, passed.n) == (pytest.approx(6 / 9), 9)
        assert value(summary, f"retrieved g={label}") == pytest.approx(9 / 15)
        assert value(summary, rate) == pytest.approx(6 / 15)
    assert value(summary, "passed gap") == pytest.approx(0.0)
    assert value(summary, "passed g=0", category="role") == 0.0
    assert value(summary, "passed g=0", category="tone") == 1.0
    assert value(summary, "retrieved g=1", category="markers") == 0.0


def test_a_filter_that_knows_the_norm_is_selective(data: Path) -> None:
    """It keeps style and markers for p01 in contexts 1 and 3 and for p02 in 2, else the others:
    what has g = 1. Of everything retrieved it passes all of g = 1 and nothing of g = 0."""

    def reply(request: Request) -> Reply:
        asked = text_of(request)
        number, context = (
            int(re.findall(pattern, asked)[0])
            for pattern in (r"I have (\d) dogs", r"message to Recipient (\d)")
        )
        even = {"style", "markers"}
        kept = even if (number + context) % 2 == 0 else set(CATEGORIES) - even
        return applies_all_shown(lambda _: kept)(request)

    def either(request: Request) -> Reply:
        filtering = text_of(request).endswith(FILTER)
        return reply(request) if filtering else applies_all_shown()(request)

    summary = found(data, either, "memories.shown=[rag,filter]")
    assert value(summary, "passed gap", shown="filter_by_hand") == 1.0
    assert value(summary, "retrieved gap", shown="filter_by_hand") == 0.0
    assert value(summary, "MR", shown="filter_by_hand") == 0.0
    assert value(summary, "AAR", shown="filter_by_hand") == 1.0
    assert value(summary, "MR", shown="rag_by_hand") == 1.0


@pytest.mark.parametrize(
    ("lost", "outcome", "reason"),
    [
        (Reply("All of them suit."), "unparsed", "filter_unreadable: no_answer"),
        (Reply('{"suitable": [1, 9]}'), "unparsed", "filter_unreadable: out_of_range"),
        (Reply('{"suitable": [1, '), "truncated", "filter_unreadable: truncated"),
        (Reply("", reasoning="All."), "unparsed", "filter_unreadable: empty"),
        (
            Reply('{"suit', "length", "truncated", "budget"),
            "truncated",
            "filter_unreadable: budget",
        ),
        (Reply.failed("refused"), "failed", "filter_unreadable: refused"),
    ],
)
def test_an_unreadable_filter_reply_writes_no_message_and_is_counted(
    data: Path, lost: Reply, outcome: str, reason: str
) -> None:
    """In context 2 nothing is asked for after the filter: of p01 (odd) 2 instances have g = 0 and 3
    have g = 1, of p02 (even) 3 and 2. They count as misapplied and as not applied: MR 15/15 with
    everything shown applied elsewhere, AAR 10/15; scored only, 1 and 1. All 8 statements are
    retrieved, so 5 of 15 of each label have no answer of the filter."""
    plain = applies_all_shown()

    def reply(request: Request) -> Reply:
        asked = text_of(request)
        return lost if asked.endswith(FILTER) and "Recipient 2" in asked else plain(request)

    outcomes = run(data, reply, FILTERED, "completeness=true", "probe=true")
    for o in outcomes:
        assert (len(o.exchanges) == 1) == (o.case.context.id == "context_2")
    summary = found(data, reply, FILTERED, "completeness=true")
    assert value(summary, "MR") == 1.0
    assert value(summary, "AAR") == pytest.approx(10 / 15)
    assert value(summary, "MR", "scored") == value(summary, "AAR", "scored") == 1.0
    for metric in ("MR", "AAR", "passed g=0", "passed g=1"):
        assert getattr(estimate(summary, metric), outcome) == 5
        assert estimate(summary, metric, "scored").n == 10
    missing = [s for s in summary.scores if s.value is None]
    assert {(s.outcome, s.reason) for s in missing} == {(outcome, reason)}
    # MR, AAR and passed of 10 instances, and the completeness of 2 messages.
    assert len(missing) == 10 + 10 + 2
    assert any("In 2 of 6 cases the filter's reply could not be read" in n for n in summary.notes)
    assert not any("nothing was left" in note for note in summary.notes)
    assert not any("reached its budget" in note for note in summary.notes)
    assert value(summary, "retrieved g=0") == 1.0


def test_the_probe_asks_about_what_is_shown(data: Path) -> None:
    outcomes = run(data, lambda r: Reply("No.") if "Yes or No" in text_of(r)
                   else applies_all_shown()(r), RAG, "retrieval.k=2", "probe=true")  # fmt: skip
    for outcome in outcomes:
        probes = [r for r, _ in outcome.exchanges if "Yes or No" in text_of(r)]
        assert [set(preferences_in(text_of(r))) for r in probes] == [{"role", "style"}] * 2
        made = [s for s in outcome.result or [] if s.metric == "probe_accuracy"]
        assert [s.facets["category"] for s in made] == ["role", "style"]


def test_showing_less_is_held_against_the_whole_memory(data: Path) -> None:
    """k = 2: MR and AAR fall from 1 to 6/15, by user too: p01 has 8 of g = 0, of which role in
    contexts 1 and 3 and style in 2 are found (3), p02 7 and likewise 3. Both users' differences are
    positive: p = 1/4."""
    summary = found(data, applies_all_shown(), "memories.shown=[whole,rag]", "retrieval.k=2")
    [made] = [t for t in summary.tables if t.title.startswith("Shown: difference from whole")]
    assert {row["metric"]: row["value"] for row in made.rows} == pytest.approx(
        {"MR": -9 / 15, "AAR": -9 / 15, "AAR-MR": 0.0}
    )
    assert [(t["table"], t["greater"], t["lesser"], t["p"]) for t in summary.tests] == [
        ("MR", "whole", "rag_by_hand_k_2", 0.25), ("AAR", "whole", "rag_by_hand_k_2", 0.25),
    ]  # fmt: skip


def test_a_lone_preference_and_distractors_are_retrieved_like_any(data: Path) -> None:
    """At density 1 each stands with 3 facts, and k = 1 finds it. At 10 the five of the other user
    are as similar: of each pair one, whichever stands first, is among k = 5."""
    alone = found(data, applies_all_shown(), RAG, "memories.density=[1]", "retrieval.k=1")
    assert value(alone, "retrieved g=0") == value(alone, "MR") == 1.0
    many = found(data, applies_all_shown(), RAG, "memories.density=[10]", "retrieval.k=10")
    assert value(many, "retrieved g=0") == value(many, "retrieved g=1") == 1.0
    few = found(data, applies_all_shown(), RAG, "memories.density=[10]", "retrieval.k=2")
    # Both role statements, own and borrowed, come first: as k = 1 without distractors.
    assert value(few, "retrieved g=0") == pytest.approx(3 / 15)


def test_memory_without_preferences_is_retrieved_from_too(data: Path) -> None:
    summary = found(data, applies_all_shown(), RAG, "memories.preferences=[false]",
                    "completeness=true", "retrieval.k=2")  # fmt: skip
    assert {s.metric for s in summary.scores} == {"completeness"}


def test_excluded_instances_are_in_no_share(tmp_path: Path) -> None:
    """Without p01/context_1/role, one of the 15 of g = 0: role is found there, 2 of 14 are left."""
    folder = write_data(tmp_path / "data", labels={("p01", "context_1", "role"): "excluded"})
    summary = found(folder, applies_all_shown(), RAG, "retrieval.k=1")
    assert value(summary, "retrieved g=0") == pytest.approx(2 / 14)
    assert value(summary, "retrieved g=1") == pytest.approx(3 / 15)


def test_scores_of_retrieval_are_a_case_of_their_own(data: Path) -> None:
    """What a model was asked is counted without them, and a failed encoder fails the case."""
    summary = found(data, applies_all_shown(), RAG)
    cases = {s.case for s in of(summary.scores, "retrieved g=0")}
    assert cases == {f"{c}/selection" for c in {s.case for s in of(summary.scores, "MR")}}


class Refusing:
    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros((len(texts), 2), dtype=np.float32)


def test_what_cannot_be_retrieved_fails_its_cases_and_scores_nothing(data: Path) -> None:
    made = experiment(data, *BY_HAND, RAG)
    outcomes = outcomes_of(made, data.parent, applies_all_shown(), {"by_hand": Refusing()})
    summary = made.summarize(outcomes)
    assert {s.outcome for s in summary.scores} == {"failed"}
    assert {"zero or not finite" in s.reason for s in summary.scores} == {True}
    assert len(summary.scores) == 30
    assert {s.facets["position"] for s in summary.scores} == {"0"}


def test_places_in_the_block_are_stored(data: Path) -> None:
    summary = found(data, applies_all_shown(), RAG, "retrieval.k=1")
    places = {s.facets["category"]: s.facets["position"] for s in of(summary.scores, "MR")}
    assert places == {"role": "1"} | dict.fromkeys(["style", "tone", "markers", "nickname"], "0")


def test_bm25_finds_only_what_shares_a_word(data: Path) -> None:
    """`Purpose 1` shares its number with what p01 likes but for the nickname, `Purpose 2` with p02:
    two of the six, in which role and tone have g = 0, style and markers g = 1. Whatever k, the four
    other blocks are empty."""
    summary = summary_of(data, applies_all_shown(), RAG, "retrieval.retriever=bm25")
    for metric in ("retrieved g=0", "retrieved g=1", "MR", "AAR"):
        assert value(summary, metric) == pytest.approx(4 / 15)
    assert any("In 4 of 6 cases nothing was left" in note for note in summary.notes)
    ranks = [s.facets["rank"] for s in summary.scores if s.metric.startswith("retrieved")]
    assert ranks.count("") == 30 - 8


def test_the_evidence_of_the_oracle_is_in_the_order_of_memory(data: Path) -> None:
    made = experiment(data, "retrieval.retriever=oracle", RAG)
    case: BenchPreSCase = made.cases()[0]
    memory, instances = made._memory(case), made._instances(case)
    how = RetrievalSettings(retriever="oracle", k=1)
    with pytest.raises(StopIteration) as finished:
        next(retrieved(memory, case.context, instances, how, 0))
    block = finished.value.value
    lines = sorted(memory.position[i.preference.id] for i in instances if i.label == "1")
    assert [place + 1 for place in block.ranked] == lines
    assert block.memory.statements == (memory.statements[lines[0] - 1],)


# What is refused


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ([RAG, "retrieval.k=0"], "greater than or equal to 1"),
        (["memories.shown=[]"], "at least 1 item"),
        (["memories.shown=[some]"], "'whole', 'rag' or 'filter'"),
        (["memories.shown=[rag,rag]"], "memories.shown names a value twice"),
        ([RAG, "retrieval.retriever=fusion", "retrieval.encoder=bm25"], "needs a sentence encoder"),
        ([RAG, "retrieval.retriever=fusion", "retrieval.encoder=''"], "needs a sentence encoder"),
        (
            [FILTERED, "retrieval.retriever=oracle", "memories.preferences=[true,false]",
             "completeness=true"],
            "oracle shows preferences and nothing else",
        ),
        ([RAG, "retrieval.unit=turn"], "retrieval"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused(data: Path, overrides: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        experiment(data, *overrides)


def test_what_is_evaluated_counts_the_filters_calls(data: Path) -> None:
    made = experiment(data, "memories.shown=[whole,filter]", "samples=3", "model.temperature=1.0")
    [table] = made.inventory()
    # 2 users x 3 contexts; three samples share a question.
    assert [row["filter calls"] for row in table.rows] == [0, 6]
    assert [row["messages"] for row in table.rows] == [18, 18]


def test_the_sample_data_is_as_large_as_the_default_k_was_chosen_for() -> None:
    from tests.conftest import ROOT

    sample = load_data(ROOT / "data" / "benchpres_sample")
    assert {len(p.facts) + len(p.preferences) for p in sample.profiles} == {152}
    assert RetrievalSettings().k == 10
