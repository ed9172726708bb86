"""Every recipe in its CPU form: on the scripted engine and, slowly, on vLLM with a real model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from persona_lab.core.recipe import list_recipes
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, set_up
from tests.conftest import ROOT
from tests.engines.shared import computed_over_unique, run_on

SHOWN = {
    "main": {"ERR", "FAR", "pair accuracy", "constant over", "Table 3 as published", "by subtype"},
    "contexts": {"target only", "recent", "full highlights", "gold only", "Table 5 as published"},
    "formulations": {"end to end", "evidence first", "state table", "Table 10 as published"},
    "protocols": {"separated", "tied", "pairwise accuracy", "order consistency", "Appendix C.5"},
    "ablation": {"full minus relevant", "full minus unrelated", "Table 11 as published"},
    "operating": {"Stated confidence against being right"},
    "panel": {"panel majority", "panel unanimity", "smollm2 135m/judge"},
    "retrieval": {
        "target only", "recent", "retrieved minilm", "gold only", "recall@6 (random)",
        "recall B@6 (oracle)", "Encoders",
    },
}  # fmt: skip
"""What each recipe's output names."""


def cpu_form(recipe: str) -> list[str]:
    header = (ROOT / "recipes" / f"{recipe}.yaml").read_text(encoding="utf-8")
    return [f"recipe={recipe}", *re.findall(r"^# CPU form: (form=\w+)\.$", header, re.MULTILINE)]


def scripted(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    console = Console(width=100)
    before = set(folder.glob("*/results.json"))
    with console.capture() as capture:
        execute(set_up(configure(ROOT, [*arguments, "engine=scripted"])), folder, console)
    [path] = set(folder.glob("*/results.json")) - before
    return json.loads(path.read_text(encoding="utf-8")), capture.get()


def test_every_recipe_is_here() -> None:
    made = {name for name in list_recipes(ROOT) if name.startswith("persevalbench_")}
    assert made == {f"persevalbench_{name}" for name in (*SHOWN, "quickstart", "retrieval_only")}


@pytest.mark.parametrize("name", SHOWN)
def test_a_recipe_runs_in_its_cpu_form(name: str, tmp_path: Path) -> None:
    found, shown = scripted(tmp_path, *cpu_form(f"persevalbench_{name}"))
    assert found["status"] == "complete"
    words = " ".join(shown.split())
    assert [part for part in SHOWN[name] if part not in words] == []
    assert max(len(line) for line in shown.splitlines() if "complete:" not in line) <= 100


def test_retrievers_are_compared_without_a_model(tmp_path: Path) -> None:
    found, shown = scripted(tmp_path, *cpu_form("persevalbench_retrieval_only"))
    assert (found["status"], found["usage"]) == ("complete", {})
    words = " ".join(shown.split())
    named = ("minilm", "bm25", "fusion", "random", "oracle", "recall B@6", "by distance")
    assert [part for part in named if part not in words] == []
    assert "Usage" not in words


def test_the_quickstart_prints_what_it_must(tmp_path: Path) -> None:
    found, shown = scripted(tmp_path, "recipe=persevalbench_quickstart")
    overall = {
        e["metric"]: e
        for e in found["estimates"]
        if set(e["facets"]) == {"evaluator", "context", "formulation"}
        and e["facets"]["evaluator"] == "smollm2_135m"
        and e["basis"] == "all"
    }
    # The scripted engine's example is always RIGHT: no error recognised, no false alarm.
    assert {m: overall[m]["value"] for m in ("ERR", "FAR", "pair_accuracy")} == {
        "ERR": 0.0, "FAR": 0.0, "pair_accuracy": 0.0,
    }  # fmt: skip
    assert {overall[m]["interval"] for m in ("ERR", "FAR")} == {"Wilson"}
    for part in ("Table 3 as published", "this run (other data)", "Table 3 (baseline)"):
        assert part in " ".join(shown.split())


@pytest.mark.parametrize("recipe", ["quickstart", "benchpres_quickstart"])
def test_a_judges_card_is_shown_by_the_runs_it_judges(recipe: str, tmp_path: Path) -> None:
    other = [f"recipe={recipe}", "limit=2"]
    _, before = scripted(tmp_path, *other)
    assert "No card of the judge smollm2_135m: recipe=persevalbench_main" in before
    scripted(
        tmp_path, "recipe=persevalbench_main", "model=smollm2_135m", "model.max_model_len=8192"
    )
    [made] = tmp_path.glob("persevalbench_main-*/manifest.json")
    card = json.loads(made.read_text())["card"]
    assert card["estimates"]["FAR"] == {
        "value": 0.0, "low": 0.0, "high": card["estimates"]["FAR"]["high"], "interval": "Wilson",
        "n": 19,
    }  # fmt: skip
    again = [*other, "seed=1"]
    _, after = scripted(tmp_path, *again)
    shown = " ".join(after.split())
    assert "Card of the judge smollm2_135m: ERR 0.000 [0.000, 0.168] n=19" in shown
    assert made.parent.name in shown
    manifests = [json.loads(p.read_text()) for p in tmp_path.glob(f"{recipe}-*/manifest.json")]
    linked = [m["judge_card"]["judge"] for m in manifests]
    assert None in linked
    [link] = [c for c in linked if c]
    assert link["run"] == made.parent.name
    assert link["FAR"]["value"] == 0.0


def test_another_judge_has_no_card(tmp_path: Path) -> None:
    scripted(
        tmp_path, "recipe=persevalbench_main", "model=smollm2_135m", "model.max_model_len=8192"
    )
    _, shown = scripted(tmp_path, "recipe=quickstart", "limit=2", "judge=qwen3_8b")
    assert "No card of the judge qwen3_8b" in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_a_recipe_runs_on_a_real_model(name: str, engine: Any, tmp_path: Path) -> None:
    again = name == "retrieval"  # most of its contexts are those of `contexts`
    found = run_on(engine, tmp_path, *cpu_form(f"persevalbench_{name}"), cold=again)
    assert computed_over_unique(found) <= 1.02
    assert all(u["failed"] == 0 for u in found["usage"].values())
    assert {"ERR", "FAR"} <= {e["metric"] for e in found["estimates"]}
