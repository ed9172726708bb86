"""The interaction history of one user (section 3.4, Table 2).

A history holds the user's life-event sessions and the sessions that voice all original
preferences in one expression type, by date. `simple` is exactly that: about 2-6K tokens.
"""

from __future__ import annotations

from persona_lab.benchmarks.realpref.records import Expression, Session, User
from persona_lab.core.prompt import EMPTY, History, Message


def personal_sessions(user: User, expression: Expression) -> list[Session]:
    """Life-event and expression sessions in date order; sessions of one day keep data order."""
    voiced = [
        session
        for preference in user.preferences
        for session in user.expressions[preference.preference][expression]
    ]
    return sorted([*user.life_sessions, *voiced], key=lambda session: session.date)


def simple_history(user: User, expression: Expression) -> History:
    """The `simple` context: nothing between the sessions and nothing after them."""
    return EMPTY.then(
        message
        for session in personal_sessions(user, expression)
        for turn in session.turns
        for message in (Message("user", turn.user), Message("assistant", turn.assistant))
    )
