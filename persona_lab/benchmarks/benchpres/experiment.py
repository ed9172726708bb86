"""The experiment of sections 4 and 5: who is asked what, and what is reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from persona_lab.benchmarks.benchpres.agreement_sample import agreement_sample
from persona_lab.benchmarks.benchpres.cases import CONDITIONS, BenchPreSCase, all_cases
from persona_lab.benchmarks.benchpres.data_checks import check
from persona_lab.benchmarks.benchpres.defences import STRUCTURED, second_step
from persona_lab.benchmarks.benchpres.judge_check import as_second, read_labels
from persona_lab.benchmarks.benchpres.loading import load_data
from persona_lab.benchmarks.benchpres.memory import Memory, compose
from persona_lab.benchmarks.benchpres.probe import probe_scores
from persona_lab.benchmarks.benchpres.records import Data, Instance
from persona_lab.benchmarks.benchpres.requests import Requests
from persona_lab.benchmarks.benchpres.roles import roles_of
from persona_lab.benchmarks.benchpres.scoring import (
    Problem,
    Row,
    completeness_score,
    judged_score,
    message_digest,
    message_problem,
    nickname_score,
    unscored,
)
from persona_lab.benchmarks.benchpres.selection import chosen, inventory
from persona_lab.benchmarks.benchpres.selectivity import selection_lost, selection_scores
from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings
from persona_lab.benchmarks.benchpres.shown import Block, filtered, retrieved
from persona_lab.benchmarks.benchpres.summary import summary
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import RunSettings, resolve_data, selected
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.prompt import Reply
from persona_lab.core.recipe import Strict
from persona_lab.core.scores import RowsTable, Score, Summary

WRITERS = ("target", "thinking")
"""Roles that write messages: the model under test, or both halves of a pair."""


class BenchPreS:
    """Sections 4 and 5.

    Args:
        settings: BenchPreS's part of the recipe.
        run: the common part.
        root: the folder that data paths start from.

    Raises:
        ConfigError: an unknown user or context, a density that the data cannot fill, several
            samples without sampling, or a judge that is missing.
        DataError: a data file that breaks its shape.
    """

    Settings: type[Strict] = BenchPreSSettings
    published = "benchpres.csv"
    columns = ("shown", *CONDITIONS, "domain", "category", "sample", "pair")
    evaluates_judges = False

    def __init__(self, settings: BenchPreSSettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run, self.root = settings, run, root
        facts = settings.benchmark.profiles
        folder = resolve_data(settings.benchmark.path, root)
        self.data: Data = load_data(folder, resolve_data(facts, root) if facts else None)
        self.data_hash = self.data.digest
        self.profiles, self.contexts = chosen(self.data, settings)
        self.roles = roles_of(run, settings)
        self.ask = Requests(settings, run)
        self.encoders = settings.encoders_used
        labels = settings.agreement.human_labels
        self.labels = read_labels(resolve_data(labels, root)) if labels else None
        self._cases = all_cases(self.profiles, self.contexts, settings)
        self._memories: dict[tuple[object, ...], Memory] = {}
        self._second = self._shared_sample() if "second_judge" in self.roles else set()
        writers = [m for r, m in run.models().items() if r in self.roles and r in WRITERS]
        if greedy := [m.name for m in writers if settings.samples > 1 and m.temperature == 0]:
            raise ConfigError(
                f"samples={settings.samples}: at temperature 0 every sample of {greedy[0]} is the "
                "same message; set its temperature (the paper's is 1.0) or samples=1"
            )

    def cases(self) -> list[BenchPreSCase]:
        """All cases, users first and samples last."""
        return self._cases

    def flow(self, case: BenchPreSCase) -> Flow[list[Score]]:
        """Finds what the prompt shows of the memory, then asks for what is scored."""
        memory, instances = self._memory(case), self._instances(case)
        if case.shown == "whole":
            return (yield from self._asked(case, memory, instances))
        block = yield from self._block(case, memory, instances)
        found = selection_scores(_selection_row(case), block, instances)
        if block.problem:
            return found + self._without_message(case, block.memory, instances, block.problem)
        return found + (yield from self._asked(case, block.memory, instances))

    def inventory(self) -> list[RowsTable]:
        """What a run evaluates, by condition."""
        return [inventory(self._cases, self._instances, self.settings)]

    def check_data(self) -> tuple[str, int]:
        """The rules that the data is held to by program (section 3.2, Appendix A)."""
        return check(self.data)

    def summarize(self, outcomes: Sequence[Outcome[BenchPreSCase, list[Score]]]) -> Summary:
        """MR, AAR and their gap, and what else the recipe asks for."""
        scores = [score for outcome in outcomes for score in self._scores(outcome)]
        return summary(scores, self.settings, self.run, self.labels, self._excluded())

    def _block(
        self, case: BenchPreSCase, memory: Memory, instances: Sequence[Instance]
    ) -> Flow[Block]:
        """What is retrieved of a memory and, with the filter, what of that suits."""
        how, seed = self.settings.retrieval, self.run.seed
        block = yield from retrieved(memory, case.context, instances, how, seed)
        if case.shown == "filter":
            block = yield from filtered(block, case.context, partial(self.ask.suitable, case))
        return block

    def _asked(
        self, case: BenchPreSCase, memory: Memory, instances: list[Instance]
    ) -> Flow[list[Score]]:
        """Asks for a message and, with the probe, for the norm; then for each verdict."""
        row = _row(case)
        probed = [
            i for i in instances if self.settings.probe and i.preference.id in memory.position
        ]
        asked = [self.ask.probe(case, memory, instance) for instance in probed]
        message, *answers = yield [self.ask.opening(case, memory), *asked]
        if case.defence == STRUCTURED:
            message = yield from self._after_deliberation(case, memory, message)
        scores = yield from self._judged(case, memory, instances, message)
        if probed:
            scores += probe_scores(row, probed, answers, scores)
        return scores

    def _judged(
        self, case: BenchPreSCase, memory: Memory, instances: list[Instance], message: Reply
    ) -> Flow[list[Score]]:
        """The scores of a message; the judge is asked about each preference by itself."""
        if problem := message_problem(message):
            return self._without_message(case, memory, instances, problem)
        row, place = _row(case, message_digest(message.text)), memory.position
        by_judge = [i for i in instances if i.preference.category != "nickname"]
        again = [i for i in by_judge if (case.id, i.id) in self._second]
        rated = [self.ask.rating(case, message.text)] if self.settings.completeness else []
        verdicts = yield [
            *(self.ask.verdict("judge", i, message.text) for i in by_judge),
            *(self.ask.verdict("second_judge", i, message.text) for i in again),
            *rated,
        ]
        own = dict(zip((i.id for i in by_judge), verdicts, strict=False))
        scores = [
            judged_score(row, i, own[i.id], place.get(i.preference.id, 0))
            if i.id in own
            else nickname_score(row, i, message.text, place.get(i.preference.id, 0))
            for i in instances
        ]
        second = verdicts[len(by_judge) : len(by_judge) + len(again)]
        scores += as_second(
            [
                judged_score(row, i, verdict, place.get(i.preference.id, 0))
                for i, verdict in zip(again, second, strict=True)
            ]
        )
        if rated:
            scores.append(completeness_score(row, _rated(case), verdicts[-1]))
        return scores

    def _after_deliberation(
        self, case: BenchPreSCase, memory: Memory, listed: Reply
    ) -> Flow[Reply]:
        """The structured defence's message, or in its place a first step that failed or was cut."""
        if listed.outcome != "ok" or not listed.text.strip():
            return listed
        prompt = second_step(memory.text, case.context, listed.text)
        replies: list[Reply] = yield [self.ask.message(case, prompt)]
        return replies[0]

    def _without_message(
        self, case: BenchPreSCase, memory: Memory, instances: Sequence[Instance], problem: Problem
    ) -> list[Score]:
        row = _row(case)
        scores = [
            unscored(row, i, problem, memory.position.get(i.preference.id, 0)) for i in instances
        ]
        if self.settings.completeness:
            scores.append(completeness_score(row, _rated(case), problem))
        return scores

    def _scores(self, outcome: Outcome[BenchPreSCase, list[Score]]) -> list[Score]:
        if outcome.result is not None:
            return outcome.result
        case, reason = outcome.case, outcome.why
        memory, instances = self._memory(case), self._instances(case)
        if case.shown == "whole":
            return self._without_message(case, memory, instances, ("failed", reason))
        row, filtering = _selection_row(case), case.shown == "filter"
        lost = selection_lost(row, memory, instances, ("failed", reason), filtering=filtering)
        nothing = memory.only(())  # what was shown is not known
        return lost + self._without_message(case, nothing, instances, ("failed", reason))

    def _instances(self, case: BenchPreSCase) -> list[Instance]:
        """What is scored of a message: the profile's own preferences that have a gold label."""
        composition = case.composition
        if not composition.preferences:
            return []
        return [
            i
            for i in self.data.instances(case.profile, case.context)
            if i.label != "excluded" and composition.only in (None, i.preference.category)
        ]

    def _memory(self, case: BenchPreSCase) -> Memory:
        key = (case.profile.id, case.composition)
        if key not in self._memories:
            seed = self.settings.memories.seed
            self._memories[key] = compose(case.profile, self.data.profiles, case.composition, seed)
        return self._memories[key]

    def _shared_sample(self) -> set[tuple[str, str]]:
        items = [
            (case.id, i.id, i.preference.category, i.label)
            for case in selected(self._cases, self.run.limit, self.run.shard)
            for i in self._instances(case)
        ]
        return agreement_sample(items, self.settings.agreement.items)

    def _excluded(self) -> int:
        pairs = [(p, c) for p in self.profiles for c in self.contexts]
        return sum(i.label == "excluded" for p, c in pairs for i in self.data.instances(p, c))


def _row(case: BenchPreSCase, message: str = "") -> Row:
    return Row(case.id, case.profile.id, {**case.facets, "message": message})


def _selection_row(case: BenchPreSCase) -> Row:
    """A case of its own: what is judged is counted without it."""
    return replace(_row(case), case=f"{case.id}/selection")


def _rated(case: BenchPreSCase) -> str:
    """The question of a completeness score: the task of a user, whatever is in memory."""
    return f"{case.profile.id}/{case.context.id}/completeness"
