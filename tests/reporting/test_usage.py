from __future__ import annotations

from dataclasses import dataclass

from persona_lab.core.flow import Model
from persona_lab.core.prompt import Counts, Reply
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.reporting.usage import Usage
from tests.models import ask


@dataclass(frozen=True)
class Item:
    id: str


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_usage_by_hand() -> None:
    clock, model = Clock(), Model("m", "m", ScriptedEngine)
    usage = Usage({"target": model, "judge": Model("j", "j", ScriptedEngine)}, clock)
    first, second, old = ask("1"), ask("2"), ask("old")
    usage.asked(Item("a"), [first, second, old], [False, False, True])
    usage.asked(Item("a"), [first], [True])  # the same flow, run again from the store
    usage.loaded(model, ScriptedEngine(block_size=32))
    usage.submitted(first)
    clock.now = 2.0
    usage.submitted(second)
    clock.now = 5.0
    usage.served(first, Reply("x", counts=Counts(100, 60, 7, 40)))
    clock.now = 6.0
    usage.served(second, Reply.failed("gone"))
    clock.now = 9.0
    target = usage.table()["target"]
    assert target == {
        "requests": 3, "served": 2, "remembered": 1, "failed": 1,
        "prompt_tokens": 100, "unique_prompt_tokens": 40, "computed_prompt_tokens": 40,
        "cached_prompt_tokens": 60, "completion_tokens": 7, "seconds": 6.0, "block_size": 32,
    }  # fmt: skip
    assert usage.table()["judge"]["block_size"] is None
