"""A scripted chat server with a fixed latency, for `memory_vs_mem0`. Standard library only.

    python -m tests.bench.latency_server --users 50 --pairs 8 --latency 0.1

It prints its port and speaks the OpenAI protocol: every call to `/v1/chat/completions` takes
`latency` seconds, however many are under way. One table of scripted facts answers the prompts of
both systems, each in its own format, so that both decide the same about the same fact. It tells
the prompts apart by the format that they ask for, not by their wording:

    persona_lab   a JSON schema with `facts`, `event` or `summary`
    mem0ai 1.0.11 any JSON object, with a system message (facts) or without (decisions)

Calls are counted here, where neither system can miscount: `GET /calls` tells and starts anew.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

Messages = Sequence[Mapping[str, str]]

NOWHERE = "999"
"""The id of a memory that does not exist."""


@dataclass(frozen=True)
class Fact:
    """A fact that the model extracts, and what it then decides about it.

    Attributes:
        text: the fact; a script decides the same about the same text.
        event: ADD, UPDATE, DELETE or NOOP.
        target: text of the memory that UPDATE, DELETE or NOOP means; empty: one that does not
            exist. If it is not shown to the model, the model adds the fact.
        new: the model's text: what UPDATE writes, what DELETE adds in its place (empty: nothing),
            its own words at ADD (empty: the fact's).
    """

    text: str
    event: str = "ADD"
    target: str = ""
    new: str = ""


class Script:
    """What the model says: the facts of each user message, and the decision about each fact."""

    def __init__(self, facts: Mapping[str, Sequence[Fact]]) -> None:
        self.facts = facts
        self.decisions = {fact.text: fact for found in facts.values() for fact in found}

    def answer(self, messages: Messages, wanted: Mapping[str, Any]) -> tuple[str, str]:
        """The kind of call (`extract`, `decide` or `summary`), and its reply.

        Args:
            messages: the chat.
            wanted: `response_format` of the OpenAI protocol.
        """
        text = messages[-1]["content"]
        if wanted["type"] == "json_object":
            if messages[0]["role"] == "system":
                return "extract", self._extracted(text)
            return "decide", self._mem0_decisions(text)
        [asked] = {"facts", "event", "summary"} & set(wanted["json_schema"]["schema"]["properties"])
        if asked == "summary":
            return "summary", json.dumps({"summary": "The user spoke of everyday things."})
        if asked == "facts":
            return "extract", self._extracted(text)
        return "decide", self._decision(text)

    def _extracted(self, text: str) -> str:
        """Both show the new pair last, whatever they show before it."""
        return json.dumps({"facts": [fact.text for fact in self.facts[_last(self.facts, text)]]})

    def _decision(self, text: str) -> str:
        """persona_lab shows numbered memories, and the one fact that it asks about last."""
        shown = {memory: number for number, memory in _NUMBERED.findall(text)}
        fact = _as_shown(self.decisions[_last(self.decisions, text)], shown)
        number = "" if fact.event == "ADD" else shown.get(fact.target, NOWHERE)
        return json.dumps({"event": fact.event, "id": number, "text": fact.new})

    def _mem0_decisions(self, text: str) -> str:
        """mem0ai shows all memories, then all facts, as Python lists between backticks."""
        *blocks, facts = [ast.literal_eval(block) for block in _FENCED.findall(text)]
        shown = {memory["text"]: memory["id"] for block in blocks for memory in block}
        entries = []
        for fact in [_as_shown(self.decisions[text], shown) for text in facts]:
            known = {"id": shown.get(fact.target, NOWHERE), "text": fact.target or fact.text}
            if fact.event == "UPDATE":
                known |= {"text": fact.new, "old_memory": fact.target}
            if fact.event != "ADD":
                entries.append(known | {"event": {"NOOP": "NONE"}.get(fact.event, fact.event)})
            if fact.event == "ADD" or (fact.event == "DELETE" and fact.new):
                added = {"id": str(len(shown) + len(entries)), "text": fact.new or fact.text}
                entries.append(added | {"event": "ADD"})
        return json.dumps({"memory": entries})


_NUMBERED = re.compile(r"^(\d+): (.+)$", re.MULTILINE)
_FENCED = re.compile(r"```\s*(\[.*?\])\s*```", re.DOTALL)


def _as_shown(fact: Fact, shown: Mapping[str, str]) -> Fact:
    """The fact, or its addition where the memory that it concerns is not shown."""
    hidden = fact.event != "ADD" and fact.target and fact.target not in shown
    return Fact(fact.text) if hidden else fact


def _last(texts: Mapping[str, object], prompt: str) -> str:
    """Which of the texts ends last in the prompt; the longest of several that end there."""
    places = {text: prompt.rfind(text) for text in texts}
    return max((t for t in texts if places[t] >= 0), key=lambda t: (places[t] + len(t), len(t)))


def conversations(users: int, pairs: int) -> dict[str, list[tuple[str, str, list[Fact]]]]:
    """User -> (user message, answer, facts) of each pair; no two users share a text.

    Eight pairs hold ten facts: six ADD, two UPDATE, a DELETE and a NOOP; one pair holds none.
    """
    return {
        _name(user): [_pair(_name(user), _name(pair // 8), pair % 8) for pair in range(pairs)]
        for user in range(users)
    }


def _pair(who: str, place: str, number: int) -> tuple[str, str, list[Fact]]:
    """The pair at `number` (0-7) of a stay at `place`."""
    tea, cats = f"{who} drinks black tea in {place}", f"{who} keeps two cats in {place}"
    nurse, runs = f"{who} works as a nurse in {place}", f"{who} runs on Sundays in {place}"
    green, later = f"{who} drinks green tea in {place}", f"{who} runs on Saturdays in {place}"
    novels, walnuts = f"{who} reads novels in {place}", f"{who} is allergic to walnuts in {place}"
    said, facts = [
        ("I drink black tea and keep two cats.", [Fact(tea), Fact(cats)]),
        ("I work as a nurse.", [Fact(nurse)]),
        ("What is the capital of Peru?", []),
        ("It is green tea now.", [Fact(f"{green} now", "UPDATE", tea, green)]),
        ("I run on Sundays, and my two cats say hello.",
         [Fact(runs), Fact(f"{who} has two cats in {place}", "NOOP", cats)]),
        ("I gave up nursing.", [Fact(f"{who} is no nurse in {place} any more", "DELETE", nurse)]),
        ("Walnuts make me ill.", [Fact(walnuts)]),
        ("I read novels, and run on Saturdays now.",
         [Fact(novels), Fact(f"{later} now", "UPDATE", runs, later)]),
    ][number]  # fmt: skip
    return f"{who} in {place} here. {said}", f"Noted, {who}.", list(facts)


def _name(number: int) -> str:
    """A word for a number below 10,000: digits would look like ids."""
    first, second = divmod(number, 100)
    return "".join("BCDFGHJKLMNPQRSTVWXZ"[n // 5] + "aeiou"[n % 5] for n in (first, second)).title()


class _Chat(BaseHTTPRequestHandler):
    """One connection, kept open; written at once, or the system would hold small parts back."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    script: ClassVar[Script]
    latency: ClassVar[float]
    calls: ClassVar[Counter[str]] = Counter()
    lock: ClassVar[threading.Lock] = threading.Lock()

    def do_GET(self) -> None:
        with self.lock:
            calls = dict(self.calls)
            self.calls.clear()
        self._send(calls)

    def do_POST(self) -> None:
        started = time.monotonic()
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind, text = self.script.answer(asked["messages"], asked["response_format"])
        with self.lock:
            self.calls[kind] += 1
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        time.sleep(max(0.0, self.latency - (time.monotonic() - started)))
        self._send(
            {
                "id": "scripted",
                "object": "chat.completion",
                "created": 0,
                "model": asked["model"],
                "choices": [choice],
            }
        )

    def _send(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def serve(users: int, pairs: int, latency: float) -> None:
    """Serves until it is stopped; prints the port first."""
    said = [pair for each in conversations(users, pairs).values() for pair in each]
    _Chat.script = Script({message: facts for message, _, facts in said})
    _Chat.latency = latency
    with _Server(("127.0.0.1", 0), _Chat) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def arguments(purpose: str) -> argparse.Namespace:
    """Options that the server and the comparison share."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=8, help="message pairs a user")
    parser.add_argument("--latency", type=float, default=0.1, help="seconds a call")
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments("a scripted chat server with a fixed latency")
    serve(options.users, options.pairs, options.latency)
