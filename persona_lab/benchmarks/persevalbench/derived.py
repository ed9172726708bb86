"""Scores that follow from several: pairs, directions, orders (sections 4 and 5.1, Appendix C.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from persona_lab.benchmarks.persevalbench.cases import PARTS
from persona_lab.benchmarks.persevalbench.scoring import (
    CHOSEN,
    CONSISTENT,
    ERR,
    FAR,
    PAIR,
    RATED,
    SEPARATED,
    TIED,
)
from persona_lab.benchmarks.persevalbench.verdicts import OVER, RIGHT, UNDER
from persona_lab.core.scores import Score

_CONDITION = ("evaluator", "context", "formulation", "sample")


def pair_scores(scores: Sequence[Score]) -> list[Score]:
    """Pair accuracy: the Right response accepted and its paired error recognised (section 4)."""
    made = []
    for pair in _by_scenario(scores, (ERR, FAR)):
        found = {s.metric: s for s in pair}
        if set(found) != {ERR, FAR}:
            continue
        err, far = found[ERR], found[FAR]
        both = err.value == 1.0 and far.value == 0.0
        made.append(_of_pair(PAIR, [err, far], float(both)))
    return made


def direction_scores(scores: Sequence[Score]) -> list[Score]:
    """Figure 3: wrong directions, and how the verdicts on underweighting split; over responses
    with a verdict."""
    made = []
    for score in scores:
        if score.metric != ERR or score.value is None:
            continue
        verdict, family = score.facets["verdict"], score.facets["family"]
        if family == "under":
            made.append(_share(score, "under_judged_over", verdict == OVER))
        if family == "over":
            made.append(_share(score, "over_judged_under", verdict == UNDER))
        if score.facets["subtype"] == "underweighting":
            named: Mapping[str, str] = {"right": RIGHT, "under": UNDER, "over": OVER}
            made += [
                _share(score, f"underweighting_{name}", verdict == said)
                for name, said in named.items()
            ]
    return made


def protocol_scores(scores: Sequence[Score]) -> list[Score]:
    """Pointwise: is the Right response rated strictly higher, or the same? Pairwise: is the same
    response chosen in both orders?"""
    made = []
    for pair in _by_scenario(scores, (RATED,)):
        found = {s.facets["subject"]: s for s in pair}
        if set(found) == {"right", "error"}:
            right, error = found["right"], found["error"]
            higher = tied = None
            if right.value is not None and error.value is not None:
                higher, tied = float(right.value > error.value), float(right.value == error.value)
            made += [_of_pair(SEPARATED, [right, error], higher)]
            made += [_of_pair(TIED, [right, error], tied)]
    for pair in _by_scenario(scores, (CHOSEN,)):
        if len(pair) == 2:
            made.append(_of_pair(CONSISTENT, pair, float(pair[0].value == pair[1].value)))
    return made


def _by_scenario(scores: Sequence[Score], metrics: Sequence[str]) -> Iterator[list[Score]]:
    """Scores of one scenario, condition and sample."""
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in metrics:
            place = (score.cluster, *(score.facets[n] for n in _CONDITION))
            groups.setdefault(place, []).append(score)
    yield from groups.values()


def _of_pair(metric: str, pair: Sequence[Score], value: float | None) -> Score:
    """A scenario's score; without a value where either half has none."""
    first = pair[0]
    facets = {n: first.facets[n] for n in (*_CONDITION, *PARTS)}
    lost = next((s for s in pair if s.value is None), None)
    return Score(
        case="+".join(s.case for s in pair),
        question=first.cluster,
        metric=metric,
        cluster=first.cluster,
        value=None if lost else value,
        outcome=lost.outcome if lost else "ok",
        reason=lost.reason if lost else "",
        facets=facets,
    )


def _share(score: Score, metric: str, found: bool) -> Score:
    return replace(score, case=f"{score.case}/{metric}", metric=metric, value=float(found))
