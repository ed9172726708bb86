from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from persona_lab.core.flow import Flow, Model
from persona_lab.core.plan import RolePlan, plan
from persona_lab.core.prompt import Reply
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine
from tests.models import ask


@dataclass(frozen=True)
class Item:
    id: str


def flow(item: Item) -> Flow[str]:
    [answer] = yield [ask(item.id, max_tokens=5)]
    [verdict] = yield [ask(f"{item.id} {answer.text}", role="judge", max_tokens=3)]
    return verdict.text


ITEMS = [Item("aa"), Item("bbbb")]


def rehearse(folder: Path, too_long: int = 10_000) -> dict[str, RolePlan]:
    def load() -> ScriptedEngine:
        return ScriptedEngine(
            block_size=4, misfit=lambda r, n: f"{n} tokens" if n > too_long else ""
        )

    models = {"target": Model("t", "t", load), "judge": Model("j", "j", load)}
    with Store(folder, None) as store:
        return plan(ITEMS, flow, models, store)  # type: ignore[arg-type]


def test_requests_tokens_and_exactness_by_hand(tmp_path: Path) -> None:
    # One token a byte of `user\n<text>\n`: 8 and 10 for `aa` and `bbbb`. They share the first
    # block of 4 (`user`): of 8, one block is reusable and 4 tokens follow it; of 10, two blocks
    # and 2. In order aa, bbbb: 8 new, then 4 of the second block and the last 2.
    plans = rehearse(tmp_path)
    target, judge = plans["target"], plans["judge"]
    assert (target.requests, target.remembered, target.exact) == (2, 0, 2)
    assert (target.prompt_tokens, target.unique_tokens) == (18, 14)
    assert (target.longest, target.completion_budget) == ((10, 5), 10)
    # The judge reads the example `ok` for an answer, so its prompts are estimates.
    assert (judge.requests, judge.exact, judge.prompt_tokens) == (2, 0, 8 + 10 + 2 * 3)
    assert list(tmp_path.iterdir()) == []


def test_what_is_remembered_makes_the_next_round_exact(tmp_path: Path) -> None:
    with Store(tmp_path, "w") as store:
        for item in ITEMS:
            store.shelf("t").put(ask(item.id, max_tokens=5), Reply("a real answer"))
    plans = rehearse(tmp_path)
    assert plans["target"].to_serve == 0
    judge = plans["judge"]
    assert (judge.exact, judge.prompt_tokens) == (2, 8 + 10 + 2 * 14)


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    assert rehearse(tmp_path, too_long=9)["target"].too_long == ["10 tokens"]


def test_an_example_of_another_role_is_not_remembered(tmp_path: Path) -> None:
    """Two roles of one model ask the same: it is served once, and nothing is there yet."""

    def twice(item: Item) -> Flow[str]:
        yield [ask("same", role="judge")]
        [answer] = yield [ask("same")]
        return answer.text

    model = Model("m", "m", ScriptedEngine)
    with Store(tmp_path, None) as store:
        plans = plan(ITEMS[:1], twice, {"judge": model, "target": model}, store)  # type: ignore[arg-type]
    assert (plans["judge"].to_serve, plans["target"].remembered) == (1, 0)


def test_a_flow_that_raises_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def raises(item: Item) -> Flow[str]:
        yield [ask(item.id)]
        raise ValueError("no such row")

    logger = logging.getLogger("persona_lab")
    before, logger.propagate = logger.propagate, True
    with Store(tmp_path, None) as store:
        plan(ITEMS[:1], raises, {"target": Model("m", "m", ScriptedEngine)}, store)  # type: ignore[arg-type]
    logger.propagate = before
    assert "planning aa: ValueError: no such row" in caplog.text
