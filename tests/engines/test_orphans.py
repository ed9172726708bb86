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

def forever(grandchild):
    if grandchild:
        own = multiprocessing.get_context("fork").Process(target=forever, args=(False,))
        own.start()
        print(own.pid, flush=True)
    while True:
        time.sleep(1)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    child = context.Process(target=forever, args=(True,))
    child.start()
    time.sleep(1)
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
        pids = [int(process.stdout.readline()) for _ in range(2)]  # the grandchild, the child
        assert all(map(alive, pids))
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_a_closed_guard_kills_nothing() -> None:
    with parent("close") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[2] == "True\n"
        os.kill(int(lines[0]), signal.SIGKILL)
