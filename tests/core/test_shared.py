"""What several cases want runs once a drive, beside whatever model it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from persona_lab.core.drive import drive
from persona_lab.core.flow import Encode, Flow, Outcome, Shared, Watch
from persona_lab.core.plan import plan
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.store import Store
from tests.core.test_flow import ITEMS, Item, Loads, run
from tests.models import ask

HALVES = {"even": "024", "odd": "13"}


class Submitted(Watch):
    """It notes the roles of what is submitted."""

    def __init__(self) -> None:
        self.roles: list[str] = []

    def submitted(self, request: Request) -> None:
        self.roles.append(request.role)


def half(item: Item) -> Item:
    return Item("even" if int(item.id) % 2 == 0 else "odd")


def written(name: str) -> Flow[str]:
    """Two steps of the role `judge`, which stands upstream here."""
    [first] = yield [ask(f"{name} 1", role="judge")]
    [second] = yield [ask(f"{first.text}, {name} 2", role="judge")]
    return str(second.text)


def with_memory(item: Item) -> Flow[str]:
    of = half(item)
    memory = yield Shared(of, lambda: written(of.id))
    [answer] = yield [ask(f"{item.id}: {memory}")]
    return str(answer.text)


def upstream(tmp_path: Path, loads: Loads, **more: Any) -> list[Outcome[Item, Any]]:
    """Like `run`, with the model of `judge` first."""
    models = {"judge": loads.model("b"), "target": loads.model("a")}
    flow = more.pop("flow", with_memory)
    with Store(tmp_path, "w") as store:
        return list(drive(ITEMS, flow, models, store, **more))


@pytest.mark.parametrize("window", [1, 2, 256])
def test_it_runs_once_for_all_who_want_it(tmp_path: Path, window: int) -> None:
    loads = Loads()
    outcomes = upstream(tmp_path, loads, window=window)
    memory = {name: f"{name} 1, {name} 2" for name in HALVES}
    assert {o.case.id: o.result for o in outcomes if o.shared} == memory
    assert {o.case.id: o.result for o in outcomes if not o.shared} == {
        i.id: f"{i.id}: {memory[half(i).id]}" for i in ITEMS
    }
    assert loads.opened == ["b", "a"]  # written first, then read
    assert loads.answered == 2 * 2 + 5  # two steps a memory, one answer a case
    assert {len(o.exchanges) for o in outcomes if o.shared} == {0}
    assert {len(o.exchanges) for o in outcomes if not o.shared} == {1}


def test_it_can_share_a_model_with_those_who_want_it(tmp_path: Path) -> None:
    loads = Loads()
    both = loads.model("a")
    with Store(tmp_path, "w") as store:
        made = list(drive(ITEMS, with_memory, {"judge": both, "target": both}, store))
    assert len([o for o in made if o.result]) == 7
    assert loads.opened == ["a"]


@pytest.mark.parametrize("window", [1, 3, 256])
def test_it_goes_first_where_one_model_plays_both_parts(tmp_path: Path, window: int) -> None:
    """So that all questions about one history come together."""

    def flow(item: Item) -> Flow[str]:
        if item.id in "03":
            return with_memory(item)
        return without(item)

    def without(item: Item) -> Flow[str]:
        [answer] = yield [ask(f"{item.id}: no memory")]
        return str(answer.text)

    both, watch = Loads().model("a"), Submitted()
    with Store(tmp_path, "w") as store:
        models = {"judge": both, "target": both}
        made = list(drive(ITEMS, flow, models, store, watch, window=window))
    assert len(made) == 5 + 2
    if window > 1:  # a window of one flow holds one memory or one case
        assert watch.roles == ["judge"] * 4 + ["target"] * 5
    assert sorted(watch.roles) == ["judge"] * 4 + ["target"] * 5


def test_all_that_is_shared_goes_first_also_beyond_the_window(tmp_path: Path) -> None:
    def flow(item: Item) -> Flow[str]:
        memory = yield Shared(Item(f"m{item.id}"), lambda: written(item.id))
        [answer] = yield [ask(f"{item.id}: {memory}")]
        return str(answer.text)

    both, watch = Loads().model("a"), Submitted()
    with Store(tmp_path, "w") as store:
        list(drive(ITEMS, flow, {"judge": both, "target": both}, store, watch, window=2))
    assert watch.roles == ["judge"] * 10 + ["target"] * 5


def test_what_waits_for_itself_is_an_error(tmp_path: Path) -> None:
    def circular() -> Flow[str]:
        return str((yield Shared(Item("loop"), circular)))

    def flow(item: Item) -> Flow[str]:
        if item.id == "0":
            return circular()
        return with_memory(item)

    made = {o.case.id: o for o in upstream(tmp_path, Loads(), flow=flow)}
    assert made["0"].error == "loop: what is shared waits for itself"
    assert sorted(name for name, o in made.items() if not o.error) == ["1", "2", "3", "4", *HALVES]


def test_it_may_ask_what_a_case_asks(tmp_path: Path) -> None:
    def same() -> Flow[str]:
        [answer] = yield [ask("the same")]
        return str(answer.text)

    def flow(item: Item) -> Flow[str]:
        if item.id == "0":
            return same()
        return asks_both(item)

    def asks_both(item: Item) -> Flow[str]:
        shared = yield Shared(Item("s"), same)
        [answer] = yield [ask(f"{item.id} {shared}")]
        return str(answer.text)

    loads = Loads(places=1)
    made = run(tmp_path, loads, flow)
    assert len(made) == 6
    assert loads.answered == 1 + 4


def test_run_again_it_asks_nothing(tmp_path: Path) -> None:
    first = {o.case.id: o.result for o in upstream(tmp_path, Loads())}
    again = Loads()
    assert {o.case.id: o.result for o in upstream(tmp_path, again)} == first
    assert again.opened == []


def test_its_error_fails_those_who_want_it_only(tmp_path: Path) -> None:
    def breaks(name: str) -> Flow[str]:
        yield [ask(name, role="judge")]
        if name == "odd":
            raise ValueError("no memory")
        return name

    def flow(item: Item) -> Flow[str]:
        of = half(item)
        return str((yield Shared(of, lambda: breaks(of.id))))

    made = {o.case.id: o for o in upstream(tmp_path, Loads(), flow=flow)}
    assert {name for name, o in made.items() if o.error} == {"odd", "1", "3"}
    assert made["1"].error == "odd: ValueError: no memory"
    assert made["4"].result == "even"


def test_what_no_role_serves_now_is_left_open(tmp_path: Path) -> None:
    assert upstream(tmp_path, Loads(), roles=["target"]) == []
    written_now = upstream(tmp_path, Loads(), roles=["judge"])
    assert [o.case.id for o in written_now if o.shared] == ["even", "odd"]
    assert [o for o in written_now if not o.shared] == []
    rest = Loads()
    assert len(upstream(tmp_path, rest, roles=["target"])) == 7
    assert rest.opened == ["a"]


def test_it_wants_vectors_and_further_shared_results(tmp_path: Path) -> None:
    class Lengths:
        def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([[len(text)] for text in texts], dtype=np.float32).reshape(-1, 1)

    def inner() -> Flow[float]:
        vectors = yield Encode("lengths", ("four",))
        return float(vectors[0, 0])

    def outer() -> Flow[float]:
        inside = yield Shared(Item("inner"), inner)
        return float(inside) + 1

    def flow(item: Item) -> Flow[float]:
        both = yield Shared(Item("outer"), outer)
        return float(both) + int(item.id)

    made = run(tmp_path, Loads(), flow, encoders={"lengths": Lengths()})
    assert {o.case.id: o.result for o in made} == {
        "inner": 4.0, "outer": 5.0, **{str(i): 5.0 + i for i in range(5)},
    }  # fmt: skip


def test_only_cases_count_as_finished(tmp_path: Path) -> None:
    class Noted(Watch):
        def __init__(self) -> None:
            self.done: Counter[str] = Counter()
            self.given_to: Counter[str] = Counter()

        def finished(self, case: Any) -> None:
            self.done[case.id] += 1

        def given(self, case: Any, shared: Any) -> None:
            self.given_to[shared.id] += 1

    watch = Noted()
    upstream(tmp_path, Loads(), watch=watch)
    assert watch.done == Counter({i.id: 1 for i in ITEMS})
    assert set(watch.given_to) == set(HALVES)


class Refusing:
    """An encoder for what is known; it refuses what an example had a part in."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert not any("example" in text for text in texts)
        return np.eye(len(texts), dtype=np.float32)


