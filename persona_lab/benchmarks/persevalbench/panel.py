"""A panel of evaluators scored like one: beyond the paper.

    panel_majority    the verdict that more than half of the panel gives; without one, no verdict
    panel_unanimity   an error verdict that all give; else Right

A response that a member has no verdict on has none of the panel's; one that a member was not asked
about, as in a part of a run, has no row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from persona_lab.benchmarks.persevalbench.records import FAMILY_OF
from persona_lab.benchmarks.persevalbench.scoring import ERR, FAR, recognised
from persona_lab.benchmarks.persevalbench.verdicts import RIGHT
from persona_lab.core.scores import Score

_OF_ONE = ("verdict", "named_subtype", "confidence")
PANELS = ("panel_majority", "panel_unanimity")


def panel_scores(scores: Sequence[Score], members: int) -> list[Score]:
    """ERR and FAR scores of both panels.

    Args:
        scores: of all evaluators. members: how many there are.
    """
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in (ERR, FAR):
            place = tuple(score.facets[n] for n in ("context", "formulation", "sample"))
            groups.setdefault((*place, score.question), []).append(score)
    return [
        _panel_score(name, given)
        for given in groups.values()
        if len(given) == members
        for name in PANELS
    ]


def _panel_score(name: str, given: Sequence[Score]) -> Score:
    first = given[0]
    kept = {k: v for k, v in first.facets.items() if k not in _OF_ONE and not k.startswith("p_")}
    facets = {**kept, "evaluator": name, "verdict": ""}
    blank = replace(
        first, case=f"{name}/{first.case}", facets=facets, value=None, reason="", outcome="ok"
    )
    if lost := next((s for s in given if s.value is None), None):
        return replace(blank, outcome=lost.outcome, reason=lost.reason)
    verdict = _verdict(name, [s.facets["verdict"] for s in given])
    if verdict is None:
        return replace(blank, outcome="unparsed", reason="no_majority")
    family = FAMILY_OF[first.facets["subtype"]]  # type: ignore[index]
    value = recognised(family, verdict) if first.metric == ERR else verdict != RIGHT
    return replace(blank, value=float(value), facets={**facets, "verdict": verdict})


def _verdict(name: str, verdicts: Sequence[str]) -> str | None:
    [(leading, votes)] = Counter(verdicts).most_common(1)
    if name == "panel_unanimity":
        return leading if votes == len(verdicts) else RIGHT
    return leading if votes > len(verdicts) / 2 else None
