"""Gets flows answered: `drive` runs many of them side by side.

One model is loaded at a time: the earliest, in the order of the recipe, that somebody waits for,
until nobody does. Every reply is saved before its flow sees it. A failed request is final here and
asked again by the next run; a flow that raises fails its own case only. Texts of all flows that
wait for vectors are encoded together, beside the loaded model. What flows share runs once; those
who want it are closed meanwhile, and begin again with its result. It goes first where one model
plays both parts, as it does where two play them: else a history would be computed for the cases
that need no memory of it, and once more, when that is written, for those that do.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.errors import PersonaLabError, Stopped
from persona_lab.core.flow import (
    Case,
    Encode,
    Encoder,
    Flow,
    Model,
    Outcome,
    ReplyStore,
    Shared,
    Watch,
)
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.session import Job, Live, Session

C = TypeVar("C", bound=Case)
T = TypeVar("T")
Ending = Iterator[Outcome[Any, Any]]


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
        Outcomes, as cases end; among them those of what cases share, which say so.

    Raises:
        Stopped: `stop` said so. EngineError: a model died. StoreError: a reply cannot be saved.
    """
    serve = frozenset(models if roles is None else roles)
    jobs = (Job(case, lambda case=case: flow(case)) for case in cases)  # type: ignore[misc]
    return _Drive(models, store, watch or Watch(), serve, encoders or {}, window, stop).run(jobs)


