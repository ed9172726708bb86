"""What is asked: one query of one user under one condition of each kind (section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from persona_lab.benchmarks.realpref.records import LABELS, Asked, Expression, User
from persona_lab.benchmarks.realpref.settings import DATA_TESTS, Benchmark, RealPrefSettings
from persona_lab.benchmarks.realpref.tasks import (
    MethodName,
    Question,
    Task,
    option_order,
    questions,
)
from persona_lab.core.experiment import stable_digest


@dataclass(frozen=True)
class RealPrefCase:
    """One query of one user under one condition of each kind.

    Attributes:
        variant: how the method differs from the paper's.
    """

    user: User
    asked: Asked
    expression: Expression
    context: str
    method: MethodName
    task: Task
    options: str = LABELS
    repeat: int = 0
    variant: str = ""

    @property
    def id(self) -> str:
        """`00001-p01/experience_feedback/simple/zero_shot/open_ended`, and `/2` for a repeat."""
        parts = (self.asked.id, self.expression, self.context, self.method, self.task)
        return "/".join(parts) + (f"/{self.repeat}" if self.repeat else "")

    @property
    def questions(self) -> list[Question]:
        """What is asked: two statements for true-or-false, else one question."""
        return list(questions(self.asked.query, self.task, self.options))

    @property
    def facets(self) -> dict[str, str]:
        """What its scores can be grouped by."""
        return {
            "task": self.task,
            "method": f"{self.method}_{self.variant}" if self.variant else self.method,
            "context": self.context,
            "expression": self.expression,
            "preference": self.asked.kind,
            "preference_type": self.asked.type,
            "topic": self.asked.topic,
            "user": self.user.id,
            "options": self.options if self.task == "multiple_choice" else "",
            "check": self.context if self.context in DATA_TESTS else "",
            "repeat": str(self.repeat),
        }


def all_cases(users: Sequence[User], settings: RealPrefSettings) -> list[RealPrefCase]:
    """Every combination that the settings name, users first and tasks last."""
    methods: list[MethodName] = [
        name for name in get_args(MethodName) if getattr(settings.method, name) is not None
    ]
    return [
        RealPrefCase(
            user,
            asked,
            expression,
            context,
            method,
            task,
            option_order(asked.id, shuffled=settings.shuffle_options),
            repeat,
            settings.variant(method),
        )
        for user in users
        for expression in settings.expression
        for context in settings.context.names
        for asked in chosen(user, settings.benchmark)
        for method in methods
        for task in settings.task
        for repeat in range(settings.repeats)
    ]


def share_of(users: Sequence[User], share: float) -> list[User]:
    """A share of the users, at least one, by a stable digest of their ids."""
    number = max(1, round(share * len(users)))
    kept = sorted(users, key=lambda user: stable_digest(user.id))[:number]
    return [user for user in users if user in kept]


def chosen(user: User, benchmark: Benchmark) -> list[Asked]:
    """The queries of a user that a recipe asks, at most so many of each kind."""
    by_kind = {kind: [a for a in user.asked if a.kind == kind] for kind in benchmark.preferences}
    kept = {a.id for asked in by_kind.values() for a in asked[: benchmark.queries]}
    return [asked for asked in user.asked if asked.id in kept]
