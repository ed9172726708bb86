"""Conditions against each other, paired by instance: what a defence gains and costs (Table 2), what
preferences in memory do to the task (Table 3), density and order, and reasoning x defence
(Figures 4 and 5) with its interaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from persona_lab.benchmarks.benchpres.cases import CONDITIONS
from persona_lab.benchmarks.benchpres.scoring import AAR, COMPLETENESS, GAP, METRICS, MR, RATES
from persona_lab.benchmarks.benchpres.settings import IfBench
from persona_lab.core.scores import Estimate, Row, RowsTable, Score
from persona_lab.metrics.comparisons import as_test, ordered_comparisons
from persona_lab.metrics.contrasts import Basis, Term, contrast, paired
from persona_lab.metrics.estimate import Metric

BASE = {
    "defence": "default",
    "reasoning": "off",
    "memory": "without",
    "density": "5",
    "mix": "spread",
    "order": "scattered",
    "shown": "whole",
}
"""What the other choices of each kind are held against."""
_FREE = {"density": ("mix",), "memory": ("density", "mix", "order")}
"""What means nothing on the base's side: without distractors, and without preferences."""
KEPT_BACK = ("basis", "unparsed", "truncated", "failed", "two_way_low", "two_way_high")
"""Columns of the tables' rows that only results.json shows."""
Pick = dict[str, str]


def gap(
    scores: Sequence[Score], by: Sequence[str], seed: int,
    name: str = GAP, rates: Mapping[str, Metric] = RATES,
) -> list[Estimate]:  # fmt: skip
    """AAR - MR in both bases, for each group of the facets `by`.

    Args:
        rates: of what is to be suppressed and of what is to be applied, if others than MR and AAR.
    """
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in rates:
            groups.setdefault(tuple(score.facets.get(name, "") for name in by), []).append(score)
    made = []
    for group, members in groups.items():
        facets = dict(zip(by, group, strict=True))
        bases: tuple[Basis, Basis] = ("all", "scored")
        made += [
            contrast(
                name, gap_terms(members, rates), basis=basis, facets=facets, unit="user",
                seed=seed, crossed="context",
            )
            for basis in bases
        ]  # fmt: skip
    return made


def differences(scores: Sequence[Score], seed: int) -> list[RowsTable]:
    """Every other choice less the base one, within one choice of all other kinds."""
    tables = []
    for facet, base in BASE.items():
        rows = [
            row
            for within, value in _pairs(scores, facet, base)
            for row in _differences(scores, facet, base, value, within, seed)
        ]
        if rows:
            title = f"{facet.capitalize()}: difference from {base}, paired by instance"
            tables.append(RowsTable(title, rows, KEPT_BACK))
    return tables


def tests(scores: Sequence[Score], seed: int) -> list[dict[str, Any]]:
    """Do defences, and showing less of the memory, lower MR, and do they cost AAR? One-sided,
    clustered by user, over all items; Holm over what is compared by one metric in one condition."""
    rated = [s for s in scores if s.metric in RATES]
    return [test for facet in ("defence", "shown") for test in _tests(rated, facet, seed)]


def _tests(rated: Sequence[Score], facet: str, seed: int) -> Iterator[dict[str, Any]]:
    others: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for within, value in _pairs(rated, facet, BASE[facet]):
        others.setdefault(tuple(within.items()), []).append(value)
    for condition, values in others.items():
        members = _picked(rated, dict(condition))
        facets = _telling(rated, dict(condition))
        for metric, kind in RATES.items():
            made = ordered_comparisons(
                members, facet, [BASE[facet], *values], [metric], "first", seed=seed,
                worse={metric: kind.worse} if kind.worse is not None else None,
            )  # fmt: skip
            yield from ({"table": metric, "facets": facets, **as_test(one)} for one in made)


def reasoning_by_defence(
    scores: Sequence[Score], ifbench: IfBench | None, seed: int
) -> list[RowsTable]:
    """The 2 x 2 of Figures 4 and 5: off and on, under the default prompt and each defence; the
    effect of reasoning under either, and their difference (the interaction)."""
    rows: list[Row] = []
    others = [name for name in CONDITIONS if name not in ("reasoning", "defence")]
    rated = [s for s in scores if s.metric in RATES]
    for within in dict.fromkeys(tuple(s.facets[n] for n in others) for s in rated):
        pick = dict(zip(others, within, strict=True))
        rows += _two_by_two(_picked(rated, pick), list(_telling(rated, pick).values()), seed)
    if not rows:
        return []
    title = "Reasoning x defence (Figures 4 and 5), paired by instance"
    tables = [RowsTable(title, rows, KEPT_BACK)]
    return tables + ([_figure_4(rated, ifbench, seed)] if ifbench else [])


def _two_by_two(scores: Sequence[Score], named: Sequence[str], seed: int) -> Iterator[Row]:
    cells = {(s.facets["reasoning"], s.facets["defence"]): _cell_of(s) for s in scores}
    defences = dict.fromkeys(d for _, d in cells if {("off", d), ("on", d)} <= set(cells))
    if BASE["defence"] not in defences:
        return
    for metric in (MR, AAR, GAP):
        effects: dict[str, list[Term]] = {}
        for defence in sorted(defences, key=lambda d: d != BASE["defence"]):
            off, on = (
                _terms(_picked(scores, cells[reasoning, defence]), metric)
                for reasoning in ("off", "on")
            )
            effects[defence] = _minus(on, off)
            shown = {"off": off, "on": on, "on less off": effects[defence]}
            for name, terms in shown.items():
                what = ", ".join([name, defence, *named])
                yield _row({"metric": metric, "what": what}, terms, seed)
            if defence != BASE["defence"]:
                what = ", ".join([f"interaction: ({defence}) less ({BASE['defence']})", *named])
                terms = _minus(effects[defence], effects[BASE["defence"]])
                yield _row({"metric": metric, "what": what}, terms, seed)


