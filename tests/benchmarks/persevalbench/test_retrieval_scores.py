"""Is what was retrieved the evidence? Scores by hand, once a scenario; retrieval by itself."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.records import Scenario
from persona_lab.benchmarks.persevalbench.retrieval_scoring import Searched, with_bounds
from persona_lab.core.errors import PersonaLabError
from persona_lab.core.flow import Model
from persona_lab.core.prompt import Reply
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, set_up
from tests.benchmarks.persevalbench.data import write_scenarios
from tests.benchmarks.persevalbench.scripted import (
    always,
    estimate,
    experiment,
    outcomes_of,
    summary_of,
)
from tests.benchmarks.persevalbench.searched import (
    BM25,
    by_hand,
    in_all,
    run,
    write,
)
from tests.conftest import ROOT


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "small")


@pytest.fixture
def scenario(small: Path) -> Scenario:
    return load_scenarios(small)[0][0]


# Recall, rank and bounds


def test_scores_and_bounds_by_hand(scenario: Scenario) -> None:
    """Evidence is turns 3 and 5 of six. Found are 1 and 3: one of two, at rank 2; all of A, none of
    B. A random order has a turn among the first two with 2/6; of two turns the first is at rank 1
    with 2/6 and at rank 2 with 4/6 * 2/5, so that the rank's mean is 1/3 + 4/15 / 2 = 7/15."""
    assert by_hand(with_bounds(Searched(scenario, "c", 2, {}), [1, 3])) == pytest.approx(
        {
            "recall@2": 1 / 2, "reciprocal_rank@2": 1 / 2, "recall_A@2": 1, "recall_B@2": 0,
            "recall@2 (random)": 1 / 3, "reciprocal_rank@2 (random)": 7 / 15,
            "recall_A@2 (random)": 1 / 3, "recall_B@2 (random)": 1 / 3,
            "recall@2 (oracle)": 1, "reciprocal_rank@2 (oracle)": 1,
            "recall_A@2 (oracle)": 1, "recall_B@2 (oracle)": 1,
        }
    )  # fmt: skip


def test_bounds_of_too_few_places(scenario: Scenario) -> None:
    """One place holds one of two evidence turns, and all of the one state that is asked about."""
    found = by_hand(Searched(scenario, "c", 1, {}).ceiling())
    assert found == {
        "recall@1": 0.5, "reciprocal_rank@1": 1, "recall_A@1": 1, "recall_B@1": 1,
    }  # fmt: skip
    # More places than turns find everything.
    assert by_hand(Searched(scenario, "c", 9, {}).chance())["recall@9"] == 1


def test_a_rank_beyond_k_counts_as_none(scenario: Scenario) -> None:
    found = by_hand(Searched(scenario, "c", 2, {}).found([1, 2, 3]))
    assert (found["recall@2"], found["reciprocal_rank@2"]) == (0, 0)


def test_without_a_competing_state_there_is_no_recall_of_it(scenario: Scenario) -> None:
    alone = replace(scenario, b=None)
    scores = with_bounds(Searched(alone, "c", 2, {}), [3, 1])
    assert len(scores) == 3 * 3
    assert not any(score.metric.startswith("recall_B") for score in scores)


def test_a_search_without_hits_says_so(tmp_path: Path) -> None:
    data = write(tmp_path / "d", request="Hm?", number=2)
    found = summary_of(data, tmp_path / "r", always("RIGHT"), *BM25)
    assert in_all(found)["recall@6"].value == 0.0
    assert (
        "In 2 of 2 scenarios retrieval found nothing: the context `retrieved` shows no turn."
    ) in found.notes


# Once a scenario


def test_a_scenario_is_counted_once(tmp_path: Path) -> None:
    """2 scenarios x 2 evaluators x 2 contexts x (2 formulations + 2 protocols) x 2 x 2 samples."""
    named = [
        "contexts=[recent,retrieved]", "retrieval.retriever=bm25", "retrieval.k=2",
        "formulations=[end_to_end,state_table]", "protocols=[verdict,pointwise,pairwise]",
        "samples=2", "model.temperature=1.0", "judge=qwen3_8b", "judge.temperature=1.0",
        "panel=true",
    ]  # fmt: skip
    data = write(tmp_path / "d", number=2)
    made = experiment(data, *named)
    outcomes = outcomes_of(made, tmp_path / "r", always("OVER_PERSONALIZED"))
    assert len(outcomes) == 2 * 2 * 2 * 4 * 2 * 2
    found = made.summarize(outcomes)
    rows = [s for s in found.scores if s.metric.startswith(("recall", "reciprocal"))]
    assert Counter((s.case, s.metric) for s in rows).most_common(1)[0][1] == 1
    assert {s.case for s in rows} == {"s01/retrieved/retrieval", "s02/retrieved/retrieval"}
    assert len(rows) == 2 * 12
    estimated = in_all(found)
    assert len(estimated) == 12
    assert {(e.n, e.clusters, e.failed) for e in estimated.values()} == {(2, 2, 0)}
    assert estimated["recall@2"].facets == {"context": "retrieved_bm25_k_2"}
    # The same as ever is made of what was asked: two samples of a response are one item.
    over = {"evaluator": "qwen3_8b", "context": "retrieved_bm25_k_2", "formulation": "state_table"}
    for metric in ("ERR", "FAR", "pair_accuracy"):
        for evaluator in ("qwen3_8b", "panel_majority", "constant_over"):
            assert estimate(found, metric, **(over | {"evaluator": evaluator})).n == 2


