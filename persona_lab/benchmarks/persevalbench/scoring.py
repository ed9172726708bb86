"""From replies to scores (section 4): ERR over error responses, FAR over Right ones.

An under error needs Under, an over error Over, a misapplied one either (section 3.2). The score of
a response stands under `ERR` (1: recognised) or `FAR` (1: a false alarm); what follows from several
of them, such as pair accuracy, is made from the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from persona_lab.benchmarks.persevalbench.cases import PersEvalCase
from persona_lab.benchmarks.persevalbench.records import Family
from persona_lab.benchmarks.persevalbench.verdicts import (
    OVER,
    RIGHT,
    UNDER,
    Judged,
    read_verdict,
    verdict_probabilities,
)
from persona_lab.core.prompt import Reply
from persona_lab.core.scores import Score, ScoreOutcome
from persona_lab.metrics.estimate import ACCURACY, RATING, Metric
from persona_lab.parsing.choice import parse_choice
from persona_lab.parsing.parsed import Parsed
from persona_lab.parsing.score import parse_score

ERR, FAR, PAIR = "ERR", "FAR", "pair_accuracy"
RATES = {ERR: ACCURACY, FAR: Metric(0.0, 1.0, worse=1.0), PAIR: ACCURACY}
"""Section 4; a response without a verdict is not recognised, or a false alarm."""
RATED, SEPARATED, TIED = "rating", "separated", "tied"
CHOSEN, CONSISTENT = "pairwise_accuracy", "order_consistency"
_SHARE = Metric(0.0, 1.0, share=True)
PROTOCOLS = {
    RATED: RATING,
    SEPARATED: ACCURACY,
    TIED: _SHARE,
    CHOSEN: ACCURACY,
    CONSISTENT: ACCURACY,
}
"""Appendix C.5."""
DIRECTIONS = {
    "under_judged_over": _SHARE,
    "over_judged_under": _SHARE,
    **{f"underweighting_{name}": _SHARE for name in ("right", "under", "over")},
}
"""Figure 3, over responses with a verdict."""
_RESPONSE = re.compile(
    r"(^[\s*_\"'`]*(?=response\s+[AB][\s*_\"'`.]*$)"
    r"|\b(?:choose|pick|select|prefer|(?:answer|choice|winner|verdict)(?:\s+is)?"
    r"|better(?:\s+\w+)?\s+is)[\s:*_\"'`]*)response\s+([AB])\b",
    re.IGNORECASE | re.MULTILINE,
)
"""A choice by the name that the prompt gives its options: a line of its own, or behind a cue."""
EVIDENCE_CUT = "evidence_cut"
"""Reason of a verdict on extracted evidence that reached its budget: it was taken as it is."""


def recognised(family: Family, verdict: str) -> bool:
    """Whether a verdict recognises an error of this family (section 4)."""
    return verdict in {"under": (UNDER,), "over": (OVER,), "misapplied": (UNDER, OVER)}[family]


@dataclass(frozen=True)
class Row:
    """What the score of one question shares."""

    case: PersEvalCase

    def score(
        self, metric: str, value: float | None, outcome: ScoreOutcome, reason: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Score:  # fmt: skip
        """The score."""
        case = self.case
        return Score(
            case.id, case.question, metric, case.scenario.id, value, outcome, reason,
            {**case.facets, **(more or {})},
        )  # fmt: skip

    def lost(self, metric: str, reply: Reply) -> Score | None:
        """The score where there is no answer to read; None where there is one."""
        if reply.outcome == "ok":
            return None
        return self.score(metric, None, reply.outcome, reply.reason)

    def unread(self, metric: str, parsed: Parsed[Any], more: Mapping[str, str] | None) -> Score:
        """The score where nothing was to be read from an answer."""
        cut = parsed.reason.startswith("truncated")
        return self.score(metric, None, "truncated" if cut else "unparsed", parsed.reason, more)


def verdict_score(case: PersEvalCase, reply: Reply) -> Score:
    """ERR or FAR of one response, with what the evaluator said beside it."""
    row, metric = Row(case), ERR if case.subject == "error" else FAR
    if lost := row.lost(metric, reply):
        return lost
    judged = read_verdict(reply.text)
    more = _stored(judged, reply)
    if judged.verdict.value is None:
        return row.unread(metric, judged.verdict, more)
    value = verdict_value(case, judged.verdict.value)
    flags = [*judged.verdict.flags, *(f for f in reply.flags if f == EVIDENCE_CUT)]
    return row.score(metric, value, "ok", " ".join(flags), more)


def verdict_value(case: PersEvalCase, verdict: str) -> float:
    """1.0 if an error is recognised, or a Right response flagged; else 0.0."""
    if case.subject == "error":
        return float(recognised(case.scenario.family, verdict))
    return float(verdict != RIGHT)


def rating_score(case: PersEvalCase, reply: Reply) -> Score:
    """Pointwise: 1 to 5 for one response."""
    row = Row(case)
    if lost := row.lost(RATED, reply):
        return lost
    parsed = parse_score(reply.text)
    if parsed.value is None:
        return row.unread(RATED, parsed, None)
    return row.score(RATED, float(parsed.value), "ok", " ".join(parsed.flags))


def choice_score(case: PersEvalCase, reply: Reply) -> Score:
    """Pairwise: whether the Right response was chosen."""
    row = Row(case)
    if lost := row.lost(CHOSEN, reply):
        return lost
    parsed = parse_choice(_RESPONSE.sub(r"\1option \2", reply.text), "AB")
    if parsed.value is None:
        return row.unread(CHOSEN, parsed, None)
    right = "A" if case.subject == "right_first" else "B"
    more = {"chosen": "right" if parsed.value == right else "error"}
    return row.score(CHOSEN, float(parsed.value == right), "ok", " ".join(parsed.flags), more)


def failed(case: PersEvalCase, reason: str) -> Score:
    """The score of a case whose flow raised."""
    metric = {"pointwise": RATED, "pairwise": CHOSEN}.get(case.protocol)
    metric = metric or (ERR if case.subject == "error" else FAR)
    return Row(case).score(metric, None, "failed", reason)


def _stored(judged: Judged, reply: Reply) -> dict[str, str]:
    """What is kept of a verdict besides its score; the named subtype is never scored."""
    kept = {
        "verdict": judged.verdict.value or "",
        "named_subtype": judged.subtype,
        "confidence": "" if judged.confidence is None else repr(judged.confidence),
    }
    if probabilities := verdict_probabilities(reply):
        kept |= {f"p_{name}": repr(p) for name, p in probabilities.items()}
    return kept