def test_a_plan_counts_what_a_memory_of_examples_leads_to_as_estimates(tmp_path: Path) -> None:
    def example_memory() -> Flow[str]:
        vectors = yield Encode("e", ("a turn",))
        assert vectors.shape == (1, 1)
        [reply] = yield [replace(ask("fact?", role="judge"), example="an example")]
        vectors = yield Encode("e", (reply.text,))
        return str(reply.text)

    def flow(item: Item) -> Flow[str]:
        memory = yield Shared(Item("m"), example_memory)
        yield Encode("e", (memory,))
        [answer] = yield [ask(f"{item.id}: {memory}")]
        return str(answer.text)

    def examples(request: Request) -> Reply:
        return Reply(request.example)

    loads = Loads(examples)
    models = {"judge": loads.model("b"), "target": loads.model("a")}
    with Store(tmp_path, "w") as store:
        found = plan(ITEMS, flow, models, store, encoders={"e": Refusing()})
        assert (found["judge"].requests, found["judge"].exact) == (1, 1)
        assert (found["target"].requests, found["target"].exact) == (5, 0)
        # A drive behind the plan, in one process, sees nothing of its examples.
        real = Loads(lambda request: Reply("a real fact"))
        models = {"judge": real.model("b"), "target": real.model("a")}
        made = list(drive(ITEMS, flow, models, store, encoders={"e": Refusing()}))
    assert [o.result for o in made if o.shared] == ["a real fact"]
