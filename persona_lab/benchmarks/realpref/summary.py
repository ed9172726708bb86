"""From scores to what a run reports: section 5.3, Appendix G.3 and H.2-H.4."""

from __future__ import annotations

from collections.abc import Sequence

from persona_lab.benchmarks.realpref.cases import RealPrefCase
from persona_lab.benchmarks.realpref.scoring import (
    ANSWER_CUT,
    IN_MEMORY,
    METRICS,
    SHOWN,
    retrieval_metrics,
)
from persona_lab.benchmarks.realpref.settings import Contexts, RealPrefSettings
from persona_lab.benchmarks.realpref.token_report import token_report
from persona_lab.core.flow import Outcome
from persona_lab.core.scores import Estimate, Row, RowsTable, Score
from persona_lab.methods.rag import BOUNDS
from persona_lab.metrics.estimate import SHARE, estimates
from persona_lab.metrics.repeats import FEWEST_RUNS, repeated_runs

BY = ("preference", "task", "method", "context", "expression", "check")


def all_estimates(
    scores: Sequence[Score],
    outcomes: Sequence[Outcome[RealPrefCase, list[Score]]],
    settings: RealPrefSettings,
    seed: int,
) -> list[Estimate]:
    """Accuracy, the three dimensions with their mean, evidence found, and tokens, by condition."""
    metrics = dict(METRICS)
    for k in _retrieved(settings):
        for bound in ("", *BOUNDS):
            metrics |= retrieval_metrics(k, bound)
    metrics[IN_MEMORY] = SHARE
    made = estimates(scores, metrics, BY, unit="user", seed=seed)
    return made + token_report(outcomes, BY, seed)


def _retrieved(settings: RealPrefSettings) -> list[int]:
    """How many texts the methods retrieve, each number once."""
    chosen = settings.method
    numbers = [settings.retrieval.k] if chosen.rag is not None else []
    return list(dict.fromkeys([*numbers, *([settings.mem0.k] if chosen.mem0 is not None else [])]))


def repeats_tables(scores: Sequence[Score], repeats: int) -> list[RowsTable]:
    """Table 16, for a run that asked everything at least three times."""
    if repeats < FEWEST_RUNS:
        return []
    runs = [[s for s in scores if s.facets["repeat"] == str(r)] for r in range(repeats)]
    rows: list[Row] = [
        {
            "task": cell.facets["task"],
            "metric": cell.metric,
            "basis": cell.basis,
            "runs": len(cell.runs),
            "mean": cell.mean,
            "sd": cell.sd,
            "variance": cell.variance,
            "why_not": cell.reason,
        }
        for cell in repeated_runs(runs, METRICS, ["task"])
    ]
    return [RowsTable("Repeated runs (Table 16)", rows)]


def scale_notes(contexts: Contexts) -> list[str]:
    """Whether contexts are not the paper's."""
    if contexts.scale == 1.0:
        return []
    return [f"Contexts are scaled to {contexts.scale:.1%} of Table 2's lengths."]


def notes(scores: Sequence[Score], settings: RealPrefSettings, filler: Sequence[str]) -> list[str]:
    """What must stand below the numbers.

    Args:
        filler: what the filler's source asks to be said.
    """
    found = [*filler, *scale_notes(settings.context)]
    shown = [s for s in scores if s.metric == SHOWN]
    for method in dict.fromkeys(s.facets["method"] for s in shown):
        mine = [s for s in shown if s.facets["method"] == method]
        if empty := sum(s.value == 0 for s in mine):
            found.append(
                f"In {empty} of {len(mine)} cases {method} found nothing and showed nothing."
            )
    if any(s.metric == IN_MEMORY for s in scores):
        found.append(
            "Mem0's recall, random and oracle are over its memories and the turns that they stand "
            "for, RAG's over turns; evidence in memory is what writing kept."
        )
    judged = [s for s in scores if s.metric == "overall"]
    if cut := sum(s.reason == ANSWER_CUT for s in judged):
        budget = settings.max_tokens.open_ended
        found.append(
            f"{cut} of {len(judged)} open-ended answers reached max_tokens ({budget}) and were "
            "judged as far as they go."
        )
    return found
