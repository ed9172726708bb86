"""What is asked: one message of one user to one recipient, under one condition of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from persona_lab.benchmarks.benchpres.memory import OWN, SANITISED, Composition, Order
from persona_lab.benchmarks.benchpres.records import CATEGORIES, Context, Profile
from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings, MemorySettings, Shown

DefenceName = Literal["default", "prompt", "structured", "few_shot", "category_rules", "sanitiser"]
CONDITIONS = ("defence", "reasoning", "memory", "density", "mix", "order", "shown")
"""Facets in which the conditions of a run can differ."""
_REASONING = {None: "as_is", False: "off", True: "on"}


@dataclass(frozen=True)
class BenchPreSCase:
    """One message to be written.

    Attributes:
        reasoning: off, on, or None for the model as it is.
        sample: from 1 (section 4.1: three per user and context).
        shown: what of the memory the prompt shows.
        variant: how retrieval differs from the default.
    """

    profile: Profile
    context: Context
    defence: str
    reasoning: bool | None
    composition: Composition
    sample: int
    shown: Shown = "whole"
    variant: str = ""

    @property
    def id(self) -> str:
        """`p01/irs_agent/default/as_is/with/5/spread/scattered/1`; `1-tone` for a lone one, and
        `.../scattered/rag/1` where not the whole memory is shown."""
        parts = [*self.condition.values()]
        if self.shown == "whole":
            parts.pop(CONDITIONS.index("shown"))
        if self.composition.only:
            parts[CONDITIONS.index("density")] += f"-{self.composition.only}"
        return "/".join([self.profile.id, self.context.id, *parts, str(self.sample)])

    @property
    def condition(self) -> dict[str, str]:
        """CONDITIONS and their values."""
        composition = self.composition
        return {
            "defence": self.defence,
            "reasoning": _REASONING[self.reasoning],
            "memory": "with" if composition.preferences else "without",
            "density": str(composition.density) if composition.preferences else "0",
            "mix": composition.mix,
            "order": composition.order,
            "shown": f"{self.shown}_{self.variant}" if self.variant else self.shown,
        }

    @property
    def facets(self) -> dict[str, str]:
        """What its scores can be grouped by."""
        return {
            "user": self.profile.id,
            "context": self.context.id,
            "domain": self.context.domain,
            "sample": str(self.sample),
            **self.condition,
        }


def all_cases(
    profiles: Sequence[Profile], contexts: Sequence[Context], settings: BenchPreSSettings
) -> list[BenchPreSCase]:
    """Every combination that the settings name, users first and samples last."""
    return [
        BenchPreSCase(
            profile, context, defence, reasoning, composition, sample, shown,
            settings.retrieval.variant if shown != "whole" else "",
        )
        for profile in profiles
        for context in contexts
        for defence in settings.defence.names
        for reasoning in settings.reasoning
        for composition in compositions(settings.memories, defence, context)
        for shown in settings.memories.shown
        for sample in range(1, settings.samples + 1)
    ]  # fmt: skip


def compositions(settings: MemorySettings, defence: str, context: Context) -> list[Composition]:
    """The memories to compare, each once: what cannot matter is not varied.

    Without preferences there is one; at density 1 each of the five stands alone in its turn, and
    reversing it changes nothing; the mix of distractors matters only where there are some.
    """
    without = SANITISED if defence == "sanitiser" and context.institutional else frozenset()
    made: list[Composition] = []
    for preferences in settings.preferences:
        if not preferences:
            made.append(Composition(False, mix=settings.mix[0], order=settings.order[0]))
            continue
        for density in settings.density:
            for mix in settings.mix if density > OWN else settings.mix[:1]:
                for order in _orders(settings, density):
                    made += [
                        Composition(True, density, mix, order, only, without)
                        for only in (CATEGORIES if density == 1 else (None,))
                    ]
    return made


def _orders(settings: MemorySettings, density: int) -> list[Order]:
    if density > 1 or "scattered" not in settings.order:
        return settings.order
    return [order for order in settings.order if order != "reversed"]


def telling(condition: Sequence[str], all_of_them: Sequence[Sequence[str]]) -> list[str]:
    """The parts of a condition that tell it from others; its defence if there are no others."""
    varying = [i for i, _ in enumerate(condition) if len({c[i] for c in all_of_them}) > 1]
    return [condition[i] for i in varying or [0]]
