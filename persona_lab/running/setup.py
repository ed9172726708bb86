"""From a recipe's name and overrides to everything that a run needs; no model is loaded."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from persona_lab.core.errors import ConfigError, ModelAbsent, PromptTooLong
from persona_lab.core.experiment import (
    EncoderSettings,
    Experiment,
    RunSettings,
    experiment_class,
    selected,
)
from persona_lab.core.flow import Encoder
from persona_lab.core.plan import MadeUp, RolePlan, plan
from persona_lab.core.recipe import compose, dotted_keys, list_recipes, validate
from persona_lab.core.store import Store
from persona_lab.engines.choose import HARDWARE, Prepared, prepare
from persona_lab.retrieval.encoder_files import NAMED, EncoderFiles, find_encoder

_NOT_RESULTS = {"limit", "shard", "roles", "max_unparsed", "engine"}


@dataclass(frozen=True)
class Configured:
    """A composed and typed recipe.

    Attributes:
        config: both parts, complete, as plain values.
        run: the common part; settings: the experiment's.
    """

    root: Path
    recipe: str
    config: dict[str, Any]
    run: RunSettings
    settings: Any


@dataclass(frozen=True)
class Setup:
    """A recipe, ready to run.

    Attributes:
        encoders: files of the sentence encoders by name; None where a plan does without.
        serve: the roles to serve now; None for all.
        seconds: spent so far, by phase.
    """

    configured: Configured
    experiment: Experiment
    cases: list[Any]
    prepared: dict[str, Prepared]
    encoders: dict[str, EncoderFiles | None]
    serve: list[str] | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def run(self) -> RunSettings:
        """The common settings."""
        return self.configured.run

    @property
    def name(self) -> str:
        """`<recipe>-<hash>`, the hash covering all that can change a result."""
        config = {k: v for k, v in self.configured.config.items() if k not in _NOT_RESULTS}
        for key, value in config.items():
            if isinstance(value, dict) and "gpu_memory_utilization" in value:
                left_out = HARDWARE | {"engine"}
                config[key] = {k: v for k, v in value.items() if k not in left_out}
        covered: dict[str, Any] = {
            "config": config,
            "data": self.experiment.data_hash,
            "models": {role: p.model.identity for role, p in self.prepared.items()},
        }
        if self.encoders:
            found = {name: e.identity if e else "" for name, e in self.encoders.items()}
            covered["encoders"] = found
        digest = hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()
        suffix = f"-limit{self.run.limit}" if self.run.limit else ""
        if self.run.shard:
            suffix += "-shard" + self.run.shard.replace("/", "of")
        return f"{self.configured.recipe}-{digest[:12]}{suffix}"


def configure(root: Path, arguments: Sequence[str]) -> Configured:
    """Composes and types a recipe.

    Args:
        root: folder with recipes/, configs/ and data/.
        arguments: `recipe=NAME` and overrides.

    Raises:
        ConfigError: every wrong key, choice and type.
    """
    named = [a.removeprefix("recipe=") for a in arguments if a.startswith("recipe=")]
    if len(named) != 1:
        raise ConfigError(f"give one recipe=NAME. There are: {', '.join(list_recipes(root))}")
    overrides = [a for a in arguments if not a.startswith("recipe=")]
    config = compose(root, named[0], overrides)
    schema = experiment_class(str(config.get("experiment", ""))).Settings
    common = {k: v for k, v in config.items() if k in RunSettings.model_fields}
    own = {k: v for k, v in config.items() if k not in RunSettings.model_fields}
    run = validate(common, RunSettings)
    settings = validate(own, schema, dotted_keys(RunSettings))
    complete = {**run.model_dump(mode="json"), **settings.model_dump(mode="json")}
    return Configured(root, named[0], complete, run, settings)


def set_up(configured: Configured, *, need_weights: bool = True) -> Setup:
    """Reads the data and finds the models.

    Args:
        need_weights: False for a plan, which can do without a model that is not here.

    Raises:
        ConfigError, DataError: what cannot be run as it is.
    """
    run, seconds = configured.run, dict[str, float]()
    with timed(seconds, "data"):
        made = experiment_class(run.experiment)(configured.settings, run, configured.root)
        experiment: Experiment = made
        cases = selected(experiment.cases(), run.limit, run.shard)
    serve = [run.roles] if isinstance(run.roles, str) else run.roles
    if unknown := sorted(set(serve or []) - set(experiment.roles)):
        raise ConfigError(
            f"roles={','.join(unknown)}: this recipe's roles are {', '.join(experiment.roles)}"
        )
    models = run.models()
    playing = {r: run.target if r == "target" else models[r] for r in experiment.roles}
    with timed(seconds, "models"):
        prepared = prepare(playing, run.engine, run.date, need_weights=need_weights)
        encoders = {
            name: _encoder(name, wanted, need_weights=need_weights)
            for name, wanted in experiment.encoders.items()
        }
    return Setup(configured, experiment, cases, prepared, encoders, serve, seconds)


def planned(
    setup: Setup,
    store: Store,
    encoders: Mapping[str, Encoder] | None = None,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, RolePlan]:
    """Plans a run on examples; no reply is written and no model is loaded.

    Args:
        encoders: without them vectors are made up, and all token counts are estimates.
        stop: asked often; True ends the plan with `Stopped`. tell: told how far it is, often.
    """
    made = {id(p): p.rehearsal() for p in setup.prepared.values()}
    rehearsals = {role: made[id(p)] for role, p in setup.prepared.items()}
    with timed(setup.seconds, "plan"):
        used = encoders if encoders is not None else dict.fromkeys(setup.encoders, MadeUp())
        flow = setup.experiment.flow
        plans = plan(setup.cases, flow, rehearsals, store, setup.serve, used, stop, tell)
    for role, prepared in setup.prepared.items():
        if prepared.absent or (setup.encoders and encoders is None):
            plans[role].exact = 0  # its tokens are counted by words
    return plans


def refuse_misfits(plans: dict[str, RolePlan]) -> None:
    """Stops a run whose prompts do not all fit.

    Raises:
        PromptTooLong: with need and limit.
    """
    for role, found in plans.items():
        if found.too_long:
            raise PromptTooLong(
                f"{len(found.too_long)} of {found.to_serve} {role} prompts do not fit: "
                f"{found.too_long[0]}. Take a model with a longer window, a shorter context, or "
                "fewer answer tokens (max_tokens); nothing is cut."
            )


def needless_scaling(setup: Setup, plans: dict[str, RolePlan]) -> list[str]:
    """Warns where rope scaling is on although every prompt fits the native window."""
    notes = []
    for role, found in plans.items():
        settings = setup.prepared[role].settings
        native = (settings.rope_scaling or {}).get("original_max_position_embeddings")
        if native and found.to_serve and sum(found.longest) <= native:
            notes.append(
                f"{settings.name}: rope scaling is on, yet every {role} prompt fits the native "
                f"{native} tokens; scaling can lower quality there (rope_scaling=null, "
                f"max_model_len={native})."
            )
    return notes


def _encoder(name: str, wanted: EncoderSettings, *, need_weights: bool) -> EncoderFiles | None:
    try:
        return find_encoder(name, **wanted.model_dump())
    except ConfigError as error:
        if isinstance(error, ModelAbsent) and not need_weights:
            return None
        where = f"'encoders={{{name}: {{path: FOLDER, pooling: mean}}}}'"
        if wanted == EncoderSettings() and name in NAMED:
            where = f"encoders.{name}.path=FOLDER"
        said = str(error).replace("model.path=FOLDER", where)
        hint = "" if where in said or name in NAMED else f"; an encoder is set by {where}"
        raise type(error)(said + hint) from None


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Adds the time inside to a phase."""
    start = time.monotonic()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.monotonic() - start
