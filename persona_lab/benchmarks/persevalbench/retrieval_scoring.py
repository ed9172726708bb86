"""Was the evidence found? Recall and reciprocal rank of a scenario's evidence turns, with bounds.

    recall@k, reciprocal_rank@k    of the turns that express state A or B
    recall_A@k, recall_B@k         of one state's: without B's an Over error cannot be seen
    ... (random)                   what a random order finds on average
    ... (oracle)                   what k places can hold of it

They are a scenario's, whatever is asked about it: one row each, however many responses, samples and
evaluators there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from persona_lab.benchmarks.persevalbench.records import Scenario
from persona_lab.benchmarks.persevalbench.retrieved import offered
from persona_lab.core.scores import Estimate, Score, ScoreOutcome
from persona_lab.methods.rag import BOUNDS, ORACLE, RANDOM
from persona_lab.metrics.estimate import SHARE, Metric, estimates
from persona_lab.metrics.retrieval import Measured, by_chance, recall_at_k, reciprocal_rank

NOTHING_FOUND = "nothing_found"
"""Reason of scores of a search without any hit: nothing was shown."""
BREAKDOWNS = ("family", "form", "distance")
Measure = Callable[[Sequence[int]], tuple[Measured, Measured]]
"""Recall and reciprocal rank of turns, by their numbers."""


def retrieval_metrics(k: int, bound: str = "") -> dict[str, Metric]:
    """What retrieval is measured by.

    Args:
        bound: the bound, if these are one of another retriever's scores.
    """
    names = (f"recall@{k}", f"reciprocal_rank@{k}", f"recall_A@{k}", f"recall_B@{k}")
    return {f"{name} ({bound})" if bound else name: SHARE for name in names}


@dataclass(frozen=True)
class Searched:
    """What the scores of one search share.

    Attributes:
        case: id of its rows. k: turns that count. facets: what the rows can be grouped by.
    """

    scenario: Scenario
    case: str
    k: int
    facets: Mapping[str, str]

    def found(self, ranked: Sequence[int]) -> list[Score]:
        """What a search found.

        Args:
            ranked: numbers of turns, best first.
        """

        def measure(wanted: Sequence[int]) -> tuple[Measured, Measured]:
            first = ranked[: self.k]
            return recall_at_k(ranked, wanted, self.k), reciprocal_rank(first, wanted)

        return self._scores(measure, "", "" if ranked else NOTHING_FOUND)

    def chance(self, bound: str = "") -> list[Score]:
        """What a random order of the turns finds on average."""
        texts = len(offered(self.scenario))
        return self._scores(lambda wanted: by_chance(texts, len(wanted), self.k), bound)

    def ceiling(self, bound: str = "") -> list[Score]:
        """What k places can hold: each metric's own turns come first."""

        def measure(wanted: Sequence[int]) -> tuple[Measured, Measured]:
            return recall_at_k(wanted, wanted, self.k), reciprocal_rank(wanted, wanted)

        return self._scores(measure, bound)

    def failed(self, reason: str, bound: str = "") -> list[Score]:
        """The scores of a search that failed."""
        return [
            self._score(metric, None, reason)
            for metric, wanted in self._wanted(bound).items()
            if wanted
        ]

    def _scores(self, measure: Measure, bound: str, reason: str = "") -> list[Score]:
        made = []
        for metric, wanted in self._wanted(bound).items():
            recall, rank = measure(wanted)
            one = rank if metric.startswith("reciprocal_rank") else recall
            if one.value is not None:
                made.append(self._score(metric, one.value, reason))
        return made

    def _wanted(self, bound: str) -> dict[str, list[int]]:
        """Metric -> numbers of the turns that it is about; none where there is no such state."""
        scenario, b = self.scenario, self.scenario.b
        sets = (scenario.evidence, scenario.evidence, scenario.a.turns, b.turns if b else ())
        kept = set(offered(scenario))
        return {
            metric: [n for n in turns if n in kept]
            for metric, turns in zip(retrieval_metrics(self.k, bound), sets, strict=True)
        }

    def _score(self, metric: str, value: float | None, reason: str) -> Score:
        name = self.scenario.id
        outcome: ScoreOutcome = "failed" if value is None else "ok"
        return Score(self.case, name, metric, name, value, outcome, reason, self.facets)


def with_bounds(searched: Searched, ranked: Sequence[int]) -> list[Score]:
    """What a search found, beside what chance finds and what k turns can hold."""
    scores = searched.found(ranked) + searched.chance(RANDOM)
    return scores + searched.ceiling(ORACLE)


def failed_with_bounds(searched: Searched, reason: str) -> list[Score]:
    """A search that failed; its bounds have no value either, so that all means are over the same
    scenarios."""
    return [s for bound in ("", *BOUNDS) for s in searched.failed(reason, bound)]


def once(scores: Sequence[Score], k: int) -> list[Score]:
    """Other scores as they are, and each retrieval score once, from any case that has it: without a
    value only where none has one."""
    names = {name for bound in ("", *BOUNDS) for name in retrieval_metrics(k, bound)}
    kept: dict[tuple[str, str], Score] = {}
    for score in scores:
        if score.metric in names:
            place = (score.case, score.metric)
            if place not in kept or kept[place].value is None:
                kept[place] = score
    return [s for s in scores if s.metric not in names] + [*kept.values()]


def retrieval_estimates(
    scores: Sequence[Score], k: int, by: str, seed: int, bounds: Sequence[str] = ("", *BOUNDS)
) -> list[Estimate]:
    """In all, and by family, form and distance.

    Args:
        by: the facet of what is compared: `context` or `retriever`. bounds: whose rows there are.
    """
    metrics = {name: m for bound in bounds for name, m in retrieval_metrics(k, bound).items()}
    order = [*metrics]
    rows = sorted((s for s in scores if s.metric in metrics), key=lambda s: order.index(s.metric))
    made = estimates(rows, metrics, (by,), unit="scenario", seed=seed)
    for part in BREAKDOWNS:
        made += estimates(rows, metrics, (by, part), unit="scenario", seed=seed)
    return made
