"""The requests of a case: who is asked, with which budget and sampling (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from persona_lab.benchmarks.benchpres.cases import BenchPreSCase
from persona_lab.benchmarks.benchpres.defences import (
    EXAMPLE_DELIBERATION,
    EXAMPLE_MESSAGE,
    STRUCTURED,
    opening,
)
from persona_lab.benchmarks.benchpres.memory import Memory
from persona_lab.benchmarks.benchpres.probe import probe_prompt
from persona_lab.benchmarks.benchpres.prompts import (
    JUDGE_SCHEMA,
    completeness_prompt,
    judge_prompt,
)
from persona_lab.benchmarks.benchpres.records import Instance
from persona_lab.benchmarks.benchpres.scoring import EXAMPLE_LABEL, EXAMPLE_RATING
from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings
from persona_lab.core.experiment import ModelSettings, RunSettings
from persona_lab.core.prompt import Prompt, Request


@dataclass(frozen=True)
class Requests:
    """Makes the requests of one run."""

    settings: BenchPreSSettings
    run: RunSettings

    def opening(self, case: BenchPreSCase, memory: Memory) -> Request:
        """The message itself, or the structured defence's first step."""
        prompt = opening(case.defence, memory.text, case.context)
        if case.defence != STRUCTURED:
            return self.message(case, prompt)
        budget = self.settings.max_tokens.deliberation
        return self._target(case, prompt, budget, f"{EXAMPLE_DELIBERATION} ({case.id})")

    def message(self, case: BenchPreSCase, prompt: Prompt) -> Request:
        """A message; samples differ by their index, which enters the seed."""
        budget = self.settings.max_tokens.message
        return self._target(case, prompt, budget, f"{EXAMPLE_MESSAGE} ({case.id})")

    def probe(self, case: BenchPreSCase, memory: Memory, instance: Instance) -> Request:
        """The norm, asked once and greedily, whatever the sample."""
        example = "Yes" if instance.label == "1" else "No"
        prompt = probe_prompt(memory.text, case.context, instance)
        asked = self._target(case, prompt, self.settings.max_tokens.probe, example)
        return replace(asked, sampling=replace(asked.sampling, temperature=0.0), sample=0)

    def suitable(self, case: BenchPreSCase, prompt: Prompt, example: str) -> Request:
        """Which statements suit: asked once and greedily, so that all samples show one memory."""
        asked = self._target(case, prompt, self.settings.max_tokens.filter, example)
        return replace(asked, sampling=replace(asked.sampling, temperature=0.0), sample=0)

    def verdict(self, role: str, instance: Instance, message: str) -> Request:
        """One call per response and preference (section 3.3)."""
        budget = self.settings.max_tokens.judge
        prompt = judge_prompt(instance.preference.statement, message)
        return self._judge(role, prompt, budget, EXAMPLE_LABEL, JUDGE_SCHEMA)

    def rating(self, case: BenchPreSCase, message: str) -> Request:
        """Task completeness (section 5.3)."""
        budget = self.settings.max_tokens.completeness
        prompt = completeness_prompt(case.context.task, message)
        return self._judge("judge", prompt, budget, EXAMPLE_RATING, None)

    def _target(self, case: BenchPreSCase, prompt: Prompt, budget: int, example: str) -> Request:
        """Reasoning is asked for by a switch, or of the other half of a pair."""
        role, reasoning = "target", case.reasoning
        if self.run.thinking is not None:
            role, reasoning = ("thinking" if case.reasoning else "target"), None
        return Request(
            role=role,
            prompt=prompt,
            sampling=self._model(role).sampling(budget),
            example=example,
            reasoning=reasoning,
            sample=case.sample - 1,
            seed=self.run.seed,
        )

    def _judge(
        self, role: str, prompt: str, budget: int, example: str, schema: str | None
    ) -> Request:
        return Request(
            role=role,
            prompt=Prompt.ask(prompt),
            sampling=self._model(role).sampling(budget),
            example=example,
            schema=schema,
            seed=self.run.seed,
        )

    def _model(self, role: str) -> ModelSettings:
        return self.run.models()[role]
