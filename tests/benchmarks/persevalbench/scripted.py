"""PersEvalBench on the scripted engine: small scenarios, and evaluators whose rule is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from persona_lab.benchmarks.persevalbench.cases import PersEvalCase
from persona_lab.benchmarks.persevalbench.experiment import PersEvalBench
from persona_lab.benchmarks.persevalbench.records import LEGAL, RELATIONS
from persona_lab.core.drive import drive
from persona_lab.core.flow import Model, Outcome
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Estimate, Row, Score, Summary
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.running.setup import configure
from tests.conftest import ROOT

Replies = Callable[[Request], Reply]
PAPER = {
    "complete_omission": 44, "partial_omission": 39, "explicit_violation": 47,
    "irrelevant_use": 64, "scope_leakage": 44, "unsupported_inference": 43,
    "stale_superseded": 31, "over_dominance": 47, "underweighting": 44,
}  # fmt: skip
"""Scenarios of each subtype in the paper, which Table 3's first column of rates implies (28/44 =
63.6 %, 19/39 = 48.7 %, ...): 130 under, 151 over and 122 misapplied, as Table 9 says."""
VERDICT = {"right": "RIGHT", "under": "UNDER_PERSONALIZED", "over": "OVER_PERSONALIZED"}


def write_composition(folder: Path, subtypes: Mapping[str, int]) -> Path:
    """A data folder with so many scenarios of each subtype, of five turns each.

    Responses name what they are: `error response of s003, complete_omission`.
    """
    made = []
    for subtype, number in subtypes.items():
        relation = next(r for r in RELATIONS if subtype in LEGAL[r])
        made += [_scenario(f"s{len(made) + i:03}", relation, subtype) for i in range(number)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenarios.json").write_text(json.dumps(made), encoding="utf-8")
    return folder


def _scenario(name: str, relation: str, subtype: str) -> dict[str, object]:
    state = {
        "statement": f"wants {name}", "holder": "user", "scope": "this", "time": "now",
        "strength": "hard", "transferability": "general",
    }  # fmt: skip
    texts = [f"I want {name}.", "Noted.", f"My friend does not want {name}.", "I see.", "So which?"]
    roles = ["user", "assistant"] * 3
    turns = [{"role": r, "text": t} for r, t in zip(roles, texts, strict=False)]
    return {
        "id": name, "relation": relation, "subtype": subtype, "state_relation": "hard_vs_soft",
        "evidence_form": "explicit", "evidence_distance": "medium",
        "states": {
            "A": {**state, "role": "Dominate", "turns": [1]},
            "B": {**state, "role": "Ignore", "turns": [3]},
        },
        "episodes": [{"turns": turns[:2]}, {"turns": turns[2:]}],
        "right_response": f"right response of {name}",
        "error_response": f"error response of {name}, {subtype}",
    }  # fmt: skip


def experiment(data: Path, *overrides: str) -> PersEvalBench:
    """persevalbench_main on a data folder."""
    named = ["recipe=persevalbench_main", f"benchmark.path={data}", *overrides]
    configured = configure(ROOT, named)
    return PersEvalBench(configured.settings, configured.run, ROOT)


def outcomes_of(
    made: PersEvalBench, folder: Path, reply: Replies | Mapping[str, Replies]
) -> Sequence[Outcome[PersEvalCase, list[Score]]]:
    """Each role with a model of its own; `reply` may differ by role."""
    models = {}
    for role in made.roles:
        own = reply if callable(reply) else reply[role]
        models[role] = Model(role, role, lambda own=own: ScriptedEngine(own))
    with Store(folder, "w") as store:
        return list(drive(made.cases(), made.flow, models, store))


def summary_of(
    data: Path, folder: Path, reply: Replies | Mapping[str, Replies], *overrides: str
) -> Summary:
    """The summary of a run."""
    made = experiment(data, *overrides)
    return made.summarize(outcomes_of(made, folder, reply))


def says(verdict: str, confidence: float = 0.9) -> Reply:
    """A reply that keeps the contract."""
    return Reply(json.dumps({"verdict": verdict, "subtypes": [], "confidence": confidence}))


def always(verdict: str) -> Replies:
    """A constant evaluator."""
    return lambda request: says(verdict)


def shown(request: Request) -> str:
    """What the evaluator was asked."""
    return request.prompt.tail[-1].content


def value(found: Summary, metric: str, basis: str = "all", **facets: str) -> float | None:
    """The value of the estimate that has these facets beside its condition, and no other part."""
    return estimate(found, metric, basis, **facets).value


def estimate(found: Summary, metric: str, basis: str = "all", **facets: str) -> Estimate:
    """See `value`; the evaluator is the target unless it is named."""
    condition = {"evaluator", "context", "formulation"}
    wanted = {"evaluator": "qwen3_32b"} | facets
    [made] = [
        e
        for e in found.estimates
        if (e.metric, e.basis) == (metric, basis)
        and wanted.items() <= e.facets.items()
        and set(e.facets) == condition | set(facets)
    ]
    return made


def rows(found: Summary, title: str, **cells: str) -> list[Row]:
    """Rows of the one table whose title begins so, that have these cells."""
    [table] = [t for t in found.tables if t.title.startswith(title)]
    return [row for row in table.rows if cells.items() <= row.items()]