def test_breakdowns(tmp_path: Path) -> None:
    """Scenarios of the small folder: A in turn 1 and another, B, where there is one, in turn 5."""
    data = write_scenarios(tmp_path / "d", 6)
    found = summary_of(data, tmp_path / "r", always("RIGHT"), *BM25)
    scenarios = load_scenarios(data)[0]
    # One of the six is a complete omission, which has no state B here.
    assert (in_all(found)["recall_A@6"].n, in_all(found)["recall_B@6 (random)"].n) == (6, 5)
    for part in ("family", "form", "distance"):
        numbers = {
            e.facets[part]: e.n
            for e in found.estimates
            if e.metric == "recall@6 (oracle)" and set(e.facets) == {"context", part}
        }
        values = {"distance": "distance_bin"}.get(part, part)
        assert numbers == Counter(getattr(s, values) for s in scenarios)


def test_a_case_that_failed_loses_nothing_that_another_has(tmp_path: Path) -> None:
    made = experiment(write(tmp_path / "d", number=2), *BM25)
    outcomes = list(outcomes_of(made, tmp_path / "r", always("RIGHT")))
    outcomes.sort(key=lambda o: o.case.id)
    broken = [replace(o, result=None, error="Traceback\nValueError: odd") for o in outcomes]
    # The error response of s01 alone: its other case has what was found.
    found = in_all(made.summarize([broken[0], *outcomes[1:]]))["recall@6"]
    assert (found.n, found.failed) == (2, 0)
    # Both of s01: it is lost, once, and so are its bounds.
    lost = made.summarize([*broken[:2], *outcomes[2:]])
    for e in in_all(lost).values():
        assert (e.n, e.failed) == (1, 1)
    reasons = {s.reason for s in lost.scores if s.case == "s01/retrieved/retrieval"}
    assert reasons == {"ValueError: odd"}


def test_a_blank_request_fails_its_own_cases(tmp_path: Path) -> None:
    data = write(tmp_path / "d", number=2)
    path = data / "scenarios.json"
    records = json.loads(path.read_text(encoding="utf-8"))
    records[0]["episodes"][0]["turns"][-1]["text"] = "\x1c"
    path.write_text(json.dumps(records), encoding="utf-8")
    arguments = ("recipe=persevalbench_retrieval", f"benchmark.path={data}", "engine=scripted")
    arguments += ("retrieval.retriever=minilm", "model=smollm2_135m")
    with pytest.raises(PersonaLabError, match=r"2 cases failed .*blank"):
        run(tmp_path / "runs", *arguments)
    [folder] = (tmp_path / "runs").glob("persevalbench_*/scores.parquet")
    scores = pd.read_parquet(folder)
    recall = scores[scores["metric"] == "recall@6"].set_index("cluster")
    assert dict(recall["outcome"]) == {"s01": "failed", "s02": "ok"}
    errors = scores[(scores["metric"] == "ERR") & scores["value"].isna()]
    assert set(errors["context"]) == {"retrieved_minilm"}
    only = ("recipe=persevalbench_retrieval_only", f"benchmark.path={data}")
    with pytest.raises(PersonaLabError, match=r"1 cases failed .*blank"):
        run(tmp_path / "only", *only)
    [path] = (tmp_path / "only").glob("*/results.json")
    counts = {
        e["facets"]["retriever"]: (e["n"], e["failed"])
        for e in json.loads(path.read_text())["estimates"]
        if e["metric"] == "recall@6" and set(e["facets"]) == {"retriever"}
    }
    names = ("minilm", "bm25", "fusion", "random", "oracle")
    assert counts == dict.fromkeys(names, (1, 1))


