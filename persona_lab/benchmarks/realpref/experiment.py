"""The experiment of section 5: its flow, and the estimates of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from persona_lab.benchmarks.realpref.cases import RealPrefCase, all_cases
from persona_lab.benchmarks.realpref.filler import Filler, load_filler
from persona_lab.benchmarks.realpref.history import Built, Histories, transcript
from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, JUDGE_SCHEMA, judge_prompt
from persona_lab.benchmarks.realpref.records import (
    Expression,
    User,
    check_voiced,
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
from persona_lab.benchmarks.realpref.settings import RealPrefSettings
from persona_lab.benchmarks.realpref.significance import significance
from persona_lab.benchmarks.realpref.tasks import EXAMPLE_ANSWER, Question, with_method
from persona_lab.benchmarks.realpref.token_report import token_report
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings, RunSettings, Score, Summary, resolve_data
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.prompt import History, Prompt, Request, Sampling
from persona_lab.core.recipe import Strict
from persona_lab.engines.counting import token_counter
from persona_lab.metrics.estimate import estimates


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
    published = "realpref.csv"

    def __init__(self, settings: RealPrefSettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run = settings, run
        folder = resolve_data(settings.benchmark.path, root)
        self.users = _chosen(load_users(folder), settings.benchmark.users)
        check_voiced(folder, self.users, settings.expression)
        self._filler, self._histories = _prepared(settings, root)
        digest = self._filler.digest if self._filler else ""
        self.data_hash = data_digest(folder) + (f"+filler-{digest}" if digest else "")
        judged = "open_ended" in settings.task
        if judged and run.judge is None:
            raise ConfigError("open-ended questions need a judge: add judge=NAME of configs/model")
        self.roles = ("target", "judge") if judged else ("target",)
        self._built: Callable[[str, Expression, str], Built] = cache(self._build)

    def cases(self) -> list[RealPrefCase]:
        """All cases, users first and tasks last."""
        return all_cases(self.users, self.settings)

    def flow(self, case: RealPrefCase) -> Flow[list[Score]]:
        """Asks the question or questions of a case, and the judge about an open-ended answer."""
        asked = case.questions
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

    def inventory(self) -> list[dict[str, str | int]]:
        """The histories of a run, in tokens of the budget's tokenizer (Table 2)."""
        wanted = dict.fromkeys((c.user.id, c.expression, c.context) for c in self.cases())
        rows: list[dict[str, str | int]] = []
        for user, expression, context in wanted:
            built = self._built(user, expression, context)
            parts = (built.personal_tokens, built.interval_tokens, built.tail_tokens)
            named = dict(zip(("personal", "interval", "tail"), parts, strict=True))
            rows.append(
                {"user": user, "expression": expression, "context": context}
                | named
                | {"total": sum(parts), "messages": built.history.length}
            )
        return rows

    def summarize(self, outcomes: Sequence[Outcome[RealPrefCase, list[Score]]]) -> Summary:
        """Accuracy, the three dimensions with their mean, and tokens, by condition; tests."""
        scores = [score for outcome in outcomes for score in self._scores(outcome)]
        by = ("preference", "task", "method", "context", "expression")
        made = estimates(scores, METRICS, by, unit="user", seed=self.run.seed)
        made += token_report(outcomes, by, self.run.seed)
        tests = significance(scores, self.run.seed)
        return Summary(scores, made, tests, self._notes(scores))

    def _notes(self, scores: Sequence[Score]) -> list[str]:
        """What must stand below the numbers."""
        notes = [self._filler.note] if self._filler and self._filler.note else []
        if (scale := self.settings.context.scale) != 1.0:
            notes.append(f"Contexts are scaled to {scale:.1%} of Table 2's lengths.")
        judged = [s for s in scores if s.metric == "overall"]
        if cut := sum(s.reason == ANSWER_CUT for s in judged):
            budget = self.settings.max_tokens.open_ended
            notes.append(
                f"{cut} of {len(judged)} open-ended answers reached max_tokens ({budget}) and were "
                "judged as far as they go."
            )
        return notes

    def _scores(self, outcome: Outcome[RealPrefCase, list[Score]]) -> list[Score]:
        if outcome.result is not None:
            return outcome.result
        case = outcome.case
        reason = outcome.error.strip().splitlines()[-1]
        return [
            score
            for question in case.questions
            for score in unscored(self._row(case, question), case.task, "failed", reason)
        ]

    def _request(self, case: RealPrefCase, question: Question) -> Request:
        text = with_method(case.method, question.text)
        budget = getattr(self.settings.max_tokens, case.task)
        return Request(
            role="target",
            prompt=Prompt.ask(text, self._history(case)),
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

    def _history(self, case: RealPrefCase) -> History:
        return self._built(case.user.id, case.expression, case.context).history

    def _build(self, user_id: str, expression: Expression, context: str) -> Built:
        user = next(user for user in self.users if user.id == user_id)
        built = self._histories.build(user, expression, self.settings.context.lengths[context])
        if self.settings.history_format == "transcript":
            return replace(built, history=transcript(built.history))
        return built


def _prepared(settings: RealPrefSettings, root: Path) -> tuple[Filler | None, Histories]:
    """Filler, if a context needs any, and what builds histories."""
    context = settings.context
    needed = any(
        length.interval_tokens or length.tail_tokens for length in context.lengths.values()
    )
    if not needed:
        return None, Histories(None, None, context.seed)
    filler = load_filler(context.filler, context.filler_digest, root)
    return filler, Histories(filler, token_counter(context.tokenizer), context.seed)


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
