"""What is asked: one evaluator about one response or pair, under one condition of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from persona_lab.benchmarks.persevalbench.context import RETRIEVED, ContextName
from persona_lab.benchmarks.persevalbench.records import SIDES, SUBTYPES, Scenario
from persona_lab.benchmarks.persevalbench.settings import (
    Benchmark,
    Formulation,
    PersEvalBenchSettings,
    Protocol,
)
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import stable_digest

Subject = Literal["right", "error", "right_first", "error_first"]
"""What is shown: one of the responses, or both in this order."""
ORDERS: tuple[Subject, ...] = ("right_first", "error_first")
CONDITIONS = ("evaluator", "context", "formulation")
"""Facets in which the conditions of a run can differ."""
PARTS = ("family", "subtype", "relation", "applicability", "form", "distance")
"""Facets of a scenario that results are broken down by (Tables 3, 5 and 9)."""


@dataclass(frozen=True)
class PersEvalCase:
    """One question to one evaluator.

    Attributes:
        role: who is asked; evaluator: its name in the results.
        formulation: of a verdict; `direct` for the other protocols.
        sample: from 1.
        variant: how the context `retrieved` differs from its defaults.
    """

    scenario: Scenario
    role: str
    evaluator: str
    context: ContextName
    protocol: Protocol
    formulation: Formulation | Literal["direct"]
    subject: Subject
    sample: int
    variant: str = ""

    @property
    def id(self) -> str:
        """`s01/target/full/verdict/end_to_end/error/1`."""
        parts = (
            self.scenario.id, self.role, self.context, self.protocol, self.formulation,
            self.subject, str(self.sample),
        )  # fmt: skip
        return "/".join(parts)

    @property
    def question(self) -> str:
        """What repeats share: `s01/error`, or `s01` for a pair."""
        single = self.subject in SIDES
        return f"{self.scenario.id}/{self.subject}" if single else self.scenario.id

    @property
    def facets(self) -> dict[str, str]:
        """What its scores can be grouped by."""
        return {
            "evaluator": self.evaluator,
            "context": f"{self.context}_{self.variant}" if self.variant else self.context,
            "formulation": self.formulation,
            "protocol": self.protocol,
            "subject": self.subject,
            "sample": str(self.sample),
            **scenario_facets(self.scenario),
        }


def scenario_facets(scenario: Scenario) -> dict[str, str]:
    """PARTS of a scenario."""
    return {
        "family": scenario.family,
        "subtype": scenario.subtype,
        "relation": scenario.relation,
        "applicability": scenario.applicability,
        "form": scenario.form,
        "distance": scenario.distance_bin,
    }


def all_cases(
    scenarios: Sequence[Scenario], evaluators: Mapping[str, str], settings: PersEvalBenchSettings
) -> list[PersEvalCase]:
    """Every combination that the settings name, scenarios first and samples last.

    Args:
        evaluators: role -> name in the results.
    """
    return [
        PersEvalCase(
            scenario, role, evaluator, context, protocol, formulation, subject, sample,
            settings.retrieval.variant if context == RETRIEVED else "",
        )
        for scenario in scenarios
        for role, evaluator in evaluators.items()
        for context in settings.contexts
        for protocol in settings.protocols
        for formulation in _formulations(protocol, settings)
        for subject in (ORDERS if protocol == "pairwise" else SIDES)
        for sample in range(1, settings.samples + 1)
    ]  # fmt: skip


def _formulations(
    protocol: Protocol, settings: PersEvalBenchSettings
) -> Sequence[Formulation | Literal["direct"]]:
    return settings.formulations if protocol == "verdict" else ["direct"]


def chosen(scenarios: list[Scenario], benchmark: Benchmark) -> list[Scenario]:
    """The scenarios that a recipe names or draws; all, if it does neither.

    Raises:
        ConfigError: one of them is not in the data.
    """
    if benchmark.scenarios is not None:
        known = {s.id for s in scenarios}
        if unknown := [name for name in benchmark.scenarios if name not in known]:
            raise ConfigError(
                f"benchmark.scenarios: {', '.join(unknown)} not in the data, which has "
                f"{', '.join(sorted(known))}"
            )
        scenarios = [s for s in scenarios if s.id in benchmark.scenarios]
    if benchmark.sample is None:
        return scenarios
    return stratified(scenarios, benchmark.sample, benchmark.seed)


def stratified(scenarios: Sequence[Scenario], number: int, seed: int) -> list[Scenario]:
    """So many scenarios, each error subtype with its share, and within it each relation (C.4, D).

    Shares are rounded by largest remainders; who is drawn follows from a digest of id and seed.
    """
    if number >= len(scenarios):
        return list(scenarios)
    ordered = sorted(scenarios, key=lambda s: stable_digest(f"{seed}/{s.id}"))
    groups = [[s for s in ordered if s.subtype == subtype] for subtype in SUBTYPES]
    drawn: set[str] = set()
    for group, size in zip(groups, _shares([len(g) for g in groups], number), strict=True):
        relations = list(dict.fromkeys(s.relation for s in group))
        inside = [[s for s in group if s.relation == relation] for relation in relations]
        for members, count in zip(inside, _shares([len(g) for g in inside], size), strict=True):
            drawn |= {s.id for s in members[:count]}
    return [s for s in scenarios if s.id in drawn]


def _shares(sizes: Sequence[int], number: int) -> list[int]:
    total = sum(sizes)
    if not total:
        return [0] * len(sizes)
    exact = [size * number / total for size in sizes]
    made = [int(share) for share in exact]
    rest = sorted(range(len(sizes)), key=lambda i: made[i] - exact[i])
    for i in rest[: number - sum(made)]:
        made[i] += 1
    return made
