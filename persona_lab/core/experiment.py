"""What a recipe names by import path, and the settings that every recipe has."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from persona_lab.core.errors import ConfigError
from persona_lab.core.flow import Case, Flow, Outcome
from persona_lab.core.prompt import Sampling
from persona_lab.core.recipe import Strict
from persona_lab.core.scores import RowsTable, Score, Summary

EngineName = Literal["auto", "vllm", "transformers", "scripted"]


class ModelSettings(Strict):
    """A model and how it is asked: a file in configs/model/ and its overrides.

    Attributes:
        path: a folder, a hub id, or `package:NAME` for a model that travels in a Python package.
        reasoning: True or False switches it; None leaves a model without a switch as it is.
        max_model_len: window in tokens, prompt and answer together.
    """

    name: str
    path: str
    revision: str | None = None
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    quantization: str | None = None
    max_model_len: int = Field(ge=16)
    rope_scaling: dict[str, Any] | None = None
    reasoning: bool | None = None
    reasoning_family: str = "none"
    reasoning_effort: Literal["low", "medium", "high"] | None = None
    temperature: float = Field(default=0.0, ge=0.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    min_p: float = Field(default=0.0, ge=0.0, le=1.0)
    repetition_penalty: float = Field(default=1.0, gt=0.0)
    trust_remote_code: bool = False
    engine: EngineName | None = None
    tensor_parallel_size: int = Field(default=1, ge=1)
    gpu_memory_utilization: float = Field(default=0.9, gt=0.0, le=1.0)
    max_num_seqs: int = Field(default=64, ge=1)
    pair: str | None = None

    def sampling(self, max_tokens: int) -> Sampling:
        """How it samples an answer of at most `max_tokens`."""
        return Sampling(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
        )


class EncoderSettings(Strict):
    """A sentence encoder; `simcse` and `minilm` need none of these.

    Attributes:
        path: a folder or hub id. pooling: how the model was trained to make one vector of a text.
        max_tokens: longer texts are cut, and counted.
    """

    path: str | None = None
    pooling: Literal["mean", "cls", "pooler"] | None = None
    max_tokens: int | None = Field(default=None, ge=3)
    revision: str | None = None


class RunSettings(Strict):
    """The keys that every recipe has; the rest are its experiment's.

    Attributes:
        model: plays `target` (None: no language model is asked); memory (writes memories),
            thinking (the reasoning half of an Instruct/Thinking pair), judge and second_judge play
            the roles of their names.
        seed: enters every reply key.
        date: the day that chat templates see as today.
        limit: only the first cases; shard: `I/N`, only the I-th of N parts (I from 1 to N).
        roles: serve only these now; max_unparsed: share of unparsed or cut-off answers above
            which the run fails (None: off).
    """

    experiment: str
    seed: int = 0
    date: str = Field(default="2026-01-01", pattern=r"^\d{4}-\d{2}-\d{2}$")
    engine: EngineName = "auto"
    limit: int | None = Field(default=None, ge=1)
    shard: str | None = Field(default=None, pattern=r"^[1-9]\d*/[1-9]\d*$")
    roles: str | list[str] | None = None
    max_unparsed: float | None = Field(default=None, ge=0.0, le=1.0)
    memory: ModelSettings | None = None
    model: ModelSettings | None = None
    thinking: ModelSettings | None = None
    judge: ModelSettings | None = None
    second_judge: ModelSettings | None = None

    @property
    def target(self) -> ModelSettings:
        """The model that plays `target`.

        Raises:
            ConfigError: the recipe names none.
        """
        if self.model is None:
            raise ConfigError("model: this recipe needs one: add model=NAME of configs/model")
        return self.model

    def models(self) -> dict[str, ModelSettings]:
        """Role -> the model that plays it, where the recipe names one; upstream first."""
        playing = {
            "memory": self.memory,
            "target": self.model,
            "thinking": self.thinking,
            "judge": self.judge,
            "second_judge": self.second_judge,
        }
        return {role: model for role, model in playing.items() if model is not None}


class Experiment(Protocol):
    """A benchmark's experiment. Its class is named by the recipe (`package.module:Class`) and
    built as `Class(settings, run, root)`.

    Attributes:
        Settings: type of its part of the configuration.
        roles: the roles that its flows ask, upstream first.
        data_hash: digest of the data that it read.
        published: file in data/published/ with the paper's figures.
        columns: facets that the table of results may show side by side; the first that varies.
        encoders: sentence encoders that its flows ask, by name.
        evaluates_judges: whether its roles are themselves under test, not judges of others.
    """

    Settings: type[Strict]
    published: str
    columns: tuple[str, ...]
    encoders: Mapping[str, EncoderSettings]
    evaluates_judges: bool
    roles: tuple[str, ...]
    data_hash: str

    def cases(self) -> Sequence[Case]:
        """All cases, in a fixed order, with unique ids."""

    def flow(self, case: Any) -> Flow[list[Score]]:
        """The flow of one case."""

    def check_data(self) -> tuple[str, int]:
        """A report on the data's quality, and how many findings it has."""

    def inventory(self) -> list[RowsTable]:
        """What the run is made of, for a plan; may be empty."""

    def summarize(self, outcomes: Sequence[Outcome[Any, Any]]) -> Summary:
        """Scores and estimates.

        Args:
            outcomes: of the cases, in their order, each with its scores; before them those of what
                cases share (`Outcome.shared`).
        """


def experiment_class(path: str) -> Any:
    """Imports the class that a recipe names as `package.module:Class`.

    Raises:
        ConfigError: there is none.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"experiment={path}: cannot be imported ({error})") from None


def selected(cases: Sequence[Case], limit: int | None, shard: str | None) -> list[Any]:
    """The cases of a shard (by a stable digest of their ids), then at most `limit` of them.

    Raises:
        ConfigError: the shard is not one of 1/N ... N/N.
    """
    if len({case.id for case in cases}) != len(cases):
        raise ConfigError("the experiment has two cases with one id")
    chosen = list(cases)
    if shard:
        part, parts = map(int, shard.split("/"))
        if part > parts:
            raise ConfigError(f"shard={shard}: there are only parts 1 to {parts}")
        chosen = [c for c in chosen if stable_digest(c.id) % parts == part - 1]
    return chosen[:limit]


def stable_digest(text: str) -> int:
    """A number that is the same in every process, unlike `hash`."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def resolve_data(path: str, root: Path) -> Path:
    """A data path, from the working folder if it is there, else from the root."""
    here = Path(path).expanduser()
    return here if here.is_absolute() or here.exists() else root / path
