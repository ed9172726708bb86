"""The persistent memory of a profile: facts and preferences, one statement a line (section 3.2).

Where a preference stands among the facts follows from a digest of its id and `memories.seed`, and
from nothing else: it keeps its place when others join or leave. Beyond the profile's own five,
preferences of other profiles are distractors: remembered like the user's own, never scored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from persona_lab.benchmarks.benchpres.records import CATEGORIES, Category, Preference, Profile
from persona_lab.core.experiment import stable_digest

Order = Literal["scattered", "reversed", "start", "end"]
"""Places of the preferences: scattered among the facts, the same places in the opposite order, or
all before or after the facts."""
Mix = Literal["spread", "same_category"]
"""Which distractors come first: one of each category in turn, or one category after the other."""
OWN = len(CATEGORIES)
NOTHING = "(nothing is remembered that bears on this)"
"""What a block without statements says."""
SANITISED: frozenset[Category] = frozenset({"markers", "nickname"})
"""Categories that models apply most where they should not (Figure 7)."""


@dataclass(frozen=True)
class Composition:
    """What is in memory besides the facts.

    Attributes:
        preferences: whether there are any.
        density: how many, distractors included: 1, or 5 and more.
        only: the one that there is at density 1.
        without: categories that are left out.
    """

    preferences: bool = True
    density: int = OWN
    mix: Mix = "spread"
    order: Order = "scattered"
    only: Category | None = None
    without: frozenset[Category] = frozenset()

    def __post_init__(self) -> None:
        if (self.density == 1) != (self.only is not None):
            raise ValueError("density 1 goes with the one preference that there is")


@dataclass(frozen=True)
class Memory:
    """A memory block.

    Attributes:
        statements: one a line.
        position: preference id -> its line, counted from 1; own and borrowed ones.
    """

    statements: tuple[str, ...]
    position: dict[str, int]

    @property
    def text(self) -> str:
        """The block as prompts show it; NOTHING, where it has no statements."""
        return "\n".join(self.statements) or NOTHING

    def only(self, places: Collection[int]) -> Memory:
        """The statements at these places, counted from 0, in the order that they have here."""
        kept = [place for place in range(len(self.statements)) if place in places]
        lines = {place + 1: line for line, place in enumerate(kept, 1)}
        return Memory(
            tuple(self.statements[place] for place in kept),
            {name: lines[line] for name, line in self.position.items() if line in lines},
        )


def compose(
    profile: Profile, everyone: Sequence[Profile], composition: Composition, seed: int
) -> Memory:
    """The memory block of a profile.

    Args:
        everyone: all profiles, from whom distractors are borrowed.
    """
    chosen = _chosen(profile, everyone, composition, seed)
    slots = _slots(profile, chosen, composition.order, seed)
    lines: list[str] = []
    position: dict[str, int] = {}
    for place in range(len(profile.facts) + 1):
        for preference in slots.get(place, []):
            lines.append(preference.statement)
            position[preference.id] = len(lines)
        lines += profile.facts[place : place + 1]
    return Memory(tuple(lines), position)


def distractors(
    profile: Profile, everyone: Sequence[Profile], mix: Mix, seed: int
) -> list[Preference]:
    """Preferences of other profiles, in the order in which they join: fewer are a part of more."""

    def place(preference: Preference) -> int:
        return stable_digest(f"{seed}/{profile.id}/{preference.id}")

    first = stable_digest(f"{seed}/{profile.id}") % OWN
    rotated = CATEGORIES[first:] + CATEGORIES[:first]
    others = [p for other in everyone if other.id != profile.id for p in other.preferences]
    groups = [sorted((p for p in others if p.category == c), key=place) for c in rotated]
    if mix == "same_category":
        return [p for group in groups for p in group]
    return [p for turn in zip_longest(*groups) for p in turn if p is not None]


def _chosen(
    profile: Profile, everyone: Sequence[Profile], composition: Composition, seed: int
) -> list[Preference]:
    if not composition.preferences:
        return []
    if composition.only is not None:
        own = [p for p in profile.preferences if p.category == composition.only]
    else:
        borrowed = distractors(profile, everyone, composition.mix, seed)
        own = [*profile.preferences, *borrowed[: composition.density - OWN]]
    return [p for p in own if p.category not in composition.without]


def _slots(
    profile: Profile, chosen: Sequence[Preference], order: Order, seed: int
) -> dict[int, list[Preference]]:
    """Number of facts before them -> preferences."""
    if order in ("start", "end"):
        return {0 if order == "start" else len(profile.facts): list(chosen)}
    number = len(profile.facts) + 1
    placed = sorted(
        (stable_digest(f"{seed}/{profile.id}/{p.id}/place") % number, i, p)
        for i, p in enumerate(chosen)
    )
    places = [place for place, _, _ in placed]
    members = [p for _, _, p in placed]
    if order == "reversed":
        members.reverse()
    slots: dict[int, list[Preference]] = {}
    for place, preference in zip(places, members, strict=True):
        slots.setdefault(place, []).append(preference)
    return slots
