"""What Mem0 wrote: sizes and costs by condition, failures by turn, each memory with its past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from persona_lab.benchmarks.realpref.cases import RealPrefCase
from persona_lab.benchmarks.realpref.remembered import Remembered
from persona_lab.benchmarks.realpref.summary import BY
from persona_lab.core.flow import Outcome
from persona_lab.core.scores import Estimate, Row, RowsTable, Score
from persona_lab.memory.records import Ingested
from persona_lab.methods.mem0 import Written
from persona_lab.metrics.estimate import COUNT, estimates

METRICS = dict.fromkeys(("memories", "memory_failures", "memory_prompt_tokens"), COUNT)
"""Per history: memories in the end, replies that nothing could be made of, what writing asked."""
_PRINTED = 20


@dataclass
class MemoryReport:
    """What a run says of its memories.

    Attributes:
        memories: a row per event: which turn did what to which memory.
    """

    scores: list[Score] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)
    tables: list[RowsTable] = field(default_factory=list)
    memories: list[Row] = field(default_factory=list)


def memory_report(
    memories: Sequence[Outcome[Remembered, Written]],
    cases: Sequence[RealPrefCase],
    seed: int,
) -> MemoryReport:
    """The report of a run; empty without memories.

    Args:
        cases: whose conditions the memories stand under.
    """
    written = [(o.case, o.result) for o in memories if o.result is not None]
    if not written:
        return MemoryReport()
    conditions = _conditions(cases)
    scores = [
        score
        for case, made in written
        for facets in conditions.get((case.expression, case.context), [])
        for score in _scores(case, made, facets)
    ]
    tables = [RowsTable("Memories, by history", [_row(*w) for w in written], _KEPT, _PRINTED)]
    failures = [row for case, made in written for row in _failures(case, made.ingested)]
    if failures:
        tables.append(RowsTable("Memory failures", failures, _UNPRINTED, _PRINTED))
    return MemoryReport(
        scores,
        estimates(scores, METRICS, BY, unit="user", seed=seed),
        tables,
        [row for case, made in written for row in _events(case, made.ingested)],
    )


def _conditions(cases: Sequence[RealPrefCase]) -> dict[tuple[str, str], list[dict[str, str]]]:
    """Expression and context -> the facets of each condition of Mem0 that there is."""
    found: dict[tuple[str, str], dict[tuple[str, ...], dict[str, str]]] = {}
    for case in cases:
        if case.method == "mem0":
            facets = {name: case.facets[name] for name in BY}
            found.setdefault((case.expression, case.context), {})[tuple(facets.values())] = facets
    return {place: list(conditions.values()) for place, conditions in found.items()}


def _scores(case: Remembered, made: Written, facets: dict[str, str]) -> list[Score]:
    """One score a metric; none has a value while requests of the memory are without a reply."""
    spent = made.spent
    counts = (
        len(made.ingested.memories),
        len(made.ingested.failures),
        spent.prompt_tokens,
    )
    named = {**facets, "user": case.user.id}
    if spent.failed:
        reason = f"{spent.failed} of {spent.requests} requests of the memory failed"
        return [
            Score(case.id, case.id, m, case.user.id, None, "failed", reason, named) for m in METRICS
        ]
    return [
        Score(case.id, case.id, metric, case.user.id, float(count), "ok", "", named)
        for metric, count in zip(METRICS, counts, strict=True)
    ]


_UNPRINTED = ("history", "fact", "reply")
_KEPT = (
    "history", "ADD", "UPDATE", "DELETE", "NOOP", "removed", "said twice", "not text",
    "other script", "requests", "prompt tokens", "computed tokens", "written tokens",
)  # fmt: skip


def _row(case: Remembered, made: Written) -> Row:
    ingested, spent = made.ingested, made.spent
    counts = ingested.counts
    row: Row = {"user": case.user.id, "expression": case.expression, "context": case.context}
    row |= {"history": case.id, "turns": counts.exchanges, "facts": counts.facts}
    row |= {"memories": len(ingested.memories), "failures": len(ingested.failures)}
    row |= {"without reply": spent.failed}
    row |= {str(kind): number for kind, number in counts.events.items()}
    row |= {"removed": len(ingested.removed), "said twice": counts.duplicates}
    row |= {"not text": counts.skipped, "other script": counts.language_mismatch}
    row |= {"requests": spent.requests, "prompt tokens": spent.prompt_tokens}
    return row | {
        "computed tokens": spent.computed_tokens, "written tokens": spent.completion_tokens
    }  # fmt: skip


def _failures(case: Remembered, ingested: Ingested) -> list[Row]:
    return [
        {
            "user": case.user.id,
            "expression": case.expression,
            "context": case.context,
            "turn": failure.source,
            "stage": failure.stage,
            "reason": failure.reason,
            "history": case.id,
            "fact": failure.fact,
            "reply": failure.reply,
        }
        for failure in ingested.failures
    ]


def _events(case: Remembered, ingested: Ingested) -> list[Row]:
    """Removed memories have their events too; `state` tells them."""
    states = (("live", ingested.memories), ("removed", ingested.removed))
    return [
        {
            "history": case.id,
            "user": case.user.id,
            "expression": case.expression,
            "context": case.context,
            "memory": memory.id,
            "text": memory.text,
            "state": state,
            "step": step,
            "event": event.kind,
            "turn": event.source,
            "before": event.before,
            "after": event.after,
            "note": event.note,
        }
        for state, members in states
        for memory in members
        for step, event in enumerate(memory.history, 1)
    ]
