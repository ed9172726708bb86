"""Evaluators against people (section 5.1, Appendix C.3 and D), from what `annotate read` wrote.

Study 3: exact McNemar of each annotator against each evaluator on the error responses of a family,
each scenario its own item; and, where an evaluator's verdict is not the benchmark's, whether both
annotators support the benchmark or both reject it. C.3: under errors judged Over, again without
the responses in which an annotator found a secondary Over error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from persona_lab.benchmarks.persevalbench.records import FAMILIES
from persona_lab.benchmarks.persevalbench.scoring import DIRECTIONS, ERR, FAR
from persona_lab.benchmarks.persevalbench.settings import PersEvalBenchSettings
from persona_lab.core.errors import DataError
from persona_lab.core.experiment import resolve_data
from persona_lab.core.scores import Row, RowsTable, Score
from persona_lab.metrics.comparisons import mcnemar_exact
from persona_lab.metrics.estimate import estimates
from persona_lab.parsing.csv_sheet import read_sheet

Values = Mapping[str, float]
"""Question -> value of ERR or FAR."""
CONDITION = ("evaluator", "context", "formulation")


@dataclass(frozen=True)
class People:
    """What the files that a recipe names say.

    Attributes:
        verdicts: annotator -> question -> value of ERR or FAR.
        audit: scenario -> whether an annotator found a secondary Over error, and whether all
            confirmed the intended Under.
    """

    verdicts: Mapping[str, Values]
    audit: Mapping[str, tuple[bool, bool]]

    @classmethod
    def read(cls, settings: PersEvalBenchSettings, root: Path) -> People:
        """Reads them.

        Raises:
            DataError: no such file or columns, nothing that belongs here, a value that is not 0
                or 1, or one question twice by one annotator.
        """
        verdicts, audit = settings.human_verdicts, settings.under_audit
        return cls(
            _read_verdicts(resolve_data(verdicts, root)) if verdicts else {},
            _read_audit(resolve_data(audit, root)) if audit else {},
        )

    def notes(self, scores: Sequence[Score]) -> list[str]:
        """What of the files found no response of this run."""
        asked = {s.question for s in scores if s.metric in (ERR, FAR)}
        scenarios = {s.cluster for s in scores if s.metric == ERR}
        people = {q for given in self.verdicts.values() for q in given}
        found = []
        if missing := len(people - asked):
            found.append(f"{missing} of {len(people)} responses with human verdicts are not here.")
        if missing := len(set(self.audit) - scenarios):
            found.append(f"{missing} of {len(self.audit)} audited scenarios are not here.")
        return found


def human_tables(scores: Sequence[Score], people: People, seed: int) -> list[RowsTable]:
    """The tables of the files that the recipe names."""
    tables = []
    if people.verdicts:
        tables += [
            _mcnemar_table(scores, people.verdicts),
            _support_table(scores, people.verdicts),
        ]
    if people.audit:
        tables.append(_audit_table(scores, people.audit, seed))
    return [table for table in tables if table.rows]


def _mcnemar_table(scores: Sequence[Score], people: Mapping[str, Values]) -> RowsTable:
    rows: list[Row] = []
    for condition, given in _by_condition(scores).items():
        own, families = _values(given), {s.question: s.facets["family"] for s in given}
        for annotator, theirs in people.items():
            for family in FAMILIES:
                shared = [
                    q for q in theirs if q in own and families[q] == family and q.endswith("/error")
                ]
                only_person = sum(theirs[q] > own[q] for q in shared)
                only_evaluator = sum(theirs[q] < own[q] for q in shared)
                if shared:
                    rows.append(
                        {
                            "evaluator": ", ".join(condition),
                            "annotator": annotator,
                            "family": family,
                            "n": len(shared),
                            "only annotator": only_person,
                            "only evaluator": only_evaluator,
                            "p": mcnemar_exact(only_person, only_evaluator),
                        }
                    )
    return RowsTable("Recognised errors: annotators against evaluators (exact McNemar)", rows)


def _support_table(scores: Sequence[Score], people: Mapping[str, Values]) -> RowsTable:
    """Judgments agree with the benchmark where ERR is 1 or FAR is 0; a lost verdict is none."""
    rows: list[Row] = []
    for condition, given in _by_condition(scores).items():
        stated = [s for s in given if s.value is not None]
        wrong = [q for q, value in _values(stated).items() if not _agrees(q, value)]
        judged = [q for q in wrong if len(people) > 1 and all(q in p for p in people.values())]
        votes = [[_agrees(q, p[q]) for p in people.values()] for q in judged]
        if judged:
            rows.append(
                {
                    "evaluator": ", ".join(condition),
                    "disagrees": len(wrong),
                    "judged by all": len(judged),
                    "all support the benchmark": sum(map(all, votes)) / len(votes),
                    "all reject it": sum(not any(v) for v in votes) / len(votes),
                }
            )
    return RowsTable("Where an evaluator differs from the benchmark: what annotators said", rows)


def _audit_table(
    scores: Sequence[Score], audit: Mapping[str, tuple[bool, bool]], seed: int
) -> RowsTable:
    """Under judged Over: all, without flagged ones, and of those only the confirmed."""
    subsets = {
        "all audited": set(audit),
        "no secondary Over": {name for name, (flagged, _) in audit.items() if not flagged},
        "no secondary Over, Under confirmed": {
            name for name, (flagged, confirmed) in audit.items() if confirmed and not flagged
        },
    }
    name = "under_judged_over"
    rows: list[Row] = []
    for subset, scenarios in subsets.items():
        kept = [s for s in scores if s.cluster in scenarios]
        for e in estimates(kept, {name: DIRECTIONS[name]}, CONDITION, unit="scenario", seed=seed):
            rows.append(
                {
                    "evaluator": ", ".join(e.facets.values()),
                    "responses": subset,
                    "judged Over": e.value,
                    "low": e.low,
                    "high": e.high,
                    "n": e.n,
                }
            )
    return RowsTable("Under errors judged Over, by the audit of C.3", rows)


def _by_condition(scores: Sequence[Score]) -> dict[tuple[str, ...], list[Score]]:
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        if score.metric in (ERR, FAR):
            groups.setdefault(tuple(score.facets[n] for n in CONDITION), []).append(score)
    return groups


def _values(scores: Sequence[Score]) -> dict[str, float]:
    """The first sample's; a response without a verdict counts as the worse outcome."""
    return {
        s.question: (0.0 if s.metric == ERR else 1.0) if s.value is None else s.value
        for s in scores
        if s.facets["sample"] == "1"
    }


