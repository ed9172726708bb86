"""The experiment of sections 4 and 5: evaluators are the models under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from persona_lab.benchmarks.persevalbench.cases import (
    PersEvalCase,
    all_cases,
    chosen,
    scenario_facets,
)
from persona_lab.benchmarks.persevalbench.context import RETRIEVED, context_text, turns_text
from persona_lab.benchmarks.persevalbench.data_checks import check
from persona_lab.benchmarks.persevalbench.human_check import People
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.prompts import (
    END_TO_END,
    EVIDENCE,
    FROM_EVIDENCE,
    PAIRWISE,
    POINTWISE,
    STATE_TABLE,
)
from persona_lab.benchmarks.persevalbench.retrieval_scoring import (
    Searched,
    failed_with_bounds,
    once,
    with_bounds,
)
from persona_lab.benchmarks.persevalbench.retrieved import search
from persona_lab.benchmarks.persevalbench.scoring import (
    EVIDENCE_CUT,
    choice_score,
    failed,
    rating_score,
    verdict_score,
)
from persona_lab.benchmarks.persevalbench.settings import PersEvalBenchSettings
from persona_lab.benchmarks.persevalbench.summary import summary
from persona_lab.benchmarks.persevalbench.tables import composition_table
from persona_lab.benchmarks.persevalbench.verdicts import EXAMPLE_EVIDENCE, EXAMPLE_VERDICT
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import RunSettings, resolve_data
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.prompt import Prompt, Reply, Request
from persona_lab.core.recipe import Strict
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.parsing.parsed import visible

EVALUATORS = ("target", "judge", "second_judge")
"""Roles that evaluate here; a panel is made of them."""


class PersEvalBench:
    """Sections 4 and 5.

    Args:
        settings: PersEvalBench's part of the recipe.
        run: the common part.
        root: the folder that data paths start from.

    Raises:
        ConfigError: an unknown scenario, several samples without sampling, a panel of one, or
            fusion without an encoder.
        DataError: a data file that breaks its shape or the scenario grammar.
    """

    Settings: type[Strict] = PersEvalBenchSettings
    published = "persevalbench.csv"
    columns = ("evaluator", "context", "formulation", "family", "relation", "form", "distance")
    evaluates_judges = True

    def __init__(self, settings: PersEvalBenchSettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run, self.root = settings, run, root
        folder = resolve_data(settings.benchmark.path, root)
        everything, self.data_hash = load_scenarios(folder)
        self.scenarios = chosen(everything, settings.benchmark)
        self.encoders = settings.encoders_used
        self.models = {r: m for r, m in run.models().items() if r in EVALUATORS}
        self.roles = tuple(self.models)
        self.evaluators = _names({role: model.name for role, model in self.models.items()})
        self.people = People.read(settings, root)
        if settings.panel and len(self.roles) < 2:
            raise ConfigError("panel=true: add judge=NAME, and second_judge=NAME, as evaluators")
        greedy = [self.evaluators[r] for r, m in self.models.items() if m.temperature == 0]
        if settings.samples > 1 and greedy:
            raise ConfigError(
                f"samples={settings.samples}: at temperature 0 every sample of {greedy[0]} is the "
                "same; set its temperature"
            )

    def cases(self) -> list[PersEvalCase]:
        """All cases, scenarios first and samples last."""
        return all_cases(self.scenarios, self.evaluators, self.settings)

    def flow(self, case: PersEvalCase) -> Flow[list[Score]]:
        """Asks for one verdict, rating or choice; beside it, whether what was retrieved for it was
        the evidence."""
        scenario, seed = case.scenario, self.settings.benchmark.seed
        if case.context != RETRIEVED:
            score = yield from self._judged(case, context_text(scenario, case.context, seed))
            return [score]
        how = self.settings.retrieval
        ranked = yield from search(scenario, how.retriever, how, seed)
        score = yield from self._judged(case, turns_text(scenario, sorted(ranked)))
        return [score, *with_bounds(self._searched(case), ranked)]

    def _judged(self, case: PersEvalCase, seen: str) -> Flow[Score]:
        """One verdict, rating or choice; evidence-first takes two steps."""
        scenario, budget = case.scenario, self.settings.max_tokens
        if case.protocol == "pairwise":
            responses = (scenario.right, scenario.error)
            first, second = responses if case.subject == "right_first" else responses[::-1]
            text = PAIRWISE.format(
                context=seen, user_request=scenario.request, first=first, second=second
            )
            [reply] = yield [self._ask(case, text, budget.pairwise, '{"answer": "A"}')]
            return choice_score(case, reply)
        response = scenario.response("right" if case.subject == "right" else "error")
        slots = {"user_request": scenario.request, "response": response}
        if case.protocol == "pointwise":
            text = POINTWISE.format(context=seen, **slots)
            [reply] = yield [self._ask(case, text, budget.pointwise, '{"score": 4}')]
            return rating_score(case, reply)
        if case.formulation == "evidence_first":
            reply = yield from self._evidence_first(case, seen, slots)
        elif case.formulation == "state_table":
            text = STATE_TABLE.format(context=seen, **slots)
            [reply] = yield [self._ask(case, text, budget.state_table, EXAMPLE_VERDICT)]
        else:
            text = END_TO_END.format(context=seen, **slots)
            [reply] = yield [self._ask(case, text, budget.verdict, EXAMPLE_VERDICT)]
        return verdict_score(case, reply)

    def inventory(self) -> list[RowsTable]:
        """The composition of the scenarios (Table 9), and what an ablation leaves out."""
        return [composition_table(self.scenarios, self.settings)]

    def check_data(self) -> tuple[str, int]:
        """The verifier's rules that a program can check (Prompt 3)."""
        return check(self.scenarios)

    def summarize(self, outcomes: Sequence[Outcome[PersEvalCase, list[Score]]]) -> Summary:
        """ERR, FAR, pair accuracy and what else the recipe asks for."""
        scores = [score for outcome in outcomes for score in self._scores(outcome)]
        scores = once(scores, self.settings.retrieval.k)
        target = self.evaluators.get("target", "")
        return summary(scores, self.scenarios, self.settings, self.run, self.people, target)

    def _evidence_first(self, case: PersEvalCase, seen: str, slots: dict[str, str]) -> Flow[Reply]:
        """Prompt 11. What the first step found is taken as far as it goes; without any there is no
        second step, and the first one's outcome stands."""
        request = slots["user_request"]
        text = EVIDENCE.format(context=seen, user_request=request)
        budget = self.settings.max_tokens
        first: list[Reply] = yield [self._ask(case, text, budget.evidence, EXAMPLE_EVIDENCE)]
        found = first[0]
        evidence, problem = visible(found.text)
        if found.outcome == "failed" or problem:
            if found.outcome == "ok" and problem.startswith("truncated"):
                return replace(found, text="", outcome="truncated", reason=problem)
            return replace(found, text="")
        text = FROM_EVIDENCE.format(evidence=evidence, **slots)
        replies: list[Reply] = yield [self._ask(case, text, budget.verdict, EXAMPLE_VERDICT)]
        cut = (EVIDENCE_CUT,) if found.outcome == "truncated" else ()
        return replace(replies[0], flags=(*replies[0].flags, *cut))

    def _ask(self, case: PersEvalCase, text: str, budget: int, example: str) -> Request:
        """No schema: the evaluator is the model under test."""
        sampling = self.models[case.role].sampling(budget)
        if self.settings.logprobs and case.protocol == "verdict":
            sampling = replace(sampling, logprobs=self.settings.logprobs)
        return Request(
            role=case.role,
            prompt=Prompt.ask(text),
            sampling=sampling,
            example=example,
            sample=case.sample - 1,
            seed=self.run.seed,
        )

    def _scores(self, outcome: Outcome[PersEvalCase, list[Score]]) -> list[Score]:
        if outcome.result is not None:
            return outcome.result
        case, reason = outcome.case, outcome.why
        retrieved = case.context == RETRIEVED
        lost = failed_with_bounds(self._searched(case), reason) if retrieved else []
        return [failed(case, reason), *lost]

    def _searched(self, case: PersEvalCase) -> Searched:
        """A case of its own: what a model is asked is counted without it."""
        name = f"{case.scenario.id}/{RETRIEVED}/retrieval"
        facets = {"context": case.facets["context"], **scenario_facets(case.scenario)}
        return Searched(case.scenario, name, self.settings.retrieval.k, facets)


def _names(models: dict[str, str]) -> dict[str, str]:
    """Role -> name in the results; a model that plays several roles gets the role added."""
    times = Counter(models.values())
    return {r: name if times[name] == 1 else f"{name}/{r}" for r, name in models.items()}