def _cell_of(score: Score) -> Pick:
    return {name: score.facets[name] for name in ("reasoning", "defence")}


def _figure_4(scores: Sequence[Score], ifbench: IfBench, seed: int) -> RowsTable:
    """Under the default prompt, a row for each choice of all other kinds."""
    rows: list[Row] = []
    usual = _picked(scores, {"defence": BASE["defence"]})
    others = [name for name in CONDITIONS if name not in ("reasoning", "defence")]
    for within in dict.fromkeys(tuple(s.facets[n] for n in others) for s in usual):
        pick = dict(zip(others, within, strict=True))
        for reasoning, score in (("off", ifbench.off), ("on", ifbench.on)):
            members = _picked(usual, {**pick, "reasoning": reasoning})
            row: Row = {"reasoning": ", ".join([reasoning, *_telling(scores, pick).values()])}
            for metric in (MR, AAR):
                terms = _terms(members, metric)
                row[metric] = contrast(metric, terms, basis="all", seed=seed).value
            rows.append(row | {"IFBench (supplied), %": score})
    return RowsTable("Reasoning and instruction following (Figure 4)", rows)


def _pairs(scores: Sequence[Score], facet: str, base: str) -> Iterator[tuple[Pick, str]]:
    """(choice of the other kinds, other value of this kind) wherever both sides have scores."""
    others = [name for name in CONDITIONS if name != facet and name not in _FREE.get(facet, ())]
    seen = dict.fromkeys(
        (tuple(s.facets[n] for n in others), s.facets[facet])
        for s in scores
        if all(n in s.facets for n in CONDITIONS)
    )
    for within, value in seen:
        if value != base and (within, base) in seen:
            yield dict(zip(others, within, strict=True)), value


def _differences(
    scores: Sequence[Score], facet: str, base: str, value: str, within: Pick, seed: int
) -> Iterator[Row]:
    """A row per metric; one set of rows for each choice that only this side can have."""
    members = _picked(scores, within)
    lesser, side = _picked(members, {facet: base}), _picked(members, {facet: value})
    free = _FREE.get(facet, ())
    choices = list(dict.fromkeys(tuple(s.facets[n] for n in free) for s in side))
    for choice in choices:
        greater = _picked(side, dict(zip(free, choice, strict=True)))
        telling = [c for i, c in enumerate(choice) if len({other[i] for other in choices}) > 1]
        named = ", ".join([value, *telling, *_telling(scores, within).values()])
        for metric in (MR, AAR, GAP, COMPLETENESS):
            ones, twos = _of(greater, metric), _of(lesser, metric)
            if ones and twos:
                terms = _minus(_terms(ones, metric), _terms(twos, metric))
                yield _row({facet: named, "metric": metric}, terms, seed)


def _row(names: Row, terms: Sequence[Term], seed: int) -> Row:
    """The value of a sum of terms over the instances that all its conditions share."""
    basis: Basis = "scored" if any(t.metric.worse is None for t in terms) else "all"
    rows = _paired([t.scores for t in terms], basis)
    shared = [Term(t.weight, kept, t.metric) for t, kept in zip(terms, rows, strict=True)]
    found = contrast("difference", shared, basis=basis, unit="user", seed=seed, crossed="context")
    return {
        **names,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "interval": found.interval,
        "basis": basis,
        "unparsed": found.unparsed,
        "truncated": found.truncated,
        "failed": found.failed,
        "two_way_low": found.two_way[0] if found.two_way else None,
        "two_way_high": found.two_way[1] if found.two_way else None,
    }


def _paired(rows: Sequence[Sequence[Score]], basis: Basis) -> list[list[Score]]:
    """Rows of instances that every condition has; MR and AAR are over different instances and are
    paired each for itself."""
    made: list[list[Score]] = [[] for _ in rows]
    for metric in METRICS:
        places = [i for i, given in enumerate(rows) if given and given[0].metric == metric]
        for i, kept in zip(places, paired(*(rows[i] for i in places), basis=basis), strict=True):
            made[i] = kept
    return made


def _terms(scores: Sequence[Score], metric: str) -> list[Term]:
    if metric == GAP:
        return gap_terms(scores)
    return [Term(1.0, _of(scores, metric), METRICS[metric])]


def gap_terms(scores: Sequence[Score], rates: Mapping[str, Metric] = RATES) -> list[Term]:
    """The second of two rates less the first: AAR - MR, if no others are given."""
    suppress, apply = rates
    return [
        Term(1.0, [s for s in scores if s.metric == apply], rates[apply]),
        Term(-1.0, [s for s in scores if s.metric == suppress], rates[suppress]),
    ]


def _minus(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    return [*first, *(Term(-t.weight, t.scores, t.metric) for t in second)]


def _of(scores: Sequence[Score], metric: str) -> list[Score]:
    wanted = (MR, AAR) if metric == GAP else (metric,)
    return [s for s in scores if s.metric in wanted]


def _picked(scores: Sequence[Score], pick: Pick) -> list[Score]:
    return [s for s in scores if all(s.facets.get(k) == v for k, v in pick.items())]


def _telling(scores: Sequence[Score], within: Pick) -> Pick:
    """What of a condition varies in this run."""
    return {k: v for k, v in within.items() if len({s.facets.get(k) for s in scores}) > 1}
