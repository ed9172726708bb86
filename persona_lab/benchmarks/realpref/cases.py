"""What is asked: one query of one user under one condition of each kind (section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from persona_lab.benchmarks.realpref.records import Asked, Expression, User
from persona_lab.benchmarks.realpref.settings import RealPrefSettings
from persona_lab.benchmarks.realpref.tasks import MethodName, Task


@dataclass(frozen=True)
class RealPrefCase:
    """One query of one user under one condition of each kind."""

    user: User
    asked: Asked
    expression: Expression
    context: str
    method: MethodName
    task: Task

    @property
    def id(self) -> str:
        """`00001-p01/experience_feedback/simple/zero_shot/open_ended`."""
        parts = (self.asked.id, self.expression, self.context, self.method, self.task)
        return "/".join(parts)

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
        }


def all_cases(users: Sequence[User], settings: RealPrefSettings) -> list[RealPrefCase]:
    """Every combination that the settings name, users first and tasks last."""
    contexts = settings.context.model_dump(exclude_none=True)
    methods: list[MethodName] = [
        name for name in get_args(MethodName) if getattr(settings.method, name) is not None
    ]
    return [
        RealPrefCase(user, asked, expression, context, method, task)
        for user in users
        for expression in settings.expression
        for context in contexts
        for asked in user.asked
        if asked.kind in settings.benchmark.preferences
        for method in methods
        for task in settings.task
    ]
