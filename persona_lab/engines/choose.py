"""From settings to models that `drive` can load: which engine, which weights, which identity."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from persona_lab.core.errors import ConfigError, ModelAbsent
from persona_lab.core.experiment import EngineName, ModelSettings
from persona_lab.core.flow import Engine, Model
from persona_lab.engines.chat import ChatRenderer
from persona_lab.engines.digests import cache_folder
from persona_lab.engines.scripted import ScriptedEngine, word_ids
from persona_lab.engines.weights import find_weights, identity_name, weights_digest

_PER_REQUEST = {"temperature", "top_p", "top_k", "min_p", "repetition_penalty"}
HARDWARE = {"tensor_parallel_size", "gpu_memory_utilization", "max_num_seqs"}
_LABELS = {"name", "path", "revision", "pair", "engine", "max_model_len"}


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model ready to be loaded.

    Attributes:
        renderer: of its tokenizer and template; None for the scripted engine, or where the model
            is not here. absent: why it is not; a plan then estimates its tokens by words.
    """

    model: Model
    settings: ModelSettings
    engine: EngineName
    renderer: ChatRenderer | None
    absent: str = ""

    def rehearsal(self) -> Model:
        """The same model for a dry run: examples for replies, real token counts."""
        return Model(self.model.name, self.model.identity, self._scripted)

    def _scripted(self) -> Engine:
        if self.absent:
            return ScriptedEngine(ids=word_ids)
        if self.renderer is None:
            return ScriptedEngine()
        block = 1 if self.engine == "transformers" else _vllm_block_size()
        return ScriptedEngine(ids=self.renderer.ids, misfit=self.renderer.misfit, block_size=block)


def prepare(
    roles: Mapping[str, ModelSettings],
    default_engine: EngineName,
    date: str,
    *,
    need_weights: bool = True,
) -> dict[str, Prepared]:
    """Prepares the model of every role; roles whose models would be loaded alike share one.

    Args:
        roles: role -> model settings, upstream first.
        default_engine: for roles that name none.
        date: the day chat templates see as today.
        need_weights: False lets a plan go on without a hub model that is not here; a wrong path or
            setting is refused all the same.

    Raises:
        ConfigError: a model path, an engine or a reasoning setting that cannot be had.
    """
    done: dict[str, Prepared] = {}
    by_settings: dict[str, Prepared] = {}
    for role, settings in roles.items():
        engine = chosen_engine(settings.engine or default_engine)
        loaded = settings.model_copy(update={"engine": engine})
        key = loaded.model_dump_json(exclude={*_PER_REQUEST, "name", "pair"})
        if key not in by_settings:
            try:
                by_settings[key] = _prepare(settings, engine, date)
            except ModelAbsent as error:
                if need_weights:
                    raise
                by_settings[key] = _absent(settings, engine, str(error))
        done[role] = by_settings[key]
    return done


def chosen_engine(name: EngineName) -> EngineName:
    """`auto` is vLLM where it imports, else transformers.

    Raises:
        ConfigError: the named engine is not installed.
    """
    if name == "auto":
        return "vllm" if _vllm_imports() else "transformers"
    if name in ("vllm", "transformers") and importlib.util.find_spec(name) is None:
        raise ConfigError(f"engine={name}: the package {name} is not installed here")
    return name


def _prepare(settings: ModelSettings, engine: EngineName, date: str) -> Prepared:
    if engine == "scripted":
        identity = identity_name(f"scripted-{settings.name}", {"scripted": settings.name})
        model = Model(settings.name, identity, ScriptedEngine)
        return Prepared(model, settings, engine, None)
    folder = find_weights(settings)
    renderer = ChatRenderer(folder, settings, date)
    covered = settings.model_dump(exclude=_PER_REQUEST | HARDWARE | _LABELS)
    covered |= {
        "weights": weights_digest(folder),
        "chat": renderer.fingerprint,
        "engine": engine,
    }
    model = Model(
        settings.name,
        identity_name(settings.name, covered),
        lambda: _open(folder, settings, engine, renderer),
    )
    return Prepared(model, settings, engine, renderer)


def _absent(settings: ModelSettings, engine: EngineName, why: str) -> Prepared:
    identity = identity_name(f"absent-{settings.name}", settings.model_dump(mode="json"))
    return Prepared(Model(settings.name, identity, ScriptedEngine), settings, engine, None, why)


def _vllm_imports() -> bool:
    """Whether `import vllm` works here. Trying takes seconds, so a success is remembered for the
    environment and its versions; a failure is tried again each time."""
    if importlib.util.find_spec("vllm") is None:
        return False
    versions = [f"{d.name}={d.version}" for d in importlib.metadata.distributions() if d.name]
    stamp = "\n".join([sys.prefix, *sorted(versions)])
    note = cache_folder() / "imports" / hashlib.sha256(stamp.encode()).hexdigest()[:32]
    if note.is_file():
        return True
    tried = subprocess.run(
        [sys.executable, "-c", "import vllm"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        last = tried.stderr.strip().splitlines()[-1:] or ["no reason given"]
        print(f"vLLM does not import ({last[0]}): transformers serves", file=sys.stderr)
        return False
    note.parent.mkdir(parents=True, exist_ok=True)
    note.touch()
    return True


def _vllm_block_size() -> int:
    """vLLM's usual cache block, in tokens: 16 on a GPU, 128 on a CPU."""
    import torch

    return 16 if torch.cuda.is_available() else 128


def _open(
    folder: Path, settings: ModelSettings, engine: EngineName, renderer: ChatRenderer
) -> Engine:
    if engine == "vllm":
        from persona_lab.engines.vllm import VllmEngine

        return VllmEngine(str(folder), settings, renderer)
    from persona_lab.engines.transformers import TransformersEngine

    return TransformersEngine(str(folder), settings, renderer)
