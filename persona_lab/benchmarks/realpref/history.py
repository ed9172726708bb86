"""The interaction history of one user (section 3.4, Table 2).

A history holds the user's life-event sessions and the sessions that voice all original
preferences in one expression type, by date. User-free filler goes between those sessions until its
tokens reach `interval`, and behind them until its tokens reach `tail`. Where it goes is a pure
function of (user, expression type, seed), and contexts with the same interval are nested:
`normal` is a literal prefix of `extended`, and `extended` of `extreme`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from persona_lab.benchmarks.realpref.filler import Filler
from persona_lab.benchmarks.realpref.records import Expression, Session, Turn, User
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import stable_digest
from persona_lab.core.prompt import EMPTY, History, Message
from persona_lab.engines.counting import TokenCounter


@dataclass(frozen=True)
class Length:
    """A context of Table 2, in tokens of filler."""

    interval_tokens: int
    tail_tokens: int


@dataclass(frozen=True)
class Built:
    """A history and what it is made of, in tokens of the budget's tokenizer.

    Attributes:
        turns: its turns, oldest first, and for each the preference that its session voices, or "".
    """

    history: History
    personal_tokens: int
    interval_tokens: int
    tail_tokens: int
    turns: tuple[tuple[Turn, str], ...] = ()


NO_HISTORY = Built(EMPTY, 0, 0, 0)
"""Blind Test (Appendix G.2)."""


class Histories:
    """Builds the histories of a run; filler and token counts are shared by all users.

    Args:
        filler: user-free sessions; None where no context needs any.
        count: counts tokens. seed: of the placement (`context.seed`).
    """

    def __init__(self, filler: Filler | None, count: TokenCounter | None, seed: int) -> None:
        self._sessions = filler.sessions if filler else ()
        self._count, self._seed = count, seed

    def build(self, user: User, expression: Expression, length: Length) -> Built:
        """The history of one user.

        Raises:
            ConfigError: the filler has fewer tokens than the context asks for.
        """
        name = f"{user.id}/{expression}/{self._seed}"
        own = personal_sessions(user, expression)
        order = np.random.default_rng(stable_digest(name)).permutation(len(self._sessions))
        stream = iter(order.tolist())
        between = self._take(stream, length.interval_tokens)
        gaps = np.random.default_rng(stable_digest(f"{name}/gaps"))
        after: dict[int, list[Turn]] = {}
        for turns in between:
            gap = int(gaps.integers(0, max(len(own) - 1, 1)))
            after.setdefault(gap, []).extend(turns)
        voiced = voicing(user, expression)
        shown: list[tuple[Turn, str]] = []
        for number, session in enumerate(own):
            shown += [(turn, voiced.get(id(session), "")) for turn in session.turns]
            shown += [(turn, "") for turn in after.get(number, [])]
        behind = self._take(stream, length.tail_tokens)
        shown += [(turn, "") for turns in behind for turn in turns]
        return Built(
            EMPTY.then(messages([turn for turn, _ in shown])),
            self._tokens([turn for session in own for turn in session.turns]),
            self._tokens([turn for turns in between for turn in turns]),
            self._tokens([turn for turns in behind for turn in turns]),
            tuple(shown),
        )

    def evidence(self, user: User, preference: str, expression: Expression) -> Built:
        """The sessions that voice one preference, and nothing else (Easy Test, Appendix G.2)."""
        turns = [t for session in user.expressions[preference][expression] for t in session.turns]
        shown = tuple((turn, preference) for turn in turns)
        return Built(EMPTY.then(messages(turns)), self._tokens(turns), 0, 0, shown)

    def _take(self, stream: Iterator[int], budget: int) -> list[tuple[Turn, ...]]:
        """Whole turns until their tokens reach the budget; the last session may be begun only."""
        taken: list[tuple[Turn, ...]] = []
        tokens = 0
        while tokens < budget:
            number = next(stream, None)
            if number is None:
                raise ConfigError(
                    f"the filler has too few distinct turns: a context asks for {budget} tokens, "
                    f"{tokens} were left. Give more with context.filler=FOLDER."
                )
            begun: list[Turn] = []
            for turn in self._sessions[number]:
                if tokens < budget:
                    begun.append(turn)
                    tokens += self._tokens([turn])
            taken.append(tuple(begun))
        return taken

    def _tokens(self, turns: Sequence[Turn]) -> int:
        if self._count is None:
            return 0
        return sum(self._count(turn.user) + self._count(turn.assistant) for turn in turns)


def personal_sessions(user: User, expression: Expression) -> list[Session]:
    """Life-event and expression sessions in date order; sessions of one day keep data order."""
    voiced = [
        session
        for preference in user.preferences
        for session in user.expressions[preference.preference][expression]
    ]
    return sorted([*user.life_sessions, *voiced], key=lambda session: session.date)


def voicing(user: User, expression: Expression) -> dict[int, str]:
    """id() of each session that voices an original preference -> that preference."""
    return {
        id(session): preference.preference
        for preference in user.preferences
        for session in user.expressions[preference.preference][expression]
    }


def messages(turns: Sequence[Turn]) -> list[Message]:
    """Turns as chat messages."""
    return [
        message
        for turn in turns
        for message in (Message("user", turn.user), Message("assistant", turn.assistant))
    ]


def transcript(history: History) -> History:
    """The same dialogue as one message (`history_format=transcript`)."""
    names = {"user": "User", "assistant": "Assistant", "system": "System"}
    lines = [f"{names[m.role]}: {m.content}" for m in history.messages]
    return EMPTY.then([Message("user", "\n\n".join([TRANSCRIPT, *lines]))])


TRANSCRIPT = "Here is the history of our conversations, oldest first."
