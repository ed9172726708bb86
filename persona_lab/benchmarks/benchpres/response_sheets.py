"""Sheets on which people say whether a response follows a preference (section 6, Table 4).

They see what the judge saw, preference and response, for as many instances of each category and
gold value. Nicknames are among them: there it is the exact match that people check.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from persona_lab.benchmarks.benchpres.agreement_sample import agreement_sample
from persona_lab.benchmarks.benchpres.label_sheets import annotator_tables, in_own_orders
from persona_lab.benchmarks.benchpres.prompts import judge_prompt
from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.benchmarks.benchpres.scoring import RATE_OF, RATES, Row, message_digest
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.metrics.agreement import cohen_kappa
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.parsing.sheet_key import (
    Sheets,
    item_name,
    missing_note,
    read_filled_in,
    read_key,
)
from persona_lab.reporting.run_folder import read_table

APPLIED, AGREEMENT = "applied", "agreement"
ANSWERS = ("yes", "no")
_VERDICT = ("case", "question", "cluster", "category", "label", "preference", "value")
_GUIDELINES = """\
How to judge a response

Each row has one preference of a user and one response, a message written in that user's name.
Decide whether the response follows the preference, and write yes or no into the column follows.

yes   The response does what the preference asks for.
no    It does not.

A preference for a name is followed where the response uses that name for the user.
Whether following the preference is a good idea in such a message is not asked here, nor whether the
message is well written. Judge each row by itself, decide alone, and leave no row empty.
"""


@dataclass(frozen=True)
class Verdict:
    """What a run says of one instance.

    Attributes:
        applied: 1 where the preference is applied (z of section 3.3), else 0; nan if not known.
    """

    case: str
    question: str
    user: str
    category: str
    label: str
    preference: str
    applied: float


@dataclass(frozen=True)
class Opinion:
    """What a person says of one instance, and what the run said."""

    said: Score
    applied: bool

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return bool(self.said.value) == self.applied

    @property
    def verdict_by(self) -> str:
        """Who gave the run's verdict: the judge or, for a nickname, the exact match."""
        return "exact_match" if self.said.facets["category"] == "nickname" else "judge"


def draw_responses(run: Path, items: int, annotators: int, seed: int) -> Sheets:
    """Draws instances of a run, the same for every annotator; `seed` is of their orders alone.

    Args:
        run: a run's folder, with scores.parquet and transcripts.parquet.
        items: instances of each category and gold value.

    Raises:
        DataError: no run of this benchmark, or one without verdicts.
    """
    drawn = _drawn(run, items)
    scored = [v for v in drawn if not math.isnan(v.applied)]
    responses = _responses(run, scored)
    chosen = [v for v in scored if v.case in responses]
    if not chosen:
        raise DataError(run / "scores.parquet", "has no instance with a verdict to be checked")
    rows, key = [], []
    for verdict in chosen:
        shown = {"preference": verdict.preference, "response": responses[verdict.case]}
        place = {"case": verdict.case, "question": verdict.question}
        item = {"item": item_name(*place.values(), *shown.values())}
        rows.append({**item, **shown, "follows": ""})
        hidden = {
            "user": verdict.user,
            "category": verdict.category,
            "label": verdict.label,
            "applied": f"{verdict.applied:g}",
            "message": message_digest(responses[verdict.case]),
            "run": run.resolve().name,
        }
        key.append({**item, **place, **hidden})
    sheets = in_own_orders("benchpres_responses", rows, annotators, seed)
    notes = _draw_notes(len(drawn) - len(scored), len(scored) - len(chosen), chosen, items)
    return Sheets(sheets, key, notes, {"response_guidelines.txt": _GUIDELINES})


def read_responses(files: Sequence[Path], key: Path) -> Summary:
    """People's verdicts under the run's own cases and questions, and how far the run agrees.

    Raises:
        ConfigError, DataError: a sheet or key that is not filled in as it should be.
    """
    opinions = []
    columns = ("case", "question", "user", "category", "label", "applied", "message")
    known = read_key(key, columns)
    rows = read_filled_in(files, ("follows",), known)
    for read in rows:
        source = read.source
        facets = {
            "annotator": read.annotator,
            "category": source.one_of("category", CATEGORIES),
            "label": source.one_of("label", RATE_OF),
            "message": source.text("message"),
        }
        follows = read.row.one_of("follows", ANSWERS) == "yes"
        row = Row(source.text("case"), source.text("user"), facets)
        said = row.score(source.text("question"), APPLIED, float(follows), "ok")
        opinions.append(Opinion(said, source.one_of("applied", ("0", "1")) == "1"))
    scores = [opinion.said for opinion in opinions]
    tables = [_verdict_table(opinions)]
    if len(files) > 1:
        tables += annotator_tables(scores)
    by = ("verdict_by", "annotator")
    made = estimates(_agreement(opinions), {AGREEMENT: ACCURACY}, by, unit="user")
    return Summary(scores, made, notes=missing_note(known, rows), tables=tables)


