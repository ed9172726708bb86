"""What an evaluator sees of a history (section 4 and Appendix C.4).

Turns are numbered from 1 in the order shown, without episode borders and without the target turn.
Which turns express a state shows in the two gold conditions only, and there without saying which.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal, get_args

from persona_lab.benchmarks.persevalbench.records import Scenario
from persona_lab.core.experiment import stable_digest

PaperContext = Literal[
    "target_only", "recent", "full", "full_highlights", "gold_only",
    "full_minus_relevant", "full_minus_unrelated",
]  # fmt: skip
CONTEXTS: tuple[PaperContext, ...] = get_args(PaperContext)
ContextName = Literal[PaperContext, "retrieved"]
RETRIEVED: Final = "retrieved"
"""Beyond the paper: see `retrieved.py`."""
RECENT = 6
"""Section 4: the preceding six turns."""
NOTHING = "(no earlier turns are shown)"
HIGHLIGHT = ">>> "


def context_text(scenario: Scenario, name: PaperContext, seed: int = 0) -> str:
    """The `{context}` of the evaluation prompts, a turn a line.

    Args:
        seed: of the turns that `full_minus_unrelated` leaves out.
    """
    marked = scenario.evidence if name == "full_highlights" else ()
    return turns_text(scenario, shown_turns(scenario, name, seed), marked)


def turns_text(scenario: Scenario, shown: Sequence[int], marked: Collection[int] = ()) -> str:
    """Turns by their numbers, a line each, numbered anew in this order.

    Args:
        marked: numbers of the turns that are highlighted.
    """
    if not shown:
        return NOTHING
    lines = []
    for place, number in enumerate(shown, 1):
        turn = scenario.turns[number - 1]
        mark = HIGHLIGHT if number in marked else ""
        lines.append(f"{mark}Turn {place} ({turn.role}): {' '.join(turn.text.split())}")
    return "\n".join(lines)


def shown_turns(scenario: Scenario, name: PaperContext, seed: int = 0) -> list[int]:
    """Numbers of the turns that a context shows, in order."""
    everything = list(range(1, scenario.target))
    if name == "target_only":
        return []
    if name == "recent":
        return everything[-RECENT:]
    if name == "gold_only":
        return list(scenario.evidence)
    if name == "full_minus_relevant":
        return [n for n in everything if n not in _relevant(scenario)]
    if name == "full_minus_unrelated":
        left_out = _unrelated(scenario, seed)
        return [n for n in everything if n not in left_out]
    return everything


def removed(scenario: Scenario, name: PaperContext, seed: int = 0) -> int:
    """How many turns an ablation leaves out."""
    return scenario.target - 1 - len(shown_turns(scenario, name, seed))


def _relevant(scenario: Scenario) -> set[int]:
    """The turns that express the applicable state, each with the assistant's reply to it (C.4)."""
    replies = {
        n + 1
        for n in scenario.a.turns
        if scenario.turns[n - 1].role == "user"
        and n + 1 < scenario.target
        and scenario.turns[n].role == "assistant"
    }
    return {*scenario.a.turns, *replies}


def _unrelated(scenario: Scenario, seed: int) -> set[int]:
    """As many turns as the other ablation leaves out, none of them evidence; fewer where there
    are not so many."""
    others = [n for n in range(1, scenario.target) if n not in scenario.evidence]
    chosen: Sequence[int] = sorted(others, key=lambda n: stable_digest(f"{seed}/{scenario.id}/{n}"))
    return set(chosen[: len(_relevant(scenario))])
