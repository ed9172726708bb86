"""Mem0 on RealPref's histories (Appendix H.2.3): what is written, recalled and shown.

Every turn of the history is an exchange, user-free ones too. The query is the bare question.
Evidence of a question are the turns of the sessions that voice its preference; a memory stands for
the turns that it rests on. That is where it came from, not what it says: what a memory dropped of
its turns is not seen here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from persona_lab.benchmarks.realpref.history import Built
from persona_lab.benchmarks.realpref.prompts import NOW_RECALL, REMINDER
from persona_lab.benchmarks.realpref.records import Asked, Expression, User
from persona_lab.core.recipe import Strict
from persona_lab.memory.records import Exchange, Memory, Variant
from persona_lab.methods.rag import ORACLE, RANDOM, differing
from persona_lab.metrics.retrieval import (
    Measured,
    Sources,
    by_chance,
    reciprocal_rank,
    sources_at_best,
    sources_by_chance,
    sources_recalled,
)


class Mem0Settings(Strict):
    """How the method `mem0` writes and recalls; the defaults are Mem0's own, with this project's
    encoder: the paper does not say which it used.

    Attributes:
        variant: the paper's two stages, or `add_only`.
        messages: last messages that extraction sees (Mem0's m). similar: memories that a decision
            sees (Mem0's s). facts: that one turn gives at most, where
            the engine holds answers to their schema. k: memories that a question
            recalls.
        history: whether the prompt keeps the whole history before the memories.
    """

    variant: Variant = "two_stage"
    messages: int = Field(default=10, ge=0)
    similar: int = Field(default=10, ge=1)
    facts: int = Field(default=10, ge=1)
    k: int = Field(default=5, ge=1)
    encoder: str = "simcse"
    history: Literal["kept", "replaced"] = "kept"

    @property
    def difference(self) -> str:
        """What is not the default, such as `minilm_add_only_k_10`; empty if nothing is."""
        decides = ("similar",) if self.variant == "two_stage" else ()
        parts = differing(self, "encoder", "variant", bare=True)
        return "_".join(parts + differing(self, "messages", *decides, "facts", "k", "history"))


@dataclass(frozen=True)
class Remembered:
    """A history whose memory is written; questions after it share it.

    Attributes:
        asked: one of them; it matters in the Easy Test, whose history is that of its preference.
    """

    user: User
    asked: Asked
    expression: Expression
    context: str

    @property
    def id(self) -> str:
        """`00001/experience_feedback/extended/memory`; in the Easy Test it begins with the query's
        id."""
        whose = self.asked.id if self.context == "easy_test" else self.user.id
        return f"{whose}/{self.expression}/{self.context}/memory"


def exchanges(built: Built) -> list[Exchange]:
    """The turns of a history, as `t1`, `t2`, ...; those that contexts share have the same names."""
    turns = enumerate(built.turns, 1)
    return [Exchange(turn.user, turn.assistant, f"t{n}") for n, (turn, _) in turns]


def mem0_text(recalled: Sequence[Memory]) -> str:
    """Recalled memories, most similar first, in the frame that the paper prints for RAG (H.2.1);
    for Mem0 it prints none."""
    listed = [f"Memory {n}: {memory.text}" for n, memory in enumerate(recalled, 1)]
    head = (
        f"{REMINDER}\nHere are the {len(recalled)} memories of our conversations most relevant to "
        "my query that you can consider when answering the question."
    )
    return "\n".join([head, *listed, NOW_RECALL])


def evidence_turns(built: Built, preference: str) -> list[int]:
    """Places of the turns, from 0, that voice a preference."""
    return [place for place, (_, voices) in enumerate(built.turns) if voices == preference]


def recall_measured(
    held: Sources, ranked: Sequence[int], evidence: Collection[int], k: int
) -> dict[str, tuple[Measured, Measured]]:
    """Recall of the evidence turns, and the reciprocal rank of the first memory that stands for
    one: as recalled, by chance (`random`), and as far as k memories can hold them (`oracle`).

    Evidence that no memory stands for is recalled by nothing, at no rank: 0.

    Args:
        held: places of the turns that each memory stands for.
        ranked: memories recalled, best first.
    """
    if not evidence:
        return {}
    useful = [i for i, turns in enumerate(held) if set(turns).intersection(evidence)]
    none = Measured(0.0)
    rank = reciprocal_rank(ranked, useful) if useful else none
    chance = by_chance(len(held), len(useful), k)[1] if useful else none
    return {
        "": (sources_recalled(held, ranked, evidence), rank),
        RANDOM: (sources_by_chance(held, evidence, k), chance),
        ORACLE: (sources_at_best(held, evidence, k), Measured(1.0) if useful else none),
    }
