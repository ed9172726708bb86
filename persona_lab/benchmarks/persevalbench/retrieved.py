"""A further context, `retrieved`: the earlier turns that are most similar to the target request.

Beyond the paper, whose contexts are fixed windows or know the evidence. What can be retrieved is a
turn, that is one message; the query is the bare target request. What is found is shown in the order
of the conversation. At most as many turns as `recent` shows, so that with an encoder the two differ
in which turns they are and not in how many; `bm25` finds only turns that share a word with the
request, and the oracle shows no more than the evidence. Evidence are the turns that express state
A or B.
"""

from __future__ import annotations

from pydantic import Field

from persona_lab.benchmarks.persevalbench.context import RECENT
from persona_lab.benchmarks.persevalbench.records import Scenario
from persona_lab.core.flow import Flow
from persona_lab.core.recipe import Strict
from persona_lab.methods.rag import retrieve, variant


class Search(Strict):
    """How turns are searched.

    Attributes:
        k: how many turns. encoder: the one that `fusion` uses beside bm25.
    """

    k: int = Field(default=RECENT, ge=1)
    encoder: str = "simcse"


class Retrieval(Search):
    """What the context `retrieved` shows.

    Attributes:
        retriever: `bm25`, `fusion`, `random`, `oracle`, or the name of an encoder.
    """

    retriever: str = Field(default="simcse", min_length=1)

    @property
    def variant(self) -> str:
        """What is not the default, such as `minilm_k_10`; empty if nothing is."""
        return variant(self, "k")


def offered(scenario: Scenario) -> list[int]:
    """Numbers of the turns that can be retrieved, in order: all before the target but blank ones,
    which have no vector."""
    return [n for n, turn in enumerate(scenario.turns[:-1], 1) if turn.text.strip()]


def search(scenario: Scenario, retriever: str, how: Search, seed: int) -> Flow[list[int]]:
    """Numbers of the k turns that a retriever finds for the target request, best first.

    Args:
        retriever: see `persona_lab.methods.rag`; the oracle gives evidence in its order.
        seed: of the random order.
    """
    numbers = offered(scenario)
    hits = yield from retrieve(
        retriever,
        scenario.request,
        [scenario.turns[n - 1].text for n in numbers],
        how.k,
        encoder=how.encoder,
        evidence=[place for place, n in enumerate(numbers) if n in scenario.evidence],
        seed=seed,
    )
    return [numbers[hit.position] for hit in hits]
