"""Do retrievers find the evidence? Appendix H.2's retrieval by itself; no language model is asked.

Evidence of a question are the turns of the sessions that voice its preference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from persona_lab.benchmarks.realpref.cases import chosen
from persona_lab.benchmarks.realpref.on_histories import OnHistories
from persona_lab.benchmarks.realpref.records import Asked, Expression, User
from persona_lab.benchmarks.realpref.retrieved import Retrieval, evidence, search, units
from persona_lab.benchmarks.realpref.scoring import (
    Row,
    chance_scores,
    retrieval_metrics,
    retrieval_scores,
)
from persona_lab.benchmarks.realpref.settings import (
    CONTEXTS,
    DATA_TESTS,
    Benchmark,
    Contexts,
)
from persona_lab.benchmarks.realpref.summary import scale_notes
from persona_lab.core.experiment import EncoderSettings, RunSettings
from persona_lab.core.flow import Flow, Outcome
from persona_lab.core.recipe import Strict, one_or_more
from persona_lab.core.scores import Score, Summary
from persona_lab.methods.rag import RANDOM, known_encoders
from persona_lab.metrics.estimate import estimates

BY = ("retriever", "expression", "context")


class RetrievalSettings(Strict):
    """A comparison of retrievers.

    Attributes:
        retrievers: `bm25`, `fusion`, `random` (its average), `oracle`, and encoders by name.
        encoders: sentence encoders by name; `simcse` and `minilm` are known without.
    """

    benchmark: Benchmark
    context: Contexts
    expression: Annotated[list[Expression], BeforeValidator(one_or_more), Field(min_length=1)]
    retrievers: Annotated[list[str], BeforeValidator(one_or_more), Field(min_length=1)]
    retrieval: Retrieval
    encoders: dict[str, EncoderSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _coherent(self) -> RetrievalSettings:
        if not self.context.lengths or set(self.context.names) & set(DATA_TESTS):
            raise ValueError(f"choose contexts of {', '.join(CONTEXTS)}: the others are no search")
        if self.benchmark.preferences != ["original"]:
            raise ValueError("only original preferences have evidence in a history")
        return self


@dataclass(frozen=True)
class RetrievalCase:
    """One query of one user after one history."""

    user: User
    asked: Asked
    expression: Expression
    context: str
    facets: dict[str, str] = field(compare=False)

    @property
    def id(self) -> str:
        """`00001-p01/experience_feedback/simple`."""
        return f"{self.asked.id}/{self.expression}/{self.context}"


class RetrievalOnly(OnHistories):
    """Recall@k and reciprocal rank of every retriever, on the histories of section 3.4.

    Args:
        settings: its part of the recipe. run: the common part. root: where data paths start.

    Raises:
        ConfigError: an unknown user, or fusion without an encoder.
        DataError: a data file that breaks its shape.
    """

    Settings: type[Strict] = RetrievalSettings
    published = "realpref.csv"
    columns = ("retriever", "expression", "context")
    evaluates_judges = False
    roles: tuple[str, ...] = ()

    def __init__(self, settings: RetrievalSettings, run: RunSettings, root: Path) -> None:
        self.settings, self.run = settings, run
        super().__init__(settings.benchmark, settings.context, settings.expression, root)
        fused_with = settings.retrieval.encoder
        self.encoders = known_encoders(settings.retrievers, fused_with, settings.encoders)

    def cases(self) -> list[RetrievalCase]:
        """Every query after every history, users first."""
        return [
            RetrievalCase(
                user, asked, expression, context, _facets(user, asked, expression, context)
            )
            for user in self.users
            for expression in self.settings.expression
            for context in self.settings.context.names
            for asked in chosen(user, self.settings.benchmark)
        ]

    def flow(self, case: RetrievalCase) -> Flow[list[Score]]:
        """Asks every retriever for the evidence of one query."""
        how, query = self.settings.retrieval, case.asked.query
        offered = units(self.histories.of(case), how.unit, user_only=how.user_only)
        relevant, scores = evidence(offered, query.preference), list[Score]()
        for retriever in self.settings.retrievers:
            row = Row(case.id, case.asked.id, case.user.id, {"retriever": retriever, **case.facets})
            if retriever == RANDOM:
                scores += chance_scores(row, len(offered), len(relevant), how.k)
                continue
            ranked = yield from search(retriever, query, offered, relevant, how, self.run.seed)
            scores += retrieval_scores(row, ranked, relevant, how.k)
        return scores

    def summarize(self, outcomes: Sequence[Outcome[RetrievalCase, list[Score]]]) -> Summary:
        """Estimates by retriever, expression and context, with what was to be found."""
        scores = [score for outcome in outcomes for score in outcome.result or []]
        metrics = retrieval_metrics(self.settings.retrieval.k)
        made = estimates(scores, metrics, BY, unit="user", seed=self.run.seed)
        notes = (
            [f"{len(failed)} queries failed: {failed[0].why}"]
            if (failed := [outcome for outcome in outcomes if outcome.error])
            else []
        )
        notes += scale_notes(self.settings.context)
        return Summary(scores, made, [], notes + self.filler_notes)


def _facets(user: User, asked: Asked, expression: str, context: str) -> dict[str, str]:
    return {
        "expression": expression,
        "context": context,
        "preference_type": asked.type,
        "user": user.id,
    }
