"""What a flow asks for, and who answers; `core/drive.py` brings them together.

A flow is a generator for one case. It yields the requests that it needs next and is sent their
replies, in the same order; what it returns is the case's result:

    def flow(case):
        [letter] = yield [Request("target", prompt(case), sampling, example="Dear Sir")]
        verdicts = yield [Request("judge", follows(p, letter), ...) for p in case.preferences]
        return score(case, letter, verdicts)

`yield from` composes flows. Flows are pure: the same case and the same replies give the same
requests, whatever the clock, the process or the order of arrival. So a flow can be closed at any
time and run again from the remembered replies, which is all that resuming is.

Besides requests a flow may yield

    Encode(encoder, texts)    and is sent their vectors: encoders are resident beside the models
    Shared(case, flow)        and is sent what that flow returned: it runs once for all who want it
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.prompt import Reply, Request

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Encode:
    """Texts that a flow wants as vectors of the encoder with this name."""

    encoder: str
    texts: tuple[str, ...]


class Case(Protocol):
    """Anything with a stable, unique id."""

    @property
    def id(self) -> str: ...


C = TypeVar("C", bound=Case)


@dataclass(frozen=True, eq=False)
class Shared:
    """A flow whose result several cases want, such as the memory that was written of a history.

    Attributes:
        case: what it is about; its id differs from those of all cases and of what else is shared.
        flow: makes it; the same id always means the same flow.
    """

    case: Case
    flow: Callable[[], Flow[Any]]


Flow = Generator[list[Request] | Encode | Shared, Any, T]
"""It is sent a list of replies for requests, in their order, [N, D] vectors for texts, or the
result of what is shared."""


def relayed(flow: Flow[T], answer: Callable[[Any], Flow[Any]]) -> Flow[T]:
    """A flow whose wants pass through another: `answer` is given each and returns what is sent."""
    sent: Any = None
    while True:
        try:
            wanted = flow.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result
        sent = yield from answer(wanted)


class Encoder(Protocol):
    """A resident sentence encoder that remembers what it has encoded."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, [N, D]."""


class Engine(Protocol):
    """A loaded model."""

    def room(self) -> int:
        """How many more requests it wants now."""

    def submit(self, request: Request) -> None:
        """Takes a request in; its reply comes out of `poll`."""

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        """Waits up to `timeout` seconds for replies.

        Raises:
            EngineError: the model process died.
        """

    def close(self) -> None:
        """Frees the device."""


@dataclass(frozen=True, eq=False)
class Model:
    """A model that can be loaded; roles with the same settings hold the same object."""

    name: str
    identity: str
    open: Callable[[], Engine]


class Replies(Protocol):
    """Where the replies of one model are remembered."""

    def get(self, key: str) -> Reply | None: ...
    def put(self, request: Request, reply: Reply) -> None: ...
    def sync(self) -> None: ...


class ReplyStore(Protocol):
    """Remembered replies, by model identity."""

    def shelf(self, identity: str) -> Replies: ...


class Watch:
    """Told what happens; does nothing by default."""

    def asked(self, case: Case, requests: list[Request], known: list[bool]) -> None:
        """A flow asks for `requests`, of which `known` are remembered."""

    def loading(self, model: Model) -> None:
        """A model is about to be loaded."""

    def loaded(self, model: Model, engine: Engine) -> None:
        """It is."""

    def submitted(self, request: Request) -> None:
        """A request went to the engine."""

    def served(self, request: Request, reply: Reply) -> None:
        """The engine answered; the reply is saved."""

    def given(self, case: Case, shared: Case) -> None:
        """A flow goes on with what it shares with others."""

    def finished(self, case: Case) -> None:
        """A case has its result, or failed; not told of what is shared."""


@dataclass
class Outcome(Generic[C, T]):
    """How one case ended: with a result, or with the error of its flow.

    Attributes:
        exchanges: its requests and their replies. Of what is shared there are none: a memory is
            written in thousands of them, and its result says what they came to.
        shared: whether it is no case of its own but what cases share.
    """

    case: C
    result: T | None
    exchanges: list[tuple[Request, Reply]]
    error: str = ""
    shared: bool = False

    @property
    def why(self) -> str:
        """The last line of its error, which says what it was; empty without one."""
        return (self.error.strip().splitlines() or [""])[-1]
