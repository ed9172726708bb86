"""Flows that want vectors: encoded together, each text once, with and without a loaded model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from persona_lab.core.flow import Encode, Flow
from tests.core.test_flow import ITEMS, Item, Loads, run
from tests.models import ask


class Lengths:
    """An encoder of one dimension; it notes each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.array([[len(text)] for text in texts], dtype=np.float32).reshape(-1, 1)


def before_asking(item: Item) -> Flow[Any]:
    vectors = yield Encode("lengths", ("shared", "x" * int(item.id)))
    [answer] = yield [ask(f"q{vectors[1, 0]:.0f}")]
    more = yield Encode("lengths", (answer.text, answer.text))
    return vectors[:, 0].tolist(), answer.text, more[:, 0].tolist()


def test_texts_of_all_flows_are_encoded_together_and_once(tmp_path: Path) -> None:
    encoder = Lengths()
    made = {o.case.id: o.result for o in run(
        tmp_path, Loads(), before_asking, encoders={"lengths": encoder}
    )}  # fmt: skip
    assert made["3"] == ([6.0, 3.0], "q3", [2.0, 2.0])
    assert encoder.calls[0] == ["shared", "", "x", "xx", "xxx", "xxxx"]
    # Beside the loaded model the flows begin anew, and each answer is encoded once.
    assert sorted(t for call in encoder.calls[1:] for t in call if t.startswith("q")) == [
        f"q{i}" for i in range(5)
    ]


@pytest.mark.parametrize("window", [1, 2, 256])
def test_the_window_does_not_change_results(tmp_path: Path, window: int) -> None:
    outcomes = run(tmp_path, Loads(), before_asking, encoders={"lengths": Lengths()}, window=window)
    assert {o.case.id: o.result[0][1] for o in outcomes} == {str(i): float(i) for i in range(5)}


def test_a_flow_without_requests_needs_no_model(tmp_path: Path) -> None:
    def only_vectors(item: Item) -> Flow[float]:
        nothing = yield Encode("lengths", ())
        assert nothing.shape == (0, 1)
        first = yield Encode("lengths", (item.id,))
        second = yield Encode("lengths", ("y" * int(first[0, 0]),))
        return float(second[0, 0])

    loads = Loads()
    made = run(tmp_path, loads, only_vectors, encoders={"lengths": Lengths()}, window=2)
    assert [o.result for o in made] == [1.0] * len(ITEMS)
    assert loads.opened == []


def test_vectors_are_no_exchange_and_remembered_replies_serve_again(tmp_path: Path) -> None:
    run(tmp_path, Loads(), before_asking, encoders={"lengths": Lengths()})
    again = Loads()
    made = run(tmp_path, again, before_asking, encoders={"lengths": Lengths()})
    assert again.opened == []
    assert [len(o.exchanges) for o in made] == [1] * len(ITEMS)


def test_a_flow_that_raises_on_its_vectors_fails_its_case_only(tmp_path: Path) -> None:
    def raises(item: Item) -> Flow[str]:
        yield Encode("lengths", ("a",))
        if item.id == "2":
            raise ValueError("no such row")
        return "ok"

    made = {o.case.id: o for o in run(tmp_path, Loads(), raises, encoders={"lengths": Lengths()})}
    assert "no such row" in made["2"].error
    assert made["1"].result == "ok"
