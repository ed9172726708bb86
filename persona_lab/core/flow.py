"""A flow asks; `drive` gets it answered.

A flow is a generator for one case. It yields the requests that it needs next and is sent their
replies, in the same order; what it returns is the case's result:

    def flow(case):
        [letter] = yield [Request("target", prompt(case), sampling, example="Dear Sir")]
        verdicts = yield [Request("judge", follows(p, letter), ...) for p in case.preferences]
        return score(case, letter, verdicts)

`yield from` composes flows. Flows are pure: the same case and the same replies give the same
requests, whatever the clock, the process or the order of arrival. So a flow can be closed at any
time and run again from the remembered replies, which is all that resuming is.

`drive` runs many flows side by side. One model is loaded at a time: the earliest, in the order of
the recipe, that somebody waits for, until nobody does. Every reply is saved before its flow sees
it. A failed request is final here and asked again by the next run; a flow that raises fails its
own case only.

A flow may also yield `Encode(encoder, texts)` and is sent their vectors. Encoders are resident:
texts of all flows that wait are encoded together, beside the loaded model.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.errors import PersonaLabError, Stopped
from persona_lab.core.order import PrefixQueue
from persona_lab.core.prompt import Reply, Request

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Encode:
    """Texts that a flow wants as vectors of the encoder with this name."""

    encoder: str
    texts: tuple[str, ...]


Flow = Generator[list[Request] | Encode, Any, T]
"""It is sent a list of replies for requests, in their order, or [N, D] vectors for texts."""


class Encoder(Protocol):
    """A resident sentence encoder that remembers what it has encoded."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, [N, D]."""


class Case(Protocol):
    """Anything with a stable, unique id."""

    @property
    def id(self) -> str: ...


C = TypeVar("C", bound=Case)


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

    def finished(self, case: Case) -> None:
        """A case has its result, or failed."""


@dataclass
class Outcome(Generic[C, T]):
    """How one case ended: with a result, or with the error of its flow."""

    case: C
    result: T | None
    exchanges: list[tuple[Request, Reply]]
    error: str = ""


def drive(
    cases: Iterable[C],
    flow: Callable[[C], Flow[T]],
    models: Mapping[str, Model],
    store: ReplyStore,
    watch: Watch | None = None,
    *,
    roles: Collection[str] | None = None,
    encoders: Mapping[str, Encoder] | None = None,
    window: int = 256,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Outcome[C, T]]:
    """Runs the flow of every case to its end.

    Args:
        cases: the cases; their ids are unique.
        flow: makes a case's flow.
        models: role -> model, upstream roles first.
        store: the remembered replies; new ones are added.
        watch: told of progress.
        roles: serve only these; cases that need another one are left open (None: all).
        encoders: name -> encoder, for flows that yield `Encode`.
        window: flows alive at once beside a loaded engine (>= 1).
        stop: asked often; True ends the drive.

    Yields:
        Outcomes, as cases end.

    Raises:
        Stopped: `stop` said so. EngineError: a model died. StoreError: a reply cannot be saved.
    """
    serve = frozenset(models if roles is None else roles)
    return _Drive(flow, models, store, watch or Watch(), serve, encoders or {}, window, stop).run(
        cases
    )


@dataclass
class _Live(Generic[C, T]):
    """A flow under way, and what it waits for: a batch of requests (None before the first step), or
    texts to be encoded, whose vectors then take the replies' place."""

    case: C
    flow: Flow[T]
    batch: list[Request] | None = None
    replies: list[Reply | None] = field(default_factory=list)
    texts: Encode | None = None
    vectors: NDArray[np.float32] | None = None
    exchanges: list[tuple[Request, Reply]] = field(default_factory=list)

    def missing(self) -> list[Request]:
        pairs = zip(self.batch or [], self.replies, strict=True)
        return [request for request, reply in pairs if reply is None]

    def receive(self, key: str, reply: Reply, roles: Collection[str]) -> None:
        """Takes one model's reply; another model may have been asked the very same."""
        for i, request in enumerate(self.batch or []):
            if request.key == key and request.role in roles:
                self.replies[i] = reply


@dataclass
class _Session(Generic[C, T]):
    """A loaded model, its roles, the cases that wait for it, and the flows beside it."""

    model: Model
    engine: Engine
    roles: frozenset[str]
    cases: deque[C]
    queue: PrefixQueue = field(default_factory=PrefixQueue)
    waiting: dict[str, list[_Live[C, T]]] = field(default_factory=dict)
    alive: int = 0


