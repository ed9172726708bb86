"""Which users and contexts a recipe evaluates, and how much that is (Table 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from persona_lab.benchmarks.benchpres.cases import BenchPreSCase, telling
from persona_lab.benchmarks.benchpres.memory import OWN
from persona_lab.benchmarks.benchpres.records import Context, Data, Instance, Profile
from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings
from persona_lab.core.errors import ConfigError
from persona_lab.core.scores import Row, RowsTable

T = TypeVar("T", Profile, Context)


def chosen(
    data: Data, settings: BenchPreSSettings
) -> tuple[tuple[Profile, ...], tuple[Context, ...]]:
    """The profiles, with at most so many facts each, and the contexts of a recipe.

    Raises:
        ConfigError: an unknown one, or a density that the data's preferences cannot fill.
    """
    benchmark = settings.benchmark
    profiles = _named(data.profiles, benchmark.users, "users")
    contexts = _named(data.contexts, benchmark.contexts, "contexts")
    most = OWN * len(data.profiles)
    if (density := max(settings.memories.density)) > most:
        raise ConfigError(
            f"memories.density={density}: all {len(data.profiles)} profiles together have {most} "
            "preferences"
        )
    if benchmark.facts is not None:
        profiles = tuple(_with_fewer(p, benchmark.facts) for p in profiles)
    return profiles, contexts


def inventory(
    cases: Sequence[BenchPreSCase],
    instances: Callable[[BenchPreSCase], Sequence[Instance]],
    settings: BenchPreSSettings,
) -> RowsTable:
    """What a run evaluates, a row per condition; see section 3.3 for what an instance is.

    Where less than the whole memory is shown, probes and calls of the filter are counted as at most
    so many: which preferences are shown is not known yet, and conditions share what is asked alike.
    """
    partly = settings.probe and settings.memories.shown != ["whole"]
    probes = "probes, at most" if partly else "probes"
    rows: dict[tuple[str, ...], Counter[str]] = {}
    seen: dict[tuple[str, ...], set[str]] = {}
    for case in cases:
        condition = tuple(case.condition.values())
        row, known = rows.setdefault(condition, Counter()), seen.setdefault(condition, set())
        row["messages"] += 1
        row["ratings"] += settings.completeness
        row["filter calls, at most"] += case.shown == "filter" and case.sample == 1
        probed = 0
        for instance in instances(case):
            matched = instance.preference.category == "nickname"
            row["nickname matches" if matched else "judge calls"] += 1
            if instance.id not in known:
                known.add(instance.id)
                row[f"g={instance.label}"] += 1
                probed += instance.preference.category not in case.composition.without
        if settings.probe:
            row[probes] += probed if case.shown == "whole" else min(probed, settings.retrieval.k)
    columns = ["g=0", "g=1", "messages", "judge calls", "nickname matches", "ratings", probes]
    columns += ["filter calls, at most"] * ("filter" in settings.memories.shown)
    made: list[Row] = []
    for condition, row in rows.items():
        named: Row = {"condition": ", ".join(telling(condition, list(rows)))}
        named["instances"] = row["g=0"] + row["g=1"]
        made.append(named | {column: row[column] for column in columns})
    return RowsTable("What is evaluated", made)


def _named(members: tuple[T, ...], wanted: Sequence[str] | None, key: str) -> tuple[T, ...]:
    if wanted is None:
        return members
    known = [member.id for member in members]
    if unknown := [name for name in wanted if name not in known]:
        raise ConfigError(
            f"benchmark.{key}: {', '.join(unknown)} not in the data, which has {', '.join(known)}"
        )
    return tuple(member for member in members if member.id in wanted)


def _with_fewer(profile: Profile, number: int) -> Profile:
    """At most so many facts, evenly over all, so that every domain keeps some."""
    places = [i * len(profile.facts) // number for i in range(number)]
    if len(profile.facts) <= number:
        return profile
    return replace(
        profile,
        facts=tuple(profile.facts[i] for i in places),
        events=tuple(profile.events[i] for i in places) if profile.events else (),
    )
