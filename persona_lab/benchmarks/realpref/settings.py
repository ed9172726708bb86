"""RealPref's part of a recipe: data, contexts (Table 2), expressions, tasks, methods."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from persona_lab.benchmarks.realpref.history import Length
from persona_lab.benchmarks.realpref.records import Expression
from persona_lab.benchmarks.realpref.remembered import Mem0Settings
from persona_lab.benchmarks.realpref.retrieved import Retrieval
from persona_lab.benchmarks.realpref.tasks import Task
from persona_lab.core.experiment import EncoderSettings
from persona_lab.core.recipe import Strict, one_or_more
from persona_lab.methods.rag import ORACLE, encoder_of, known_encoders, variant

Kind = Literal["original", "generalized"]
CONTEXTS = ("simple", "normal", "long", "very_long", "extended", "extreme")
"""Table 2."""
DATA_TESTS = ("easy_test", "blind_test")
"""Appendix G.2."""


class Benchmark(Strict):
    """Which data, and how much of it.

    Attributes:
        path: a data folder in the published shape; users: only these ids (None: all).
        preferences: originals, whose expressions the history holds, generalized ones, or both.
        queries: at most so many of each kind and user (None: all).
        share: of the users, chosen by a stable digest of their ids (Appendix H.4: 0.3).
    """

    path: str
    users: list[str] | None = None
    preferences: Annotated[list[Kind], BeforeValidator(one_or_more), Field(min_length=1)]
    queries: int | None = Field(default=None, ge=1)
    share: float = Field(default=1.0, gt=0.0, le=1.0)


class ContextSettings(Strict):
    """Table 2: tokens of user-free sessions between the user's own, and after them."""

    interval_tokens: int = Field(ge=0)
    tail_tokens: int = Field(ge=0)


class DataTest(Strict):
    """A test of the data instead of a context (Appendix G.2); it has no settings."""


class Contexts(Strict):
    """The contexts to compare, and how their histories are made.

    Besides Table 2's there are the two tests of the data: `easy_test` shows the sessions that
    voice the one preference asked about, `blind_test` shows no history at all.

    Attributes:
        tokenizer: counts the budgets, the same for every model (`tekken`, or a folder).
        scale: factor on all lengths of Table 2; anything but 1 is not the paper's context.
        seed: of the placement; repeats that differ in sampling alone keep it.
        filler: `docs`, a folder or file of sessions, or the name of a data set.
        filler_digest: what the filler's digest must be (None: any).
    """

    tokenizer: str = "tekken"
    seed: int = 0
    scale: float = Field(default=1.0, gt=0.0)
    filler: str = "docs"
    filler_digest: str | None = None
    simple: ContextSettings | None = None
    normal: ContextSettings | None = None
    long: ContextSettings | None = None
    very_long: ContextSettings | None = None
    extended: ContextSettings | None = None
    extreme: ContextSettings | None = None
    easy_test: DataTest | None = None
    blind_test: DataTest | None = None

    @property
    def names(self) -> list[str]:
        """All that was chosen."""
        tests = [name for name in DATA_TESTS if getattr(self, name) is not None]
        return [*self.lengths, *tests]

    @property
    def lengths(self) -> dict[str, Length]:
        """The chosen contexts of Table 2, shortest first."""
        chosen = {name: getattr(self, name) for name in CONTEXTS}
        return {
            name: Length(
                round(context.interval_tokens * self.scale), round(context.tail_tokens * self.scale)
            )
            for name, context in chosen.items()
            if context is not None
        }


class MethodSettings(Strict):
    """A method without settings."""


class RagSettings(Retrieval):
    """How the method `rag` retrieves (section 5.1); the defaults are the paper's.

    Attributes:
        retriever: `bm25`, `fusion`, `random`, `oracle`, or the name of an encoder.
        history: whether the prompt keeps the whole history before what was retrieved.
    """

    retriever: str = "simcse"
    history: Literal["kept", "replaced"] = "kept"

    @property
    def variant(self) -> str:
        """What is not as in the paper, such as `minilm_k_10`; empty if nothing is."""
        return variant(self, "k", "unit", "user_only", "history")


