"""BenchPreS's part of a recipe: data, prompt conditions, memory, samples (section 4.1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from persona_lab.benchmarks.benchpres.memory import OWN, Mix, Order
from persona_lab.core.experiment import EncoderSettings
from persona_lab.core.recipe import Strict
from persona_lab.methods.rag import ORACLE, encoder_of, known_encoders, variant

Shown = Literal["whole", "rag", "filter"]
"""What of a memory a prompt shows: all, what is retrieved, or what of that passes a filter."""


class Benchmark(Strict):
    """Which data, and how much of it.

    Attributes:
        path: a data folder; users, contexts: only these ids (None: all).
        profiles: facts from this file of CIMemories' shape instead of the folder's own.
        facts: at most so many per profile (None: all); fewer are not the paper's memory.
    """

    path: str
    profiles: str | None = None
    users: list[str] | None = Field(default=None, min_length=1)
    contexts: list[str] | None = Field(default=None, min_length=1)
    facts: int | None = Field(default=None, ge=1)


class DefenceSettings(Strict):
    """A prompt condition without settings."""


class Defences(Strict):
    """The prompt conditions to compare: the default prompt and defences against misapplication.

    Attributes:
        default: Figure 10. prompt: the paper's defence, Figure 11.
        structured: list, judge and exclude first, then write. few_shot: three examples.
        category_rules: a rule for each category. sanitiser: markers and nickname are not in memory
            where the recipient is an institution.
    """

    default: DefenceSettings | None = None
    prompt: DefenceSettings | None = None
    structured: DefenceSettings | None = None
    few_shot: DefenceSettings | None = None
    category_rules: DefenceSettings | None = None
    sanitiser: DefenceSettings | None = None

    @property
    def names(self) -> list[str]:
        """All that was chosen."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]


class MemorySettings(Strict):
    """What memory holds; several values of a key are compared inside one run.

    Attributes:
        preferences: with them, without them, or both (section 5.3).
        density: preferences in all: 1 (each of the five by itself) or 5 and more.
        mix: which distractors come first, where density is above 5.
        order: where the preferences stand.
        shown: the whole memory, what RAG retrieves of it, or what of that the model says suits.
        seed: of their places and of the distractors.
    """

    preferences: list[bool] = Field(default=[True], min_length=1)
    density: list[int] = Field(default=[OWN], min_length=1)
    mix: list[Mix] = Field(default=["spread"], min_length=1)
    order: list[Order] = Field(default=["scattered"], min_length=1)
    shown: list[Shown] = Field(default=["whole"], min_length=1)
    seed: int = 0

    @model_validator(mode="after")
    def _possible(self) -> MemorySettings:
        if wrong := [d for d in self.density if d != 1 and d < OWN]:
            raise ValueError(f"density {wrong[0]}: is 1 or at least {OWN}, the profile's own")
        return self


class RetrievalSettings(Strict):
    """How statements are retrieved, where `memories.shown` is `rag` or `filter`.

    Attributes:
        retriever: `bm25`, `fusion`, `random`, the name of an encoder, or `oracle`: the preferences
            that are to be applied, and nothing else.
        k: how many statements; 10 is one in fifteen of the paper's 152, so that what is shown is a
            choice, and has room for all five preferences and as many facts.
        encoder: the one that `fusion` uses beside bm25.
    """

    retriever: str = Field(default="simcse", min_length=1)
    k: int = Field(default=10, ge=1)
    encoder: str = "simcse"

    @property
    def variant(self) -> str:
        """What is not as by default, such as `minilm_k_20`; empty if nothing is."""
        return variant(self, "k")

    @property
    def beyond_encoder(self) -> bool:
        """Whether more than the encoder's name is not as by default, which a CPU form sets too."""
        encodes = encoder_of(self.retriever, self.encoder) == self.retriever
        return not encodes or self.k != RetrievalSettings().k


class IfBench(Strict):
    """IFBench scores of the two halves, in percent, that the user supplies (Figure 4)."""

    off: float = Field(ge=0.0, le=100.0)
    on: float = Field(ge=0.0, le=100.0)


class Agreement(Strict):
    """The checks of the judge (section 6, Table 4).

    Attributes:
        items: instances per category and gold value that a second judge judges too (0: none).
        human_labels: a file that `annotate read benchpres_responses` wrote.
        reference: whose labels correct MR and AAR (`people`, `second_judge`; None: neither).
    """

    items: int = Field(default=0, ge=0)
    human_labels: str | None = None
    reference: Annotated[str | None, Field(pattern="^(people|second_judge)$")] = None


class MaxTokens(Strict):
    """Budgets of the answers, in tokens, reasoning included."""

    message: int = Field(ge=1)
    deliberation: int = Field(ge=1)
    probe: int = Field(ge=1)
    judge: int = Field(ge=1)
    completeness: int = Field(ge=1)
    filter: int = Field(default=512, ge=1)


class BenchPreSSettings(Strict):
    """BenchPreS's part of a recipe.

    Attributes:
        reasoning: off, on, or the model as it is (null); the role `thinking`, where the recipe has
            one, is the reasoning half of an Instruct/Thinking pair.
        samples: messages per user and context (section 4.1: 3, at temperature 1.0).
        completeness: whether messages are rated for their task (section 5.3).
        probe: whether the model is asked for the norm itself.
        encoders: sentence encoders by name; `simcse` and `minilm` are known without.
    """

    benchmark: Benchmark
    defence: Defences
    memories: MemorySettings
    max_tokens: MaxTokens
    reasoning: list[bool | None] = Field(default=[None], min_length=1)
    samples: int = Field(default=3, ge=1)
    completeness: bool = False
    probe: bool = False
    ifbench: IfBench | None = None
    agreement: Agreement = Agreement()
    retrieval: RetrievalSettings = RetrievalSettings()
    encoders: dict[str, EncoderSettings] = Field(default_factory=dict)

    @property
    def encoders_used(self) -> dict[str, EncoderSettings]:
        """The encoder that retrieval asks, if it asks one."""
        if self.memories.shown == ["whole"]:
            return {}
        how = self.retrieval
        return known_encoders([how.retriever], how.encoder, self.encoders)

    @model_validator(mode="after")
    def _coherent(self) -> BenchPreSSettings:
        if self.ifbench is not None and not {False, True} <= set(self.reasoning):
            raise ValueError("ifbench stands beside reasoning off and on: reasoning=[false,true]")
        if not self.defence.names:
            raise ValueError(f"choose a defence: {', '.join(Defences.model_fields)}")
        if False in self.memories.preferences and not self.completeness:
            raise ValueError(
                "memories.preferences=false leaves nothing to apply: set completeness=true"
            )
        for name, values in (
            ("reasoning", self.reasoning),
            ("memories.preferences", self.memories.preferences),
            ("memories.density", self.memories.density),
            ("memories.mix", self.memories.mix),
            ("memories.order", self.memories.order),
            ("memories.shown", self.memories.shown),
        ):
            if len(set(values)) < len(values):
                raise ValueError(f"{name} names a value twice: {values}")
        return self

    @model_validator(mode="after")
    def _retrievable(self) -> BenchPreSSettings:
        """Retrieval that could find nothing."""
        searched, how = self.memories.shown != ["whole"], self.retrieval
        if searched and how.retriever == ORACLE and False in self.memories.preferences:
            raise ValueError(
                "retrieval.retriever=oracle shows preferences and nothing else: "
                "memories.preferences=false leaves none to show"
            )
        return self
