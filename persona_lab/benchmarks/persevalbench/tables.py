"""What is reported beside the estimates: composition, verdicts by subtype, curves, calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from persona_lab.benchmarks.persevalbench.cases import CONDITIONS
from persona_lab.benchmarks.persevalbench.context import removed
from persona_lab.benchmarks.persevalbench.records import SUBTYPES, Family, Scenario
from persona_lab.benchmarks.persevalbench.scoring import ERR, FAR, recognised
from persona_lab.benchmarks.persevalbench.settings import PersEvalBenchSettings
from persona_lab.benchmarks.persevalbench.verdicts import OVER, RIGHT, VERDICTS
from persona_lab.core.scores import Row, RowsTable, Score
from persona_lab.metrics.calibration import Stated, brier, expected_calibration_error
from persona_lab.metrics.operating import Graded, operating_curve, thinned


def composition_table(scenarios: Sequence[Scenario], settings: PersEvalBenchSettings) -> RowsTable:
    """The composition of the scenarios (Table 9), and what an ablation leaves out."""
    rows: list[Row] = []
    seed = settings.benchmark.seed
    for subtype, number in Counter(s.subtype for s in scenarios).items():
        mine = [s for s in scenarios if s.subtype == subtype]
        row: Row = {"subtype": subtype, "family": mine[0].family, "scenarios": number}
        row["turns"] = sum(s.target for s in mine) / number
        for name in settings.contexts:
            if name in ("full_minus_relevant", "full_minus_unrelated"):
                row[name] = sum(removed(s, name, seed) for s in mine) / number
        rows.append(row)
    return RowsTable("What is evaluated", rows)


def verdict_table(scores: Sequence[Score]) -> RowsTable:
    """How often each verdict was given, by evaluator and by what the response was."""
    rows: list[Row] = []
    for condition, given in _by_condition(scores).items():
        for kind in ("right response", *SUBTYPES):
            mine = [s for s in given if _kind(s) == kind]
            if mine:
                counts = Counter(s.facets.get("verdict", "") for s in mine)
                row: Row = {"condition": ", ".join(condition), "response": kind, "n": len(mine)}
                row |= {v.split("_")[0].capitalize(): counts[v] for v in VERDICTS}
                rows.append(row | {"none": len(mine) - sum(counts[v] for v in VERDICTS)})
    return RowsTable("Verdicts given", rows)


def operating_tables(scores: Sequence[Score], seed: int) -> list[RowsTable]:
    """ERR over FAR as the share of error verdicts that is asked for falls: from repeated samples,
    or from the verdict's probabilities (`weighed` replies) where they were asked for. Lost replies
    count as the worse outcome."""
    points: list[Row] = []
    areas: list[Row] = []
    for condition, given in _by_condition(scores).items():
        responses = _graded(given)
        lost = sum(s.value is None for s in given)
        weighed = sum(bool(s.facets.get(f"p_{RIGHT}")) for s in given)
        if len({r.flagged for r in responses}) < 2:
            continue
        curve = operating_curve(responses, unit="scenario", seed=seed)
        named = ", ".join(condition)
        areas.append(
            {
                "condition": named,
                "area": curve.area,
                "low": curve.low,
                "high": curve.high,
                "errors": curve.errors,
                "rights": curve.rights,
                "replies": len(given),
                "lost": lost,
                "weighed": weighed,
                "interval": curve.interval,
            }
        )
        points += [
            {"condition": named, "threshold": p.threshold, "FAR": p.far, "ERR": p.err}
            for p in thinned(curve)
        ]
    if not areas:
        return []
    return [
        RowsTable("Operating curve: area under ERR over FAR", areas),
        RowsTable("Operating curve: points", points),
    ]


def calibration_tables(scores: Sequence[Score], seed: int) -> list[RowsTable]:
    """Is the stated confidence the share of right verdicts?"""
    rows: list[Row] = []
    for condition, given in _by_condition(scores).items():
        stated = [
            Stated(s.cluster, s.question, float(s.facets["confidence"]), _is_right(s))
            for s in given
            if s.value is not None and s.facets.get("confidence")
        ]
        if not stated:
            continue
        error, score = expected_calibration_error(stated, seed=seed), brier(stated, seed=seed)
        rows.append(
            {
                "condition": ", ".join(condition),
                "stated": len(stated),
                "of": len(given),
                "mean confidence": sum(s.confidence for s in stated) / len(stated),
                "right": sum(s.right for s in stated) / len(stated),
                "ECE": error.value,
                "Brier": score.value,
                "Brier low": score.low,
                "Brier high": score.high,
            }
        )
    return [RowsTable("Stated confidence against being right", rows)] if rows else []


def _graded(scores: Sequence[Score]) -> list[Graded]:
    """Responses with their weights of error verdicts, repeats averaged; a reply without a verdict
    counts as the worse outcome."""
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(score.question, []).append(score)
    made = []
    for question, repeats in groups.items():
        weights = [_weights(score) for score in repeats]
        first = repeats[0]
        family: Family = first.facets["family"]  # type: ignore[assignment]
        wrong = [v for v in VERDICTS if v != RIGHT]
        flagged = _mean([sum(w[v] for v in wrong) for w in weights])
        error = first.metric == ERR
        ways = [v for v in VERDICTS if error and recognised(family, v)]
        found = _mean([sum(w[v] for v in ways) for w in weights])
        made.append(Graded(first.cluster, question, error, found, flagged))
    return made


def _weights(score: Score) -> dict[str, float]:
    """What one reply gives each verdict: its probabilities if they are known, else all to one."""
    if score.facets.get(f"p_{RIGHT}"):
        return {v: float(score.facets[f"p_{v}"]) for v in VERDICTS}
    verdict = score.facets.get("verdict", "")
    if score.value is None:
        verdict = RIGHT if score.metric == ERR else OVER
    return {v: float(v == verdict) for v in VERDICTS}


def _mean(values: Sequence[float]) -> float:
    """Of weights in [0, 1], which rounding must not leave."""
    return min(1.0, sum(values) / len(values))


def _by_condition(scores: Sequence[Score]) -> dict[tuple[str, ...], list[Score]]:
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in (ERR, FAR):
            groups.setdefault(tuple(score.facets[n] for n in CONDITIONS), []).append(score)
    return groups


def _kind(score: Score) -> str:
    return "right response" if score.metric == FAR else score.facets["subtype"]


def _is_right(score: Score) -> bool:
    return score.value == (1.0 if score.metric == ERR else 0.0)