class Methods(Strict):
    """The methods to compare (section 5.1, Appendix H.2.3)."""

    zero_shot: MethodSettings | None = None
    reminder: MethodSettings | None = None
    few_shot_cot: MethodSettings | None = None
    rag: MethodSettings | None = None
    mem0: MethodSettings | None = None


class MaxTokens(Strict):
    """Budgets of the answers, in tokens, reasoning included."""

    multiple_choice: int = Field(ge=1)
    true_or_false: int = Field(ge=1)
    open_ended: int = Field(ge=1)
    judge: int = Field(ge=1)
    memory: int = Field(default=1024, ge=1)


class RealPrefSettings(Strict):
    """RealPref's part of a recipe.

    Attributes:
        retrieval: what the method `rag` does. mem0: what the method `mem0` does.
        history_format: chat messages, or one message with the transcript.
        shuffle_options: multiple-choice options in an order that follows from the item's id.
        repeats: how often everything is asked (Appendix H.4); needs sampling.
        encoders: sentence encoders by name; `simcse` and `minilm` are known without.
        human_scores: a CSV of human scores to hold the judge to (Appendix G.3).
    """

    benchmark: Benchmark
    context: Contexts
    expression: Annotated[list[Expression], BeforeValidator(one_or_more), Field(min_length=1)]
    task: Annotated[list[Task], BeforeValidator(one_or_more), Field(min_length=1)]
    method: Methods
    max_tokens: MaxTokens
    retrieval: RagSettings = Field(default_factory=RagSettings)
    mem0: Mem0Settings = Field(default_factory=Mem0Settings)
    history_format: Literal["chat", "transcript"] = "chat"
    shuffle_options: bool = False
    repeats: int = Field(default=1, ge=1)
    encoders: dict[str, EncoderSettings] = Field(default_factory=dict)
    human_scores: str | None = None

    @property
    def encoders_used(self) -> dict[str, EncoderSettings]:
        """The encoders that the methods ask."""
        found: dict[str, EncoderSettings] = {}
        if self.method.rag is not None:
            rag = self.retrieval
            found |= known_encoders([rag.retriever], rag.encoder, self.encoders)
        if self.method.mem0 is not None:
            found |= known_encoders([self.mem0.encoder], "", self.encoders)
        return found

    def variant(self, method: str) -> str:
        """How a method differs from the paper's; empty if it does not."""
        return {"rag": self.retrieval.variant, "mem0": self.mem0.difference}.get(method, "")

    @model_validator(mode="after")
    def _coherent(self) -> RealPrefSettings:
        if not self.context.names:
            raise ValueError(f"choose a context: {', '.join((*CONTEXTS, *DATA_TESTS))}")
        if self.context.easy_test is not None and self.benchmark.preferences != ["original"]:
            raise ValueError("easy_test is for original preferences: no session voices others")
        if self.method.few_shot_cot is not None and self.task != ["open_ended"]:
            raise ValueError("few_shot_cot is for open-ended questions only (section 5.1)")
        if self.method.mem0 is not None and encoder_of(self.mem0.encoder, "") == "":
            raise ValueError(f"mem0.encoder={self.mem0.encoder}: memories need a sentence encoder")
        for method in ("rag", "mem0"):
            if getattr(self.method, method) is not None and self.context.blind_test is not None:
                raise ValueError(f"{method} has nothing to retrieve from in blind_test")
        only_original = self.benchmark.preferences == ["original"]
        if self.method.rag is not None and self.retrieval.retriever == ORACLE and not only_original:
            raise ValueError(
                "retriever=oracle is for original preferences: others have no evidence"
            )
        return self
