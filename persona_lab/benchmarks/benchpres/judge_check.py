"""Is the judge to be trusted? (section 6, Table 4), and what its errors do to MR and AAR.

The judge's labels against those of a second judge and of people, on the same instances (10 per
category and gold value). Exact matching is not the judge's: a nickname is in no row but its own. A
second judge's scores stand in the table of scores under `second_judge/MR` and `second_judge/AAR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from persona_lab.benchmarks.benchpres.cases import telling
from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.benchmarks.benchpres.scoring import AAR, MR, RATES
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Estimate, Row, RowsTable, Score
from persona_lab.metrics.agreement import cohen_kappa
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.metrics.judge_noise import ErrorTable, corrected_rate
from persona_lab.parsing.csv_sheet import read_sheet

SECOND = "second_judge/"
AGREEMENT = "agreement"


def as_second(scores: Sequence[Score]) -> list[Score]:
    """A second judge's scores under their own names, so that no rate mixes the two."""
    return [replace(score, metric=SECOND + score.metric) for score in scores]


@dataclass(frozen=True)
class HumanLabel:
    """Whether people found a preference applied in one message."""

    case: str
    question: str
    message: str
    applied: float


def opinions(
    scores: Sequence[Score], labels: Sequence[HumanLabel] | None
) -> dict[str, dict[str, Score]]:
    """Who said what: `judge`, `second_judge`, `people` -> place -> score, lost ones included."""
    own = [s for s in scores if s.metric in RATES]
    second = [
        replace(s, metric=s.metric.removeprefix(SECOND))
        for s in scores
        if s.metric.startswith(SECOND)
    ]
    found = {"judge": own, "second_judge": second, "people": _matched(labels or [], own)}
    return {who: {_place(s): s for s in given} for who, given in found.items() if given}


def agreement(
    given: Mapping[str, Mapping[str, Score]], seed: int
) -> tuple[list[Estimate], list[RowsTable]]:
    """Table 4: how often two of them give one label, with an interval; and Cohen's kappa. A label
    that one of them lost agrees with nothing in basis `all`, and is in no kappa."""
    made: list[Estimate] = []
    rows: list[Row] = []
    for first, second in (
        ("judge", "second_judge"),
        ("judge", "people"),
        ("second_judge", "people"),
    ):
        if first not in given or second not in given:
            continue
        ones, twos = given[first], given[second]
        shared = [p for p in ones if p in twos]
        by_judge = [p for p in shared if ones[p].facets["category"] != "nickname"]
        pair = f"{first}-{second}"
        same = [_same(ones[p], twos[p], pair) for p in by_judge]
        made += estimates(same, {AGREEMENT: ACCURACY}, ("pair",), unit="user", seed=seed)
        for category in ("all but nickname", *CATEGORIES):
            chosen = [p for p in shared if ones[p].facets["category"] == category]
            if places := chosen if category in CATEGORIES else by_judge:
                rows.append(_kappa_row(pair, category, ones, twos, places))
    return made, [RowsTable("Agreement on single preferences (Table 4)", rows)] if rows else []


def corrected(
    scores: Sequence[Score],
    given: Mapping[str, Mapping[str, Score]],
    reference: str,
    by: Sequence[str],
) -> list[RowsTable]:
    """MR and AAR over scored instances, raw and corrected for the judge's errors (Rogan and Gladen
    1978).

    Sensitivity and specificity come from the judge's labels against the reference's, within g = 0
    for MR and within g = 1 for AAR; nicknames are matched, not judged, and stay as they are.
    """
    rows: list[Row] = []
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in RATES:
            groups.setdefault(tuple(score.facets[name] for name in by), []).append(score)
    tables = {
        metric: _error_table(given["judge"], given.get(reference, {}), metric)
        for metric in (MR, AAR)
    }
    for condition, members in groups.items():
        for metric, table in tables.items():
            own = [s for s in members if s.metric == metric]
            judged = [s for s in own if s.facets["category"] != "nickname"]
            matched = [s for s in own if s.facets["category"] == "nickname"]
            found = corrected_rate(judged, matched, table, RATES[metric], unit="user")
            rows.append(
                {
                    "condition": ", ".join(telling(condition, list(groups))),
                    "metric": metric,
                    "raw": found.apparent,
                    "corrected": found.value,
                    "low": found.low,
                    "high": found.high,
                    "sens.": table.sensitivity,
                    "spec.": table.specificity,
                    "labels": table.positives + table.negatives,
                    "interval": "; ".join([found.interval, *found.flags]),
                    "n": found.n,
                    "unparsed": found.unparsed,
                    "truncated": found.truncated,
                    "failed": found.failed,
                }
            )
    who = reference.replace("_", " ")
    title = f"MR and AAR of scored instances, raw and corrected for the judge's errors by {who}"
    return [RowsTable(title, rows, ("n", "unparsed", "truncated", "failed"))]


