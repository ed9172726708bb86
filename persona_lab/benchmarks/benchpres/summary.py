"""From scores to what a run reports: sections 4.2 to 6, and the questions beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from persona_lab.benchmarks.benchpres import probe
from persona_lab.benchmarks.benchpres.cases import CONDITIONS
from persona_lab.benchmarks.benchpres.comparisons import (
    BASE,
    differences,
    gap,
    reasoning_by_defence,
    tests,
)
from persona_lab.benchmarks.benchpres.judge_check import HumanLabel, agreement, corrected, opinions
from persona_lab.benchmarks.benchpres.rankings import by_number
from persona_lab.benchmarks.benchpres.scoring import COMPLETENESS, METRICS, RATES
from persona_lab.benchmarks.benchpres.selection_notes import selection_notes
from persona_lab.benchmarks.benchpres.selectivity import RETRIEVED, selection_estimates
from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings
from persona_lab.benchmarks.benchpres.shown import UNREADABLE
from persona_lab.core.experiment import RunSettings
from persona_lab.core.scores import Estimate, Score, Summary
from persona_lab.metrics.estimate import RATING, estimates

ALWAYS = ("defence", "reasoning", "memory", "density", "order", "shown")
"""By these a published figure knows its own condition; the mix says nothing at its density."""
PARTS = ("domain", "category", "sample")
"""Figures 6 and 7, and each sample by itself."""


def summary(
    scores: list[Score],
    settings: BenchPreSSettings,
    run: RunSettings,
    labels: Sequence[HumanLabel] | None,
    excluded: int,
) -> Summary:
    """Estimates, tests, tables and notes, as far as the recipe asks for them.

    Args:
        labels: what people said of messages.
        excluded: instances without a gold label, since annotators disagreed; in neither rate.
    """
    by, seed = conditions(scores), run.seed
    made = overall(scores, by, seed)
    tables = reasoning_by_defence(scores, settings.ifbench, seed) + differences(scores, seed)
    tables += by_number(scores, settings.retrieval, seed)
    notes = _notes(scores, settings, excluded)
    notes += selection_notes(scores, made, settings.retrieval)
    if labels or settings.agreement.items:
        given = opinions(scores, labels)
        notes += _unmatched(labels or [], given)
        agreeing, agreement_tables = agreement(given, seed)
        made += agreeing
        tables += agreement_tables
        if (reference := settings.agreement.reference) and "judge" in given:
            tables += corrected(scores, given, reference, by)
    return Summary(scores, made, tests(scores, seed), notes, tables)


def conditions(scores: Sequence[Score]) -> tuple[str, ...]:
    """The facets that results are given by: the usual ones, and others that this run varies or has
    set otherwise."""
    seen = {n: {s.facets[n] for s in scores if n in s.facets} for n in CONDITIONS}
    return tuple(n for n in CONDITIONS if n in ALWAYS or seen[n] - {BASE[n]})


def overall(scores: Sequence[Score], by: Sequence[str], seed: int) -> list[Estimate]:
    """MR, AAR and AAR - MR by condition, then by domain, category and sample; and the rest."""
    made = _rates(scores, by, seed) + selection_estimates(scores, by, seed)
    if any(s.metric == COMPLETENESS for s in scores):
        made += estimates(
            scores, {COMPLETENESS: RATING}, by, unit="user", seed=seed, crossed="context"
        )
    if any(s.metric in probe.METRICS for s in scores):
        made += estimates(scores, probe.METRICS, by, unit="user", seed=seed, crossed="context")
        only = {probe.ACCURATE: probe.METRICS[probe.ACCURATE]}
        made += estimates(scores, only, (*by, "label"), unit="user", seed=seed, crossed="context")
    for part in PARTS:
        if len({s.facets.get(part) for s in scores if s.metric in RATES}) > 1:
            made += _rates(scores, (*by, part), seed)
    if any(s.metric in RETRIEVED for s in scores):
        made += selection_estimates(scores, (*by, "category"), seed)
    return made


def _rates(scores: Sequence[Score], by: Sequence[str], seed: int) -> list[Estimate]:
    rates = estimates(scores, RATES, by, unit="user", seed=seed, crossed="context")
    return rates + gap(scores, by, seed)


def _notes(scores: Sequence[Score], settings: BenchPreSSettings, excluded: int) -> list[str]:
    """What must stand below the numbers."""
    found = []
    if settings.benchmark.facts is not None:
        found.append(
            f"Memories hold {settings.benchmark.facts} facts per profile, not all of them."
        )
    if settings.memories.shown == ["whole"] and settings.retrieval.beyond_encoder:
        found.append("retrieval.* is not used: memories.shown=[whole].")
    if settings.probe:
        found += probe.unasked(scores)
    if excluded:
        found.append(f"{excluded} instances are excluded: annotators disagreed. No rate has them.")
    rated = [s for s in scores if s.metric in METRICS and not s.reason.startswith(UNREADABLE)]
    if cut := {s.case for s in rated if s.outcome == "truncated"}:
        found.append(
            f"In {len(cut)} cases a message or a verdict reached its budget (max_tokens): cut off, "
            "it gives no value and counts as the worse outcome."
        )
    return found


def _unmatched(labels: Sequence[HumanLabel], given: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """Says how many human labels are of no message of this run."""
    lacking = len(labels) - len(given.get("people", {}))
    return [
        f"{lacking} of {len(labels)} human labels are of no message of this run and count nowhere."
    ] * bool(lacking)
