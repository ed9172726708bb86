"""persona_lab's memory against mem0ai 1.0.11, by the wall clock, on one scripted chat server.

    make bench-memory

It has an environment of its own, since mem0ai holds protobuf below 7. Nothing leaves the machine.

Both read the same conversations, ask the same server (`latency_server`, a process of its own) and
search the same vectors. mem0ai is used as its documentation does: one `Memory`, and for each pair
`memory.add(messages, user_id=...)`, one after the other; its vector store is its default, qdrant,
in memory, which filters by user before it cuts the list (its faiss does not). persona_lab's flows
are driven with the real reply store, every reply on the disk before its flow goes on. What both
end with must agree. The clock starts with the first pair and stops when all users are read.

The ratio measures users side by side against one after another, extractions asked together where
they can be, and each one's own work between the calls. persona_lab asks more often: once for each
fact and now and then for a summary, where mem0ai asks once for all facts of a pair. So many facts
a pair, or few users, make the ratio smaller. AsyncMemory would too, but fails with users side by
side on qdrant in memory (an IndexError: that collection is not made for several threads).

The last line is one JSON object; `agree` says whether the final memory texts are the same.

`memory_on_vllm` asks a real model instead.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.drive import drive
from persona_lab.core.flow import Flow, Model
from persona_lab.core.prompt import Prompt, Reply, Request, Sampling
from persona_lab.core.store import Store
from persona_lab.memory.ingest import ingest
from persona_lab.memory.records import Exchange, Ingested
from tests.bench.latency_server import arguments, conversations

DIMENSIONS = 64
MOST_TOKENS = 256
"""Of an answer, for both."""


class HashVectors:
    """Letter trigrams hashed to unit vectors: cheap, the same everywhere, near for like texts."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, D], as persona_lab's encoders give them."""
        rows = [self.embed(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(rows), DIMENSIONS)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """One text, as mem0ai asks for it."""
        row = np.zeros(DIMENSIONS)
        padded = f" {text.lower()} "
        for i in range(len(padded) - 2):
            digest = hashlib.blake2b(padded[i : i + 3].encode(), digest_size=2).digest()
            row[int.from_bytes(digest, "big") % DIMENSIONS] += 1
        return list(row / (np.linalg.norm(row) or 1.0))


def open_mem0(folder: Path, port: int = 1, model: str = "scripted") -> Any:
    """mem0ai's Memory with qdrant in memory and `HashVectors`; the model answers at `port`.

    The environment must hold MEM0_TELEMETRY=False and MEM0_DIR before mem0 is first imported.
    """
    from mem0 import Memory

    settings = {"api_key": "none", "model": model}
    url, answers = f"http://127.0.0.1:{port}/v1", {"temperature": 0.0, "max_tokens": MOST_TOKENS}
    memory = Memory.from_config(
        {
            "llm": {
                "provider": "openai",
                "config": settings | answers | {"openai_base_url": url},
            },
            "embedder": {"provider": "openai", "config": settings},
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": ":memory:", "embedding_model_dims": DIMENSIONS},
            },
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = HashVectors()
    return memory


def mem0_texts(memory: Any, user: str) -> list[str]:
    """What mem0ai remembers of a user, sorted."""
    return sorted(m["memory"] for m in memory.get_all(user_id=user, limit=10_000)["results"])


class ServedEngine:
    """Sends requests to a chat server, up to `places` at once, over connections kept open."""

    def __init__(self, port: int, model: str = "scripted", places: int = 64) -> None:
        self._port, self._model, self._places, self._under_way = port, model, places, 0
        self._threads = ThreadPoolExecutor(places)
        self._here = threading.local()
        self._done: queue.SimpleQueue[tuple[Request, Reply]] = queue.SimpleQueue()

    def room(self) -> int:
        """Places left."""
        return self._places - self._under_way

    def submit(self, request: Request) -> None:
        """Takes a request in."""
        self._under_way += 1
        self._threads.submit(lambda: self._done.put((request, self._ask(request))))

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        """All that is answered, at least one unless the time is up."""
        found = []
        try:
            found.append(self._done.get(timeout=timeout))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            self._under_way -= len(found)
            return found

    def close(self) -> None:
        """Waits for what is under way."""
        self._threads.shutdown()

    def _ask(self, request: Request) -> Reply:
        if not hasattr(self._here, "connection"):
            self._here.connection = http.client.HTTPConnection("127.0.0.1", self._port)
        try:
            self._here.connection.request(*_post(request, self._model))
            [choice] = json.loads(self._here.connection.getresponse().read())["choices"]
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            return Reply.failed(repr(error))
        text = choice["message"]["content"]
        if choice["finish_reason"] == "length":
            return Reply(text, "length", "truncated", "truncated")
        return Reply(text)


def response_format(request: Request) -> dict[str, Any]:
    """The request's schema in the OpenAI protocol."""
    schema = {"name": "reply", "schema": json.loads(request.schema or "{}")}
    return {"type": "json_schema", "json_schema": schema}


def _post(request: Request, model: str) -> tuple[str, str, str, dict[str, str]]:
    body = {
        "model": model,
        "temperature": request.sampling.temperature,
        "messages": [{"role": m.role, "content": m.content} for m in request.prompt],
        "max_tokens": request.sampling.max_tokens,
        "response_format": response_format(request),
    }
    header = {"Content-Type": "application/json"}
    return "POST", "/v1/chat/completions", json.dumps(body), header


Memories = dict[str, Ingested]
"""User -> memory."""


@dataclass(frozen=True)
class User:
    """A user and what was said."""

    id: str
    exchanges: tuple[Exchange, ...]


def remember(user: User, facts: int = 10) -> Flow[Ingested]:
    """persona_lab's memory as an experiment would use it."""
    sampling = Sampling(max_tokens=MOST_TOKENS)

    def ask(text: str, example: str, schema: str) -> Request:
        return Request("memory", Prompt.ask(text), sampling, example, schema=schema)

    return (yield from ingest(user.exchanges, ask, "hash", facts=facts))


def run_persona_lab(
    users: Sequence[User], engine: ServedEngine, folder: Path, facts: int = 10
) -> Memories:
    """The memory of each user, from at most so many facts a pair."""
    models = {"memory": Model("served", "served", lambda: engine)}
    encoders = {"hash": HashVectors()}
    made = {}
    with Store(folder, "bench") as store:
        for outcome in drive(
            users, partial(remember, facts=facts), models, store, encoders=encoders
        ):
            if outcome.result is None:
                raise SystemExit(f"persona_lab failed: {outcome.error}")
            made[outcome.case.id] = outcome.result
    return made


def texts_of(memories: Memories) -> dict[str, list[str]]:
    """User -> memory texts, sorted, as the scripted server leads to them.

    Raises:
        SystemExit: a reply could not be read.
    """
    if failures := [failure for made in memories.values() for failure in made.failures]:
        raise SystemExit(f"persona_lab failed: {failures}")
    return {user: sorted(m.text for m in made.memories) for user, made in memories.items()}


def run_mem0(users: Sequence[User], memory: Any) -> dict[str, list[str]]:
    """Adds pair after pair."""
    for user in users:
        for exchange in user.exchanges:
            messages = [
                {"role": "user", "content": exchange.user},
                {"role": "assistant", "content": exchange.assistant},
            ]
            memory.add(messages, user_id=user.id)
    return {user.id: mem0_texts(memory, user.id) for user in users}


@contextmanager
def server(users: int, pairs: int, latency: float) -> Iterator[int]:
    """The scripted server in a process of its own; its port."""
    options = [f"--users={users}", f"--pairs={pairs}", f"--latency={latency}"]
    command = [sys.executable, "-m", "tests.bench.latency_server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def calls(port: int) -> dict[str, int]:
    """Calls that the server counted since it was last asked, by kind."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/calls")
    counted: dict[str, int] = json.loads(connection.getresponse().read())
    return dict(sorted(counted.items()))


def people_of(users: int, pairs: int) -> list[User]:
    """The conversations of both benchmarks."""
    return [
        User(name, tuple(Exchange(u, a, f"t{i}") for i, (u, a, _) in enumerate(said)))
        for name, said in conversations(users, pairs).items()
    ]


def compare(users: int, pairs: int, latency: float) -> dict[str, Any]:
    """Both systems on the same conversations."""
    people = people_of(users, pairs)
    with tempfile.TemporaryDirectory() as folder, server(users, pairs, latency) as port:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder}
        memory = open_mem0(Path(folder), port)
        engine, replies = ServedEngine(port), Path(folder) / "replies"
        ours = _timed(lambda: texts_of(run_persona_lab(people, engine, replies)), port)
        theirs = _timed(lambda: run_mem0(people, memory), port)
        memory.close()
    systems = {"persona_lab": ours, "mem0ai": theirs}
    return {
        "users": users,
        "pairs": pairs,
        "latency": latency,
        "seconds": {name: round(system.seconds, 2) for name, system in systems.items()},
        "calls": {name: system.calls for name, system in systems.items()},
        "ratio": round(theirs.seconds / ours.seconds, 1),
        "memories": sum(map(len, ours.texts.values())),
        "agree": ours.texts == theirs.texts,
    }


@dataclass(frozen=True)
class Timed:
    """One system's wall clock, its calls by kind, and the memory texts of each user."""

    seconds: float
    calls: dict[str, int]
    texts: dict[str, list[str]]


def _timed(run: Callable[[], dict[str, list[str]]], port: int) -> Timed:
    started = time.perf_counter()
    texts = run()
    return Timed(time.perf_counter() - started, calls(port), texts)


def main() -> None:
    """Prints a table and, as the last line, the same as JSON."""
    options = arguments("persona_lab's memory against mem0ai's, by the wall clock")
    result = compare(options.users, options.pairs, options.latency)
    print(f"{'':12} {'seconds':>9} {'calls':>6} {'extract':>8} {'decide':>7} {'summary':>8}")
    for system, seconds in result["seconds"].items():
        by_kind = result["calls"][system]
        kinds = [by_kind.get(kind, 0) for kind in ("extract", "decide", "summary")]
        row = "{:12} {:9.2f} {:6} {:8} {:7} {:8}"
        print(row.format(system, seconds, sum(kinds), *kinds))
    print(f"{result['ratio']} times faster; final memories agree: {result['agree']}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
