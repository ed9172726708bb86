"""The cache folder, and digests of big files remembered in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cache_folder() -> Path:
    """`PERSONA_LAB_CACHE`, else `persona_lab` in the user's cache folder."""
    given = os.environ.get("PERSONA_LAB_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "persona_lab"


def file_sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_sha256(path: Path) -> str:
    """Like `file_sha256`, taken once for each path, size and time of change."""
    stat = path.stat()
    stamp = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    note = cache_folder() / "digests" / hashlib.sha256(stamp.encode()).hexdigest()
    if note.is_file() and len(known := note.read_text().strip()) == 64:
        return known
    digest = file_sha256(path)
    note.parent.mkdir(parents=True, exist_ok=True)
    scratch = note.with_suffix(f".{os.getpid()}")
    scratch.write_text(digest)
    scratch.replace(note)
    return digest
