"""Is retrieval selective, and is the filter? Beyond the paper; no judge has a say in it.

Of each preference with a gold label: is it among the k statements retrieved, and if so, does the
filter keep it? What is to be suppressed (g = 0) and what is to be applied (g = 1) stand apart, like
MR and AAR. The share of g = 1 less that of g = 0 is a step's gap: 1 if it lets through what is to
be applied and nothing else, 0 if it looks at something else.

    retrieved g=0, g=1    share of the preferences that are among the k statements
    passed g=0, g=1       share of the retrieved ones that the filter keeps

A reply of the filter that could not be read counts as the worse outcome, as a lost message does,
and so does a case that failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from persona_lab.benchmarks.benchpres.comparisons import gap
from persona_lab.benchmarks.benchpres.memory import Memory
from persona_lab.benchmarks.benchpres.records import Instance
from persona_lab.benchmarks.benchpres.scoring import Problem, Row
from persona_lab.benchmarks.benchpres.shown import Block
from persona_lab.core.scores import Estimate, Score
from persona_lab.metrics.estimate import Metric, estimates

_SUPPRESS, _APPLY = Metric(0.0, 1.0, worse=1.0), Metric(0.0, 1.0, worse=0.0)
RETRIEVED = {"retrieved g=0": _SUPPRESS, "retrieved g=1": _APPLY}
PASSED = {"passed g=0": _SUPPRESS, "passed g=1": _APPLY}
STEPS = {"retrieved gap": RETRIEVED, "passed gap": PASSED}
"""The share of g = 1 less that of g = 0."""
NOT_IN_MEMORY = "not_in_memory"


def selection_scores(row: Row, block: Block, instances: Sequence[Instance]) -> list[Score]:
    """Whether each preference of a message was retrieved and, if so, whether the filter kept it.

    Facets say how many `statements` the memory has, its `line` there (0 where it is not), its
    `rank` by similarity (empty where it has none), and how many are `left` in the prompt (empty
    where none was written).
    """
    ranks = {place: rank for rank, place in enumerate(block.ranked, 1)}
    left = "" if block.problem else str(len(block.memory.statements))
    scores = []
    for instance in instances:
        line = block.whole.position.get(instance.preference.id)
        place = None if line is None else line - 1
        found, label = place in block.retrieved, instance.label
        rank = str(ranks.get(place, "")) if place is not None else ""
        facets = _facets(instance, block.whole, rank, left)
        reason = NOT_IN_MEMORY if place is None else ""
        name = f"retrieved g={label}"
        scores.append(row.score(instance.id, name, float(found), "ok", reason, **facets))
        name = f"passed g={label}"
        if found and block.problem:
            outcome, why = block.problem
            scores.append(row.score(instance.id, name, None, outcome, why, **facets))
        elif found and block.passed is not None:
            kept = float(place in block.passed)
            scores.append(row.score(instance.id, name, kept, "ok", "", **facets))
    return scores


def selection_lost(
    row: Row, whole: Memory, instances: Sequence[Instance], problem: Problem, *, filtering: bool
) -> list[Score]:
    """The scores of a case that failed: what it would have retrieved, and kept, is not known.

    Args:
        whole: the memory that the case was about. filtering: whether the case has a filter.
    """
    steps = ("retrieved", "passed") if filtering else ("retrieved",)
    outcome, reason = problem
    return [
        row.score(
            instance.id,
            f"{step} g={instance.label}",
            None,
            outcome,
            reason,
            **_facets(instance, whole, "", ""),
        )
        for instance in instances
        for step in steps
    ]


def _facets(instance: Instance, whole: Memory, rank: str, left: str) -> dict[str, str]:
    return {
        "category": instance.preference.category,
        "label": instance.label,
        "statements": str(len(whole.statements)),
        "line": str(whole.position.get(instance.preference.id, 0)),
        "rank": rank,
        "left": left,
    }


def selection_estimates(scores: Sequence[Score], by: Sequence[str], seed: int) -> list[Estimate]:
    """Both steps and their gaps by the facets `by`, where the run has them."""
    made = list[Estimate]()
    for name, rates in STEPS.items():
        own = [s for s in scores if s.metric in rates]
        made += estimates(own, rates, by, unit="user", seed=seed, crossed="context")
        made += gap(own, by, seed, name, rates)
    return made
