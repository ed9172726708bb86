"""Tables 13 and 14: does a more explicit expression, or a shorter context, score higher?

Every pair of expression types (type i > type j), and neighbouring contexts, each within one
preference kind, method and other condition. A pair's p is the largest over the three dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from persona_lab.benchmarks.realpref.prompts import DIMENSIONS
from persona_lab.benchmarks.realpref.records import Expression
from persona_lab.benchmarks.realpref.settings import CONTEXTS
from persona_lab.core.scores import Score
from persona_lab.metrics.comparisons import as_test, ordered_comparisons

_CONDITIONS = ("preference", "method", "context", "expression")


def significance(scores: Sequence[Score], seed: int) -> list[dict[str, Any]]:
    """The tests of a run that compares expression types or contexts; empty for any other."""
    judged = [s for s in scores if s.metric in DIMENSIONS]
    return [
        *_compared(judged, "expression", get_args(Expression), "all", "Table 13", seed),
        *_compared(judged, "context", CONTEXTS, "adjacent", "Table 14", seed),
    ]


def _compared(
    scores: Sequence[Score],
    facet: str,
    order: Sequence[str],
    pairs: Literal["all", "adjacent"],
    table: str,
    seed: int,
) -> list[dict[str, Any]]:
    fixed = [name for name in _CONDITIONS if name != facet]
    groups: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        groups.setdefault(tuple(score.facets[name] for name in fixed), []).append(score)
    found = []
    for condition, members in groups.items():
        present = [value for value in order if any(s.facets[facet] == value for s in members)]
        if len(present) < 2:
            continue
        made = ordered_comparisons(members, facet, present, DIMENSIONS, pairs, seed=seed)
        named = dict(zip(fixed, condition, strict=True))
        found += [{"table": table, "facets": named, **as_test(c)} for c in made]
    return found
