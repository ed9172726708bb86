"""The experiment of section 5: cases, their flow, and the estimates of its tables.

A case is one query of one user under one expression type, context, method and task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from persona_lab.benchmarks.realpref.history import simple_history
from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, JUDGE_SCHEMA, judge_prompt
from persona_lab.benchmarks.realpref.records import (
    Asked,
    Expression,
    User,
    data_digest,
    load_users,
)
from persona_lab.benchmarks.realpref.scoring import (
    ANSWER_CUT,
    EXAMPLE_VERDICT,
    METRICS,
    Row,
    answer_problem,
    classification_score,
    open_scores,
    unscored,
)
from persona_lab.benchmarks.realpref.tasks import (
    EXAMPLE_ANSWER,
    MethodName,
    Question,
    Task,
    questions,
    with_method,
)
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import (
    ModelSettings,
    RunSettings,
    Score,
    Summary,
    resolve_data,
)
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.prompt import History, Prompt, Request, Sampling
from persona_lab.core.recipe import Strict
from persona_lab.metrics.estimate import estimates

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


class RealPref:
    """Section 5.

    Args:
        settings: RealPref's part of the recipe.
        run: the common part.
        root: the folder that data paths start from.

    Raises:
        ConfigError: an unknown user, or no judge for open-ended questions.
        DataError: a data file that breaks its shape.
    """

    Settings: type[Strict] = RealPrefSettings

    def __init__(self, settings: RealPrefSettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run = settings, run
        folder = resolve_data(settings.benchmark.path, root)
        self.users = _chosen(load_users(folder), settings.benchmark.users)
        self.data_hash = data_digest(folder)
        judged = "open_ended" in settings.task
        if judged and run.judge is None:
            raise ConfigError("open-ended questions need a judge: add judge=NAME of configs/model")
        self.roles = ("target", "judge") if judged else ("target",)
        self._history: Callable[[str, Expression], History] = cache(self._make_history)

    def cases(self) -> list[RealPrefCase]:
        """All cases, users first and tasks last."""
        contexts = self.settings.context.model_dump(exclude_none=True)
        methods: list[MethodName] = [
            name for name in get_args(MethodName) if getattr(self.settings.method, name) is not None
        ]
        return [
            RealPrefCase(user, asked, expression, context, method, task)
            for user in self.users
            for expression in self.settings.expression
            for context in contexts
            for asked in user.asked
            if asked.kind in self.settings.benchmark.preferences
            for method in methods
            for task in self.settings.task
        ]

    def flow(self, case: RealPrefCase) -> Flow[list[Score]]:
        """Asks the question or questions of a case, and the judge about an open-ended answer."""
        asked = list(questions(case.asked.query, case.task))
        replies = yield [self._request(case, question) for question in asked]
        if case.task != "open_ended":
            return [
                classification_score(self._row(case, question), case.task, question, reply)
                for question, reply in zip(asked, replies, strict=True)
            ]
        row, answer = self._row(case, asked[0]), replies[0]
        if problem := answer_problem(answer):
            return unscored(row, case.task, *problem)
        query = case.asked.query
        verdicts = yield [
            self._judgement(judge_prompt(d, query.preference, query.query, answer.text))
            for d in DIMENSIONS
        ]
        return open_scores(row, answer, verdicts)

    def summarize(self, outcomes: Sequence[Outcome[RealPrefCase, list[Score]]]) -> Summary:
        """Accuracy by task, and the three dimensions with their mean, by condition."""
        scores = [score for outcome in outcomes for score in self._scores(outcome)]
        by = ("preference", "task", "method", "context", "expression")
        cut = [s for s in scores if s.reason == ANSWER_CUT and s.metric == "overall"]
        judged = [s for s in scores if s.metric == "overall"]
        notes = []
        if cut:
            budget = self.settings.max_tokens.open_ended
            notes.append(
                f"{len(cut)} of {len(judged)} open-ended answers reached max_tokens ({budget}) and "
                "were judged as far as they go."
            )
        made = estimates(scores, METRICS, by, unit="user", seed=self.run.seed)
        return Summary(scores, made, notes=notes)

    def _scores(self, outcome: Outcome[RealPrefCase, list[Score]]) -> list[Score]:
        if outcome.result is not None:
            return outcome.result
        case = outcome.case
        reason = outcome.error.strip().splitlines()[-1]
        return [
            score
            for question in questions(case.asked.query, case.task)
            for score in unscored(self._row(case, question), case.task, "failed", reason)
        ]

    def _request(self, case: RealPrefCase, question: Question) -> Request:
        text = with_method(case.method, question.text)
        budget = getattr(self.settings.max_tokens, case.task)
        return Request(
            role="target",
            prompt=Prompt.ask(text, self._history(case.user.id, case.expression)),
            sampling=_sampling(self.run.model, budget),
            example=question.example or f"{EXAMPLE_ANSWER} ({case.id})",
            seed=self.run.seed,
        )

    def _judgement(self, text: str) -> Request:
        judge = self.run.judge
        assert judge is not None, "checked when the experiment was made"
        return Request(
            role="judge",
            prompt=Prompt.ask(text),
            sampling=_sampling(judge, self.settings.max_tokens.judge),
            example=EXAMPLE_VERDICT,
            schema=JUDGE_SCHEMA,
            seed=self.run.seed,
        )

    def _row(self, case: RealPrefCase, question: Question) -> Row:
        name = case.asked.id + (f"-{question.form}" if question.form else "")
        return Row(case.id, name, case.user.id, case.facets)

    def _make_history(self, user_id: str, expression: Expression) -> History:
        user = next(user for user in self.users if user.id == user_id)
        return simple_history(user, expression)


def _sampling(model: ModelSettings, max_tokens: int) -> Sampling:
    return Sampling(
        max_tokens=max_tokens,
        temperature=model.temperature,
        top_p=model.top_p,
        top_k=model.top_k,
        min_p=model.min_p,
        repetition_penalty=model.repetition_penalty,
    )


def _chosen(users: list[User], wanted: list[str] | None) -> list[User]:
    if wanted is None:
        return users
    known = {user.id for user in users}
    if unknown := [user for user in wanted if user not in known]:
        raise ConfigError(
            f"benchmark.users: {', '.join(unknown)} not in the data, which has "
            f"{', '.join(sorted(known))}"
        )
    return [user for user in users if user.id in wanted]
