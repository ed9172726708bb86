"""What a prompt shows of a memory, beyond the paper: all, what RAG retrieves, what passes a filter.

    whole     every statement (section 3.2)
    rag       the k statements that are most similar to what is asked for
    filter    of these, the ones that the model names when asked which suit recipient and task

The query is the request of Figure 10, recipient and task in one sentence. Statements keep their
order in memory: a block differs from the whole one in what it leaves out and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from persona_lab.benchmarks.benchpres.memory import Memory
from persona_lab.benchmarks.benchpres.prompts import request_for
from persona_lab.benchmarks.benchpres.records import Context, Instance
from persona_lab.benchmarks.benchpres.scoring import Problem
from persona_lab.benchmarks.benchpres.settings import RetrievalSettings
from persona_lab.core.experiment import stable_digest
from persona_lab.core.flow import Flow
from persona_lab.core.prompt import Prompt, Request
from persona_lab.methods.appropriateness import suitable
from persona_lab.methods.rag import retrieve

UNREADABLE, FAILED = "filter_unreadable", "filter_failed"
"""Why a message was not written: the filter's reply could not be read, or there is none."""


@dataclass(frozen=True)
class Block:
    """A memory block, and how it came about.

    Attributes:
        memory: what the prompt shows; nothing, where there is a problem.
        whole: what it was chosen from.
        ranked: places in the whole memory, counted from 0, most similar first, beyond the k too.
        retrieved: the first k of them.
        passed: those of them that the filter kept; None without a filter or a reply to read.
        problem: why the filter left nothing to show.
    """

    memory: Memory
    whole: Memory
    ranked: tuple[int, ...]
    retrieved: frozenset[int]
    passed: frozenset[int] | None = None
    problem: Problem | None = None


def retrieved(
    whole: Memory,
    context: Context,
    instances: Sequence[Instance],
    how: RetrievalSettings,
    seed: int,
) -> Flow[Block]:
    """The k statements of a memory that are most similar to the request, by the retriever.

    Args:
        instances: of the message; the oracle finds those that are to be applied.
        seed: of the random order, which differs by context and memory.
    """
    suits = [whole.position.get(i.preference.id) for i in instances if i.label == "1"]
    hits = yield from retrieve(
        how.retriever,
        request_for(context),
        whole.statements,
        len(whole.statements),
        encoder=how.encoder,
        evidence=[line - 1 for line in suits if line is not None],
        seed=stable_digest(f"{seed}/{whole.text}"),
    )
    ranked = tuple(hit.position for hit in hits)
    found = frozenset(ranked[: how.k])
    return Block(whole.only(found), whole, ranked, found)


def filtered(block: Block, context: Context, ask: Callable[[Prompt, str], Request]) -> Flow[Block]:
    """What of a retrieved block the model says suits recipient and task.

    Args:
        ask: makes the request of a prompt and an example of its reply.
    """
    offered = sorted(block.retrieved)
    chosen = yield from suitable(block.memory.statements, request_for(context), ask)
    if chosen.positions is None:
        kind = FAILED if chosen.outcome == "failed" else UNREADABLE
        problem = chosen.outcome, f"{kind}: {chosen.reason}"
        nothing = block.whole.only(())
        return Block(nothing, block.whole, block.ranked, block.retrieved, None, problem)
    passed = frozenset(offered[place] for place in chosen.positions)
    return Block(block.whole.only(passed), block.whole, block.ranked, block.retrieved, passed)
