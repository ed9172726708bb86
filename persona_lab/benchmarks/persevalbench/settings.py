"""PersEvalBench's part of a recipe: data, contexts, formulations, protocols (section 4)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from persona_lab.benchmarks.persevalbench.context import RETRIEVED, ContextName
from persona_lab.benchmarks.persevalbench.retrieved import Retrieval
from persona_lab.core.experiment import EncoderSettings
from persona_lab.core.recipe import Strict, one_or_more
from persona_lab.methods.rag import known_encoders

Formulation = Literal["end_to_end", "evidence_first", "state_table"]
Protocol = Literal["verdict", "pointwise", "pairwise"]


class Benchmark(Strict):
    """Which data, and how much of it.

    Attributes:
        path: a data folder; scenarios: only these ids (None: all).
        sample: so many scenarios, spread over error subtypes and then relations as the data is
            (Appendix C.4: 50; Appendix D: 100); seed: of that draw, of what an ablation drops and
            of the retriever `random`.
    """

    path: str
    scenarios: list[str] | None = Field(default=None, min_length=1)
    sample: int | None = Field(default=None, ge=1)
    seed: int = 0


class MaxTokens(Strict):
    """Budgets of the answers, in tokens, reasoning included."""

    verdict: int = Field(ge=1)
    evidence: int = Field(ge=1)
    state_table: int = Field(ge=1)
    pointwise: int = Field(ge=1)
    pairwise: int = Field(ge=1)


class PersEvalBenchSettings(Strict):
    """PersEvalBench's part of a recipe.

    Attributes:
        contexts: what of the history is shown; retrieval: what `retrieved` shows, a context beyond
            the paper. encoders: sentence encoders by name; `simcse` and `minilm` need no entry.
        formulations: how a verdict is elicited.
        protocols: the three-way verdict, a rating of each response, or both side by side.
        samples: verdicts of each response; several need sampling, and give an operating curve.
        logprobs: log-probabilities per token, to read a verdict's probability from (None: off).
        panel: score the panel of all evaluators too; needs judge, or judge and second_judge, as
            further evaluators beside the target.
        human_verdicts: what `annotate read persevalbench_verdicts` wrote (Study 3).
        under_audit: what `annotate read persevalbench_audit` wrote (C.3).
    """

    benchmark: Benchmark
    contexts: Annotated[list[ContextName], BeforeValidator(one_or_more), Field(min_length=1)]
    formulations: Annotated[list[Formulation], BeforeValidator(one_or_more), Field(min_length=1)]
    protocols: Annotated[list[Protocol], BeforeValidator(one_or_more), Field(min_length=1)]
    max_tokens: MaxTokens
    retrieval: Retrieval = Field(default_factory=Retrieval)
    encoders: dict[str, EncoderSettings] = Field(default_factory=dict)
    samples: int = Field(default=1, ge=1)
    logprobs: int | None = Field(default=None, ge=1, le=20)
    panel: bool = False
    human_verdicts: str | None = None
    under_audit: str | None = None

    @property
    def encoders_used(self) -> dict[str, EncoderSettings]:
        """The encoders that the contexts ask."""
        if RETRIEVED not in self.contexts:
            return {}
        how = self.retrieval
        return known_encoders([how.retriever], how.encoder, self.encoders)

    @model_validator(mode="after")
    def _coherent(self) -> PersEvalBenchSettings:
        for name in ("contexts", "formulations", "protocols"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} names a value twice: {values}")
        return self
