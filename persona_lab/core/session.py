"""What `drive` keeps while it drives: jobs, flows under way, and the model that is loaded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from persona_lab.core.flow import Encode, Engine, Flow, Model, Outcome
from persona_lab.core.order import PrefixQueue
from persona_lab.core.prompt import Reply, Request


@dataclass(frozen=True, eq=False)
class Job:
    """Something to run, from its beginning: a case, or what cases share."""

    case: Any
    start: Callable[[], Flow[Any]]
    shared: bool = False


@dataclass
class Live:
    """A flow under way, and what it waits for: a batch of requests, or texts to be encoded.

    Attributes:
        answer: what it is sent next where it waits for no batch.
    """

    job: Job
    flow: Flow[Any]
    batch: list[Request] | None = None
    replies: list[Reply | None] = field(default_factory=list)
    texts: Encode | None = None
    answer: Any = None
    exchanges: list[tuple[Request, Reply]] = field(default_factory=list)

    @classmethod
    def of(cls, job: Job) -> Live:
        """Begins a job."""
        return cls(job, job.start())

    def missing(self) -> list[Request]:
        """Requests of the batch without a reply."""
        pairs = zip(self.batch or [], self.replies, strict=True)
        return [request for request, reply in pairs if reply is None]

    def receive(self, key: str, reply: Reply, roles: Collection[str]) -> None:
        """Takes one model's reply; another model may have been asked the very same."""
        for i, request in enumerate(self.batch or []):
            if request.key == key and request.role in roles:
                self.replies[i] = reply

    def ended(self, result: Any, error: str = "") -> Outcome[Any, Any]:
        """How it ended."""
        return Outcome(self.job.case, result, self.exchanges, error, self.job.shared)


@dataclass
class Session:
    """A loaded model, its roles, the jobs that wait for it, and the flows beside it.

    Attributes:
        first: jobs of what is shared, which begin before others.
        upstream: requests of what is shared. queue: those of cases.
        flying: requests that the engine has. alive: flows; shared: those among them that are.
    """

    model: Model
    engine: Engine
    roles: frozenset[str]
    first: deque[Job]
    jobs: deque[Job]
    upstream: PrefixQueue = field(default_factory=PrefixQueue)
    queue: PrefixQueue = field(default_factory=PrefixQueue)
    waiting: dict[str, list[Live]] = field(default_factory=dict)
    flying: int = 0
    alive: int = 0
    shared: int = 0

    def joins(self, live: Live) -> None:
        """One more flow."""
        self.alive += 1
        self.shared += live.job.shared

    def leaves(self, live: Live) -> None:
        """One flow fewer; it may come again."""
        self.alive -= 1
        self.shared -= live.job.shared

    def waits(self, live: Live, requests: Iterable[Request]) -> None:
        """Queues the requests of a flow, each key once."""
        self.joins(live)
        for key, request in {r.key: r for r in requests}.items():
            if key not in self.waiting:
                (self.upstream if live.job.shared else self.queue).push(request)
            self.waiting.setdefault(key, []).append(live)

    def next(self) -> Request | None:
        """What to submit now: cases wait for what is shared, unless that waits for one of them."""
        if self.upstream:
            return self.upstream.pop()
        if self.queue and not (self.shared and self.flying):
            return self.queue.pop()
        return None
