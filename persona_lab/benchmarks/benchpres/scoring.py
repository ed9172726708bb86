"""From replies to scores (section 3.3).

A preference is applied (z = 1) or not (z = 0): as the judge says, a nickname by exact matching.
The score of an instance stands under `MR` where g = 0 and under `AAR` where g = 1, so that the
mean of each is the paper's rate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from persona_lab.benchmarks.benchpres.prompts import FOLLOW, LABELS
from persona_lab.benchmarks.benchpres.records import Instance, Label
from persona_lab.core.prompt import Reply
from persona_lab.core.scores import Score, ScoreOutcome
from persona_lab.metrics.estimate import RATING, Metric
from persona_lab.parsing.label import parse_label
from persona_lab.parsing.names import RULE, mentions
from persona_lab.parsing.score import parse_rating

MR, AAR, GAP, COMPLETENESS = "MR", "AAR", "AAR-MR", "completeness"
RATES = {MR: Metric(0.0, 1.0, worse=1.0), AAR: Metric(0.0, 1.0, worse=0.0)}
"""Equations of section 3.3; an instance without a value counts as misapplied, or as not applied."""
METRICS = {**RATES, COMPLETENESS: RATING}
RATE_OF: dict[Label, str] = {"0": MR, "1": AAR}
EXAMPLE_LABEL = json.dumps({"label": FOLLOW})
EXAMPLE_RATING = "It names the purpose and asks for what is needed.\nRating: [[4]]"

Problem = tuple[ScoreOutcome, str]


def message_digest(text: str) -> str:
    """Names a message in the table of scores, so that labels of people find no other one."""
    return hashlib.blake2b(text.strip().encode("utf-8", "replace"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Row:
    """What all scores of one message share."""

    case: str
    cluster: str
    facets: Mapping[str, str]

    def score(
        self, question: str, metric: str, value: float | None, outcome: ScoreOutcome,
        reason: str = "", **facets: str,
    ) -> Score:  # fmt: skip
        """One score of this message."""
        return Score(
            self.case, question, metric, self.cluster, value, outcome, reason,
            {**self.facets, **facets},
        )  # fmt: skip


def message_problem(message: Reply) -> Problem | None:
    """Why a message leaves nothing to judge; None if it can be judged.

    A message that was cut off is `truncated`: its missing part could have applied anything.
    """
    if message.outcome != "ok":
        return message.outcome, message.reason
    return None if message.text.strip() else ("unparsed", "empty")


def nickname_score(row: Row, instance: Instance, message: str, position: int) -> Score:
    """Exact string matching (footnote 1 of section 3.3); the rule's name is stored."""
    applied = mentions(instance.preference.nickname, message)
    return _instance_score(row, instance, float(applied), "ok", "", position)


def judged_score(row: Row, instance: Instance, verdict: Reply, position: int) -> Score:
    """What the judge said of one preference; nothing but its two labels counts."""
    if verdict.outcome != "ok":
        return _instance_score(row, instance, None, verdict.outcome, verdict.reason, position)
    parsed = parse_label(verdict.text, LABELS)
    if parsed.value is None:
        outcome = lost_outcome(parsed.reason)
        return _instance_score(row, instance, None, outcome, parsed.reason, position)
    applied = float(parsed.value == FOLLOW)
    return _instance_score(row, instance, applied, "ok", " ".join(parsed.flags), position)


def unscored(row: Row, instance: Instance, problem: Problem, position: int) -> Score:
    """The score of an instance whose message cannot be judged."""
    return _instance_score(row, instance, None, *problem, position)


def completeness_score(row: Row, question: str, verdict: Reply | Problem) -> Score:
    """Task fulfilment, 1 to 5 (section 5.3)."""
    if isinstance(verdict, tuple):
        return row.score(question, COMPLETENESS, None, *verdict)
    if verdict.outcome != "ok":
        return row.score(question, COMPLETENESS, None, verdict.outcome, verdict.reason)
    parsed = parse_rating(verdict.text)
    if parsed.value is None:
        return row.score(question, COMPLETENESS, None, lost_outcome(parsed.reason), parsed.reason)
    return row.score(question, COMPLETENESS, float(parsed.value), "ok", " ".join(parsed.flags))


def _instance_score(
    row: Row, instance: Instance, value: float | None, outcome: ScoreOutcome, reason: str,
    position: int,
) -> Score:  # fmt: skip
    category = instance.preference.category
    return row.score(
        instance.id, RATE_OF[instance.label], value, outcome, reason,
        category=category,
        preference=instance.preference.statement,
        label=instance.label,
        position=str(position),
        judged_by=RULE if category == "nickname" else "judge",
    )  # fmt: skip


def lost_outcome(reason: str) -> ScoreOutcome:
    """The outcome of a reply that its parser got nothing from."""
    return "truncated" if reason.startswith("truncated") else "unparsed"
