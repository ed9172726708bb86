"""From scores to what a run reports: sections 4 and 5, Appendix C and D."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from persona_lab.benchmarks.persevalbench.baseline import constant_scores
from persona_lab.benchmarks.persevalbench.cases import CONDITIONS, PARTS
from persona_lab.benchmarks.persevalbench.derived import (
    direction_scores,
    pair_scores,
    protocol_scores,
)
from persona_lab.benchmarks.persevalbench.human_check import People, human_tables
from persona_lab.benchmarks.persevalbench.panel import panel_scores
from persona_lab.benchmarks.persevalbench.records import CATEGORICAL, GRADED, Scenario
from persona_lab.benchmarks.persevalbench.retrieval_scoring import (
    NOTHING_FOUND,
    retrieval_estimates,
)
from persona_lab.benchmarks.persevalbench.scoring import (
    DIRECTIONS,
    ERR,
    EVIDENCE_CUT,
    FAR,
    PAIR,
    PROTOCOLS,
    RATES,
)
from persona_lab.benchmarks.persevalbench.settings import PersEvalBenchSettings
from persona_lab.benchmarks.persevalbench.tables import (
    calibration_tables,
    operating_tables,
    verdict_table,
)
from persona_lab.core.experiment import RunSettings
from persona_lab.core.scores import Estimate, RowsTable, Score, Summary
from persona_lab.metrics.contrasts import Basis, Term, contrast
from persona_lab.metrics.estimate import estimates

APPLICABILITY_TYPES = {"categorical": CATEGORICAL, "graded": GRADED}
"""Table 8's two groups; their figures are unweighted means of family values (Table 5)."""
CARD = ("full", "end_to_end")
"""The main setting (section 4), in which a judge's card is made."""


def summary(
    scores: list[Score],
    scenarios: Sequence[Scenario],
    settings: PersEvalBenchSettings,
    run: RunSettings,
    people: People,
    target: str,
) -> Summary:
    """Estimates, tables and notes, as far as the recipe asks for them.

    Args:
        people: what people said, for comparison.
        target: name of the evaluator whose card the run is.
    """
    seed, verdicts = run.seed, "verdict" in settings.protocols
    if settings.panel:
        scores = scores + panel_scores(scores, 1 + sum(m is not None for m in _others(run)))
    scores = scores + pair_scores(scores) + direction_scores(scores) + protocol_scores(scores)
    made: list[Estimate] = []
    tables: list[RowsTable] = []
    if verdicts:
        shown = list(product(settings.contexts, settings.formulations))
        asked = {s.question for s in scores if s.metric in (ERR, FAR)}
        variant = settings.retrieval.variant
        constant = constant_scores(scenarios, shown, variant=variant)
        constant = [s for s in constant if s.question in asked]
        constant += pair_scores(constant)
        made += overall([*scores, *constant], seed)
        tables += [verdict_table(scores)] if asked else []
        if settings.samples > 1 or settings.logprobs:
            tables += operating_tables(scores, seed)
        tables += calibration_tables(scores, seed)
        tables += human_tables(scores, people, seed)
    made += estimates(scores, PROTOCOLS, CONDITIONS, unit="scenario", seed=seed)
    made += estimates(scores, PROTOCOLS, (*CONDITIONS, "family"), unit="scenario", seed=seed)
    made += retrieval_estimates(scores, settings.retrieval.k, "context", seed)
    return Summary(
        scores,
        made,
        notes=_notes(scores, settings.retrieval.k) + people.notes(scores),
        tables=tables,
        card=_card(made, target),
    )


def overall(scores: Sequence[Score], seed: int) -> list[Estimate]:
    """ERR, FAR and pair accuracy, in all and by each part; wrong directions; group means."""
    order = [*RATES]
    rated = sorted((s for s in scores if s.metric in order), key=lambda s: order.index(s.metric))
    made = estimates(rated, RATES, CONDITIONS, unit="scenario", seed=seed)
    made += estimates(scores, DIRECTIONS, CONDITIONS, unit="scenario", seed=seed)
    for part in PARTS:
        made += estimates(rated, RATES, (*CONDITIONS, part), unit="scenario", seed=seed)
    return made + _group_means(rated, seed)


def _group_means(scores: Sequence[Score], seed: int) -> list[Estimate]:
    """ERR and FAR of categorical boundaries and graded decisions: unweighted over families."""
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in (ERR, FAR):
            place = (score.metric, *(score.facets[n] for n in CONDITIONS))
            groups.setdefault(place, []).append(score)
    made = []
    bases: tuple[Basis, Basis] = ("all", "scored")
    for (metric, *condition), members in groups.items():
        facets = dict(zip(CONDITIONS, condition, strict=True))
        for name, families in APPLICABILITY_TYPES.items():
            inside = {f: [s for s in members if s.facets["applicability"] == f] for f in families}
            present = {f: rows for f, rows in inside.items() if rows}
            terms = [Term(1 / len(present), rows, RATES[metric]) for rows in present.values()]
            made += [
                contrast(
                    metric, terms, basis=basis, facets={**facets, "applicability_type": name},
                    unit="scenario", seed=seed,
                )
                for basis in bases
                if terms
            ]  # fmt: skip
    return made


def _card(made: Sequence[Estimate], target: str) -> dict[str, Estimate]:
    """What this run says of its target as a judge, in the main setting."""
    return {
        e.metric: e
        for e in made
        if e.metric in (ERR, FAR, PAIR)
        and e.basis == "all"
        and tuple(e.facets) == CONDITIONS
        and e.facets == dict(zip(CONDITIONS, (target, *CARD), strict=True))
    }


def _others(run: RunSettings) -> tuple[object, object]:
    return run.judge, run.second_judge


def _notes(scores: Sequence[Score], k: int) -> list[str]:
    cut = {s.case for s in scores if s.outcome == "truncated" and "+" not in s.case}
    begun = {s.case for s in scores if s.metric in (ERR, FAR) and EVIDENCE_CUT in s.reason.split()}
    found = []
    if cut:
        found.append(
            f"In {len(cut)} cases an answer reached its budget (max_tokens): cut off, it gives no "
            "value and counts as the worse outcome."
        )
    if begun:
        found.append(
            f"In {len(begun)} cases the extracted evidence reached its budget "
            "(max_tokens.evidence) and was taken as far as it goes."
        )
    searched = [s for s in scores if s.metric == f"recall@{k}"]
    if empty := sum(s.reason == NOTHING_FOUND for s in searched):
        found.append(
            f"In {empty} of {len(searched)} scenarios retrieval found nothing: the context "
            "`retrieved` shows no turn."
        )
    return found
