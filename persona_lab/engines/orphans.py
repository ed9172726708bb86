"""No orphans: processes that this one started end with it, even when it is killed outright.

vLLM's engine-core process does not notice that its parent was killed: it would go on with its
requests, then wait for more, holding the device; its workers notice only between steps. A small
helper notices, because its standard input closes when the parent ends, however that came about.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

_HELPER = """
import os, signal, sys
if sys.stdin.buffer.read() != b"closed":
    for pid in map(int, sys.argv[1:]):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
"""


class OrphanGuard:
    """Kills the `multiprocessing` children that exist now, and theirs, should this process die."""

    def __init__(self) -> None:
        children = [child.pid for child in multiprocessing.active_children() if child.pid]
        pids = [str(pid) for pid in [*children, *_descendants(children)]]
        self._helper = subprocess.Popen(
            [sys.executable, "-c", _HELPER, *pids],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal is not for it
        )

    def close(self) -> None:
        """The children have been ended in order; there is nothing left to guard."""
        self._helper.communicate(b"closed")


def _descendants(pids: list[int]) -> list[int]:
    """Children of the processes, and their children, where the system has /proc."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rsplit(") ", 1)[1].split()
        except (OSError, IndexError):
            continue  # ended meanwhile
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = list[int](), list(pids)
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found
