"""Is the judge to be trusted? (Appendix G.3, Table 10, Figure 12.)

The judge's scores against those of a second judge, or of people: Pearson's correlation by dimension
and overall, Cohen's kappa, and how often each score was given. A second judge's scores stand in the
table of scores under `second_judge/<dimension>`, so that no estimate mixes the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from persona_lab.benchmarks.realpref.prompts import DIMENSIONS
from persona_lab.core.scores import Row, RowsTable, Score
from persona_lab.metrics.agreement import (
    cohen_kappa,
    judge_agreement,
    paired_values,
    score_histogram,
)
from persona_lab.parsing.csv_sheet import read_sheet

SECOND = "second_judge/"
_SCALE = range(1, 6)
_NEEDED = ("case", "question", "metric", "value")


def as_second(scores: Sequence[Score]) -> list[Score]:
    """A second judge's scores under their own names; their mean is worked out where it is used."""
    return [replace(s, metric=SECOND + s.metric) for s in scores if s.metric in DIMENSIONS]


def agreement_tables(scores: Sequence[Score], human_scores: Path | None) -> list[RowsTable]:
    """Table 10 and Figure 12 for every second opinion that there is."""
    own = [s for s in scores if s.metric in DIMENSIONS]
    second = [
        replace(s, metric=s.metric.removeprefix(SECOND))
        for s in scores
        if s.metric.startswith(SECOND)
    ]
    tables = _tables(own, second, "a second judge") if second else []
    if human_scores is not None:
        tables += _tables(own, _read_scores(human_scores, own), "people")
    return tables


def _tables(own: Sequence[Score], other: Sequence[Score], who: str) -> list[RowsTable]:
    rows: list[Row] = []
    for cell in judge_agreement(own, other, DIMENSIONS):
        row: Row = {
            "dimension": cell.metric,
            "pearson_r": cell.pearson.r,
            "p": cell.pearson.p,
            "pairs": cell.pearson.n,
            "unpaired": cell.unpaired,
        }
        if cell.metric in DIMENSIONS:
            first, second, _ = paired_values(own, other, [cell.metric])
            kappa = cohen_kappa(_whole(first), _whole(second), classes=list(_SCALE))
            row |= {"kappa": kappa.value, "agreement": kappa.agreement}
        else:
            row |= {"kappa": None, "agreement": None}
        rows.append(row | {"why_not": cell.pearson.reason})
    histogram: list[Row] = []
    for dimension in DIMENSIONS:
        first, second, _ = paired_values(own, other, [dimension])
        for judge, values in (("judge", first), (who, second)):
            counts = score_histogram(_whole(values), list(_SCALE))
            histogram.append(
                {"dimension": dimension, "scored by": judge}
                | {str(score): count for score, count in counts.items()}
            )
    return [
        RowsTable(f"Agreement of the judge with {who} (Table 10)", rows),
        RowsTable(f"Scores given by the judge and by {who} (Figure 12)", histogram),
    ]


def _whole(values: Sequence[float]) -> list[int]:
    return [round(value) for value in values]


def _read_scores(path: Path, own: Sequence[Score]) -> list[Score]:
    """Human scores as `annotate read` writes them; items of other runs are left out."""
    known = {(s.case, s.question): s for s in own}
    made = []
    for row in read_sheet(path, _NEEDED):
        like = known.get((row.cells["case"], row.cells["question"]))
        metric = row.cells["metric"]
        if like is None or metric not in DIMENSIONS:
            continue
        try:
            float(row.text("value"))
        except ValueError:
            raise row.error("value", f"{row.text('value')!r} is no number") from None
        value = float(row.whole("value", _SCALE[0], _SCALE[-1]))
        made.append(replace(like, metric=metric, value=value, outcome="ok"))
    return made
