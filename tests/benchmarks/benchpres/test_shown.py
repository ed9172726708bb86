"""What a prompt shows of a memory, and what of that is refused; all numbers by hand.

The data are described in showing.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

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
from persona_lab.engines.scripted import example_reply
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import (
    experiment,
    outcomes_of,
    value,
)
from tests.benchmarks.benchpres.showing import (
    EVERY_DEFENCE,
    FILTER,
    FILTERED,
    RAG,
    applies_all_shown,
    asked_of,
    found,
    of,
    preferences_in,
    run,
    text_of,
)


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


def test_memory_without_preferences_is_retrieved_from_too(data: Path) -> None:
    summary = found(data, applies_all_shown(), RAG, "memories.preferences=[false]",
                    "completeness=true", "retrieval.k=2")  # fmt: skip
    assert {s.metric for s in summary.scores} == {"completeness"}


def test_places_in_the_block_are_stored(data: Path) -> None:
    summary = found(data, applies_all_shown(), RAG, "retrieval.k=1")
    places = {s.facets["category"]: s.facets["position"] for s in of(summary.scores, "MR")}
    assert places == {"role": "1"} | dict.fromkeys(["style", "tone", "markers", "nickname"], "0")


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


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ([RAG, "retrieval.k=0"], "greater than or equal to 1"),
        ([RAG, "retrieval.retriever=''"], "retriever"),
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
    assert [row["filter calls, at most"] for row in table.rows] == [0, 6]
    assert [row["messages"] for row in table.rows] == [18, 18]


def test_what_is_evaluated_counts_the_probes_that_can_be_made(data: Path) -> None:
    """2 users x 3 contexts x 5. The sanitiser takes 2 of 5 in the two institutions of each user:
    30 - 8. With k = 4 at most 4 of 5 are shown where nothing is taken: 6 x 4; 2 x (3 + 4 + 3)."""
    usual = ("defence=[default,sanitiser]", "probe=true", "samples=2", "model.temperature=1.0")
    [whole] = experiment(data, *usual).inventory()
    assert [row["probes"] for row in whole.rows] == [30, 22]
    [part] = experiment(data, *usual, "memories.shown=[whole,rag]", "retrieval.k=4").inventory()
    assert [row["probes, at most"] for row in part.rows] == [30, 24, 22, 20]
    assert "probes" not in part.rows[0]


def test_the_sample_data_is_as_large_as_the_default_k_was_chosen_for() -> None:
    from tests.conftest import ROOT

    sample = load_data(ROOT / "data" / "benchpres_sample")
    assert {len(p.facts) + len(p.preferences) for p in sample.profiles} == {152}
    assert RetrievalSettings().k == 10
