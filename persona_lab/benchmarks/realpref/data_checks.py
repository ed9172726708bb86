"""The data set held to the paper's quality rules by program (section 3.3, Appendices E.3 and F.1).

    query_leak      a query names nothing of its preference (F.1)
    option_lengths  no option stands out by its length
    statements      T_Query and F_Query are the query and an option (F.1)
    explicit_words  users state no preference in expression types 3 and 4 (E.3.3)
    rounds          type 1 has one round, types 2 and 3 have three or more (E.3.3)
    sessions        type 4 spans two sessions or more (E.3.3)
    dates           type 4 runs in order around its initialise event, life events run in order

A rule reads words, not meaning: it finds slips, it proves no quality. The report adds what multiple
choice gives without the history (option_baselines.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import TextWrapper
from typing import Literal, get_args

from persona_lab.benchmarks.realpref.option_baselines import (
    longest_option_baseline,
    odd_one_out_baseline,
)
from persona_lab.benchmarks.realpref.records import Expression, Preference, Query, Session, User
from persona_lab.benchmarks.realpref.wording import (
    content_words,
    stated_preference,
    stem,
    words,
)

Rule = Literal[
    "query_leak", "option_lengths", "statements", "explicit_words", "rounds", "sessions", "dates"
]
COLUMNS = 100
LENGTH_TOLERANCE = 0.25
QUESTION, CLOSING = " Do you think ", " would be the one for me?"


@dataclass(frozen=True)
class Finding:
    """A place where the data breaks a rule.

    Attributes:
        user: the user's id.
        item: `00001-p01` (a query), `00001-p01/stylistic_expression` or `00001/life_events`.
        problem: one sentence with the offending text.
    """

    rule: Rule
    user: str
    item: str
    problem: str


_Problems = Iterator[tuple[Rule, str]]


def check_users(users: Sequence[User], *, tolerance: float = LENGTH_TOLERANCE) -> list[Finding]:
    """All findings, in the order of the data.

    Args:
        users: a loaded data set.
        tolerance: share by which a query's longest option may exceed its shortest.
    """
    return [finding for user in users for finding in _of_user(user, tolerance)]


def _of_user(user: User, tolerance: float) -> Iterator[Finding]:
    days = [event.date for event in user.life_events]
    for earlier, later in pairwise(days):
        if later < earlier:
            problem = f"the event of {later:%Y/%m/%d} follows that of {earlier:%Y/%m/%d}."
            yield Finding("dates", user.id, f"{user.id}/life_events", problem)
    for asked in user.asked:
        for rule, problem in (
            *_query_leak(asked.query),
            *_option_lengths(asked.query, tolerance),
            *_statements(asked.query),
        ):
            yield Finding(rule, user.id, asked.id, problem)
    for number, preference in enumerate(user.preferences, 1):
        for expression, sessions in user.expressions[preference.preference].items():
            item = f"{user.id}-p{number:02}/{expression}"
            for rule, problem in _expression(preference, expression, sessions):
                yield Finding(rule, user.id, item, problem)


def _query_leak(query: Query) -> _Problems:
    """F.1. Stricter than the paper, whose own good examples share topic words."""
    mine, theirs = content_words(query.query), content_words(query.preference)
    if shared := ", ".join(f'"{mine[s]}"' for s in mine if s in theirs):
        yield "query_leak", f'the query shares {shared} with its preference: "{query.query}"'


def _option_lengths(query: Query, tolerance: float) -> _Problems:
    by_length = sorted(query.options.items(), key=lambda pair: len(pair[1]))
    (low, short), (high, long) = by_length[0], by_length[-1]
    if len(long) > len(short) * (1 + tolerance):
        yield (
            "option_lengths",
            f"option {high} has {len(long)} characters and option {low} {len(short)}, more than "
            f'{tolerance:.0%} apart: "{long}"',
        )


def _statements(query: Query) -> _Problems:
    """F.1: T_Query states the right option, F_Query one of the wrong ones.

    The paper's prompt asks for the whole query; its first example leaves the last sentence out,
    which is refused here.
    """
    for name, text in (("T_Query", query.true_form), ("F_Query", query.false_form)):
        head = query.query + QUESTION
        if not (text.startswith(head) and text.endswith(CLOSING)):
            wanted = f'the query and "{QUESTION.strip()} [option]{CLOSING}"'
            yield "statements", f'{name} is not {wanted}: "{text}"'
            continue
        said = text[len(head) : -len(CLOSING)]
        stated = [label for label, option in query.options.items() if _says(said, option)]
        if not stated:
            yield "statements", f'{name} states none of the options: "{said}"'
        elif (query.correct in stated) != (name == "T_Query"):
            kind = "wrong" if name == "T_Query" else "right"
            yield "statements", f'{name} states the {kind} option {stated[0]}: "{said}"'


def _says(said: str, option: str) -> bool:
    """The option as it stands in a statement; "Join ... and try" may be "joining ... and trying".

    Otherwise it is exact: the final stop goes, and the first letter is lower case unless its word
    has another capital (`TV`).
    """
    plain = option.removesuffix(".")
    first = plain.split(" ")[0]
    if first[1:] == first[1:].lower():
        plain = plain[:1].lower() + plain[1:]
    if said == plain:
        return True
    pairs = list(zip(words(said), words(option), strict=False))
    return (
        len(words(said)) == len(words(option)) > 0
        and pairs[0][0] != pairs[0][1]
        and all(a == b or (a.endswith("ing") and stem(a) == stem(b)) for a, b in pairs)
    )


def _expression(
    preference: Preference, expression: Expression, sessions: Sequence[Session]
) -> _Problems:
    """The rules of Appendix E.3.3 for the sessions that voice a preference in one type."""
    if expression == "direct_statement":
        rounds = sum(len(session.turns) for session in sessions)
        if rounds != 1:
            yield "rounds", f"{rounds} rounds instead of one{_opening(sessions)}"
    elif expression != "experience_feedback":
        for session in sessions:
            if (count := len(session.turns)) < 3:
                yield "rounds", f"{count} of three rounds or more{_opening([session])}"
    if expression in ("stylistic_expression", "experience_feedback"):
        yield from _explicit_words(sessions)
    if expression == "experience_feedback":
        if len(sessions) < 2:
            yield "sessions", f"{len(sessions)} of two sessions or more{_opening(sessions)}"
        yield from _feedback_dates(preference, sessions)


def _explicit_words(sessions: Sequence[Session]) -> _Problems:
    for number, session in enumerate(sessions, 1):
        for round_number, turn in enumerate(session.turns, 1):
            if stated := stated_preference(turn.user):
                place = f"session {number}, round {round_number}"
                yield "explicit_words", f'the user states a preference in {place}: "{stated}"'


def _feedback_dates(preference: Preference, sessions: Sequence[Session]) -> _Problems:
    days = [session.date for session in sessions]
    shown = ", ".join(f"{day:%Y/%m/%d}" for day in days)
    if days != sorted(days):
        yield "dates", f"the sessions are not in the order of their dates: {shown}."
    for side, found in (
        ("before", any(day < preference.date for day in days)),
        ("after", any(day > preference.date for day in days)),
    ):
        if not found:
            event = f"its initialise event of {preference.date:%Y/%m/%d}"
            yield "dates", f"no session lies {side} {event}: {shown or 'none'}."


def report(
    users: Sequence[User],
    findings: Sequence[Finding] | None = None,
    *,
    tolerance: float = LENGTH_TOLERANCE,
) -> str:
    """Counts by rule, the findings and the two baselines, within 100 columns.

    Args:
        findings: of `check_users`, where they are at hand.
    """
    findings = check_users(users, tolerance=tolerance) if findings is None else findings
    queries = [asked.query for user in users for asked in user.asked]
    counts = Counter(finding.rule for finding in findings)
    wrapper = TextWrapper(
        COLUMNS, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
    )
    lines = [f"{len(users)} users, {len(queries)} queries: {len(findings)} findings"]
    lines += [f"  {rule:<16}{counts[rule]:>5}" for rule in get_args(Rule)]
    if findings:
        lines += ["", "findings"]
    for f in findings:
        lines += wrapper.wrap(f"{f.rule}  {f.item}: {f.problem}")
    lines += ["", "multiple choice answered without the history (chance 0.250)"]
    for name, share in (
        ("longest option", longest_option_baseline(queries)),
        ("odd one out", odd_one_out_baseline(queries)),
    ):
        lines.append(f"  {name:<16}{'n/a' if share is None else f'{share:.3f}'}  n={len(queries)}")
    return "\n".join(lines)


def _opening(sessions: Sequence[Session]) -> str:
    """How the first session begins, for a reader to find it."""
    text = " ".join(sessions[0].turns[0].user.split()) if sessions else ""
    return f': "{text if len(text) <= 60 else text[:57] + "..."}"' if text else "."
