"""A writer that starts fast in a process of its own: it imports no more than the store needs."""

from __future__ import annotations

from pathlib import Path

from persona_lab.core.prompt import Prompt, Reply, Request, Sampling
from persona_lab.core.store import Shelf


def write_sixty(folder: str, number: int) -> None:
    """Saves sixty long replies under a name of its own."""
    with Shelf(Path(folder), f"writer{number}") as shelf:
        for i in range(60):
            request = Request("target", Prompt.ask(f"{number}-{i}"), Sampling(8), example="ok")
            shelf.put(request, Reply("x" * 3000))
