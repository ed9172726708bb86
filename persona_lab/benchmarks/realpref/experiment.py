"""The experiment of section 5: which roles it asks what, and what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from persona_lab.benchmarks.realpref.cases import RealPrefCase, all_cases
from persona_lab.benchmarks.realpref.judge_check import agreement_tables, as_second
from persona_lab.benchmarks.realpref.memory_report import memory_report
from persona_lab.benchmarks.realpref.mitigations import Mitigations
from persona_lab.benchmarks.realpref.on_histories import OnHistories
from persona_lab.benchmarks.realpref.prompts import DIMENSIONS, JUDGE_SCHEMA, judge_prompt
from persona_lab.benchmarks.realpref.scoring import (
    EXAMPLE_VERDICT,
    Row,
    answer_problem,
    classification_score,
    open_scores,
    unscored,
)
from persona_lab.benchmarks.realpref.settings import RealPrefSettings
from persona_lab.benchmarks.realpref.significance import significance
from persona_lab.benchmarks.realpref.summary import all_estimates, notes, repeats_tables
from persona_lab.benchmarks.realpref.tasks import EXAMPLE_ANSWER, Question, with_method
from persona_lab.benchmarks.realpref.token_report import spent_by_method
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings, RunSettings, resolve_data
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.prompt import EMPTY, Prompt, Request
from persona_lab.core.recipe import Strict
from persona_lab.core.scores import Score, Summary


class RealPref(OnHistories):
    """Section 5.

    Args:
        settings: RealPref's part of the recipe.
        run: the common part.
        root: the folder that data paths start from.

    Raises:
        ConfigError: an unknown user, no judge for open-ended questions, no model for Mem0's
            memories, repeats without sampling.
        DataError: a data file that breaks its shape.
    """

    Settings: type[Strict] = RealPrefSettings
    published = "realpref.csv"
    columns = ("method", "expression", "context")
    evaluates_judges = False

    def __init__(self, settings: RealPrefSettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run, self.root = settings, run, root
        super().__init__(
            settings.benchmark,
            settings.context,
            settings.expression,
            root,
            as_transcript=settings.history_format == "transcript",
        )
        self.mitigations = Mitigations(settings, run, self.histories)
        self.judges = _judges(settings, run)
        writes = ("memory",) if settings.method.mem0 is not None else ()
        self.roles = (*writes, "target", *self.judges)
        self.encoders = settings.encoders_used
        if settings.repeats > 1 and run.target.temperature == 0:
            raise ConfigError(
                f"repeats={settings.repeats}: at temperature 0 every repeat is the same answer; "
                "set model.temperature"
            )

    def cases(self) -> list[RealPrefCase]:
        """All cases, users first and repeats last."""
        return all_cases(self.users, self.settings)

    def flow(self, case: RealPrefCase) -> Flow[list[Score]]:
        """Asks the question or questions of a case, and each judge about an open-ended answer."""
        asked = case.questions
        row = self._row(case, asked[0])
        found = yield from self.mitigations.before(case, row)
        if found.problem:
            return found.scores + self._unasked(case, found.problem)
        evidence = found.scores
        replies = yield [self._request(case, question, found.text) for question in asked]
        if case.task != "open_ended":
            return evidence + [
                classification_score(self._row(case, question), case.task, question, reply)
                for question, reply in zip(asked, replies, strict=True)
            ]
        answer = replies[0]
        if problem := answer_problem(answer):
            return evidence + unscored(row, case.task, *problem)
        query = case.asked.query
        verdicts = yield [
            self._judgement(
                role, judge_prompt(d, query.preference, query.query, answer.text), case.repeat
            )
            for role in self.judges
            for d in DIMENSIONS
        ]
        own, *second = (verdicts[i : i + 3] for i in range(0, len(verdicts), 3))
        scores = evidence + open_scores(row, answer, own)
        return scores + [s for v in second for s in as_second(open_scores(row, answer, v))]

    def summarize(self, outcomes: Sequence[Outcome[Any, Any]]) -> Summary:
        """Estimates, tests and tables of the paper, as far as the recipe asks for them."""
        memories = [outcome for outcome in outcomes if outcome.shared]
        outcomes = [outcome for outcome in outcomes if not outcome.shared]
        scores = [score for outcome in outcomes for score in self._scores(outcome)]
        report = memory_report(memories, [o.case for o in outcomes] or self.cases(), self.run.seed)
        written = [outcome.result for outcome in memories if outcome.result is not None]
        human = self.settings.human_scores
        tables = repeats_tables(scores, self.settings.repeats)
        tables += agreement_tables(scores, resolve_data(human, self.root) if human else None)
        return Summary(
            scores + report.scores,
            all_estimates(scores, outcomes, self.settings, self.run.seed) + report.estimates,
            significance(scores, self.run.seed),
            notes(scores, self.settings, self.filler_notes),
            tables + report.tables + spent_by_method(outcomes, [one.spent for one in written]),
            files={"memories": report.memories},
            unread=(
                sum(len(one.ingested.failures) for one in written),
                sum(one.spent.requests for one in written),
            ),
        )

    def _scores(self, outcome: Outcome[RealPrefCase, list[Score]]) -> list[Score]:
        if outcome.result is not None:
            return outcome.result
        return self._unasked(outcome.case, outcome.why)

    def _unasked(self, case: RealPrefCase, reason: str) -> list[Score]:
        return [
            score
            for question in case.questions
            for score in unscored(self._row(case, question), case.task, "failed", reason)
        ]

    def _request(self, case: RealPrefCase, question: Question, found: str) -> Request:
        text = with_method(case.method, question.text, found)
        replaced = self.mitigations.replaces_history(case)
        budget = getattr(self.settings.max_tokens, case.task)
        return Request(
            role="target",
            prompt=Prompt.ask(text, EMPTY if replaced else self.histories.of(case).history),
            sampling=self.run.target.sampling(budget),
            example=question.example or f"{EXAMPLE_ANSWER} ({case.id})",
            sample=case.repeat,
            seed=self.run.seed,
        )

    def _judgement(self, role: str, text: str, repeat: int) -> Request:
        judge = self.judges[role]
        return Request(
            role=role,
            prompt=Prompt.ask(text),
            sampling=judge.sampling(self.settings.max_tokens.judge),
            example=EXAMPLE_VERDICT,
            schema=JUDGE_SCHEMA,
            sample=repeat if judge.temperature > 0 else 0,
            seed=self.run.seed,
        )

    def _row(self, case: RealPrefCase, question: Question) -> Row:
        name = case.asked.id + (f"-{question.form}" if question.form else "")
        return Row(case.id, name, case.user.id, case.facets)


def _judges(settings: RealPrefSettings, run: RunSettings) -> dict[str, ModelSettings]:
    """The judges of open-ended answers by role; none where no question is open-ended."""
    if "open_ended" not in settings.task:
        return {}
    if run.judge is None:
        raise ConfigError("open-ended questions need a judge: add judge=NAME of configs/model")
    judges = {"judge": run.judge}
    return judges | ({"second_judge": run.second_judge} if run.second_judge else {})
