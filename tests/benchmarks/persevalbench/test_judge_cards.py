"""Which run's card a judge gets, and what a run counts as lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from persona_lab.core.errors import PersonaLabError
from persona_lab.core.flow import Model
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Estimate, Summary
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.running.execute import execute
from persona_lab.running.judge_card import card_lines, card_of, cards_for
from persona_lab.running.setup import Setup, configure, set_up
from tests.benchmarks.persevalbench.scripted import says, shown, write_composition
from tests.conftest import ROOT

SAMPLING = {
    "temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0,
}  # fmt: skip
ESTIMATE = {"value": 0.5, "low": 0.25, "high": 0.75, "interval": "Wilson", "n": 9}


@pytest.fixture(scope="module")
def judged() -> Setup:
    """A run whose judge is looked up."""
    return set_up(configure(ROOT, ["recipe=quickstart", "engine=scripted"]))


def write_manifest(runs: Path, setup: Setup, name: str, n: int = 9, **changes: Any) -> None:
    """The manifest of a complete run with the judge's card; `changes` of its card, or `written`."""
    card = {
        "identity": setup.prepared["judge"].model.identity,
        "sampling": SAMPLING,
        "data_hash": f"data of {name}",
        "estimates": {"ERR": {**ESTIMATE, "n": n}},
    }
    written = changes.pop("written", "2026-01-02")
    content = {"status": "complete", "written": written, "card": card | changes}
    (runs / name).mkdir(parents=True)
    (runs / name / "manifest.json").write_text(json.dumps(content), encoding="utf-8")


def evaluated(data: Path, *overrides: str) -> Setup:
    """A run of which a card is made."""
    named = ["recipe=persevalbench_main", f"benchmark.path={data}", "model=smollm2_135m"]
    return set_up(configure(ROOT, [*named, "engine=scripted", *overrides]))


def test_a_part_of_a_run_makes_no_card(tmp_path: Path) -> None:
    data = write_composition(tmp_path, {"stale_superseded": 3})
    err = Estimate("ERR", 0.5, 0.25, 0.75, "Wilson", "all", 9, 9)
    summary = Summary([], [], card={"ERR": err})
    whole = evaluated(data, "model.top_p=0.5")
    card = card_of(whole, summary)
    assert card["estimates"] == {"ERR": ESTIMATE}
    assert card["sampling"] == {**SAMPLING, "top_p": 0.5}
    assert card["data_hash"] == whole.experiment.data_hash
    for part in ("limit=2", "shard=1/2"):
        assert card_of(evaluated(data, part), summary) == {}


def test_the_card_over_most_responses_counts_then_the_newest(tmp_path: Path, judged: Setup) -> None:
    write_manifest(tmp_path, judged, "small", n=9, written="2026-01-05")
    write_manifest(tmp_path, judged, "old", n=403, written="2026-01-02")
    write_manifest(tmp_path, judged, "new", n=403, written="2026-01-03")
    write_manifest(tmp_path, judged, "another", n=999, identity="another model")
    cards = cards_for(judged, tmp_path)
    shown_card = {"run": "new", "data_hash": "data of new", "ERR": {**ESTIMATE, "n": 403}}
    assert cards == {"judge": shown_card}
    [line] = card_lines(judged, cards)
    assert line == "Card of the judge smollm2_135m: ERR 0.500 [0.250, 0.750] n=403 (new)."


def test_a_card_of_other_sampling_does_not_count(tmp_path: Path, judged: Setup) -> None:
    """Nor one that does not say how its judge was sampled."""
    for name in SAMPLING:
        write_manifest(tmp_path, judged, name, sampling={**SAMPLING, name: 0.5})
    write_manifest(tmp_path, judged, "unsaid", sampling=None)
    assert cards_for(judged, tmp_path) == {"judge": None}


@pytest.mark.parametrize(
    "changes",
    [
        {"estimates": {"ERR": 0.5}},
        {"estimates": {"ERR": {"value": 0.5}}},
        {"estimates": [ESTIMATE]},
        {"estimates": None},
        {"estimates": {}},
        *(
            {"estimates": {"ERR": {**ESTIMATE, **wrong}}}
            for wrong in ({"n": None}, {"n": "9"}, {"value": "x"}, {"high": None})
        ),
    ],
)
def test_a_damaged_manifest_is_passed_over(
    tmp_path: Path, judged: Setup, changes: dict[str, Any]
) -> None:
    write_manifest(tmp_path, judged, "whole")
    write_manifest(tmp_path, judged, "damaged", written="2026-01-09", **changes)
    for name, content in (
        ("cut", '{"status": "comp'),
        ("list", "[1]"),
        ("deep", "[" * 100_000),
        ("card", '{"card": 1}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(content)
    assert cards_for(judged, tmp_path)["judge"]["run"] == "whole"


# What a run counts as lost


def run(setup: Setup, runs: Path, reply: Callable[[Request], Reply]) -> None:
    """A run whose models answer so."""
    prepared = {
        role: replace(p, model=Model(role, p.model.identity, lambda: ScriptedEngine(reply)))
        for role, p in setup.prepared.items()
    }
    with Console(width=100).capture():
        execute(replace(setup, prepared=prepared), runs, Console(width=100))


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply("Fine."), "1 of 2 scores are unparsed or truncated"),
        (Reply.failed("time-out"), "1 of 2 scores have no reply"),
    ],
)
def test_a_pair_is_not_lost_once_more(tmp_path: Path, reply: Reply, problem: str) -> None:
    """One scenario: two replies, of which one is lost, and with it the pair made of both."""
    setup = evaluated(write_composition(tmp_path, {"stale_superseded": 1}), "max_unparsed=0.4")
    with pytest.raises(PersonaLabError, match=problem):
        run(setup, tmp_path, lambda r: reply if "error response" in shown(r) else says("RIGHT"))


def test_a_panel_without_a_majority_has_lost_nothing(tmp_path: Path) -> None:
    setup = evaluated(
        write_composition(tmp_path, {"stale_superseded": 1}), "max_unparsed=0", "panel=true",
        "judge=qwen3_8b",
    )  # fmt: skip
    verdicts = {"target": "RIGHT", "judge": "OVER_PERSONALIZED"}
    run(setup, tmp_path, lambda r: says(verdicts[r.role]))
    [made] = tmp_path.glob("persevalbench_main-*/manifest.json")
    manifest = json.loads(made.read_text())
    # Two responses, and the pair of both, of panel_majority alone.
    assert (manifest["status"], manifest["scores"]["unparsed"]) == ("complete", 3)