@pytest.mark.parametrize("part", ["limit=1", "limit=3", "shard=1/2", "shard=2/2"])
def test_a_part_of_a_run_has_the_scenarios_that_it_asks_about(part: str, tmp_path: Path) -> None:
    data = write(tmp_path / "d", number=4)
    named = ("recipe=persevalbench_main", f"benchmark.path={data}", *BM25, part)
    named += ("model=smollm2_135m",)
    cases = set_up(configure(ROOT, [*named, "engine=scripted"])).cases
    asked = {case.scenario.id for case in cases}
    assert 0 < len(cases) < 8
    found, _, scores = run(tmp_path / "r", *named)
    [recall] = [
        e
        for e in found["estimates"]
        if e["metric"] == "recall@6" and set(e["facets"]) == {"context"}
    ]
    assert recall["n"] == len(asked)
    assert set(scores[scores["metric"] == "recall@6"]["cluster"]) == asked


def test_lost_verdicts_are_not_diluted_by_retrieval(small: Path, tmp_path: Path) -> None:
    """Both verdicts are unreadable: recall, which no model was asked for, does not count."""
    named = ["recipe=persevalbench_main", f"benchmark.path={small}", *BM25, "max_unparsed=0.9"]
    setup = set_up(configure(ROOT, [*named, "model=smollm2_135m", "engine=scripted"]))
    unsure = Model("m", "m", lambda: ScriptedEngine(lambda request: Reply("I am not sure.")))
    prepared = {role: replace(p, model=unsure) for role, p in setup.prepared.items()}
    console = Console(width=100)
    with console.capture(), pytest.raises(PersonaLabError, match="2 of 2 scores are un"):
        execute(replace(setup, prepared=prepared), tmp_path, console)


# With real encoders


def test_retrievers_side_by_side_without_a_model(small: Path, tmp_path: Path) -> None:
    named = (
        "recipe=persevalbench_retrieval_only", f"benchmark.path={small}", "retrieval.k=2",
        "retrievers=[bm25,random,oracle]",
    )  # fmt: skip
    found, printed, scores = run(tmp_path / "r", *named)
    assert found["status"] == "complete"
    assert "Usage" not in printed
    # BM25 finds 3, then 1; the bounds are those worked out above.
    made = {(row.retriever, row.metric): row.value for row in scores.itertuples()}
    assert made == pytest.approx(
        {
            ("bm25", "recall@2"): 1 / 2, ("bm25", "reciprocal_rank@2"): 1,
            ("bm25", "recall_A@2"): 1, ("bm25", "recall_B@2"): 0,
            ("random", "recall@2"): 1 / 3, ("random", "reciprocal_rank@2"): 7 / 15,
            ("random", "recall_A@2"): 1 / 3, ("random", "recall_B@2"): 1 / 3,
            ("oracle", "recall@2"): 1, ("oracle", "reciprocal_rank@2"): 1,
            ("oracle", "recall_A@2"): 1, ("oracle", "recall_B@2"): 1,
        }
    )  # fmt: skip


def test_the_samples_recall_by_another_program(tmp_path: Path) -> None:
    """The same with sentence-transformers' encode, numpy's argsort and sets, without this package:
    means over the 19 scenarios of the sample."""
    found, _, scores = run(tmp_path, "recipe=persevalbench_retrieval_only")
    by_minilm = {
        e["metric"]: e["value"]
        for e in found["estimates"]
        if e["facets"] == {"retriever": "minilm"}
    }
    assert by_minilm == pytest.approx(
        {
            "recall@6": 0.21929824561403505, "reciprocal_rank@6": 0.27368421052631575,
            "recall_A@6": 0.20175438596491227, "recall_B@6": 0.23245614035087717,
        }
    )  # fmt: skip
    assert set(scores.groupby(["retriever", "metric"]).size()) == {19}


def test_what_an_evaluator_sees_is_what_is_measured(tmp_path: Path) -> None:
    """The same four scenarios, once beside a score and once by themselves."""
    alone, _, _ = run(
        tmp_path, "recipe=persevalbench_retrieval_only", "form=persevalbench_retrieval_cpu"
    )
    beside, printed, _ = run(
        tmp_path, "recipe=persevalbench_retrieval", "form=persevalbench_cpu", "contexts=retrieved"
    )

    def values(found: dict[str, Any], facets: dict[str, str], bound: str) -> dict[str, float]:
        named = {e["metric"]: e["value"] for e in found["estimates"] if e["facets"] == facets}
        metrics = ("recall@6", "reciprocal_rank@6", "recall_A@6", "recall_B@6")
        return {metric: named[metric + bound] for metric in metrics}

    for retriever, bound in (("minilm", ""), ("random", " (random)"), ("oracle", " (oracle)")):
        expected = values(alone, {"retriever": retriever}, "")
        assert values(beside, {"context": "retrieved_minilm"}, bound) == expected
    assert "Encoders" in printed
