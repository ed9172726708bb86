"""Whole recipes on the one loaded engine that all slow tests share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from persona_lab.core.errors import EngineError
from persona_lab.core.flow import Model
from persona_lab.core.order import PrefixTree
from persona_lab.core.prompt import Reply, Request
from persona_lab.running.execute import execute
from persona_lab.running.setup import configure, set_up
from tests.conftest import ROOT


class Unclosed:
    """The shared engine behind a model; `close` leaves it loaded."""

    def __init__(self, engine: Any, stop_after: int | None = None) -> None:
        self.engine, self.stop_after, self.answered = engine, stop_after, 0

    def room(self) -> int:
        return int(self.engine.room())

    def submit(self, request: Request) -> None:
        self.engine.submit(request)

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        if self.stop_after is not None and self.answered >= self.stop_after:
            raise EngineError("killed here")
        done: list[tuple[Request, Reply]] = self.engine.poll(timeout)
        self.answered += len(done)
        return done

    def close(self) -> None:
        while self.engine._waiting:  # what was left running when a test stopped it
            self.engine.poll(1.0)


def shared(engine: Any, stop_after: int | None = None) -> Callable[[], Any]:
    """Opens the loaded engine once more."""
    return lambda: Unclosed(engine, stop_after)


def run_on(engine: Any, folder: Path, *arguments: str, cold: bool = False) -> dict[str, Any]:
    """Runs a recipe whose roles are all played by the packaged model; returns results.json.

    Args:
        cold: empty the engine's cache and its account first. Needed where a recipe asks what an
            earlier test asked: the account still has those tokens, the cache may not.
    """
    if cold:
        assert engine._engine.reset_prefix_cache()
        engine._tree = PrefixTree(engine.block_size)
    setup = set_up(configure(ROOT, arguments))
    real = next(iter(setup.prepared.values()))
    prepared = replace(real, model=Model(real.model.name, real.model.identity, shared(engine)))
    setup = replace(setup, prepared=dict.fromkeys(setup.prepared, prepared))
    execute(setup, folder, Console(width=100))
    [path] = folder.glob("*/results.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert found["status"] == "complete"
    return found


def computed_over_unique(found: dict[str, Any]) -> float:
    """Prompt tokens computed in a run over those that its engine could not avoid."""
    usage = found["usage"].values()
    computed = sum(u["computed_prompt_tokens"] for u in usage)
    return float(computed / sum(u["unique_prompt_tokens"] for u in usage))
