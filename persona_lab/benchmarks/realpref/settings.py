"""RealPref's part of a recipe: data, contexts (Table 2), expressions, tasks, methods."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from persona_lab.benchmarks.realpref.records import Expression
from persona_lab.benchmarks.realpref.tasks import Task
from persona_lab.core.recipe import Strict

Kind = Literal["original", "generalized"]


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Benchmark(Strict):
    """Which data, and how much of it.

    Attributes:
        path: a data folder in the published shape; users: only these ids (None: all).
        preferences: originals, whose expressions the history holds, generalized ones, or both.
    """

    path: str
    users: list[str] | None = None
    preferences: Annotated[list[Kind], BeforeValidator(_one_or_more), Field(min_length=1)]


class ContextSettings(Strict):
    """Table 2: tokens of user-free sessions between the user's own, and after them."""

    interval_tokens: int = Field(ge=0)
    tail_tokens: int = Field(ge=0)


class Contexts(Strict):
    """The contexts to compare."""

    simple: ContextSettings | None = None


class MethodSettings(Strict):
    """A method without settings."""


class Methods(Strict):
    """The methods to compare (section 5.1)."""

    zero_shot: MethodSettings | None = None
    reminder: MethodSettings | None = None


class MaxTokens(Strict):
    """Budgets of the answers, in tokens, reasoning included."""

    multiple_choice: int = Field(ge=1)
    true_or_false: int = Field(ge=1)
    open_ended: int = Field(ge=1)
    judge: int = Field(ge=1)


class RealPrefSettings(Strict):
    """RealPref's part of a recipe."""

    benchmark: Benchmark
    context: Contexts
    expression: Annotated[list[Expression], BeforeValidator(_one_or_more), Field(min_length=1)]
    task: Annotated[list[Task], BeforeValidator(_one_or_more), Field(min_length=1)]
    method: Methods
    max_tokens: MaxTokens