class _Drive:
    """One drive.

    Attributes:
        blocked: jobs that wait for a model, each with its first request to it.
        made: results of what is shared, by id. wanting: jobs that wait for one, by its id.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        store: ReplyStore,
        watch: Watch,
        roles: frozenset[str],
        encoders: Mapping[str, Encoder],
        window: int,
        stop: Callable[[], bool],
    ) -> None:
        self.models, self.watch = models, watch
        self.roles, self.window, self.stop = roles, window, stop
        self.encoders, self.unencoded = encoders, list[Live]()
        self.order = list(dict.fromkeys(models.values()))
        self.shelves = {m: store.shelf(m.identity) for m in self.order}
        self.failed: dict[tuple[Model, str], Reply] = {}
        self.blocked: dict[Model, list[tuple[Request, Job]]] = {m: [] for m in self.order}
        self.made: dict[str, Outcome[Any, Any]] = {}
        self.wanting: dict[str, list[Job]] = {}

    def run(self, jobs: Iterable[Job]) -> Ending:
        for job in jobs:  # first whatever the store alone can answer
            self._check_stop()
            yield from self._go_on(Live.of(job), None)
            if len(self.unencoded) >= self.window:
                yield from self._encode(None)
        yield from self._encode(None)
        while model := next((m for m in self.order if self.blocked[m]), None):
            yield from self._serve(model)
        if self.roles >= set(self.models):  # else it may wait for a role that another run serves
            yield from self._never_made()

    def _serve(self, model: Model) -> Ending:
        """Loads a model and keeps it until no case can go on with it."""
        blocked, self.blocked[model] = self.blocked[model], []
        blocked.sort(key=lambda pair: pair[0].order)
        self.watch.loading(model)
        roles = frozenset(r for r in self.roles if self.models[r] is model)
        first = deque(job for _, job in blocked if job.shared)
        jobs = deque(job for _, job in blocked if not job.shared)
        session = Session(model, model.open(), roles, first, jobs)
        try:
            self.watch.loaded(model, session.engine)
            while session.first or session.jobs or session.alive:
                self._check_stop()
                while (ready := session.first or session.jobs) and session.alive < self.window:
                    yield from self._go_on(Live.of(ready.popleft()), session)
                yield from self._encode(session)
                while session.engine.room() > 0 and (request := session.next()):
                    session.engine.submit(request)
                    session.flying += 1
                    self.watch.submitted(request)
                if session.alive:
                    yield from self._receive(session)
        finally:
            session.engine.close()

    def _receive(self, session: Session) -> Ending:
        """Saves what the engine has ready, then lets the flows see it."""
        answered = session.engine.poll(timeout=1.0)
        session.flying -= len(answered)
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
                    session.leaves(live)
                    yield from self._go_on(live, session)

    def _go_on(self, live: Live, session: Session | None) -> Ending:
        """Advances a flow to its end, to a wait for the loaded model, or to another wait."""
        missing = live.missing()
        while not missing:
            wanted = self._step(live)
            if isinstance(wanted, Shared):
                if wanted.case.id not in self.made:
                    yield from self._share(wanted, live, session)
                    return
                wanted = self._give(live, self.made[wanted.case.id])
            if wanted:
                yield from self._end(wanted, session)
                return
            if live.texts:
                self.unencoded.append(live)
                if session:
                    session.joins(live)
                return
            missing = live.missing()
        here = [r for r in missing if session and r.role in session.roles]
        if session and here:
            session.waits(live, here)
        else:
            live.flow.close()
            later = [r for r in missing if r.role in self.roles]
            if later:  # else it waits for a role that another run serves
                first = min(later, key=lambda r: self.order.index(self.models[r.role]))
                self.blocked[self.models[first.role]].append((first, live.job))

    def _share(self, wanted: Shared, live: Live, session: Session | None) -> Ending:
        """Closes a flow until what it wants is there; the first one has it made."""
        live.flow.close()
        under_way = wanted.case.id in self.wanting
        self.wanting.setdefault(wanted.case.id, []).append(live.job)
        if not under_way:
            job = Job(wanted.case, wanted.flow, shared=True)
            yield from self._go_on(Live.of(job), session)

    def _give(self, live: Live, made: Outcome[Any, Any]) -> Outcome[Any, Any] | None:
        """Gives a flow what it shares; an error there is its own end."""
        self.watch.given(live.job.case, made.case)
        if made.error:
            live.flow.close()
            return live.ended(None, f"{made.case.id}: {made.why}")
        live.answer = made.result
        return None

    def _end(self, outcome: Outcome[Any, Any], session: Session | None) -> Ending:
        """Hands out a result; with what is shared, those who wait for it begin again."""
        if not outcome.shared:
            self.watch.finished(outcome.case)
            yield outcome
            return
        self.made[outcome.case.id] = outcome
        yield outcome
        wanting = self.wanting.pop(outcome.case.id)
        if session:
            session.jobs.extendleft(reversed(wanting))
        else:
            for job in wanting:
                yield from self._go_on(Live.of(job), None)

    def _never_made(self) -> Ending:
        """Ends those who wait for something that waits for itself."""
        for name, jobs in self.wanting.items():
            for job in jobs:
                if not job.shared:
                    self.watch.finished(job.case)
                error = f"{name}: what is shared waits for itself"
                yield Outcome(job.case, None, [], error, job.shared)

    def _encode(self, session: Session | None) -> Ending:
        """Encodes what all waiting flows want, each text once, until no flow wants more."""
        while waiting := self.unencoded:
            self.unencoded = []
            wanted = [(live, live.texts) for live in waiting if live.texts]
            texts: dict[str, dict[str, None]] = {}
            for _, one in wanted:
                texts.setdefault(one.encoder, {}).update(dict.fromkeys(one.texts))
            found = {name: self.encoders[name].vectors(list(some)) for name, some in texts.items()}
            rows = {name: {t: i for i, t in enumerate(some)} for name, some in texts.items()}
            for live, one in wanted:
                live.answer = _rows(found[one.encoder], rows[one.encoder], one.texts)
                live.texts = None
                if session:
                    session.leaves(live)
                yield from self._go_on(live, session)

    def _step(self, live: Live) -> Outcome[Any, Any] | Shared | None:
        """Sends a flow what it waited for, and takes what it wants next."""
        answer, live.answer = live.answer, None
        if live.batch is not None:
            answer = [reply for reply in live.replies if reply is not None]
            if not live.job.shared:
                live.exchanges += zip(live.batch, answer, strict=True)
        live.batch, live.replies = None, []
        try:
            wanted = live.flow.send(answer)
        except StopIteration as end:
            return live.ended(end.value)
        except PersonaLabError:
            raise
        except Exception:
            return live.ended(None, traceback.format_exc())
        if isinstance(wanted, Shared):
            return wanted
        if isinstance(wanted, Encode):
            live.texts = wanted
            return None
        live.batch = wanted
        live.replies = [self._remembered(request) for request in live.batch]
        self.watch.asked(live.job.case, live.batch, [reply is not None for reply in live.replies])
        return None

    def _remembered(self, request: Request) -> Reply | None:
        model = self.models[request.role]
        return self.failed.get((model, request.key)) or self.shelves[model].get(request.key)

    def _check_stop(self) -> None:
        if self.stop():
            raise Stopped


def _rows(
    vectors: NDArray[np.float32], row: Mapping[str, int], texts: Iterable[str]
) -> NDArray[np.float32]:
    chosen: NDArray[np.float32] = vectors[[row[text] for text in texts]]
    return chosen
