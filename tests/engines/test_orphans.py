from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.conftest import ROOT

PARENT = """
import multiprocessing, sys, time
from persona_lab.engines.orphans import OrphanGuard

def forever():
    while True:
        time.sleep(1)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    child = context.Process(target=forever)
    child.start()
    guard = OrphanGuard()
    print(child.pid, flush=True)
    if sys.argv[1] == "close":
        guard.close()
        print(child.is_alive(), flush=True)
        child.kill()
    else:
        time.sleep(60)
"""


def parent(mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, mode],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(") ", 1)[1][0] not in "ZX"
    except FileNotFoundError:
        return False


def test_children_end_with_a_killed_parent() -> None:
    with parent("wait") as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert alive(child)
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(child)


def test_a_closed_guard_kills_nothing() -> None:
    with parent("close") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)][1] == "True\n"
