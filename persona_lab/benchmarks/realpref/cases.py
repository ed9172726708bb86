"""What is asked: one query of one user under one condition of each kind (section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from persona_lab.benchmarks.realpref.records import LABELS, Asked, Expression, User
from persona_lab.benchmarks.realpref.settings import Benchmark, RealPrefSettings
from persona_lab.benchmarks.realpref.tasks import (
    MethodName,
    Question,
    Task,
    option_order,
    questions,
)


@dataclass(frozen=True)
class RealPrefCase:
    """One query of one user under one condition of each kind."""

    user: User
    asked: Asked
    expression: Expression
    context: str
    method: MethodName
    task: Task
    options: str = LABELS

    @property
    def id(self) -> str:
        """`00001-p01/experience_feedback/simple/zero_shot/open_ended`."""
        parts = (self.asked.id, self.expression, self.context, self.method, self.task)
        return "/".join(parts)

    @property
    def questions(self) -> list[Question]:
        """What is asked: two statements for true-or-false, else one question."""
        return list(questions(self.asked.query, self.task, self.options))

    @property
    def facets(self) -> dict[str, str]:
        """What its scores can be grouped by."""
        return {
            "task": self.task,
            "method": self.method,
            "context": self.context,
            "expression": self.expression,
            "preference": self.asked.kind,
            "preference_type": self.asked.type,
            "topic": self.asked.topic,
            "user": self.user.id,
            "options": self.options if self.task == "multiple_choice" else "",
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
        )
        for user in users
        for expression in settings.expression
        for context in settings.context.lengths
        for asked in chosen(user, settings.benchmark)
        for method in methods
        for task in settings.task
    ]


def chosen(user: User, benchmark: Benchmark) -> list[Asked]:
    """The queries of a user that a recipe asks, at most so many of each kind."""
    by_kind = {kind: [a for a in user.asked if a.kind == kind] for kind in benchmark.preferences}
    kept = {a.id for asked in by_kind.values() for a in asked[: benchmark.queries]}
    return [asked for asked in user.asked if asked.id in kept]
