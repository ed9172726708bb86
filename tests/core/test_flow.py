from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from persona_lab.core.drive import drive
from persona_lab.core.errors import EngineError, Stopped
from persona_lab.core.flow import Flow, Model, Outcome, Watch
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine
from tests.models import ask


@dataclass(frozen=True)
class Item:
    id: str


class Loads:
    """Opens scripted engines and remembers which, and what they answered."""

    def __init__(self, reply: Callable[[Request], Reply] | None = None, **options: Any) -> None:
        self.opened: list[str] = []
        self.engines: list[ScriptedEngine] = []
        self.reply, self.options = reply or (lambda r: Reply(r.prompt.tail[0].content)), options

    def model(self, name: str) -> Model:
        def load() -> ScriptedEngine:
            self.opened.append(name)
            self.engines.append(ScriptedEngine(self.reply, **self.options))
            return self.engines[-1]

        return Model(name, name, load)

    @property
    def answered(self) -> int:
        return sum(engine.answered for engine in self.engines)


def answer_then_judge(item: Item) -> Flow[str]:
    [answer] = yield [ask(f"q{item.id}")]
    verdicts = yield [ask(f"{answer.text}?{i}", role="judge") for i in range(2)]
    return "|".join([answer.text, *(v.text for v in verdicts)])


ITEMS = [Item(str(i)) for i in range(5)]


def run(
    tmp_path: Path, loads: Loads, flow: Callable[[Item], Flow[Any]] = answer_then_judge, **more: Any
) -> list[Outcome[Item, Any]]:
    models = {"target": loads.model("a"), "judge": loads.model("b")}
    with Store(tmp_path, "w") as store:
        return list(drive(ITEMS, flow, models, store, **more))


def test_each_model_is_loaded_once_upstream_first(tmp_path: Path) -> None:
    loads = Loads()
    outcomes = run(tmp_path, loads)
    assert loads.opened == ["a", "b"]
    assert all(engine.closed for engine in loads.engines)
    assert {o.result for o in outcomes} == {f"q{i}|q{i}?0|q{i}?1" for i in range(5)}
    assert [len(o.exchanges) for o in outcomes] == [3] * 5


def test_again_loads_nothing(tmp_path: Path) -> None:
    first = {o.case.id: o.result for o in run(tmp_path, Loads())}
    loads = Loads()
    again = {o.case.id: o.result for o in run(tmp_path, loads)}
    assert (loads.opened, again) == ([], first)


def test_roles_with_one_model_share_its_engine(tmp_path: Path) -> None:
    loads = Loads()
    model = loads.model("both")
    with Store(tmp_path, "w") as store:
        outcomes = list(drive(ITEMS, answer_then_judge, {"target": model, "judge": model}, store))
    assert (loads.opened, len(outcomes)) == (["both"], 5)


@pytest.mark.parametrize("window", [1, 2, 256])
def test_the_window_does_not_change_results(tmp_path: Path, window: int) -> None:
    outcomes = run(tmp_path, Loads(), window=window)
    assert sorted(o.result for o in outcomes) == sorted(f"q{i}|q{i}?0|q{i}?1" for i in range(5))


def test_a_dead_engine_loses_only_what_was_open(tmp_path: Path) -> None:
    items = [Item(str(i)) for i in range(100)]

    def flow(item: Item) -> Flow[str]:
        [answer] = yield [ask(item.id)]
        return answer.text

    loads = Loads(dies_after=37)
    with Store(tmp_path, "w") as store, pytest.raises(EngineError):
        list(drive(items, flow, {"target": loads.model("a")}, store))
    assert len((tmp_path / "a" / "w.jsonl").read_text().splitlines()) == 37

    again = Loads()
    with Store(tmp_path, "w") as store:
        outcomes = list(drive(items, flow, {"target": again.model("a")}, store))
    assert (len(outcomes), again.answered) == (100, 63)


def test_a_retry_that_wrote_nothing_harms_nothing(tmp_path: Path) -> None:
    items = [Item(str(i)) for i in range(100)]

    def flow(item: Item) -> Flow[str]:
        [answer] = yield [ask(item.id)]
        return answer.text

    for dies_after in (40, 0):  # 40 done; then a retry that is killed before its first reply
        loads = Loads(dies_after=dies_after)
        with Store(tmp_path, "w") as store, pytest.raises(EngineError):
            list(drive(items, flow, {"target": loads.model("a")}, store))
    last = Loads()
    with Store(tmp_path, "w") as store:
        assert len(list(drive(items, flow, {"target": last.model("a")}, store))) == 100
    assert last.answered == 60


