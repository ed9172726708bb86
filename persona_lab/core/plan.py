"""What a run would cost: the same flows, driven on the examples of their requests.

No model is loaded. Requests of a flow's first round, and those made from remembered replies, are
counted exactly; what is built on an example reply is an estimate. Texts that come from examples are
not encoded: their vectors are made up.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.drive import drive
from persona_lab.core.flow import Case, Encode, Encoder, Flow, Model, Shared, Watch, relayed
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.store import Store

T = TypeVar("T")
_log = logging.getLogger("persona_lab")


@dataclass
class RolePlan:
    """What one role has to do.

    Attributes:
        requests: all of them; `remembered` are in the store already.
        exact: of those to serve, how many are known exactly.
        prompt_tokens, unique_tokens, completion_budget: of those to serve; `unique_tokens` is the
            size of their prefix tree.
        longest: (prompt tokens, answer budget) of the request that needs most.
        too_long: why requests do not fit (the flags of a rehearsal's replies), one line each.
    """

    requests: int = 0
    remembered: int = 0
    exact: int = 0
    prompt_tokens: int = 0
    unique_tokens: int = 0
    completion_budget: int = 0
    longest: tuple[int, int] = (0, 0)
    too_long: list[str] = field(default_factory=list)

    @property
    def to_serve(self) -> int:
        """Requests that a run would send to the engine."""
        return self.requests - self.remembered


def plan(
    cases: Iterable[Case],
    flow: Callable[[Case], Flow[object]],
    rehearsals: Mapping[str, Model],
    store: Store,
    roles: Iterable[str] | None = None,
    encoders: Mapping[str, Encoder] | None = None,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, RolePlan]:
    """Drives the flows on examples.

    Args:
        rehearsals: role -> a model that answers with examples and counts real tokens.
        store: the remembered replies; nothing is written.
        roles: plan only these. encoders: for flows that yield `Encode`.
        stop: asked often; True ends the plan with `Stopped`. tell: told how far it is, often.
    """
    watch = _Planner(rehearsals, tell)
    shelves = _Overlay(store)
    driven = drive(
        cases,
        lambda case: _rehearsed(flow(case), watch),
        rehearsals,
        shelves,
        watch,
        roles=list(roles) if roles else None,
        encoders=encoders,
        stop=stop,
    )
    for outcome in driven:
        if outcome.error:  # so will the run, which says more
            _log.warning("planning %s: %s", outcome.case.id, outcome.why)
    return watch.roles


class MadeUp:
    """Vectors that mean nothing, the same for the same text."""

    def __init__(self, dimension: int = 8) -> None:
        self._dimension = dimension

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit rows [N, D]."""
        rows = [self._drawn(text) for text in texts]
        found = np.array(rows, dtype=np.float32).reshape(-1, self._dimension)
        unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    def _drawn(self, text: str) -> NDArray[np.float64]:
        seed = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(seed)).standard_normal(self._dimension)


def _rehearsed(flow: Flow[T], watch: _Planner) -> Flow[T]:
    """A flow whose texts are encoded only as long as no example had a part in them."""
    exact, made_up = True, MadeUp()

    def answer(wanted: Any) -> Flow[Any]:
        nonlocal exact, made_up
        if isinstance(wanted, Encode) and not exact:
            return made_up.vectors(wanted.texts)
        sent = yield _rehearsed_too(wanted, watch) if isinstance(wanted, Shared) else wanted
        if isinstance(wanted, Encode):
            made_up = MadeUp(sent.shape[1])  # flows put old and new vectors side by side
        elif isinstance(wanted, Shared):
            exact &= wanted.case.id not in watch.inexact
        else:
            exact &= not any(watch.made_up(request) for request in wanted)
        return sent

    return relayed(flow, answer)


def _rehearsed_too(wanted: Shared, watch: _Planner) -> Shared:
    return replace(wanted, flow=lambda: _rehearsed(wanted.flow(), watch))


class _Planner(Watch):
    def __init__(self, models: Mapping[str, Model], tell: Callable[[str], None]) -> None:
        self._tell, self._models = tell, models
        self.roles = {role: RolePlan() for role in models}
        self._seen: set[tuple[str, str]] = set()
        self._made_up: set[tuple[str, str]] = set()
        self.inexact: set[str] = set()
        self._exact: dict[tuple[str, str], bool] = {}

    def asked(self, case: Case, requests: list[Request], known: list[bool]) -> None:
        exact = case.id not in self.inexact
        for request, remembered in zip(requests, known, strict=True):
            place = (request.role, request.key)
            if not remembered:
                self._made_up.add(self._asked_of(request))
            if self.made_up(request):
                self.inexact.add(case.id)
            if place in self._seen:
                continue
            self._seen.add(place)
            self._exact[place] = exact
            self.roles[request.role].requests += 1
            self.roles[request.role].remembered += remembered and not self.made_up(request)

    def made_up(self, request: Request) -> bool:
        """Whether its reply is an example."""
        return self._asked_of(request) in self._made_up

    def _asked_of(self, request: Request) -> tuple[str, str]:
        """Roles of one model share their replies."""
        return self._models[request.role].identity, request.key

    def given(self, case: Case, shared: Case) -> None:
        if shared.id in self.inexact:
            self.inexact.add(case.id)

    def served(self, request: Request, reply: Reply) -> None:
        role = self.roles[request.role]
        role.exact += self._exact[request.role, request.key]
        role.too_long += reply.flags
        role.prompt_tokens += reply.counts.prompt
        role.unique_tokens += reply.counts.unique
        role.completion_budget += request.sampling.max_tokens
        need = (reply.counts.prompt, request.sampling.max_tokens)
        role.longest = max(role.longest, need, key=sum)
        self._tell(f"planning: {len(self._seen):,} requests so far")


class _Overlay:
    """The store, with what the plan makes up kept in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def shelf(self, identity: str) -> _OverlayShelf:
        return _OverlayShelf(self._store, identity)


class _OverlayShelf:
    def __init__(self, store: Store, identity: str) -> None:
        self._real = store.shelf(identity)
        self._made_up: dict[str, Reply] = {}

    def get(self, key: str) -> Reply | None:
        return self._made_up.get(key) or self._real.get(key)

    def put(self, request: Request, reply: Reply) -> None:
        self._made_up[request.key] = reply

    def sync(self) -> None:
        """Nothing is written."""
