"""Retrieval by itself: the shares that each number of statements would retrieve, with chance and an
oracle beside them. The ranking is the same whatever the number, so that no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from persona_lab.benchmarks.benchpres.cases import CONDITIONS
from persona_lab.benchmarks.benchpres.comparisons import BASE, gap_terms
from persona_lab.benchmarks.benchpres.selectivity import RETRIEVED
from persona_lab.benchmarks.benchpres.settings import RetrievalSettings
from persona_lab.core.scores import Row, RowsTable, Score
from persona_lab.methods.rag import ORACLE
from persona_lab.metrics.contrasts import contrast

NUMBERS = (1, 5, 10, 20, 50, 100)
"""Of statements, that the table shows beside the k of the run."""
_FACETS = tuple(name for name in CONDITIONS if name != "shown")
Condition = tuple[str, ...]
Item = tuple[str, str]


def by_number(scores: Sequence[Score], how: RetrievalSettings, seed: int) -> list[RowsTable]:
    """A row per number and ranking; a case without one counts the worse outcome.

    `oracle` is the most that so many statements can hold of g = 1, up to the number that holds all.
    """
    rows = [
        row
        for named, items in _rankings([s for s in scores if s.metric in RETRIEVED])
        for row in _rows(named, items, how, seed)
    ]
    title = "Retrieval by itself: share of preferences among the k statements retrieved"
    return [RowsTable(title, rows, ("n", "interval"))] if rows else []


def shared(members: Sequence[Condition], everyone: Sequence[Condition]) -> list[str]:
    """What conditions share and others have not, each part by itself: `prompt`, `default/prompt`,
    or `not sanitiser` where that names fewer."""
    named = []
    for own, all_of_them in zip(
        zip(*members, strict=True), zip(*everyone, strict=True), strict=True
    ):
        mine = list(dict.fromkeys(own))
        lacking = [value for value in dict.fromkeys(all_of_them) if value not in mine]
        if lacking:
            fewer = len(mine) > 1 and len(lacking) < len(mine)
            named.append("not " + "/".join(lacking) if fewer else "/".join(mine))
    return named


def in_order(names: Sequence[str], condition: Condition) -> list[tuple[bool, int, str]]:
    """Sorts conditions: what others are held against first, then numbers by size and names.

    Args:
        names: of the facets whose values the condition has.
    """
    return [
        (value != BASE[name], int(value) if value.isdigit() else 0, value)
        for name, value in zip(names, condition, strict=True)
    ]


def _rankings(retrieved: Sequence[Score]) -> list[tuple[list[str], list[Score]]]:
    """Each ranking of the same preferences in as large a memory once, and what its conditions
    share; the order in which replies came changes neither."""
    groups: dict[Condition, dict[Item, Score]] = {}
    for score in retrieved:
        items = groups.setdefault(tuple(score.facets[name] for name in _FACETS), {})
        item = score.cluster, score.question
        if item not in items or items[item].value is None:  # of samples, one that did not fail
            items[item] = score
    conditions = sorted(groups, key=lambda condition: in_order(_FACETS, condition))
    same: dict[tuple[tuple[Item, tuple[str | bool, ...]], ...], list[Condition]] = {}
    for condition in conditions:
        found = tuple((item, _found(score)) for item, score in sorted(groups[condition].items()))
        same.setdefault(found, []).append(condition)
    return [
        (shared(members, conditions), [score for _, score in sorted(groups[members[0]].items())])
        for members in same.values()
    ]


def _found(score: Score) -> tuple[str | bool, ...]:
    facets = score.facets
    return facets["rank"], facets["statements"], _in_memory(score), score.value is None


def _in_memory(score: Score) -> bool:
    return score.facets["line"] != "0"


def _rows(
    named: Sequence[str], items: Sequence[Score], how: RetrievalSettings, seed: int
) -> list[Row]:
    largest = max(int(score.facets["statements"]) for score in items)
    numbers = sorted({n for n in NUMBERS if n < largest} | {how.k})
    rows = [
        _row([how.retriever, *named], k, _within(items, k), seed)
        | {f"chance g={label}": _by_chance(items, k, label) for label in "01"}
        for k in numbers
    ]
    if how.retriever == ORACLE:
        return rows
    for k in numbers:
        bound = _row([ORACLE, *named], k, _perfect(items, k), seed)
        rows.append(bound | {"low": None, "high": None, "interval": "n/a: by construction"})
        rows[-1] |= {"chance g=0": None, "chance g=1": None}
        if k >= max(map(len, _to_apply(items).values()), default=0):
            break
    return rows


def _within(items: Sequence[Score], k: int) -> list[Score]:
    """Whether each would be retrieved if k statements were."""
    ranks = [score.facets["rank"] for score in items]
    return [
        replace(score, value=float(rank != "" and int(rank) <= k))
        if score.value is not None
        else score
        for score, rank in zip(items, ranks, strict=True)
    ]


def _to_apply(items: Sequence[Score]) -> dict[Condition, list[Score]]:
    """What memory has of g = 1, by message, in its order; at density 1 each has one of its own."""
    messages: dict[Condition, list[Score]] = {}
    for score in sorted(items, key=lambda s: int(s.facets["line"])):
        if score.facets["label"] == "1" and _in_memory(score):
            alone = score.question if score.facets["density"] == "1" else ""
            messages.setdefault((score.cluster, score.facets["context"], alone), []).append(score)
    return messages


def _perfect(items: Sequence[Score], k: int) -> list[Score]:
    """Of each message k of what memory has of g = 1, and nothing else."""
    given = {s.question for own in _to_apply(items).values() for s in own[:k]}
    return [replace(s, value=float(s.question in given), outcome="ok") for s in items]


def _by_chance(items: Sequence[Score], k: int, label: str) -> float | None:
    """The share of one label that k statements drawn at random hold; of what is not in memory,
    none."""
    own = [score for score in items if score.facets["label"] == label]
    sizes = [int(score.facets["statements"]) for score in own if _in_memory(score)]
    return sum(min(k, size) / size for size in sizes) / len(own) if own else None


def _row(what: Sequence[str], k: int, items: Sequence[Score], seed: int) -> Row:
    """Both shares, and their gap with its interval."""
    terms = gap_terms(items, RETRIEVED)
    applied, suppressed = (
        contrast("share", [replace(term, weight=1.0)], basis="all", seed=seed).value
        for term in terms
    )
    found = contrast("gap", terms, basis="all", unit="user", seed=seed, crossed="context")
    return {
        "retriever": ", ".join(what),
        "k": k,
        "g=0": suppressed,
        "g=1": applied,
        "gap": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "interval": found.interval,
    }
