from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from persona_lab.core.flow import Model
from persona_lab.core.prompt import Counts, Reply
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.reporting import progress
from persona_lab.reporting.progress import LiveProgress, NowAndThen
from tests.models import ask


@dataclass(frozen=True)
class Item:
    id: str


def test_the_line_says_requests_rates_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    with LiveProgress(10, 100, Console(file=out, width=200)) as live:
        live.loading(Model("m", "m", ScriptedEngine))
        requests = [ask(str(i)) for i in range(50)]
        live.asked(Item("a"), requests, [False] * 50)
        for request in requests:
            live.submitted(request)
        now[0] = 150.0
        for request in requests:
            live.served(request, Reply("x", counts=Counts(200, 150, 10, 50)))
        live.finished(Item("a"))
        # 50 requests in 50 s: 500 tokens out, 10,000 in, 150 of 200 cached, 50 of 100 left.
        expected = "50 requests, 10 tokens/s out, 200 in, 75% from cache, about 50 s left"
        assert live.note() == expected
    assert "loading m" in out.getvalue()


def test_no_time_left_is_guessed_from_the_first_requests() -> None:
    with LiveProgress(1, 100, Console(file=io.StringIO())) as live:
        assert live.note() == ""
        live.submitted(ask("1"))
        live.served(ask("1"), Reply("x", counts=Counts(10, 0, 1, 10)))
        assert live.note().endswith("...")


def test_now_and_then_is_not_at_once_and_not_always() -> None:
    now, out = [0.0], io.StringIO()
    tell = NowAndThen(Console(file=out, width=80), 10.0, lambda: now[0])
    for second in (1.0, 9.9, 10.0, 12.0, 19.9, 25.0):
        now[0] = second
        tell(f"[b] {second}")
    assert out.getvalue().split("\n")[:-1] == ["[b] 10.0", "[b] 25.0"]
