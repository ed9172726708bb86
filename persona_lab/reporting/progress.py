"""Live progress on standard error: cases, requests, tokens per second, cache share, time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from persona_lab.core.flow import Case, Engine, Model, Watch
from persona_lab.core.prompt import Reply, Request

_QUIET_SECONDS = 30.0
_ENOUGH = 40
"""Requests served before the time left is guessed; the first ones compute the histories."""


class NowAndThen:
    """Prints what it is told, at most every so many seconds and not at once.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self,
        console: Console,
        seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._seconds, self._clock = console, seconds, clock
        self._said = clock()

    def __call__(self, text: str) -> None:
        """Takes a line."""
        if self._clock() - self._said >= self._seconds:
            self._said = self._clock()
            self._console.print(text, markup=False)


class LiveProgress(Watch):
    """A bar on a terminal; a line now and then elsewhere, so that logs stay short.

    Args:
        cases: number of cases; to_serve: requests that a plan found missing (0: unknown).
        console: where to print.
    """

    def __init__(self, cases: int, to_serve: int, console: Console) -> None:
        self.cases, self.to_serve, self.console = cases, to_serve, console
        self._done = self._served = self._asked = self._flying = 0
        self._prompt = self._cached = self._completion = 0
        self._started: float | None = None
        self._said = 0.0
        self._known: set[tuple[str, str]] = set()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("cases", total=cases, note="")

    def __enter__(self) -> LiveProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def asked(self, case: Case, requests: list[Request], known: list[bool]) -> None:
        for request, remembered in zip(requests, known, strict=True):
            if not remembered and (request.role, request.key) not in self._known:
                self._known.add((request.role, request.key))
                self._asked += 1

    def loading(self, model: Model) -> None:
        self._say(f"loading {model.name}", always=True)

    def submitted(self, request: Request) -> None:
        if self._started is None:
            self._started = time.monotonic()

    def served(self, request: Request, reply: Reply) -> None:
        self._served += 1
        self._prompt += reply.counts.prompt
        self._cached += reply.counts.cached
        self._completion += reply.counts.completion
        self._say(self.note())

    def finished(self, case: Case) -> None:
        self._done += 1
        self._bar.update(self._task, completed=self._done, note=self.note())

    def note(self) -> str:
        """Requests done, tokens/s, share of prompt tokens from the cache, time left."""
        if self._started is None or not self._served:
            return ""
        elapsed = max(time.monotonic() - self._started, 1e-9)
        left = max(self.to_serve, self._asked) - self._served
        share = self._cached / self._prompt if self._prompt else 0.0
        remaining = elapsed / self._served * left
        when = f"about {_duration(remaining)} left" if self._served >= _ENOUGH else "..."
        return (
            f"{self._served} requests, {self._completion / elapsed:.0f} tokens/s out, "
            f"{self._prompt / elapsed:.0f} in, {share:.0%} from cache, "
            f"{when}"
        )

    def _say(self, text: str, *, always: bool = False) -> None:
        if self.console.is_terminal:
            self._bar.update(self._task, note=text)
            return
        now = time.monotonic()
        if always or now - self._said >= _QUIET_SECONDS:
            self._said = now
            self.console.print(f"{self._done}/{self.cases} cases: {text}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Watchers(Watch):
    """Several watches as one."""

    def __init__(self, *watches: Watch) -> None:
        self.watches = watches

    def asked(self, case: Case, requests: list[Request], known: list[bool]) -> None:
        for watch in self.watches:
            watch.asked(case, requests, known)

    def loading(self, model: Model) -> None:
        for watch in self.watches:
            watch.loading(model)

    def loaded(self, model: Model, engine: Engine) -> None:
        for watch in self.watches:
            watch.loaded(model, engine)

    def submitted(self, request: Request) -> None:
        for watch in self.watches:
            watch.submitted(request)

    def served(self, request: Request, reply: Reply) -> None:
        for watch in self.watches:
            watch.served(request, reply)

    def given(self, case: Case, shared: Case) -> None:
        for watch in self.watches:
            watch.given(case, shared)

    def finished(self, case: Case) -> None:
        for watch in self.watches:
            watch.finished(case)
