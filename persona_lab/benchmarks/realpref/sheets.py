"""Sheets for the human checks (Appendix G): what annotators fill in, and the scores it gives.

    answer_scores   G.3, Table 10: people score open-ended answers like the judge does
    easy_test       G.2, Table 8: people choose an option, knowing one preference's sessions
    blind_pairs     G.1, Table 7: people say which of two conversations is the more plausible

A sheet shows what its annotator may know. Where an item comes from and what is right stand in the
key. Items are named by a digest of what they are, so a key does not fit a sheet drawn otherwise,
and the annotator is the name of the file: rename a copy to give it to one more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pandas as pd

from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, judge_prompt
from persona_lab.benchmarks.realpref.records import (
    LABELS,
    Asked,
    Expression,
    Session,
    User,
    load_users,
)
from persona_lab.benchmarks.realpref.scoring import METRICS, Row
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.experiment import Score, Summary
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.parsing.csv_sheet import (
    SheetRow,
    Sheets,
    item_name,
    missing_note,
    read_filled_in,
    read_items,
    read_key,
)

IMPLICIT: tuple[Expression, Expression] = ("stylistic_expression", "experience_feedback")
"""Expression types 3 and 4."""
VERDICTS = ("1 wins", "2 wins", "tie")
OUTCOMES = ("win", "loss", "tie")
"""Of the first source, as in Table 7."""


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
    return Sheets(sheets, key, notes)


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
    return Summary(scores, made, notes=notes + missing_note(known, rows))


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


def draw_easy_test(data: Path, items: int, seed: int) -> Sheets:
    """Draws questions with the sessions that voice their preference, half of them each type.

    Raises:
        DataError: a broken data folder, or one whose sessions voice no preference implicitly.
    """
    originals = [
        (user, asked)
        for user in load_users(data)
        for asked in user.asked
        if asked.kind == "original"
    ]
    rng = random.Random(seed)
    rng.shuffle(originals)
    chosen: list[tuple[User, Asked, Expression]] = []
    notes = []
    # From both ends: no question is asked under both types unless there are too few.
    for expression, order, wanted in (
        (IMPLICIT[0], originals, items - items // 2),
        (IMPLICIT[1], originals[::-1], items // 2),
    ):
        voiced = [(u, a, expression) for u, a in order if _voicing(u, a, expression)]
        chosen += voiced[:wanted]
        if len(voiced) < wanted:
            notes.append(f"Only {len(voiced)} of the {wanted} wanted {expression} items exist.")
    if not chosen:
        raise DataError(data / "expression_sessions.json", f"has no {' or '.join(IMPLICIT)}")
    rng.shuffle(chosen)
    drawn = [_easy_item(*place) for place in chosen]
    return Sheets({"easy_test": [row for row, _ in drawn]}, [key for _, key in drawn], notes)


def read_easy_test(files: Sequence[Path], key: Path) -> Summary:
    """Accuracy by expression type; an item that several people answered counts once.

    Raises:
        ConfigError, DataError: a sheet or key that is not filled in as it should be.
    """
    scores = []
    known = read_key(key, ("question", "user", "expression", "correct"))
    rows = read_filled_in(files, ("answer",), known)
    for read in rows:
        row, source = read.row, read.source
        question, user = source.text("question"), source.text("user")
        expression = source.one_of("expression", IMPLICIT)
        right = row.one_of("answer", LABELS) == source.one_of("correct", LABELS)
        facets = {"expression": expression, "annotator": read.annotator}
        item = Row(f"{question}/{expression}/easy_test", question, user, facets)
        scores.append(item.score("accuracy", float(right), "ok"))
    made = estimates(scores, METRICS, ("expression",), unit="user")
    return Summary(scores, made, notes=missing_note(known, rows))


def draw_blind_pairs(first: Path, second: Path, items: int, seed: int) -> Sheets:
    """Draws pairs of (preference, conversation) items: line by line, sides and order shuffled.

    Args:
        first, second: .csv or .jsonl, with the fields `preference` and `conversation`.

    Raises:
        DataError: a file without items, or with an item that lacks one of the two.
    """
    sources = [read_items(path, ("preference", "conversation")) for path in (first, second)]
    for path, rows in zip((first, second), sources, strict=True):
        if not rows:
            raise DataError(path, "has no items")
    rng = random.Random(seed)
    pairs = list(zip(*sources, strict=False))
    chosen = rng.sample(pairs, min(items, len(pairs)))
    sides = [1 + n % 2 for n in range(len(chosen))]  # the first source is left in half of them
    rng.shuffle(sides)
    names = [p.name for p in (first, second)]
    if names[0] == names[1]:
        names = [str(first), str(second)]
    sheet, key = [], []
    for pair, side in zip(chosen, sides, strict=True):
        left, right = pair if side == 1 else pair[::-1]
        texts = [row.text(c) for row in (left, right) for c in ("preference", "conversation")]
        lines = {"first_line": str(pair[0].line), "second_line": str(pair[1].line)}
        item = item_name(*texts, *lines.values())
        fields = ("preference_1", "conversation_1", "preference_2", "conversation_2")
        sheet.append({"item": item, **dict(zip(fields, texts, strict=True)), "answer": ""})
        own = {"first_side": str(side), "first": names[0], "second": names[1]}
        key.append({"item": item, **own, **lines})
    return Sheets({"blind_pairs": sheet}, key, _pairing_notes(names, sources, len(chosen), items))


def read_blind_pairs(files: Sequence[Path], key: Path) -> Summary:
    """Shares of pairs that the first source wins, loses and ties (Table 7).

    Raises:
        ConfigError, DataError: a sheet or key that is not filled in as it should be.
    """
    scores = []
    known = read_key(key, ("first_side", "first", "second"))
    rows = read_filled_in(files, ("answer",), known)
    for read in rows:
        row, source = read.row, read.source
        answer, side = row.one_of("answer", VERDICTS), source.one_of("first_side", "12")
        outcome = "tie" if answer == "tie" else "win" if answer[0] == side else "loss"
        names = {name: source.text(name) for name in ("first", "second")}
        name = source.text("item")
        item = Row(name, name, name, {**names, "annotator": read.annotator})
        scores += [item.score(metric, float(metric == outcome), "ok") for metric in OUTCOMES]
    by = ("first", "second")
    made = estimates(scores, dict.fromkeys(OUTCOMES, ACCURACY), by, unit="pair")
    first, second = (scores[0].facets[name] for name in by)
    notes = [f"A win is one of {first} over {second}."]
    return Summary(scores, made, notes=notes + missing_note(known, rows))


def _judged(run: Path) -> tuple[list[tuple[str, str, str]], list[str]]:
    """(case, question, user) of each answer that the judge gave all three scores, and notes."""
    path = run / "scores.parquet"
    frame = _parquet(path, ["case", "question", "cluster", "metric", "value"])
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
    frame = _parquet(path, ["case", "role", "asked"])
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


def _parquet(path: Path, columns: list[str]) -> pd.DataFrame:
    try:
        return pd.read_parquet(path, columns=columns)
    except FileNotFoundError:
        raise DataError(path, "no such file; --run names a finished run's folder") from None
    except (OSError, ValueError) as error:
        raise DataError(path, f"cannot be read ({error})") from None


def _easy_item(
    user: User, asked: Asked, expression: Expression
) -> tuple[dict[str, str], dict[str, str]]:
    """A question's row and its row of the key."""
    query = asked.query
    shown = {
        "conversation": _shown(_voicing(user, asked, expression)),
        "query": query.query,
        "options": "\n".join(f"{label}. {text}" for label, text in sorted(query.options.items())),
    }
    hidden = {
        "question": asked.id,
        "user": user.id,
        "expression": expression,
        "correct": query.correct,
    }
    item = {"item": item_name(*shown.values(), *hidden.values())}
    return {**item, **shown, "answer": ""}, {**item, **hidden}


def _voicing(user: User, asked: Asked, expression: Expression) -> list[Session]:
    """The sessions that voice an original preference, by date."""
    sessions = user.expressions[asked.query.preference].get(expression, [])
    return sorted(sessions, key=lambda session: session.date)


def _shown(sessions: Sequence[Session]) -> str:
    return "\n\n".join(
        "\n".join(
            [f"Session {number}"]
            + [f"User: {turn.user}\nAssistant: {turn.assistant}" for turn in session.turns]
        )
        for number, session in enumerate(sessions, 1)
    )


def _pairing_notes(
    names: Sequence[str], sources: Sequence[Sequence[SheetRow]], drawn: int, wanted: int
) -> list[str]:
    notes = [f"Only {drawn} of the {wanted} wanted pairs are there."] if drawn < wanted else []
    shorter = min(map(len, sources))
    for name, rows in zip(names, sources, strict=True):
        if len(rows) > shorter:
            notes.append(f"The last {len(rows) - shorter} items of {name} have no partner.")
    return notes