def _error_table(
    judge: Mapping[str, Score], reference: Mapping[str, Score], metric: str
) -> ErrorTable:
    pairs = [
        (bool(said.value), bool(true.value))
        for place, true in reference.items()
        if (said := judge.get(place)) is not None
        and said.metric == metric
        and said.facets["category"] != "nickname"
        and said.value is not None
        and true.value is not None
    ]
    return ErrorTable(
        true_positives=pairs.count((True, True)),
        false_negatives=pairs.count((False, True)),
        true_negatives=pairs.count((False, False)),
        false_positives=pairs.count((True, False)),
    )


def _kappa_row(
    pair: str,
    category: str,
    first: Mapping[str, Score],
    second: Mapping[str, Score],
    places: Sequence[str],
) -> Row:
    both = [
        (first[p].value, second[p].value)
        for p in places
        if first[p].value is not None and second[p].value is not None
    ]
    kappa = cohen_kappa([one for one, _ in both], [other for _, other in both])
    return {
        "pair": pair,
        "category": category,
        "n": kappa.n,
        "lost": len(places) - len(both),
        "agreement": kappa.agreement,
        "kappa": kappa.value,
        "why_not": kappa.reason,
    }


def _same(one: Score, other: Score, pair: str) -> Score:
    """Whether two labels are the same; no value where one of them is lost."""
    made = Score(one.case, _place(one), AGREEMENT, one.cluster, None, "ok", "", {"pair": pair})
    if lost := next((s for s in (one, other) if s.value is None), None):
        return replace(made, outcome=lost.outcome, reason=lost.reason)
    return replace(made, value=float(one.value == other.value))


def _place(score: Score) -> str:
    """One preference in one message, whoever judges it."""
    return f"{score.case}|{score.question}"


def _matched(labels: Sequence[HumanLabel], own: Sequence[Score]) -> list[Score]:
    """Labels as scores of this run: of the same case, question and message."""
    known = {(s.case, s.question, s.facets["message"]): s for s in own}
    return [
        replace(like, value=label.applied, outcome="ok", reason="")
        for label in labels
        if (like := known.get((label.case, label.question, label.message))) is not None
    ]


def read_labels(path: Path) -> list[HumanLabel]:
    """Human labels as `annotate read benchpres_responses` writes them. Several annotators of one
    item must agree: their sheets are for them to settle.

    Raises:
        DataError: no labels, one that is not 0 or 1, or two annotators who differ on an item.
    """
    made: dict[tuple[str, str, str], HumanLabel] = {}
    for row in read_sheet(path, ("case", "question", "metric", "value", "message")):
        if row.cells["metric"] != "applied":
            continue
        case, question, message = (row.text(n) for n in ("case", "question", "message"))
        label = HumanLabel(case, question, message, float(row.whole("value", 0, 1)))
        if made.setdefault((case, question, message), label) != label:
            problem = f"annotators differ on {case}|{question}: keep one label, or leave it out"
            raise row.error("value", problem)
    if not made:
        raise DataError(path, "has no labels; give what annotate read benchpres_responses wrote")
    return list(made.values())
