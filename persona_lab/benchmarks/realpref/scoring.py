"""From replies to scores (section 4.2): accuracy of the two classification tasks, and the judge's
three dimensions for open-ended answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from persona_lab.benchmarks.realpref.prompts import DIMENSIONS
from persona_lab.benchmarks.realpref.tasks import Question, Task
from persona_lab.core.prompt import Reply
from persona_lab.core.scores import Score, ScoreOutcome
from persona_lab.metrics.estimate import ACCURACY, RATING, SHARE, Metric
from persona_lab.metrics.retrieval import Measured, by_chance, recall_at_k, reciprocal_rank
from persona_lab.parsing.choice import parse_choice
from persona_lab.parsing.parsed import Parsed
from persona_lab.parsing.score import parse_score
from persona_lab.parsing.truth import parse_truth

METRICS = {"accuracy": ACCURACY, **dict.fromkeys([*DIMENSIONS, "overall"], RATING)}
"""Overall is the mean of the three dimensions of one answer."""
EXAMPLE_VERDICT = json.dumps({"Judge_Reason": "Mentions it and builds on it.", "Score": 4})
NOTHING_FOUND = "nothing_found"
"""Reason of retrieval scores where no text was retrieved: nothing was shown."""
SHOWN = "texts_shown"
"""How many retrieved texts stand before a question; of no estimate."""
IN_MEMORY = "evidence_in_memory"
"""Share of the evidence turns that any memory stands for: what writing left to be recalled."""
ANSWER_CUT = "answer_cut"
"""Reason of a score whose answer reached `max_tokens`: it was judged as far as it goes."""


@dataclass(frozen=True)
class Row:
    """What all scores of one question share."""

    case: str
    question: str
    cluster: str
    facets: Mapping[str, str]

    def score(
        self, metric: str, value: float | None, outcome: ScoreOutcome, reason: str = ""
    ) -> Score:
        """One score of this question."""
        return Score(
            self.case, self.question, metric, self.cluster, value, outcome, reason, self.facets
        )


def classification_score(row: Row, task: Task, question: Question, reply: Reply) -> Score:
    """Accuracy of a multiple-choice or true-or-false reply: 1.0 or 0.0, or no value."""
    if reply.outcome != "ok":
        return row.score("accuracy", None, reply.outcome, reply.reason)
    parsed: Parsed[Any] = (
        parse_choice(reply.text) if task == "multiple_choice" else parse_truth(reply.text)
    )
    if parsed.value is None:
        return row.score("accuracy", None, _outcome(parsed.reason), parsed.reason)
    right = str(parsed.value) == question.expected
    return row.score("accuracy", float(right), "ok", " ".join(reply.flags))


def answer_problem(reply: Reply) -> tuple[ScoreOutcome, str] | None:
    """Why an open-ended reply leaves nothing to judge; None if it can be judged."""
    if reply.outcome == "failed":
        return "failed", reply.reason
    if reply.outcome == "truncated" and not reply.text.strip():
        return "truncated", reply.reason
    return None if reply.text.strip() else ("unparsed", "empty")


def open_scores(row: Row, answer: Reply, verdicts: list[Reply]) -> list[Score]:
    """The three dimensions and their mean, 1 to 5; without all three there is no mean."""
    note = ANSWER_CUT if answer.outcome == "truncated" else ""
    scores = [
        _verdict(row, dimension, verdict, note)
        for dimension, verdict in zip(DIMENSIONS, verdicts, strict=True)
    ]
    without = next((s for s in scores if s.value is None), None)
    if without:
        return [*scores, row.score("overall", None, without.outcome, without.reason)]
    mean = sum(s.value for s in scores if s.value is not None) / len(scores)
    return [*scores, row.score("overall", mean, "ok", note)]


def retrieval_metrics(k: int, bound: str = "") -> dict[str, Metric]:
    """What retrieval is measured by, without a language model.

    Args:
        bound: the bound, if these are one of another retriever's scores.
    """
    names = (f"recall@{k}", f"reciprocal_rank@{k}")
    return {f"{name} ({bound})" if bound else name: SHARE for name in names}


def retrieval_scores(
    row: Row, ranked: Sequence[int], relevant: Collection[int], k: int, bound: str = ""
) -> list[Score]:
    """Recall and reciprocal rank of the evidence; none for a query that has no evidence here.

    Args:
        ranked: positions found, best first. relevant: positions that voice the preference.
        bound: see `retrieval_metrics`.
    """
    found = (recall_at_k(ranked, relevant, k), reciprocal_rank(ranked[:k], relevant))
    return measured_scores(row, found, k, bound, "" if ranked else NOTHING_FOUND)


def chance_scores(row: Row, texts: int, relevant: int, k: int, bound: str = "") -> list[Score]:
    """What a random order of the texts finds on average, under the same names."""
    return measured_scores(row, by_chance(texts, relevant, k), k, bound)


def measured_scores(
    row: Row, found: Sequence[Measured], k: int, bound: str = "", reason: str = ""
) -> list[Score]:
    """Scores of `retrieval_metrics`, in their order; none for what does not exist."""
    return [
        row.score(metric, one.value, "ok", reason)
        for metric, one in zip(retrieval_metrics(k, bound), found, strict=True)
        if one.value is not None
    ]


def unscored(row: Row, task: Task, outcome: ScoreOutcome, reason: str) -> list[Score]:
    """The scores of a question that got no answer to judge."""
    names = [*DIMENSIONS, "overall"] if task == "open_ended" else ["accuracy"]
    return [row.score(name, None, outcome, reason) for name in names]


def _verdict(row: Row, dimension: str, verdict: Reply, note: str) -> Score:
    if verdict.outcome != "ok":
        return row.score(dimension, None, verdict.outcome, verdict.reason)
    parsed = parse_score(verdict.text)
    if parsed.value is None:
        return row.score(dimension, None, _outcome(parsed.reason), parsed.reason)
    return row.score(dimension, float(parsed.value), "ok", note or " ".join(parsed.flags))


def _outcome(reason: str) -> ScoreOutcome:
    return "truncated" if reason.startswith("truncated") else "unparsed"
