"""Sheets of the Easy Test (Appendix G.2, Table 8): can people infer an implicit preference?

They see the sessions that voice one preference, as type 3 or 4, and choose one of the options.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from persona_lab.benchmarks.realpref.records import (
    LABELS,
    Asked,
    Expression,
    Session,
    User,
    load_users,
)
from persona_lab.benchmarks.realpref.scoring import METRICS, Row
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Summary
from persona_lab.metrics.estimate import estimates
from persona_lab.parsing.sheet_key import (
    Sheets,
    item_name,
    missing_note,
    read_filled_in,
    read_key,
)

IMPLICIT: tuple[Expression, Expression] = ("stylistic_expression", "experience_feedback")
"""Expression types 3 and 4."""


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
