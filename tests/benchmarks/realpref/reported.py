"""A set-up recipe, run to its files; what tests of retrieval and memory share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from persona_lab.core.errors import ConfigError
from persona_lab.running.execute import execute
from persona_lab.running.setup import Setup, configure, set_up
from tests.conftest import ROOT


def reported(setup: Setup, folder: Path) -> tuple[dict[str, Any], str, Path]:
    """results.json, what was printed, and the run's folder."""
    console = Console(width=100)
    with console.capture() as capture:
        execute(setup, folder, console)
    path = max(folder.glob("*/results.json"), key=lambda p: p.stat().st_mtime)
    return json.loads(path.read_text(encoding="utf-8")), capture.get(), path.parent


def assert_refused(arguments: list[str], problem: str) -> None:
    """The recipe is refused with these words."""
    with pytest.raises(ConfigError, match=re.escape(problem)):
        set_up(configure(ROOT, arguments))