def _agrees(question: str, value: float) -> bool:
    return value == (1.0 if question.endswith("/error") else 0.0)


def _read_verdicts(path: Path) -> Mapping[str, Values]:
    """Annotator -> question -> ERR or FAR, as `annotate read persevalbench_verdicts` writes."""
    people: dict[str, dict[str, float]] = {}
    for row in read_sheet(path, ("question", "metric", "value", "annotator")):
        if row.cells["metric"] not in (ERR, FAR):
            continue
        question, mine = row.text("question"), people.setdefault(row.text("annotator"), {})
        if row.cells["metric"] != (ERR if question.endswith("/error") else FAR):
            raise row.error("metric", f"{row.cells['metric']} is no metric of {question}")
        if question in mine:
            raise row.error("question", f"{question} is there twice for {row.text('annotator')}")
        mine[question] = float(row.whole("value", 0, 1))
    if not people:
        wanted = "what annotate read persevalbench_verdicts wrote"
        raise DataError(path, f"has no verdicts; give {wanted}")
    return people


def _read_audit(path: Path) -> Mapping[str, tuple[bool, bool]]:
    """Scenario -> (flagged, confirmed), as `annotate read persevalbench_audit` writes them."""
    audit = {
        row.text("scenario"): (
            row.one_of("flagged_over", ("yes", "no")) == "yes",
            row.one_of("confirmed_under", ("yes", "no")) == "yes",
        )
        for row in read_sheet(path, ("scenario", "flagged_over", "confirmed_under"), "scenario")
    }
    if not audit:
        raise DataError(path, "has no rows")
    return audit
