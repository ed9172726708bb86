"""What goes into a memory and what comes out: exchanges, memories, the events that made them.

Exchange("I'm off coffee, tea now.", "Noted!", "s3/t2")
Memory("5f0c...", "Drinks tea", "s1/t4",
       (Event("ADD", "s1/t4", "", "Drinks coffee"),
        Event("UPDATE", "s3/t2", "Drinks coffee", "Drinks tea")))
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from persona_lab.core.prompt import Request

Kind = Literal["ADD", "UPDATE", "DELETE", "NOOP"]
KINDS: tuple[Kind, ...] = ("ADD", "UPDATE", "DELETE", "NOOP")
Stage = Literal["extract", "decide", "summary"]
Variant = Literal["two_stage", "add_only"]
"""The paper's algorithm, or what mem0ai does since 2.0: extract, and add."""

Asker = Callable[[str, str, str], Request]
"""Makes a request of a text, an example of its answer, and the answer's JSON schema."""


@dataclass(frozen=True)
class Exchange:
    """A user message, the assistant's answer, and where it stands, such as `s3/t2`."""

    user: str
    assistant: str
    source: str


@dataclass(frozen=True)
class Fact:
    """A fact as it was extracted, and the id of the memory that it becomes if it is added."""

    text: str
    exchange: Exchange
    id: str


@dataclass(frozen=True)
class Event:
    """What an exchange did to one memory.

    Attributes:
        source: the exchange's.
        before, after: the memory's text; empty before ADD and after DELETE, equal at NOOP.
        note: why it is not what the model asked for; empty if it is.
    """

    kind: Kind
    source: str
    before: str
    after: str
    note: str = ""


@dataclass(frozen=True)
class Memory:
    """One remembered statement.

    Attributes:
        id: stable; it derives from the exchange and the fact that the memory was added from.
        text: as it reads now, or as it read when it was removed.
        source: the exchange that it was added from; later ones are in its history.
        history: its events, oldest first.
    """

    id: str
    text: str
    source: str
    history: tuple[Event, ...]


@dataclass(frozen=True)
class Failure:
    """A reply that nothing could be made of.

    Attributes:
        source: the exchange it belongs to; for a summary, the last one that it was to cover.
        reason: `unparsed`, `empty`, `truncated`, `unknown_id`, `no_text`, or the engine's own.
        fact: at `decide`, the fact that the reply was about.
        reply: as it came; two failures of one kind are equal whatever it says.
    """

    source: str
    stage: Stage
    reason: str
    fact: str = ""
    reply: str = field(default="", compare=False)


@dataclass(frozen=True)
class Counts:
    """How much was read, and what became of it.

    Attributes:
        facts: facts that were read; skipped: entries that are blank or no text.
        events: kind -> how often, all four kinds; what was done, not what was asked for.
        duplicates: facts and updated texts that another memory already says, word for word.
        language_mismatch: facts that are written, or were merged into a text that is written, in
            another script than the user writes in.
    """

    exchanges: int
    facts: int
    skipped: int
    events: Mapping[Kind, int]
    duplicates: int
    language_mismatch: int


@dataclass(frozen=True)
class Ingested:
    """The memory of one user: oldest memories first, removed ones in the order of removal."""

    memories: tuple[Memory, ...]
    removed: tuple[Memory, ...]
    failures: tuple[Failure, ...]
    counts: Counts


def whence(ingested: Ingested, memory_id: str) -> list[Event]:
    """Which exchange wrote what, of a memory that there is or that was removed.

    Raises:
        ValueError: there never was a memory with this id.
    """
    for memory in (*ingested.memories, *ingested.removed):
        if memory.id == memory_id:
            return list(memory.history)
    raise ValueError(f"no memory has the id {memory_id!r}: ids are those of one user's ingestion")


def fact_id(source: str, exchange: int, position: int, text: str) -> str:
    """The id of a fact: the same in every run, and no other fact's of its user.

    Args:
        exchange: number of the exchange, since two may carry one source.
        position: number of the fact among those of its exchange.
    """
    named = f"{source}\0{exchange}\0{position}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(named, digest_size=8).hexdigest()
