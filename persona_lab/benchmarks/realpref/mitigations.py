"""What RAG and Mem0 put between a history and its question, and whether it is the evidence.

Beside what a method finds stand what chance finds on average and the evidence itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from persona_lab.benchmarks.realpref.cases import RealPrefCase
from persona_lab.benchmarks.realpref.context import CaseHistories
from persona_lab.benchmarks.realpref.remembered import (
    Remembered,
    evidence_turns,
    exchanges,
    mem0_text,
    recall_measured,
)
from persona_lab.benchmarks.realpref.retrieved import evidence, rag_text, search, units
from persona_lab.benchmarks.realpref.scoring import (
    IN_MEMORY,
    NOTHING_FOUND,
    SHOWN,
    Row,
    chance_scores,
    measured_scores,
    retrieval_metrics,
    retrieval_scores,
)
from persona_lab.benchmarks.realpref.settings import RealPrefSettings
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import RunSettings
from persona_lab.core.flow import Flow, Shared
from persona_lab.core.prompt import Prompt, Request
from persona_lab.core.scores import Score
from persona_lab.memory.recall import recall
from persona_lab.methods.mem0 import Written, write
from persona_lab.methods.rag import BOUNDS, ORACLE, RANDOM
from persona_lab.metrics.retrieval import sources_recalled


@dataclass(frozen=True)
class Found:
    """What a method puts before a question.

    Attributes:
        text: empty where it puts nothing there. scores: of the search for it.
        problem: why the question cannot be asked: what it would rest on is not all there.
    """

    text: str = ""
    scores: list[Score] = field(default_factory=list)
    problem: str = ""


class Mitigations:
    """The methods that look into a history, for one run.

    Raises:
        ConfigError: Mem0 without a model that writes the memories.
    """

    def __init__(
        self, settings: RealPrefSettings, run: RunSettings, histories: CaseHistories
    ) -> None:
        self.settings, self.run, self.histories = settings, run, histories
        if settings.method.mem0 is not None and run.memory is None:
            raise ConfigError(
                "method=mem0: needs a model that writes memories: add memory=NAME of configs/model"
            )

    def before(self, case: RealPrefCase, row: Row) -> Flow[Found]:
        """What a case's method puts before its question; nothing, where it only adds words.

        Args:
            row: of the case's first question.
        """
        # A case of its own: what a model is asked is counted without it.
        row = replace(row, case=f"{case.id}/retrieval")
        if case.method == "rag":
            return (yield from self._retrieved(case, row))
        if case.method == "mem0":
            return (yield from self._remembered(case, row))
        return Found()

    def replaces_history(self, case: RealPrefCase) -> bool:
        """Whether a case is asked without its history."""
        if case.method == "rag":
            return self.settings.retrieval.history == "replaced"
        return case.method == "mem0" and self.settings.mem0.history == "replaced"

    def _retrieved(self, case: RealPrefCase, row: Row) -> Flow[Found]:
        """RAG: the query is the bare question, under every task."""
        how, query = self.settings.retrieval, case.asked.query
        offered = units(self.histories.of(case), how.unit, user_only=how.user_only)
        relevant = evidence(offered, query.preference)
        ranked = yield from search(how.retriever, query, offered, relevant, how, self.run.seed)
        scores = retrieval_scores(row, ranked, relevant, how.k)
        scores += chance_scores(row, len(offered), len(relevant), how.k, RANDOM)
        scores += retrieval_scores(row, relevant[: how.k], relevant, how.k, ORACLE)
        scores.append(row.score(SHOWN, float(len(ranked)), "ok"))
        return Found(rag_text([offered[p] for p in ranked]) if ranked else "", scores)

    def _remembered(self, case: RealPrefCase, row: Row) -> Flow[Found]:
        """Mem0: all questions after a history share its memory."""
        how, query, built = self.settings.mem0, case.asked.query, self.histories.of(case)
        of = Remembered(case.user, case.asked, case.expression, case.context)
        written: Written = yield Shared(of, lambda: self._write(of))
        relevant = evidence_turns(built, query.preference)
        if failed := written.spent.failed:
            problem = f"{failed} of {written.spent.requests} requests of the memory failed"
            lost = [m for bound in ("", *BOUNDS) for m in retrieval_metrics(how.k, bound)]
            metrics = [*lost, IN_MEMORY] if relevant else []
            scores = [row.score(metric, None, "failed", problem) for metric in metrics]
            return Found(scores=scores, problem=problem)
        memories, held = written.ingested.memories, written.held
        recalled = yield from recall(query.query, written.ingested, how.encoder, how.k)
        ranked = [memories.index(memory) for memory in recalled]
        reason = "" if recalled else NOTHING_FOUND
        measured = recall_measured(held, ranked, relevant, how.k)
        scores = [
            score
            for bound, found in measured.items()
            for score in measured_scores(row, found, how.k, bound, "" if bound else reason)
        ]
        kept = sources_recalled(held, range(len(held)), relevant)
        if kept.value is not None:
            scores.append(row.score(IN_MEMORY, kept.value, "ok"))
        scores.append(row.score(SHOWN, float(len(recalled)), "ok"))
        return Found(mem0_text(recalled) if recalled else "", scores)

    def _write(self, of: Remembered) -> Flow[Written]:
        how = self.settings.mem0
        return write(
            exchanges(self.histories.of(of)),
            self._ask_memory,
            how.encoder,
            variant=how.variant,
            messages=how.messages,
            similar=how.similar,
            facts=how.facts,
        )

    def _ask_memory(self, text: str, example: str, schema: str) -> Request:
        assert self.run.memory is not None
        return Request(
            role="memory",
            prompt=Prompt.ask(text),
            sampling=self.run.memory.sampling(self.settings.max_tokens.memory),
            example=example,
            schema=schema,
            seed=self.run.seed,
        )
