"""A memory on the scripted engine: what is extracted and decided stands in two tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.drive import drive
from persona_lab.core.flow import Flow, Model
from persona_lab.core.prompt import Prompt, Reply, Request, Sampling
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine
from persona_lab.memory.ingest import ingest
from persona_lab.memory.prompts import DECIDE, EXTRACT, SUMMARISE
from persona_lab.memory.records import Exchange, Ingested

Facts = Mapping[str, Sequence[str] | str | Reply]
"""User message -> its facts, or the reply itself; a message that is not there has none."""
Decisions = Mapping[str, tuple[str, str, str] | str | Reply]
"""Fact -> event, text of the memory that is meant and new text, or the reply itself; ADD if it is
not there."""


@dataclass(frozen=True)
class Talk:
    """One user."""

    id: str
    exchanges: tuple[Exchange, ...]


def talk(name: str, *users: str) -> Talk:
    """A user who says this, one session a message."""
    return Talk(name, tuple(Exchange(u, "I see.", f"s{n}/t1") for n, u in enumerate(users, 1)))


class Letters:
    """An encoder of letter counts, hashed to 64 places; it notes each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            np.add.at(row, [ord(letter) % 64 for letter in text], 1.0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


def ask(text: str, example: str, schema: str) -> Request:
    return Request("memory", Prompt.ask(text), Sampling(256), example=example, schema=schema)


def text_of(request: Request) -> str:
    return request.prompt.tail[-1].content


def shown(prompt: str) -> list[str]:
    """The memories of a decision's prompt."""
    listed = prompt.removeprefix(DECIDE).split("\n\n## New fact\n")[0].split("## Memories\n")[1]
    return [] if listed == "(none)" else [line.split(": ", 1)[1] for line in listed.split("\n")]


def script(facts: Facts, decisions: Decisions | None = None) -> Callable[[Request], Reply]:
    """Replies of a model that does what the tables say."""

    def reply(request: Request) -> Reply:
        prompt = text_of(request)
        if prompt.startswith(SUMMARISE):
            return Reply(json.dumps({"summary": f"Summary of {len(prompt)} letters."}))
        if prompt.startswith(EXTRACT):
            said = prompt.split("## New exchange\nUser: ")[1].split("\nAssistant: ")[0]
            return _written(facts.get(said, []), lambda found: {"facts": list(found)})
        fact = prompt.split("## New fact\n")[1]
        return _written(
            (decisions or {}).get(fact, ("ADD", "", "")),
            lambda made: _decision(made, shown(prompt)),
        )

    return reply


@dataclass
class Remembering:
    """Runs `ingest` for talks, and keeps what was asked and encoded."""

    folder: Path
    reply: Callable[[Request], Reply]
    options: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    encoder: Letters = field(default_factory=Letters)

    def of(self, *talks: Talk, **driving: Any) -> dict[str, Ingested]:
        """Talk -> its memory."""

        def flow(case: Talk) -> Flow[Ingested]:
            return ingest(case.exchanges, ask, "letters", **self.options)

        def answer(request: Request) -> Reply:
            self.requests.append(request)
            return self.reply(request)

        models = {"memory": Model("m", "m", lambda: ScriptedEngine(answer))}
        encoders = {"letters": self.encoder}
        with Store(self.folder, "w") as store:
            made = list(drive(talks, flow, models, store, encoders=encoders, **driving))
        assert not [o.error for o in made if o.error]
        return {o.case.id: o.result for o in made if o.result}


def texts(ingested: Ingested) -> list[str]:
    return [memory.text for memory in ingested.memories]


def _decision(made: tuple[str, str, str], memories: list[str]) -> dict[str, str]:
    event, meant, text = made
    number = str(memories.index(meant) + 1) if meant in memories else meant
    return {"event": event, "id": number, "text": text}


def _written(value: Any, form: Callable[[Any], object]) -> Reply:
    if isinstance(value, Reply):
        return value
    return Reply(value if isinstance(value, str) else json.dumps(form(value), ensure_ascii=False))
