"""Is the judge to be trusted? (section 6, Table 4), and what its errors do to MR and AAR.

The judge's labels against those of a second judge and of people, on the same instances (10 per
category and gold value). Exact matching is not the judge's: a nickname is in no row but its own. A
second judge's scores stand in the table of scores under `second_judge/MR` and `second_judge/AAR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from persona_lab.benchmarks.benchpres.cases import telling
from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.benchmarks.benchpres.scoring import AAR, MR, RATES
from persona_lab.core.experiment import Estimate, Row, RowsTable, Score
from persona_lab.metrics.agreement import cohen_kappa
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.metrics.judge_noise import ErrorTable, corrected_rate
from persona_lab.parsing.csv_sheet import read_sheet

SECOND = "second_judge/"
AGREEMENT = "agreement"


def as_second(scores: Sequence[Score]) -> list[Score]:
    """A second judge's scores under their own names, so that no rate mixes the two."""
    return [replace(score, metric=SECOND + score.metric) for score in scores]


def opinions(scores: Sequence[Score], human_labels: Path | None) -> dict[str, dict[str, Score]]:
    """Who said what: `judge`, `second_judge`, `people` -> place -> score with a value."""
    own = [s for s in scores if s.metric in RATES]
    second = [
        replace(s, metric=s.metric.removeprefix(SECOND))
        for s in scores
        if s.metric.startswith(SECOND)
    ]
    found = {"judge": own, "second_judge": second}
    if human_labels is not None:
        found["people"] = _read_labels(human_labels, own)
    return {
        who: {_place(s): s for s in given if s.value is not None}
        for who, given in found.items()
        if given
    }


def agreement(
    given: Mapping[str, Mapping[str, Score]], seed: int
) -> tuple[list[Estimate], list[RowsTable]]:
    """Table 4: how often two of them give one label, with an interval; and Cohen's kappa."""
    made: list[Estimate] = []
    rows: list[Row] = []
    for first, second in (
        ("judge", "second_judge"),
        ("judge", "people"),
        ("second_judge", "people"),
    ):
        if first not in given or second not in given:
            continue
        shared = [p for p in given[first] if p in given[second]]
        by_judge = [p for p in shared if given[first][p].facets["category"] != "nickname"]
        pair = f"{first}-{second}"
        same = [_same(given[first][p], given[second][p], pair) for p in by_judge]
        made += estimates(same, {AGREEMENT: ACCURACY}, ("pair",), unit="user", seed=seed)
        for category in ("all but nickname", *CATEGORIES):
            chosen = [
                p for p in shared if given[first][p].facets["category"] == category
            ] if category in CATEGORIES else by_judge  # fmt: skip
            if chosen:
                rows.append(_kappa_row(pair, category, given[first], given[second], chosen))
    return made, [RowsTable("Agreement on single preferences (Table 4)", rows)] if rows else []


def corrected(
    scores: Sequence[Score],
    given: Mapping[str, Mapping[str, Score]],
    reference: str,
    by: Sequence[str],
) -> list[RowsTable]:
    """MR and AAR, raw and corrected for the judge's errors (Rogan and Gladen 1978).

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
                }
            )
    who = reference.replace("_", " ")
    return [RowsTable(f"MR and AAR, raw and corrected for the judge's errors by {who}", rows)]


def _error_table(
    judge: Mapping[str, Score], reference: Mapping[str, Score], metric: str
) -> ErrorTable:
    pairs = [
        (bool(judge[p].value), bool(true.value))
        for p, true in reference.items()
        if p in judge and judge[p].metric == metric and judge[p].facets["category"] != "nickname"
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
    kappa = cohen_kappa([first[p].value for p in places], [second[p].value for p in places])
    return {
        "pair": pair,
        "category": category,
        "n": kappa.n,
        "agreement": kappa.agreement,
        "kappa": kappa.value,
        "why_not": kappa.reason,
    }


def _same(one: Score, other: Score, pair: str) -> Score:
    place, same = _place(one), float(one.value == other.value)
    return Score(one.case, place, AGREEMENT, one.cluster, same, "ok", "", {"pair": pair})


def _place(score: Score) -> str:
    """One preference in one message, whoever judges it."""
    return f"{score.case}|{score.question}"


def _read_labels(path: Path, own: Sequence[Score]) -> list[Score]:
    """Human labels as `annotate read benchpres_responses` writes them; items of other runs are
    left out. Several annotators of one item must agree: their sheets are for them to settle.

    Raises:
        DataError: a label that is not 0 or 1, or two annotators who differ on an item.
    """
    known = {_place(s): s for s in own}
    made: dict[str, Score] = {}
    for row in read_sheet(path, ("case", "question", "metric", "value")):
        place = f"{row.cells['case']}|{row.cells['question']}"
        like = known.get(place)
        if like is None or row.cells["metric"] != "applied":
            continue
        score = replace(like, value=float(row.whole("value", 0, 1)), outcome="ok", reason="")
        if place in made and made[place].value != score.value:
            raise row.error(
                "value", f"annotators differ on {place}: keep one label, or leave the item out"
            )
        made[place] = score
    return list(made.values())
