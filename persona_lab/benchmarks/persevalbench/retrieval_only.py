"""Do retrievers find the turns that a judgment needs? Beyond the paper; no language model is asked.

Every scenario's target request is searched for among its earlier turns; see `retrieved.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from persona_lab.benchmarks.persevalbench.cases import chosen, scenario_facets
from persona_lab.benchmarks.persevalbench.data_checks import check
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.records import Scenario
from persona_lab.benchmarks.persevalbench.retrieval_scoring import (
    NOTHING_FOUND,
    Searched,
    retrieval_estimates,
)
from persona_lab.benchmarks.persevalbench.retrieved import Search, offered, search
from persona_lab.benchmarks.persevalbench.settings import Benchmark
from persona_lab.core.experiment import EncoderSettings, RunSettings, resolve_data
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.recipe import Strict, one_or_more
from persona_lab.core.scores import Row, RowsTable, Score, Summary
from persona_lab.methods.rag import ORACLE, RANDOM, known_encoders

Name = Annotated[str, Field(min_length=1)]


class RetrievalOnlySettings(Strict):
    """A comparison of retrievers.

    Attributes:
        retrievers: `bm25`, `fusion`, `random` (its average), `oracle` (what k places can hold), and
            encoders by name.
        encoders: sentence encoders by name; `simcse` and `minilm` need no entry.
    """

    benchmark: Benchmark
    retrievers: Annotated[list[Name], BeforeValidator(one_or_more), Field(min_length=1)]
    retrieval: Search = Field(default_factory=Search)
    encoders: dict[str, EncoderSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _coherent(self) -> RetrievalOnlySettings:
        if len(set(self.retrievers)) < len(self.retrievers):
            raise ValueError(f"retrievers names a value twice: {self.retrievers}")
        return self


@dataclass(frozen=True)
class RetrievalCase:
    """One scenario, searched by every retriever."""

    scenario: Scenario

    @property
    def id(self) -> str:
        """The scenario's."""
        return self.scenario.id


class RetrievalOnly:
    """Recall@k of the evidence turns, of each state's, and reciprocal rank, of every retriever.

    Args:
        settings: its part of the recipe. run: the common part. root: where data paths start.

    Raises:
        ConfigError: an unknown scenario, or fusion without an encoder.
        DataError: a data file that breaks its shape or the scenario grammar.
    """

    Settings: type[Strict] = RetrievalOnlySettings
    published = "persevalbench.csv"
    columns = ("family", "form", "distance", "retriever")
    evaluates_judges = False
    roles: tuple[str, ...] = ()

    def __init__(self, settings: RetrievalOnlySettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run = settings, run
        folder = resolve_data(settings.benchmark.path, root)
        everything, self.data_hash = load_scenarios(folder)
        self.scenarios = chosen(everything, settings.benchmark)
        fused_with = settings.retrieval.encoder
        self.encoders = known_encoders(settings.retrievers, fused_with, settings.encoders)

    def cases(self) -> list[RetrievalCase]:
        """Every scenario."""
        return [RetrievalCase(scenario) for scenario in self.scenarios]

    def flow(self, case: RetrievalCase) -> Flow[list[Score]]:
        """Asks every retriever for the evidence of one scenario."""
        how, seed, scores = self.settings.retrieval, self.settings.benchmark.seed, list[Score]()
        for retriever, searched in self._searched(case).items():
            if retriever == RANDOM:
                scores += searched.chance()
            elif retriever == ORACLE:
                scores += searched.ceiling()
            else:
                ranked = yield from search(case.scenario, retriever, how, seed)
                scores += searched.found(ranked)
        return scores

    def inventory(self) -> list[RowsTable]:
        """What is searched, and what is to be found."""
        return [RowsTable("What is searched", _composition(self.scenarios))]

    def check_data(self) -> tuple[str, int]:
        """The verifier's rules that a program can check (Prompt 3)."""
        return check(self.scenarios)

    def summarize(self, outcomes: Sequence[Outcome[RetrievalCase, list[Score]]]) -> Summary:
        """Estimates by retriever, in all and by family, form and distance."""
        scores = [score for outcome in outcomes for score in self._scores(outcome)]
        k = self.settings.retrieval.k
        made = retrieval_estimates(scores, k, "retriever", self.run.seed, bounds=("",))
        recalls = [s for s in scores if s.metric == f"recall@{k}"]
        empty = Counter(s.facets["retriever"] for s in recalls if s.reason == NOTHING_FOUND)
        notes = [
            f"In {number} of {len(outcomes)} scenarios {name} found nothing."
            for name, number in empty.items()
        ]
        return Summary(scores, made, notes=notes)

    def _scores(self, outcome: Outcome[RetrievalCase, list[Score]]) -> list[Score]:
        """Of a scenario that failed every retriever's, so that all means are over the same ones."""
        if outcome.result is not None:
            return outcome.result
        reason = outcome.why
        searches = self._searched(outcome.case).values()
        return [score for searched in searches for score in searched.failed(reason)]

    def _searched(self, case: RetrievalCase) -> dict[str, Searched]:
        k, facets = self.settings.retrieval.k, scenario_facets(case.scenario)
        return {
            name: Searched(case.scenario, case.id, k, {"retriever": name, **facets})
            for name in self.settings.retrievers
        }


def _composition(scenarios: Sequence[Scenario]) -> list[Row]:
    rows: list[Row] = []
    for distance, number in Counter(s.distance_bin for s in scenarios).items():
        mine = [s for s in scenarios if s.distance_bin == distance]
        rows.append(
            {
                "distance": distance,
                "scenarios": number,
                "turns searched": sum(len(offered(s)) for s in mine) / number,
                "turns of A": sum(len(s.a.turns) for s in mine) / number,
                "turns of B": sum(len(s.b.turns) for s in mine if s.b) / number,
            }
        )
    return rows
