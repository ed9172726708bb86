"""The context `retrieved`: what is shown, what is refused."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.benchmarks.persevalbench.context import CONTEXTS, context_text, turns_text
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.records import Scenario
from persona_lab.benchmarks.persevalbench.retrieval_scoring import Searched
from persona_lab.benchmarks.persevalbench.retrieved import Retrieval, Search, offered, search
from persona_lab.core.errors import ConfigError
from persona_lab.core.flow import Encode
from persona_lab.core.prompt import Reply
from persona_lab.running.setup import configure, set_up
from tests.benchmarks.persevalbench.data import write_scenarios
from tests.benchmarks.persevalbench.scripted import (
    always,
    experiment,
    outcomes_of,
    shown,
)
from tests.benchmarks.persevalbench.searched import (
    BM25,
    REQUEST,
    SAMPLE,
    TURNS,
    by_hand,
    end,
    write,
)
from tests.conftest import ROOT


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "small")


@pytest.fixture
def scenario(small: Path) -> Scenario:
    return load_scenarios(small)[0][0]


# What is shown


def test_what_is_found_is_shown_in_the_order_of_the_conversation(
    small: Path, tmp_path: Path
) -> None:
    made = experiment(small, *BM25, "retrieval.k=2")
    outcomes = outcomes_of(made, tmp_path / "r", always("RIGHT"))
    assert end(search(made.scenarios[0], "bm25", Search(k=2), 0)) == [3, 1]
    for outcome in outcomes:
        [(request, _)] = outcome.exchanges
        assert (
            "Conversation context: Turn 1 (user): A boiler, please.\n"
            "Turn 2 (user): A quiet boiler.\nUser request: Quiet boiler?\n"
        ) in shown(request)


def test_a_search_is_of_messages_for_the_bare_request(scenario: Scenario) -> None:
    """Vectors by hand: turns 6, 4 and 2 are nearest to the request, in this order."""
    flow = search(scenario, "minilm", Search(k=3), 0)
    asked = next(flow)
    assert isinstance(asked, Encode)
    assert (asked.encoder, asked.texts) == ("minilm", (REQUEST, *TURNS))
    angles = np.radians([0, 90, 30, 80, 20, 70, 10])
    with pytest.raises(StopIteration) as ended:
        flow.send(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    assert ended.value.value == [6, 4, 2]


def test_more_than_there_is_shows_the_whole_history(scenario: Scenario) -> None:
    for retriever, number in (("random", 6), ("oracle", 2), ("bm25", 3)):
        found = end(search(scenario, retriever, Search(k=50), 0))
        assert len(found) == number
    everything = sorted(end(search(scenario, "random", Search(k=50), 0)))
    assert turns_text(scenario, everything) == context_text(scenario, "full")


def test_blank_turns_are_not_offered(tmp_path: Path) -> None:
    """Turn 2, and turn 3 of A, are a control character that Python takes for a space."""
    turns = ["A boiler, please.", "\x1c", "\x1c", "Fine.", "My aunt has a loud one.", "I see."]
    made = load_scenarios(write(tmp_path / "d", turns, a=[1, 3]))[0][0]
    assert offered(made) == [1, 4, 5, 6]
    assert sorted(end(search(made, "random", Search(k=9), 0))) == [1, 4, 5, 6]
    assert end(search(made, "oracle", Search(k=9), 0)) == [1, 5]
    # Of A only turn 1 can be found, of the evidence turns 1 and 5.
    found = by_hand(Searched(made, "c", 2, {}).found([1, 4]))
    assert found == {"recall@2": 0.5, "reciprocal_rank@2": 1.0, "recall_A@2": 1.0, "recall_B@2": 0}


@settings(deadline=None)  # the first search loads the lexical index
@given(st.integers(0, 18), st.integers(1, 25), st.integers(0, 50))
def test_the_target_is_never_found(place: int, k: int, seed: int) -> None:
    made = load_scenarios(SAMPLE)[0][place]
    for retriever in ("random", "bm25", "oracle"):
        found = end(search(made, retriever, Search(k=k), seed))
        assert len(set(found)) == len(found) <= k
        assert all(1 <= n < made.target for n in found)
    drawn = end(search(made, "random", Search(k=k), seed))
    assert len(drawn) == min(k, made.target - 1)
    assert drawn == end(search(made, "random", Search(k=k), seed))


def test_the_oracle_is_gold_evidence(tmp_path: Path) -> None:
    """No scenario of the sample has more than six evidence turns: the very same is asked."""
    made = experiment(SAMPLE, "contexts=[gold_only,retrieved]", "retrieval.retriever=oracle")
    outcomes = outcomes_of(made, tmp_path, always("RIGHT"))
    keys: dict[str, list[str]] = {"gold_only": [], "retrieved": []}
    for outcome in sorted(outcomes, key=lambda o: o.case.id):
        keys[outcome.case.context] += [request.key for request, _ in outcome.exchanges]
    assert keys["gold_only"] == keys["retrieved"]
    assert len(keys["retrieved"]) == 19 * 2
    # With room for two the first two are shown.
    first = made.scenarios[3]
    assert first.evidence == (3, 5, 11, 13, 19)
    assert end(search(first, "oracle", Search(k=2), 0)) == [3, 5]


def test_what_the_papers_contexts_ask_is_as_before(tmp_path: Path) -> None:
    """Digests of all request keys and case ids, computed before there was a context `retrieved`
    (commit 46d4200): remembered replies stay valid."""
    named = [f"contexts=[{','.join(CONTEXTS)}]", "protocols=[verdict,pointwise,pairwise]"]
    named += ["formulations=[end_to_end,evidence_first,state_table]"]
    made = experiment(write_scenarios(tmp_path / "d", 3), *named)
    outcomes = outcomes_of(made, tmp_path / "r", lambda r: Reply("- quiet, turn 1"))
    keys = sorted({request.key for o in outcomes for request, _ in o.exchanges})
    assert [hashlib.sha256("\n".join(t).encode()).hexdigest() for t in (
        keys, [case.id for case in made.cases()]
    )] == [
        "3e10fb008af21fc10fd617bc5f393b3870232f531dbb29a6c57676e9a0194f0e",
        "eb4b02eb34c2421ccda39eb29154fb1ab41984bd27c3b19ba81e7b7f64b4c34e",
    ]  # fmt: skip


# Settings


@pytest.mark.parametrize(
    ("overrides", "encoders"),
    [
        ([], []),
        (["contexts=[retrieved,full]"], ["simcse"]),
        (["contexts=[retrieved]", "retrieval.retriever=minilm"], ["minilm"]),
        (["contexts=[retrieved]", "retrieval.retriever=bm25"], []),
        (["contexts=[retrieved]", "retrieval.retriever=oracle"], []),
        (
            ["contexts=[retrieved]", "retrieval.retriever=fusion", "retrieval.encoder=minilm"],
            ["minilm"],
        ),
        (["contexts=[full]", "retrieval.retriever=fusion", "retrieval.encoder=bm25"], []),
    ],
)
def test_an_encoder_is_asked_only_where_it_is_needed(
    overrides: list[str], encoders: list[str], small: Path
) -> None:
    assert list(experiment(small, *overrides).encoders) == encoders


def test_a_variant_shows_and_the_case_ids_do_not_change(small: Path) -> None:
    assert Retrieval().variant == ""
    assert Retrieval(encoder="minilm").variant == ""  # nothing is fused
    assert Retrieval(k=4).variant == "k_4"
    assert Retrieval(retriever="fusion", encoder="minilm", k=10).variant == "fusion_minilm_k_10"
    ids = set()
    for overrides, context in (
        (["retrieval.retriever=simcse"], "retrieved"),
        (["retrieval.retriever=minilm"], "retrieved_minilm"),
        (["retrieval.retriever=bm25", "retrieval.k=4"], "retrieved_bm25_k_4"),
    ):
        cases = experiment(small, "contexts=[full,retrieved]", *overrides).cases()
        assert [c.facets["context"] for c in cases] == ["full", "full", context, context]
        ids.add(tuple(case.id for case in cases))
    [found] = ids
    assert found[2:] == (
        "s01/target/retrieved/verdict/end_to_end/right/1",
        "s01/target/retrieved/verdict/end_to_end/error/1",
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["contexts=retrieved", "retrieval.k=0"], "retrieval.k"),
        (["contexts=retrieved", "retrieval.retriever=''"], "at least 1 character"),
        (["contexts=retrieved", "retrieval.unit=turn"], "retrieval.unit: no such key"),
        (
            ["contexts=retrieved", "retrieval.retriever=fusion", "retrieval.encoder=bm25"],
            "retrieval.encoder=bm25: fusion needs a sentence encoder beside bm25",
        ),
        (
            ["contexts=retrieved", "retrieval.retriever=simsce"],
            "encoders={simsce: {path: FOLDER, pooling: mean}}",
        ),
        (["contexts=retrieved"], "encoders.simcse.path=FOLDER"),
    ],
)
def test_what_cannot_be_retrieved_is_refused(arguments: list[str], problem: str) -> None:
    named = ["recipe=persevalbench_main", "model=smollm2_135m", "engine=scripted"]
    with pytest.raises(ConfigError, match=re.escape(problem)):
        set_up(configure(ROOT, [*named, *arguments]))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["retrieval.encoder=oracle"], "fusion needs a sentence encoder"),
        (["retrievers=[bm25,bm25]"], "retrievers names a value twice"),
        (["retrievers=[]"], "at least 1 item"),
        (["retrievers=['']"], "at least 1 character"),
        (["retrieval.retriever=bm25"], "retrieval.retriever: no such key"),
        (["benchmark.scenarios=[s99]"], "s99 not in the data"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        set_up(configure(ROOT, ["recipe=persevalbench_retrieval_only", *arguments]))
