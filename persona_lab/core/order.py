"""The order of work, and what it must cost at least.

`PrefixQueue` hands requests out so that neighbours share the longest prefixes; `PrefixTree`
counts the prompt tokens that no order could avoid computing.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence
from hashlib import blake2b

from persona_lab.core.prompt import Request


class PrefixQueue:
    """Waiting requests, taken like floors by a lift: on in one direction, then back.

    Sorted by their messages, requests are the depth-first walk of their prefix tree. What arrives
    behind the lift waits for its way back, so one walk computes each prefix about once.
    """

    def __init__(self) -> None:
        self._waiting: list[Request] = []
        self._last: Request | None = None
        self._upwards = True

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, request: Request) -> None:
        """Adds a request; O(n) moves of pointers."""
        insort(self._waiting, request, key=_order)

    def pop(self) -> Request:
        """The next request on the lift's way.

        Raises:
            IndexError: nothing waits.
        """
        if not self._waiting:
            raise IndexError("the queue is empty")
        here = bisect_left(self._waiting, _order(self._last), key=_order) if self._last else 0
        if self._upwards and here == len(self._waiting):
            self._upwards = False
        elif not self._upwards and here == 0:
            self._upwards = True
        self._last = self._waiting.pop(here if self._upwards else here - 1)
        return self._last


def _order(request: Request) -> tuple[object, ...]:
    return request.order


class PrefixTree:
    """Distinct prompt tokens, in the engine's cache blocks.

    An engine reuses whole blocks, and must compute at least the last token of each prompt; so
    each prompt costs its new blocks plus what follows its last reusable block.

    Args:
        block_size: tokens per cache block; 1 for an engine that reuses single tokens.
    """

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._blocks: set[bytes] = set()

    def add(self, ids: Sequence[int]) -> int:
        """Adds one prompt and returns the tokens that it adds.

        Args:
            ids: token ids [T], T >= 1.
        """
        size = self.block_size
        reusable = (len(ids) - 1) // size
        raw = array("I", ids[: reusable * size]).tobytes()
        digest, new = b"", 0
        for block in range(reusable):
            chunk = raw[block * size * 4 : (block + 1) * size * 4]
            digest = blake2b(digest + chunk, digest_size=16).digest()
            if digest not in self._blocks:
                self._blocks.add(digest)
                new += size
        return new + len(ids) - reusable * size
