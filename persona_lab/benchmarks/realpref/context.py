"""Which history a case sees (section 3.4 and Appendix G.2), each built once and held once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol

from persona_lab.benchmarks.realpref.filler import Filler, load_filler
from persona_lab.benchmarks.realpref.history import NO_HISTORY, Built, Histories, transcript
from persona_lab.benchmarks.realpref.records import Asked, Expression, User
from persona_lab.benchmarks.realpref.settings import Contexts
from persona_lab.core.scores import Row
from persona_lab.engines.counting import token_counter

_Key = tuple[str, Expression, str, str]


class SeesHistory(Protocol):
    """A case that is asked after a history."""

    @property
    def user(self) -> User: ...
    @property
    def asked(self) -> Asked: ...
    @property
    def expression(self) -> Expression: ...
    @property
    def context(self) -> str: ...


class CaseHistories:
    """The histories of a run.

    Args:
        root: folder that the filler's relative path starts from.
        as_transcript: whether a history is one message with all that was said.

    Raises:
        ConfigError, DataError: filler or tokenizer cannot be had.
    """

    def __init__(
        self, users: Sequence[User], contexts: Contexts, root: Path, *, as_transcript: bool = False
    ) -> None:
        self._users = {user.id: user for user in users}
        self._contexts, self._as_transcript = contexts, as_transcript
        self.filler = _needed_filler(contexts, root)
        count = token_counter(contexts.tokenizer) if self.filler else None
        self._histories = Histories(self.filler, count, contexts.seed)
        self._built: Callable[[_Key], Built] = cache(self._build)

    def of(self, case: SeesHistory) -> Built:
        """The history of a case."""
        preference = case.asked.query.preference if case.context == "easy_test" else ""
        return self._built((case.user.id, case.expression, case.context, preference))

    def inventory(self, cases: Sequence[SeesHistory]) -> list[Row]:
        """One row per history, in tokens of the budget's tokenizer (Table 2); none without filler,
        whose absence leaves nothing to budget."""
        if self.filler is None:
            return []
        first: dict[tuple[str, str, str], SeesHistory] = {}
        for case in cases:
            first.setdefault((case.user.id, case.expression, case.context), case)
        rows: list[Row] = []
        for (user, expression, context), case in first.items():
            built = self.of(case)
            parts = (built.personal_tokens, built.interval_tokens, built.tail_tokens)
            row: Row = {"user": user, "expression": expression, "context": context}
            row |= dict(zip(("personal", "interval", "tail"), parts, strict=True))
            rows.append(row | {"total": sum(parts), "messages": built.history.length})
        return rows

    def _build(self, key: _Key) -> Built:
        user_id, expression, context, preference = key
        user = self._users[user_id]
        if context == "blind_test":
            return NO_HISTORY
        if context == "easy_test":
            built = self._histories.evidence(user, preference, expression)
        else:
            length = self._contexts.lengths[context]
            built = self._histories.build(user, expression, length)
        if self._as_transcript:
            return replace(built, history=transcript(built.history))
        return built


def _needed_filler(context: Contexts, root: Path) -> Filler | None:
    """The filler, if a chosen context has any."""
    if any(length.interval_tokens or length.tail_tokens for length in context.lengths.values()):
        return load_filler(context.filler, context.filler_digest, root)
    return None
