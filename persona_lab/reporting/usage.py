"""What each role cost in this invocation, counted as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from persona_lab.core.flow import Case, Engine, Model, Watch
from persona_lab.core.prompt import Reply, Request


@dataclass
class RoleUsage:
    """Counts of one role.

    Attributes:
        requests: distinct requests that flows asked; `remembered` of them came from the store,
            `served` were calls to an engine in this invocation, `failed` of these got no reply.
        unique_prompt_tokens: size of the served requests' prefix tree in the engine's blocks: the
            least that this engine could compute. computed + cached = prompt tokens.
        seconds: during which at least one request of this role was with the engine.
        block_size: tokens per cache block of the engine; None while nothing was served.
    """

    requests: int = 0
    served: int = 0
    remembered: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    unique_prompt_tokens: int = 0
    computed_prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    block_size: int | None = None


class Usage(Watch):
    """Counts usage by role.

    Args:
        models: role -> model.
        clock: monotonic seconds.
    """

    def __init__(
        self, models: Mapping[str, Model], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.models = models
        self.roles = {role: RoleUsage() for role in models}
        self._clock = clock
        self._seen: set[tuple[str, str]] = set()
        self._flying = dict.fromkeys(self.roles, 0)
        self._since = dict.fromkeys(self.roles, 0.0)

    def asked(self, case: Case, requests: list[Request], known: list[bool]) -> None:
        for request, remembered in zip(requests, known, strict=True):
            if (place := (request.role, request.key)) not in self._seen:
                self._seen.add(place)
                self.roles[request.role].requests += 1
                self.roles[request.role].remembered += remembered

    def loaded(self, model: Model, engine: Engine) -> None:
        for role, its_model in self.models.items():
            if its_model is model:
                self.roles[role].block_size = getattr(engine, "block_size", None)

    def submitted(self, request: Request) -> None:
        if self._flying[request.role] == 0:
            self._since[request.role] = self._clock()
        self._flying[request.role] += 1

    def served(self, request: Request, reply: Reply) -> None:
        role = self.roles[request.role]
        role.served += 1
        role.failed += reply.outcome == "failed"
        role.prompt_tokens += reply.counts.prompt
        role.unique_prompt_tokens += reply.counts.unique
        role.cached_prompt_tokens += reply.counts.cached
        role.computed_prompt_tokens += reply.counts.prompt - reply.counts.cached
        role.completion_tokens += reply.counts.completion
        self._flying[request.role] -= 1
        if self._flying[request.role] == 0:
            role.seconds += self._clock() - self._since[request.role]

    def table(self) -> dict[str, dict[str, Any]]:
        """Role -> counts, as `results.json` holds them."""
        return {role: asdict(usage) for role, usage in self.roles.items()}
