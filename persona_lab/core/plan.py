"""What a run would cost: the same flows, driven on the examples of their requests.

No model is loaded. Requests of a flow's first round, and those made from remembered replies, are
counted exactly; what is built on an example reply is an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from persona_lab.core.flow import Case, Encoder, Flow, Model, Watch, drive
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.store import Store


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
) -> dict[str, RolePlan]:
    """Drives the flows on examples.

    Args:
        rehearsals: role -> a model that answers with examples and counts real tokens.
        store: the remembered replies; nothing is written.
        roles: plan only these. encoders: for flows that yield `Encode`.
        stop: asked often; True ends the plan with `Stopped`.
    """
    watch = _Planner(rehearsals)
    shelves = _Overlay(store)
    chosen = list(roles) if roles else None
    driven = drive(
        cases, flow, rehearsals, shelves, watch, roles=chosen, encoders=encoders, stop=stop
    )
    for _ in driven:
        pass
    return watch.roles


class _Planner(Watch):
    def __init__(self, roles: Iterable[str]) -> None:
        self.roles = {role: RolePlan() for role in roles}
        self._seen: set[tuple[str, str]] = set()
        self._made_up: set[tuple[str, str]] = set()
        self._inexact: set[str] = set()
        self._exact: dict[tuple[str, str], bool] = {}

    def asked(self, case: Case, requests: list[Request], known: list[bool]) -> None:
        exact = case.id not in self._inexact
        for request, remembered in zip(requests, known, strict=True):
            place = (request.role, request.key)
            if place in self._made_up or not remembered:
                self._made_up.add(place)
                self._inexact.add(case.id)
            if place in self._seen:
                continue
            self._seen.add(place)
            self._exact[place] = exact
            self.roles[request.role].requests += 1
            self.roles[request.role].remembered += remembered

    def served(self, request: Request, reply: Reply) -> None:
        role = self.roles[request.role]
        role.exact += self._exact[request.role, request.key]
        role.too_long += reply.flags
        role.prompt_tokens += reply.counts.prompt
        role.unique_tokens += reply.counts.unique
        role.completion_budget += request.sampling.max_tokens
        need = (reply.counts.prompt, request.sampling.max_tokens)
        role.longest = max(role.longest, need, key=sum)


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
