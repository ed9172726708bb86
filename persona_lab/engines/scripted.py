"""A deterministic engine: a function from request to reply. Dry runs and fast tests use it.

It keeps an imaginary prefix cache, so that its counts behave like those of a real engine.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from persona_lab.core.errors import EngineError
from persona_lab.core.order import PrefixTree
from persona_lab.core.prompt import Counts, Reply, Request


def example_reply(request: Request) -> Reply:
    """The reply that the request's own parser accepts."""
    return Reply(request.example)


def byte_ids(request: Request) -> list[int]:
    """Token ids for want of a tokenizer: the UTF-8 bytes of all messages."""
    text = "".join(f"{m.role}\n{m.content}\n" for m in request.prompt)
    return list(text.encode("utf-8", "surrogatepass"))


def word_ids(request: Request) -> list[int]:
    """Token ids for want of the model's tokenizer: words and signs, about as many as tokens."""
    text = "".join(f"{m.role}\n{m.content}\n" for m in request.prompt)
    words = re.findall(r"\w{1,8}|[^\w\s]", text)
    return [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words]


class ScriptedEngine:
    """Answers with `reply`; fails where it is told to.

    Args:
        reply: makes the reply of a request.
        ids: makes its token ids, for the counts.
        misfit: why a request of that many prompt tokens does not fit (empty: it does); it is
            answered all the same, with the reason as a flag, so that a plan sees what follows.
        dies_after: requests answered before the engine dies; None never dies.
        places: requests that it takes at once.
        block_size: of its imaginary prefix cache, in tokens.
    """

    def __init__(
        self,
        reply: Callable[[Request], Reply] = example_reply,
        *,
        ids: Callable[[Request], list[int]] = byte_ids,
        misfit: Callable[[Request, int], str] = lambda request, tokens: "",
        dies_after: int | None = None,
        places: int = 8,
        block_size: int = 16,
    ) -> None:
        self._reply, self._ids, self._misfit = reply, ids, misfit
        self._dies_after, self._places = dies_after, places
        self.block_size = block_size
        self._tree = PrefixTree(block_size)
        self._taken: deque[Request] = deque()
        self.answered = 0
        self.closed = False

    def room(self) -> int:
        """Places left."""
        return self._places - len(self._taken)

    def submit(self, request: Request) -> None:
        """Takes a request in."""
        self._taken.append(request)

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        """Answers the oldest request.

        Raises:
            EngineError: it was told to die here.
        """
        if not self._taken:
            return []
        if self._dies_after is not None and self.answered >= self._dies_after:
            raise EngineError("the scripted engine died, as it was told to")
        request = self._taken.popleft()
        self.answered += 1
        return [(request, self._answer(request))]

    def close(self) -> None:
        """Nothing to free."""
        self.closed = True

    def _answer(self, request: Request) -> Reply:
        ids = self._ids(request)
        reply, unique = self._reply(request), self._tree.add(ids)
        if problem := self._misfit(request, len(ids)):
            reply = replace(reply, flags=(*reply.flags, problem))
        counts = Counts(len(ids), len(ids) - unique, len(reply.text.split()), unique)
        return replace(reply, counts=counts)
