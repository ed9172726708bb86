"""Is retrieval selective, and is the filter? Beyond the paper; no judge has a say in it.

Of each preference with a gold label: is it among the k statements retrieved, and if so, does the
filter keep it? What is to be suppressed (g = 0) and what is to be applied (g = 1) stand apart, like
MR and AAR: a selective step lets g = 1 through and holds g = 0 back, and its gap is near 1.

    retrieved g=0, g=1    share of the preferences that are among the k statements
    passed g=0, g=1       share of the retrieved ones that the filter keeps

A reply of the filter that could not be read counts as the worse outcome, as a lost message does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from persona_lab.benchmarks.benchpres.cases import CONDITIONS, telling
from persona_lab.benchmarks.benchpres.comparisons import gap, gap_terms
from persona_lab.benchmarks.benchpres.records import Instance
from persona_lab.benchmarks.benchpres.scoring import Row
from persona_lab.benchmarks.benchpres.settings import RetrievalSettings
from persona_lab.benchmarks.benchpres.shown import Block
from persona_lab.core.scores import Estimate, RowsTable, Score
from persona_lab.core.scores import Row as Cells
from persona_lab.methods.rag import ORACLE
from persona_lab.metrics.contrasts import contrast
from persona_lab.metrics.estimate import Metric, estimates

_SUPPRESS, _APPLY = Metric(0.0, 1.0, worse=1.0), Metric(0.0, 1.0, worse=0.0)
RETRIEVED = {"retrieved g=0": _SUPPRESS, "retrieved g=1": _APPLY}
PASSED = {"passed g=0": _SUPPRESS, "passed g=1": _APPLY}
STEPS = {"retrieved gap": RETRIEVED, "passed gap": PASSED}
"""The share of g = 1 less that of g = 0."""
NUMBERS = (1, 5, 10, 20, 50, 100)
"""Of statements, that the table shows beside the k of the run."""
NOT_IN_MEMORY = "not_in_memory"
Item = tuple[str, str]


def selection_scores(row: Row, block: Block, instances: Sequence[Instance]) -> list[Score]:
    """Whether each preference of a message was retrieved and, if so, whether the filter kept it.

    Facets say its `rank` by similarity (empty where it has none), how many `statements` the memory
    has, and how many are `left` in the prompt (empty where none was written).
    """
    ranks = {place: rank for rank, place in enumerate(block.ranked, 1)}
    size = str(len(block.whole.statements))
    left = "" if block.problem else str(len(block.memory.statements))
    scores = []
    for instance in instances:
        line = block.whole.position.get(instance.preference.id)
        place = None if line is None else line - 1
        found, label = place in block.retrieved, instance.label
        facets: dict[str, str] = {
            "category": instance.preference.category,
            "label": label,
            "rank": str(ranks.get(place, "")) if place is not None else "",
            "statements": size,
            "left": left,
        }
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


def selection_estimates(scores: Sequence[Score], by: Sequence[str], seed: int) -> list[Estimate]:
    """Both steps and their gaps by the facets `by`, where the run has them."""
    made = list[Estimate]()
    for name, rates in STEPS.items():
        own = [s for s in scores if s.metric in rates]
        made += estimates(own, rates, by, unit="user", seed=seed, crossed="context")
        made += gap(own, by, seed, name, rates)
    return made


def by_number(scores: Sequence[Score], how: RetrievalSettings, seed: int) -> list[RowsTable]:
    """The shares that other numbers of statements would retrieve, with what chance would, and an
    oracle; the ranking is the same whatever the number."""
    rows = [
        row
        for named, items in _rankings([s for s in scores if s.metric in RETRIEVED])
        for row in _rows(named, items, how, seed)
    ]
    title = "Retrieval by itself: share of preferences among the k statements retrieved"
    return [RowsTable(title, rows, ("n", "interval"))] if rows else []


def selection_notes(scores: Sequence[Score], how: RetrievalSettings) -> list[str]:
    """How the shares are to be read, and how often nothing was shown."""
    own = [s for s in scores if s.metric in RETRIEVED]
    if not own:
        return []
    notes = [
        f"retrieved g=0 and g=1: shares of the preferences to be suppressed and to be applied that "
        f"are among the {how.k} statements retrieved ({how.retriever}); passed: what the filter "
        "keeps of those. A step is selective if it lets g=1 through and holds g=0 back: its gap is "
        "near 1. More statements raise both shares.",
        "What was not retrieved, or not kept, still counts in MR and AAR: a message that does "
        "not apply it is right where g=0 and wrong where g=1.",
    ]
    cases = {s.case: s for s in own}
    left = [s.facets["left"] for s in cases.values()]
    if lost := left.count(""):
        notes.append(
            f"In {lost} of {len(left)} cases the filter's reply could not be read: no message was "
            "asked for, and each step and rate counts the worse outcome."
        )
    if empty := left.count("0"):
        notes.append(f"In {empty} of {len(left)} cases nothing was left of the memory to show.")
    return notes


def _rankings(retrieved: Sequence[Score]) -> list[tuple[list[str], list[Score]]]:
    """Each ranking that differs from the others, once: filter, defence and sample change none. With
    it what all its conditions share and others have not."""
    groups: dict[tuple[str, ...], dict[Item, Score]] = {}
    for score in retrieved:
        condition = tuple(score.facets[name] for name in CONDITIONS if name != "shown")
        item = score.cluster, score.question
        groups.setdefault(condition, {})[item] = score
    same: dict[tuple[tuple[Item, str], ...], list[tuple[str, ...]]] = {}
    for condition, items in groups.items():
        ranks = tuple(sorted((item, score.facets["rank"]) for item, score in items.items()))
        same.setdefault(ranks, []).append(condition)
    firsts = [conditions[0] for conditions in same.values()]
    return [
        (telling(first, firsts) if len(firsts) > 1 else [], list(groups[first].values()))
        for first in firsts
    ]


def _rows(
    named: Sequence[str], items: Sequence[Score], how: RetrievalSettings, seed: int
) -> list[Cells]:
    largest = max(int(score.facets["statements"]) for score in items)
    numbers = sorted({n for n in NUMBERS if n < largest} | {how.k})
    rows = [
        _row([how.retriever, *named], k, _within(items, k), _by_chance(items, k), seed)
        for k in numbers
    ]
    if how.retriever == ORACLE:
        return rows
    perfect = [replace(score, value=float(score.facets["label"] == "1")) for score in items]
    bound = _row([ORACLE, *named], None, perfect, None, seed)
    return [*rows, {**bound, "low": None, "high": None, "interval": "n/a: by construction"}]


def _within(items: Sequence[Score], k: int) -> list[Score]:
    """Whether each would be retrieved if k statements were."""
    ranks = [score.facets["rank"] for score in items]
    return [
        replace(score, value=float(rank != "" and int(rank) <= k))
        for score, rank in zip(items, ranks, strict=True)
    ]


def _by_chance(items: Sequence[Score], k: int) -> float:
    """The share that k statements drawn at random hold; of what is not in memory, none."""
    sizes = [int(s.facets["statements"]) for s in items if s.reason != NOT_IN_MEMORY]
    return sum(min(k, size) / size for size in sizes) / len(items)


def _row(
    what: Sequence[str], k: int | None, items: Sequence[Score], chance: float | None, seed: int
) -> Cells:
    """Both shares, and their gap with its interval."""
    terms = gap_terms(items, RETRIEVED)
    applied, suppressed = (
        contrast("share", [replace(term, weight=1.0)], basis="scored", seed=seed).value
        for term in terms
    )
    found = contrast("gap", terms, basis="scored", unit="user", seed=seed, crossed="context")
    return {
        "retriever": ", ".join(what),
        "k": k,
        "g=0": suppressed,
        "g=1": applied,
        "gap": found.value,
        "low": found.low,
        "high": found.high,
        "chance": chance,
        "n": found.n,
        "interval": found.interval,
    }
