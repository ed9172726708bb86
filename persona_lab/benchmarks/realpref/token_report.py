"""Table 12: what a method costs in tokens, per open-ended question to the model under test."""

from __future__ import annotations

from collections.abc import Sequence

from persona_lab.benchmarks.realpref.cases import RealPrefCase
from persona_lab.core.experiment import Estimate, Score
from persona_lab.core.flow import Outcome
from persona_lab.metrics.estimate import Metric, estimates

_COUNT = Metric(0.0, float("inf"))
TOKENS = {"prompt_tokens": _COUNT, "completion_tokens": _COUNT}


def token_report(
    outcomes: Sequence[Outcome[RealPrefCase, list[Score]]], by: Sequence[str], seed: int
) -> list[Estimate]:
    """Mean prompt and completion tokens, by condition."""
    rows = [
        Score(case.id, case.asked.id, name, case.user.id, float(count), "ok", "", case.facets)
        for outcome in outcomes
        for case in [outcome.case]
        if case.task == "open_ended"
        for request, reply in outcome.exchanges
        if request.role == "target" and reply.outcome != "failed"
        for name, count in (
            ("prompt_tokens", reply.counts.prompt),
            ("completion_tokens", reply.counts.completion),
        )
    ]
    return estimates(rows, TOKENS, by, unit="user", seed=seed)