def test_a_failed_request_is_final_now_and_asked_again_later(tmp_path: Path) -> None:
    def fails_on_q3(request: Request) -> Reply:
        text = request.prompt.tail[0].content
        return Reply.failed("no memory") if text == "q3" else Reply(text)

    loads = Loads(fails_on_q3)
    outcomes = {o.case.id: o for o in run(tmp_path, loads)}
    assert outcomes["3"].exchanges[0][1].outcome == "failed"
    assert loads.answered == 5 + 4 * 2 + 2  # the flow went on with an empty answer, once
    healed = Loads()
    again = {o.case.id: o.result for o in run(tmp_path, healed)}
    assert again["3"] == "q3|q3?0|q3?1"
    assert healed.answered == 1 + 2


def test_a_flow_that_raises_fails_its_case_only(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[str]:
        [answer] = yield [ask(item.id)]
        if item.id == "2":
            raise ValueError("cannot score this")
        return answer.text

    outcomes = {o.case.id: o for o in run(tmp_path, Loads(), flow)}
    assert "cannot score this" in outcomes["2"].error
    assert [o.error for i, o in outcomes.items() if i != "2"] == [""] * 4


def test_equal_requests_of_two_flows_are_served_once(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[str]:
        replies = yield [ask("same"), ask("same"), ask("same", sample=1)]
        return "".join(r.text for r in replies)

    loads = Loads()
    assert [o.result for o in run(tmp_path, loads, flow)] == ["same" * 3] * 5
    assert loads.answered == 2


def test_an_empty_batch_and_a_flow_without_requests(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[int]:
        replies = yield []
        assert replies == []
        return len((yield [ask(item.id)]))

    assert [o.result for o in run(tmp_path, Loads(), flow)] == [1] * 5


def test_one_batch_for_two_models(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[str]:
        replies = yield [ask("j" + item.id, role="judge"), ask("t" + item.id)]
        return replies[0].text + replies[1].text

    loads = Loads()
    assert sorted(o.result for o in run(tmp_path, loads, flow)) == [f"j{i}t{i}" for i in range(5)]
    assert loads.opened == ["a", "b"]


def test_the_same_question_to_two_models_has_two_answers(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[str]:
        same = [ask(item.id, role=role) for role in ("judge", "target")]
        return "".join(r.text for r in (yield same))

    loads = {
        name: Loads(lambda r, name=name: Reply(name + r.prompt.tail[0].content)) for name in "ab"
    }
    models = {"target": loads["a"].model("a"), "judge": loads["b"].model("b")}
    with Store(tmp_path, "w") as store:
        found = [o.result for o in drive(ITEMS, flow, models, store)]
    assert sorted(str(r) for r in found) == [f"b{i}a{i}" for i in range(5)]


def test_only_the_named_roles_are_served(tmp_path: Path) -> None:
    loads = Loads()
    assert run(tmp_path, loads, roles=["target"]) == []
    assert (loads.opened, loads.answered) == (["a"], 5)
    rest = Loads()
    assert len(run(tmp_path, rest)) == 5
    assert rest.opened == ["b"]


def test_a_stop_saves_what_was_answered(tmp_path: Path) -> None:
    class CountServed(Watch):
        served_now = 0

        def served(self, request: Request, reply: Reply) -> None:
            self.served_now += 1

    watch, loads = CountServed(), Loads()
    with pytest.raises(Stopped):
        run(tmp_path, loads, watch=watch, stop=lambda: watch.served_now >= 3)
    rest = Loads()
    assert len(run(tmp_path, rest)) == 5
    assert rest.answered == 15 - 3


def test_replies_are_on_disk_before_the_flow_sees_them(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[bool]:
        yield [ask(item.id)]
        lines = (tmp_path / "a" / "w.jsonl").read_text()
        return ask(item.id).key in lines

    assert all(o.result for o in run(tmp_path, Loads(), flow))


def test_prefix_order_computes_each_history_once(tmp_path: Path) -> None:
    from persona_lab.core.prompt import EMPTY, Message

    histories = [EMPTY.then([Message("user", name * 400)]) for name in "abcd"]
    items = [Item(f"{h}{q}") for q in range(6) for h in range(4)]

    def flow(item: Item) -> Flow[int]:
        [reply] = yield [ask(f"question {item.id[1]}", histories[int(item.id[0])])]
        return reply.counts.prompt - reply.counts.cached

    loads = Loads()
    with Store(tmp_path, "w") as store:
        outcomes = list(drive(items, flow, {"target": loads.model("a")}, store))
    computed = sum(o.result or 0 for o in outcomes)
    unique = sum(o.exchanges[0][1].counts.unique for o in outcomes)
    assert computed == unique < 4 * 410 + 24 * 40
