"""Table 12: what a method costs in tokens, per question to the model under test and in all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from persona_lab.benchmarks.realpref.cases import RealPrefCase
from persona_lab.core.flow import Outcome
from persona_lab.core.scores import Estimate, Row, RowsTable, Score
from persona_lab.methods.mem0 import Spent
from persona_lab.metrics.estimate import COUNT, estimates

TOKENS = {"prompt_tokens": COUNT, "completion_tokens": COUNT}


def token_report(
    outcomes: Sequence[Outcome[RealPrefCase, list[Score]]], by: Sequence[str], seed: int
) -> list[Estimate]:
    """Mean prompt and completion tokens, by condition."""
    rows = [
        Score(case.id, case.asked.id, name, case.user.id, float(count), "ok", "", case.facets)
        for outcome in outcomes
        for case in [outcome.case]
        for request, reply in outcome.exchanges
        if request.role == "target" and reply.outcome != "failed"
        for name, count in (
            ("prompt_tokens", reply.counts.prompt),
            ("completion_tokens", reply.counts.completion),
        )
    ]
    return estimates(rows, TOKENS, by, unit="user", seed=seed)


def spent_by_method(
    outcomes: Sequence[Outcome[RealPrefCase, list[Score]]], memories: Sequence[Spent]
) -> list[RowsTable]:
    """Tokens asked and computed by each method in all; nothing for a single method.

    What was computed depends on what an engine had in its cache when it was asked: methods share
    their histories, and a run that was stopped begins with an empty one. So it is no estimate.

    Args:
        memories: what writing each memory took; what several histories begin with is asked once.
    """
    spent: dict[tuple[str, str], Spent] = {}
    for outcome in outcomes:
        mine = spent.setdefault((outcome.case.facets["method"], "target"), Spent())
        for request, reply in outcome.exchanges:
            if request.role == "target":
                mine.add(request, reply)
    if memories:
        methods = [o.case.facets["method"] for o in outcomes if o.case.method == "mem0"]
        spent[methods[0] if methods else "mem0", "memory"] = reduce(or_, memories)
    if len({method for method, _ in spent}) < 2 and not memories:
        return []
    rows: list[Row] = [
        {
            "method": method,
            "role": role,
            "requests": one.requests,
            "asked": one.prompt_tokens,
            "computed": one.computed_tokens,
            "written": one.completion_tokens,
            "failed": one.failed,
        }
        for (method, role), one in spent.items()
    ]
    return [RowsTable("Tokens by method (computed: in no cache when it was asked)", rows)]
