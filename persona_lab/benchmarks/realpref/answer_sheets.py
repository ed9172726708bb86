"""Sheets on which people score open-ended answers like the judge does (Appendix G.3, Table 10).

Two annotators see what the judge saw: preference, query and answer, and its rubrics (Tables 4-6).
Some answers stand in both sheets, for Cohen's kappa.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, RUBRICS, judge_prompt
from persona_lab.benchmarks.realpref.scoring import METRICS, Row
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.metrics.agreement import cohen_kappa
from persona_lab.metrics.estimate import estimates
from persona_lab.parsing.sheet_key import (
    Sheets,
    item_name,
    missing_note,
    read_filled_in,
    read_key,
)
from persona_lab.reporting.run_folder import read_table


def draw_answer_scores(run: Path, items: int, shared: int, seed: int) -> Sheets:
    """Draws judged open-ended answers for two annotators.

    Args:
        run: a run's folder, with scores.parquet and transcripts.parquet.
        items: answers in all. shared: those that both annotators score; the rest is split.

    Raises:
        ConfigError: more shared items than items.
        DataError: the folder holds no judged answers.
    """
    if shared > items:
        raise ConfigError(f"--shared {shared}: is more than --items {items}")
    rng = random.Random(seed)
    judged, notes = _judged(run)
    chosen = rng.sample(judged, min(items, len(judged)))
    asked = _judge_prompts(run, {case for case, _, _ in chosen})
    rows, key = [], []
    empty = dict[str, str].fromkeys(DIMENSIONS, "")
    for case, question, user in chosen:
        item = {"item": item_name(case, *asked[case].values())}
        rows.append(item | asked[case] | empty)
        key.append(
            {**item, "case": case, "question": question, "user": user, "run": run.resolve().name}
        )
    both, rest = rows[:shared], rows[shared:]
    parts = [both + rest[::2], both + rest[1::2]]
    for part in parts:
        rng.shuffle(part)  # a shared item is not known by its place
    if len(chosen) < items:
        notes.append(f"Only {len(chosen)} of the {items} wanted answers are in {run}.")
    notes.append(f"{len(both)} of {len(rows)} answers are in both sheets.")
    sheets = {f"answer_scores_{n}": part for n, part in enumerate(parts, 1) if part}
    return Sheets(sheets, key, notes, {"rubrics.txt": _rubrics()})


def read_answer_scores(files: Sequence[Path], key: Path) -> Summary:
    """Scores per dimension and annotator, under the run's own cases and questions.

    Raises:
        ConfigError: more than two sheets.
        DataError: a sheet or key that is not filled in as it should be.
    """
    if len(files) > 2:
        raise ConfigError(f"answer_scores has two annotators, not {len(files)}")
    scores = []
    known = read_key(key, ("case", "question", "user"))
    rows = read_filled_in(files, DIMENSIONS, known)
    for read in rows:
        row, source = read.row, read.source
        case, question, user = (source.text(name) for name in ("case", "question", "user"))
        item = Row(case, question, user, {"annotator": read.annotator})
        scores += [item.score(d, float(row.whole(d, 1, 5)), "ok") for d in DIMENSIONS]
    # Each answer is an item: one question may be answered under several conditions of the run.
    answers = [replace(score, question=score.case) for score in scores]
    made = estimates(answers, METRICS, ("annotator",), unit="user")
    pairs = len(shared_pairs(scores)) // len(DIMENSIONS)
    notes = [f"{pairs} answers were scored by both annotators."] if len(files) == 2 else []
    notes += missing_note(known, rows)
    return Summary(scores, made, notes=notes, tables=annotator_agreement(shared_pairs(scores)))


@dataclass(frozen=True)
class Pair:
    """What two annotators gave one answer on one dimension."""

    case: str
    metric: str
    first: int
    second: int


def shared_pairs(scores: Sequence[Score]) -> list[Pair]:
    """The scores of answers that both annotators have scored, for Cohen's kappa (G.3).

    Args:
        scores: of `read_answer_scores`; the annotator named first is `first` in every pair.
    """
    annotators = list(dict.fromkeys(score.facets["annotator"] for score in scores))
    given: dict[tuple[str, str], dict[str, int]] = {}
    for score in scores:
        if score.value is not None:
            by_annotator = given.setdefault((score.case, score.metric), {})
            by_annotator[score.facets["annotator"]] = int(score.value)
    return [
        Pair(case, metric, *(values[name] for name in annotators))
        for (case, metric), values in given.items()
        if len(values) == 2
    ]


def annotator_agreement(pairs: Sequence[Pair]) -> list[RowsTable]:
    """Cohen's kappa of two annotators on the answers that both have scored, by dimension and over
    all (Appendix G.3 gives 0.77); none without such answers."""
    if not pairs:
        return []
    rows: list[TableRow] = []
    for name in [*DIMENSIONS, "all dimensions"]:
        chosen = [p for p in pairs if name in (p.metric, "all dimensions")]
        first, second = [p.first for p in chosen], [p.second for p in chosen]
        plain = cohen_kappa(first, second, classes=range(1, 6))
        weighted = cohen_kappa(first, second, classes=range(1, 6), weights="quadratic")
        rows.append(
            {
                "dimension": name,
                "kappa": plain.value,
                "quadratic kappa": weighted.value,
                "agreement": plain.agreement,
                "scores": plain.n,
                "why not": plain.reason,
            }
        )
    return [RowsTable("Agreement of the two annotators (Cohen's kappa)", rows)]


def _judged(run: Path) -> tuple[list[tuple[str, str, str]], list[str]]:
    """(case, question, user) of each answer that the judge gave all three scores, and notes."""
    path = run / "scores.parquet"
    frame = read_table(path, ["case", "question", "cluster", "metric", "value"])
    overall = frame[frame["metric"] == "overall"]
    judged = overall[overall["value"].notna()]
    if judged.empty:
        raise DataError(path, "has no open-ended answer with all three of the judge's scores")
    columns = (judged[name] for name in ("case", "question", "cluster"))
    lost = len(overall) - len(judged)
    notes = [f"{lost} answers lack a score of the judge's and cannot be drawn."] if lost else []
    return sorted(zip(*columns, strict=True)), notes


def _judge_prompts(run: Path, cases: set[str]) -> dict[str, dict[str, str]]:
    """Preference, query and answer of each case, as its judge was shown them."""
    path = run / "transcripts.parquet"
    frame = read_table(path, ["case", "role", "asked"])
    rows = frame[(frame["role"] == "judge") & frame["case"].isin(cases)]
    found = {
        case: match.groupdict()
        for case, asked in zip(rows["case"], rows["asked"], strict=True)
        if (match := _judge_pattern().fullmatch(asked))
    }
    if lacking := sorted(cases - set(found)):
        problem = "has no prompt of this version's judge for it; run the recipe again"
        raise DataError(path, problem, field=lacking[0])
    return found


@cache
def _judge_pattern() -> re.Pattern[str]:
    """The judge's prompt of the first dimension, read backwards."""
    fields = ("preference", "query", "answer")
    pattern = re.escape(judge_prompt(DIMENSIONS[0], *(f"<{name}>" for name in fields)))
    for name in fields:
        pattern = pattern.replace(re.escape(f"<{name}>"), f"(?P<{name}>.+?)")
    return re.compile(pattern, re.DOTALL)


def _rubrics() -> str:
    """What a score means on each dimension: Tables 4 to 6, as the judge is given them."""
    parts = [f"{name}\n\n{text}" for name, text in RUBRICS.items()]
    return "\n\n\n".join(parts) + "\n"
