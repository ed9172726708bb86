"""What retrieval methods see and show of a history (section 5.1, Appendix H.2.1).

The unit is one turn, user and assistant text together; the query is the bare question. Evidence of
a question are the units of the sessions that voice its preference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from persona_lab.benchmarks.realpref.history import Built
from persona_lab.benchmarks.realpref.prompts import NOW_RECALL, REMINDER
from persona_lab.benchmarks.realpref.records import Query, Turn
from persona_lab.core.flow import Flow
from persona_lab.core.recipe import Strict
from persona_lab.methods.rag import retrieve

UnitName = Literal["turn", "user", "message"]
"""A turn, its user message alone, or each message by itself."""


class Retrieval(Strict):
    """What is retrieved, and how (Appendix H.2.1).

    Attributes:
        k: how many units. unit: a turn, its user message alone, or each message by itself.
        user_only: compare the query with what the user said only.
        encoder: the one that `fusion` uses beside bm25.
    """

    k: int = Field(default=5, ge=1)
    unit: UnitName = "turn"
    user_only: bool = False
    encoder: str = "simcse"


@dataclass(frozen=True)
class Unit:
    """Something that can be retrieved.

    Attributes:
        indexed: the text that is compared with the query. shown: how a prompt shows it.
        turn: number of its turn in the history. voices: the preference that it voices, or "".
    """

    indexed: str
    shown: str
    turn: int
    voices: str


def units(built: Built, unit: UnitName, *, user_only: bool) -> list[Unit]:
    """The retrievable units of a history, oldest first; blank messages are none.

    Args:
        user_only: whether only what the user said is compared with the query.
    """
    made = []
    for number, (turn, voices) in enumerate(built.turns):
        if unit == "turn":
            indexed = turn.user if user_only else f"{turn.user}\n{turn.assistant}"
            made.append(Unit(indexed, _shown(turn), number, voices))
        else:
            made.append(Unit(turn.user, f"- user: {turn.user}", number, voices))
        if unit == "message" and not user_only:
            made.append(Unit(turn.assistant, f"- assistant: {turn.assistant}", number, voices))
    return [one for one in made if one.indexed.strip()]


def evidence(found: Sequence[Unit], preference: str) -> list[int]:
    """Positions of the units that voice a preference."""
    return [i for i, unit in enumerate(found) if unit.voices == preference]


def search(
    retriever: str,
    query: Query,
    offered: Sequence[Unit],
    relevant: Sequence[int],
    how: Retrieval,
    seed: int,
) -> Flow[list[int]]:
    """Positions of the units that a retriever finds for a bare question, best first.

    Args:
        retriever: see `persona_lab.methods.rag`. relevant: what the oracle gives.
    """
    hits = yield from retrieve(
        retriever,
        query.query,
        [unit.indexed for unit in offered],
        how.k,
        encoder=how.encoder,
        evidence=relevant,
        seed=seed,
    )
    return [hit.position for hit in hits]


def rag_text(found: Sequence[Unit]) -> str:
    """The paper's frame around retrieved units, best first (Appendix H.2.1).

    The paper prints five; with other numbers the frame says the number that there are.
    """
    listed = [f"Context turn {n}:\n{unit.shown}" for n, unit in enumerate(found, 1)]
    head = (
        f"{REMINDER}\nHere are the {len(found)} most relevant contextual turns to my query that "
        "you can consider when answering the question."
    )
    return "\n".join([head, *listed, NOW_RECALL])


def _shown(turn: Turn) -> str:
    return f"- user: {turn.user}\n- assistant: {turn.assistant}"