class _Drive(Generic[C, T]):
    def __init__(
        self,
        flow: Callable[[C], Flow[T]],
        models: Mapping[str, Model],
        store: ReplyStore,
        watch: Watch,
        roles: frozenset[str],
        encoders: Mapping[str, Encoder],
        window: int,
        stop: Callable[[], bool],
    ) -> None:
        self.make_flow, self.models, self.watch = flow, models, watch
        self.roles, self.window, self.stop = roles, window, stop
        self.encoders, self.unencoded = encoders, list[_Live[C, T]]()
        self.order = list(dict.fromkeys(models.values()))
        self.shelves = {m: store.shelf(m.identity) for m in self.order}
        self.failed: dict[tuple[Model, str], Reply] = {}
        self.blocked: dict[Model, list[tuple[Request, C]]] = {m: [] for m in self.order}

    def run(self, cases: Iterable[C]) -> Iterator[Outcome[C, T]]:
        for case in cases:  # first whatever the store alone can answer
            self._check_stop()
            yield from self._go_on(_Live(case, self.make_flow(case)), None)
            if len(self.unencoded) >= self.window:
                yield from self._encode(None)
        yield from self._encode(None)
        while model := next((m for m in self.order if self.blocked[m]), None):
            yield from self._serve(model)

    def _serve(self, model: Model) -> Iterator[Outcome[C, T]]:
        """Loads a model and keeps it until no case can go on with it."""
        blocked, self.blocked[model] = self.blocked[model], []
        blocked.sort(key=lambda pair: pair[0].order)
        self.watch.loading(model)
        roles = frozenset(r for r in self.roles if self.models[r] is model)
        session = _Session[C, T](model, model.open(), roles, deque(case for _, case in blocked))
        try:
            self.watch.loaded(model, session.engine)
            while session.cases or session.alive:
                self._check_stop()
                while session.cases and session.alive < self.window:
                    case = session.cases.popleft()
                    yield from self._go_on(_Live(case, self.make_flow(case)), session)
                yield from self._encode(session)
                while session.queue and session.engine.room() > 0:
                    request = session.queue.pop()
                    session.engine.submit(request)
                    self.watch.submitted(request)
                if session.alive:
                    yield from self._receive(session)
        finally:
            session.engine.close()

    def _receive(self, session: _Session[C, T]) -> Iterator[Outcome[C, T]]:
        """Saves what the engine has ready, then lets the flows see it."""
        answered = session.engine.poll(timeout=1.0)
        shelf = self.shelves[session.model]
        for request, reply in answered:
            shelf.put(request, reply)
            if reply.outcome == "failed":
                self.failed[session.model, request.key] = reply
            self.watch.served(request, reply)
        if answered:
            shelf.sync()
        for request, reply in answered:
            for live in session.waiting.pop(request.key):
                live.receive(request.key, reply, session.roles)
                if not any(r.role in session.roles for r in live.missing()):
                    session.alive -= 1
                    yield from self._go_on(live, session)

    def _go_on(self, live: _Live[C, T], session: _Session[C, T] | None) -> Iterator[Outcome[C, T]]:
        """Advances a flow to its end, to a wait for the loaded model, or to another model."""
        missing = live.missing()
        while not missing:
            if outcome := self._step(live):
                self.watch.finished(live.case)
                yield outcome
                return
            if live.texts:
                self.unencoded.append(live)
                if session:
                    session.alive += 1
                return
            missing = live.missing()
        here = [r for r in missing if session and r.role in session.roles]
        if session and here:
            session.alive += 1
            for key, request in {r.key: r for r in here}.items():
                if key not in session.waiting:
                    session.queue.push(request)
                session.waiting.setdefault(key, []).append(live)
        else:
            live.flow.close()
            later = [r for r in missing if r.role in self.roles]
            if later:  # else it waits for a role that another run serves
                first = min(later, key=lambda r: self.order.index(self.models[r.role]))
                self.blocked[self.models[first.role]].append((first, live.case))

    def _encode(self, session: _Session[C, T] | None) -> Iterator[Outcome[C, T]]:
        """Encodes what all waiting flows want, each text once, until no flow wants more."""
        while waiting := self.unencoded:
            self.unencoded = []
            wanted: dict[str, dict[str, None]] = {}
            for live in waiting:
                if live.texts:
                    wanted.setdefault(live.texts.encoder, {}).update(
                        dict.fromkeys(live.texts.texts)
                    )
            rows = {name: {t: i for i, t in enumerate(texts)} for name, texts in wanted.items()}
            found = {
                name: self.encoders[name].vectors(list(texts)) for name, texts in wanted.items()
            }
            for live in waiting:
                if live.texts:
                    name = live.texts.encoder
                    live.vectors = found[name][[rows[name][text] for text in live.texts.texts]]
                    live.texts = None
                if session:
                    session.alive -= 1
                yield from self._go_on(live, session)

    def _step(self, live: _Live[C, T]) -> Outcome[C, T] | None:
        """Sends a complete batch of replies, or vectors, and takes what the flow wants next."""
        replies = [reply for reply in live.replies if reply is not None]
        live.exchanges += zip(live.batch or [], replies, strict=True)
        answer = replies if live.vectors is None else live.vectors
        live.vectors = None
        try:
            wanted = next(live.flow) if live.batch is None else live.flow.send(answer)
        except StopIteration as end:
            return Outcome(live.case, end.value, live.exchanges)
        except PersonaLabError:
            raise
        except Exception:
            return Outcome(live.case, None, live.exchanges, traceback.format_exc())
        if isinstance(wanted, Encode):
            live.batch, live.replies, live.texts = [], [], wanted
            return None
        live.batch = wanted
        live.replies = [self._remembered(request) for request in live.batch]
        self.watch.asked(live.case, live.batch, [reply is not None for reply in live.replies])
        return None

    def _remembered(self, request: Request) -> Reply | None:
        model = self.models[request.role]
        return self.failed.get((model, request.key)) or self.shelves[model].get(request.key)

    def _check_stop(self) -> None:
        if self.stop():
            raise Stopped("stopped by a signal; everything so far is saved: run again to go on")
