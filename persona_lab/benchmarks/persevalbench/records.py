"""A scenario and its parts (section 3.2, Appendix B).

A *turn* is one message here. Turns are numbered from 1 through the whole dialogue; the last one is
the target request. Where states are expressed, where episodes begin and what the cell is called are
metadata: evaluators see turns, request and one response.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Relation = Literal["re_entry", "cross_domain", "out_of_scope"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
Subtype = Literal[
    "complete_omission", "partial_omission", "explicit_violation",
    "irrelevant_use", "scope_leakage", "unsupported_inference",
    "stale_superseded", "over_dominance", "underweighting",
]  # fmt: skip
SUBTYPES: tuple[Subtype, ...] = get_args(Subtype)
Family = Literal["under", "over", "misapplied"]
FAMILIES: tuple[Family, ...] = get_args(Family)
StateRelation = Literal[
    "same_attribute_different_object", "same_attribute_different_scope",
    "same_attribute_different_time", "old_vs_new_value",
    "hard_vs_soft", "two_simultaneous",
    "cross_domain_vs_specific", "unsupported_adjacent",
]  # fmt: skip
Applicability = Literal["holder", "scope", "temporal", "strength", "transferability"]
Form = Literal["explicit", "implicit", "accumulated"]
Distance = Literal["near", "medium", "far"]
Influence = Literal["Ignore", "Support", "Dominate"]
INFLUENCES: tuple[Influence, ...] = get_args(Influence)
Side = Literal["right", "error"]
SIDES: tuple[Side, ...] = get_args(Side)

FAMILY_OF: Mapping[Subtype, Family] = {
    subtype: FAMILIES[place // 3] for place, subtype in enumerate(SUBTYPES)
}
"""Section 3.2: three subtypes a family, in the order of SUBTYPES."""

LEGAL: Mapping[Relation, tuple[Subtype, ...]] = {
    "re_entry": (
        "complete_omission", "partial_omission", "explicit_violation",
        "irrelevant_use", "scope_leakage",
        "stale_superseded", "over_dominance", "underweighting",
    ),
    "cross_domain": (
        "complete_omission", "partial_omission", "explicit_violation",
        "irrelevant_use", "unsupported_inference",
        "stale_superseded", "over_dominance", "underweighting",
    ),
    "out_of_scope": ("irrelevant_use", "scope_leakage", "unsupported_inference"),
}  # fmt: skip
"""Table 7: 19 of 27 pairs."""

PRECEDENCE: tuple[tuple[Subtype, Subtype, str], ...] = (
    (
        "explicit_violation", "complete_omission",
        "selecting an option that violates an active hard constraint is the former; the latter "
        "contradicts nothing",
    ),
    (
        "scope_leakage", "irrelevant_use",
        "the former needs an identifiable scope boundary; the latter is about unrelated states",
    ),
)  # fmt: skip
"""Appendix B.1: which of two subtypes a response is, and why."""

APPLICABILITY: Mapping[StateRelation, Applicability] = {
    "same_attribute_different_object": "holder",
    "same_attribute_different_scope": "scope",
    "same_attribute_different_time": "temporal",
    "old_vs_new_value": "temporal",
    "hard_vs_soft": "strength",
    "two_simultaneous": "strength",
    "cross_domain_vs_specific": "transferability",
    "unsupported_adjacent": "transferability",
}
"""Table 8: eight state relations in five families."""
CATEGORICAL: tuple[Applicability, ...] = ("holder", "scope", "temporal")
GRADED: tuple[Applicability, ...] = ("strength", "transferability")
"""Table 8: boundaries, and decisions of degree."""

APPLY_B: frozenset[Subtype] = frozenset(
    {
        "irrelevant_use",
        "scope_leakage",
        "unsupported_inference",
        "stale_superseded",
        "over_dominance",
    }
)
"""Prompt 1: errors that insert the competing state; the others withhold the applicable one."""
NEAR, MEDIUM = 3, 8
"""Section 3.2: near d <= 3, medium 4 <= d <= 8, far d >= 9."""


@dataclass(frozen=True)
class Turn:
    """One message."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class State:
    """A user state and the influence that it should have on the response (section 3.2).

    Attributes:
        turns: numbers of the turns that express it.
    """

    statement: str
    holder: str
    scope: str
    time: str
    strength: str
    transferability: str
    role: Influence
    turns: tuple[int, ...]


@dataclass(frozen=True)
class Scenario:
    """A scenario with its matched responses.

    Attributes:
        a: the applicable state; b: the competing one, where there is one.
        turns: all messages, the target request last.
        episodes: number of the first turn of each episode.
    """

    id: str
    relation: Relation
    subtype: Subtype
    state_relation: StateRelation
    form: Form
    a: State
    b: State | None
    turns: tuple[Turn, ...]
    episodes: tuple[int, ...]
    right: str
    error: str

    @property
    def family(self) -> Family:
        """The error's family."""
        return FAMILY_OF[self.subtype]

    @property
    def applicability(self) -> Applicability:
        """The family of the state relation (Table 8)."""
        return APPLICABILITY[self.state_relation]

    @property
    def target(self) -> int:
        """The number of the target turn."""
        return len(self.turns)

    @property
    def request(self) -> str:
        """The target request q."""
        return self.turns[-1].text

    @property
    def distance(self) -> int:
        """d = target turn - latest turn of state A, in turns (section 3.2)."""
        return self.target - max(self.a.turns)

    @property
    def distance_bin(self) -> Distance:
        """near, medium or far."""
        return "near" if self.distance <= NEAR else "medium" if self.distance <= MEDIUM else "far"

    @property
    def evidence(self) -> tuple[int, ...]:
        """Numbers of the turns that express state A or B, in order."""
        return tuple(sorted({*self.a.turns, *(self.b.turns if self.b else ())}))

    def response(self, side: Side) -> str:
        """The Right response or the error response."""
        return self.right if side == "right" else self.error