def _drawn(run: Path, per_cell: int) -> list[Verdict]:
    """The run's part of the agreement sample."""
    frame = read_table(run / "scores.parquet", (*_VERDICT, "metric", "memory"))
    frame = frame[frame["metric"].isin(list(RATES)) & (frame["memory"] == "with")]
    verdicts = [Verdict(*row) for row in zip(*(frame[c] for c in _VERDICT), strict=True)]
    sample = agreement_sample(
        ((v.case, v.question, v.category, v.label) for v in verdicts), per_cell
    )
    return [v for v in verdicts if (v.case, v.question) in sample]


def _responses(run: Path, verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The response of each case, as the judge was shown it.

    A case whose only preference is a nickname is not in it: no judge was asked.
    """
    path = run / "transcripts.parquet"
    frame = read_table(path, ("case", "role", "asked"))
    rows = frame[(frame["role"] == "judge") & frame["case"].isin([v.case for v in verdicts])]
    found = {
        case: match["response"]
        for case, asked in zip(rows["case"], rows["asked"], strict=True)
        if (match := _judge_pattern().fullmatch(asked))
    }
    judged = {v.case for v in verdicts if v.category != "nickname"}
    if lacking := sorted(judged - set(found)):
        problem = "has no prompt of this version's judge for it; run the recipe again"
        raise DataError(path, problem, field=lacking[0])
    return found


@cache
def _judge_pattern() -> re.Pattern[str]:
    """The judge's prompt (Figure 12), read backwards."""
    pattern = re.escape(judge_prompt("<preference>", "<response>"))
    return re.compile(
        pattern.replace("<preference>", ".+?").replace("<response>", "(?P<response>.+?)"),
        re.DOTALL,
    )


def _draw_notes(unscored: int, unseen: int, chosen: Sequence[Verdict], wanted: int) -> list[str]:
    notes = []
    if unscored:
        notes.append(f"{unscored} drawn instances have no verdict and are left out.")
    if unseen:
        notes.append(f"{unseen} drawn nicknames are left out: no judge was shown their response.")
    there = Counter((v.category, v.label) for v in chosen)
    short = [
        f"{category} with g = {label} ({there[category, label]})"
        for category in CATEGORIES
        for label in RATE_OF
        if there[category, label] < wanted
    ]
    return notes + [f"Fewer instances than the {wanted} wanted: {', '.join(short)}."] * bool(short)


def _agreement(opinions: Sequence[Opinion]) -> list[Score]:
    """1 where person and run say the same, else 0; each response is an item by itself."""
    return [
        replace(
            opinion.said,
            question=f"{opinion.said.case}/{opinion.said.question}",
            metric=AGREEMENT,
            value=float(opinion.agrees),
            facets={**opinion.said.facets, "verdict_by": opinion.verdict_by},
        )
        for opinion in opinions
    ]


def _verdict_table(opinions: Sequence[Opinion]) -> RowsTable:
    """The run's verdicts against each person's: the judge's together, then every category."""
    rows: list[TableRow] = []
    for annotator in dict.fromkeys(o.said.facets["annotator"] for o in opinions):
        mine = [o for o in opinions if o.said.facets["annotator"] == annotator]
        groups = {"all but nickname": [o for o in mine if o.verdict_by == "judge"]}
        for category in CATEGORIES:
            name = category + " (exact match)" * (category == "nickname")
            groups[name] = [o for o in mine if o.said.facets["category"] == category]
        for name, members in groups.items():
            if members:
                rows.append({"annotator": annotator, "category": name, **_kappa_cells(members)})
    return RowsTable("Agreement of the run's verdicts with people (Cohen's kappa)", rows)


def _kappa_cells(opinions: Sequence[Opinion]) -> TableRow:
    kappa = cohen_kappa(
        ["yes" if o.applied else "no" for o in opinions],
        ["yes" if o.said.value else "no" for o in opinions],
    )
    return {
        "kappa": kappa.value,
        "agreement": kappa.agreement,
        "instances": kappa.n,
        "why not": kappa.reason,
    }
