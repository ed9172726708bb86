"""Where statements stand in memory, held to the rules that the module states."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.benchmarks.benchpres.memory import (
    SANITISED,
    Composition,
    Memory,
    Mix,
    Order,
    compose,
    distractors,
)
from persona_lab.benchmarks.benchpres.records import CATEGORIES, Preference, Profile
from tests.conftest import ROOT

DENSITIES = (5, 10, 20, 50)


def people(number: int = 10, facts: int = 30) -> tuple[Profile, ...]:
    """p01, p02, ...; every statement differs from all others."""
    return tuple(
        Profile(
            name,
            tuple(f"{name} fact {i}" for i in range(facts)),
            tuple(Preference(name, c, f"{name} {c}") for c in CATEGORIES),
        )
        for name in (f"p{n:02}" for n in range(1, number + 1))
    )


EVERYONE = people()
seeds = st.integers(0, 2**31)
profiles = st.sampled_from(EVERYONE)
mixes = st.sampled_from(get_args(Mix))
sizes = st.tuples(st.integers(5, 50), st.none()) | st.tuples(
    st.just(1), st.sampled_from(CATEGORIES)
)
compositions = st.builds(
    lambda size, **others: Composition(density=size[0], only=size[1], **others),
    sizes,
    preferences=st.booleans(),
    mix=mixes,
    order=st.sampled_from(get_args(Order)),
    without=st.frozensets(st.sampled_from(CATEGORIES)),
)


def test_density_1_goes_with_the_one_that_there_is() -> None:
    for density, only in ((1, None), (5, "tone")):
        with pytest.raises(ValueError, match="density 1"):
            Composition(density=density, only=only)  # type: ignore[arg-type]


def facts_before(memory: Memory, preferences: Sequence[Preference]) -> list[int]:
    """How many facts stand before each preference."""
    lines = memory.position.values()
    places = [memory.position[p.id] for p in preferences]
    return [place - 1 - sum(line < place for line in lines) for place in places]


@given(profiles, compositions, seeds, st.integers(1, 20))
def test_positions_point_at_statements_and_facts_stay_in_order(
    profile: Profile, composition: Composition, seed: int, facts: int
) -> None:
    profile = Profile(profile.id, profile.facts[:facts], profile.preferences)
    memory = compose(profile, EVERYONE, composition, seed)
    lines = memory.text.split("\n")
    statements = {p.id: p.statement for other in EVERYONE for p in other.preferences}
    for name, line in memory.position.items():
        assert lines[line - 1] == statements[name]
    taken = set(memory.position.values())
    assert [t for i, t in enumerate(lines, 1) if i not in taken] == list(profile.facts)


@given(profiles, compositions, seeds)
def test_what_a_composition_holds(profile: Profile, composition: Composition, seed: int) -> None:
    held = compose(profile, EVERYONE, composition, seed).position
    own = {p.id for p in profile.preferences if p.category not in composition.without}
    categories = {name.split("/")[1] for name in held}
    assert not categories & composition.without
    if not composition.preferences:
        assert held == {}
    elif composition.only:
        assert set(held) == own & {f"{profile.id}/{composition.only}"}
    else:
        assert own <= set(held)
        assert len(held) <= composition.density
        assert composition.without or len(held) == composition.density


@given(profiles, seeds, mixes)
@settings(max_examples=30, deadline=None)
def test_more_distractors_leave_the_others_where_they_are(
    profile: Profile, seed: int, mix: Mix
) -> None:
    memories = [
        compose(profile, EVERYONE, Composition(density=d, mix=mix), seed) for d in range(5, 51)
    ]
    known = {p.id: p for other in EVERYONE for p in other.preferences}
    for fewer, more in pairwise(memories):
        assert set(fewer.position) < set(more.position)
        held = [known[name] for name in fewer.position]
        assert facts_before(fewer, held) == facts_before(more, held)
        assert sorted(fewer.position, key=fewer.position.__getitem__) == [
            name for name in more.position if name in fewer.position
        ]


@given(profiles, seeds, st.frozensets(st.sampled_from(CATEGORIES)))
def test_a_place_does_not_depend_on_who_else_is_there(
    profile: Profile, seed: int, without: frozenset[str]
) -> None:
    full = compose(profile, EVERYONE, Composition(), seed)
    fewer = compose(profile, EVERYONE, Composition(without=without), seed)  # type: ignore[arg-type]
    left = [p for p in profile.preferences if p.category not in without]
    assert facts_before(fewer, left) == facts_before(full, left)
    for preference in profile.preferences:
        alone = compose(profile, EVERYONE, Composition(density=1, only=preference.category), seed)
        assert facts_before(alone, [preference]) == facts_before(full, [preference])


@given(profiles, seeds, st.sampled_from(DENSITIES))
def test_reversed_is_the_same_lines_in_the_opposite_order(
    profile: Profile, seed: int, density: int
) -> None:
    forth = compose(profile, EVERYONE, Composition(density=density), seed).position
    back = compose(profile, EVERYONE, Composition(density=density, order="reversed"), seed).position
    by_line = sorted(forth, key=forth.__getitem__)
    assert sorted(back, key=back.__getitem__) == by_line[::-1]
    assert sorted(back.values()) == sorted(forth.values())


@pytest.mark.parametrize("density", DENSITIES)
def test_start_and_end(density: int) -> None:
    profile = EVERYONE[3]
    first = compose(profile, EVERYONE, Composition(density=density, order="start"), 0)
    last = compose(profile, EVERYONE, Composition(density=density, order="end"), 0)
    assert list(first.position.values()) == list(range(1, density + 1))
    assert list(last.position.values()) == list(range(31, 31 + density))  # behind 30 facts
    assert list(first.position) == list(last.position)
    assert list(first.position)[:5] == [f"p04/{c}" for c in CATEGORIES]


def test_without_preferences_memory_is_the_facts() -> None:
    memory = compose(EVERYONE[0], EVERYONE, Composition(preferences=False), 0)
    assert memory == Memory(EVERYONE[0].facts, {})


def test_the_sanitised_categories_are_left_out_of_distractors_too() -> None:
    composition = Composition(density=50, without=SANITISED)
    held = compose(EVERYONE[0], EVERYONE, composition, 0).position
    # 10 profiles x (5 - 2) categories.
    assert len(held) == 30
    assert {name.split("/")[1] for name in held} == {"role", "style", "tone"}


@given(profiles, seeds, mixes)
def test_distractors_are_everybody_elses_each_once(profile: Profile, seed: int, mix: Mix) -> None:
    found = [p.id for p in distractors(profile, EVERYONE, mix, seed)]
    others = {p.id for other in EVERYONE if other.id != profile.id for p in other.preferences}
    assert len(found) == 45
    assert set(found) == others


@given(profiles, seeds)
def test_spread_takes_one_of_each_category_in_turn(profile: Profile, seed: int) -> None:
    found = [p.category for p in distractors(profile, EVERYONE, "spread", seed)]
    assert set(found[:5]) == set(CATEGORIES)
    assert found == found[:5] * 9


@given(profiles, seeds)
def test_same_category_fills_one_before_the_next(profile: Profile, seed: int) -> None:
    found = [p.category for p in distractors(profile, EVERYONE, "same_category", seed)]
    # Nine other profiles have one of each category.
    runs = [found[i : i + 9] for i in range(0, 45, 9)]
    assert all(len(set(run)) == 1 for run in runs)
    assert {run[0] for run in runs} == set(CATEGORIES)


@given(profiles, seeds)
def test_distractors_do_not_depend_on_the_order_of_profiles(profile: Profile, seed: int) -> None:
    composition = Composition(density=20)
    assert compose(profile, EVERYONE, composition, seed) == compose(
        profile, EVERYONE[::-1], composition, seed
    )


@pytest.mark.parametrize("mix", get_args(Mix))
def test_all_fifty_are_there_at_density_50(mix: Mix) -> None:
    everything = {p.id for other in EVERYONE for p in other.preferences}
    for profile in EVERYONE:
        held = compose(profile, EVERYONE, Composition(density=50, mix=mix), 0).position
        assert set(held) == everything


def test_the_first_category_of_distractors_differs_between_profiles() -> None:
    first = {distractors(p, EVERYONE, "same_category", 0)[0].category for p in EVERYONE}
    assert len(first) > 1


def test_the_seed_moves_places_and_distractors() -> None:
    by_seed = [
        [compose(p, EVERYONE, Composition(density=10), seed).position for p in EVERYONE]
        for seed in (0, 0, 1)
    ]
    assert by_seed[0] == by_seed[1]
    assert all(a != b for a, b in zip(by_seed[0], by_seed[2], strict=True))
    assert all(set(a) != set(b) for a, b in zip(by_seed[0], by_seed[2], strict=True))


def test_scattered_preferences_are_all_over_memory() -> None:
    """Over 200 seeds and 10 profiles every one of the 31 places is used: the chance that one of
    10,000 uniform draws misses a given place is (30/31)^10000 < 10^-140."""
    places = {
        place
        for seed in range(200)
        for profile in EVERYONE
        for place in facts_before(
            compose(profile, EVERYONE, Composition(), seed), profile.preferences
        )
    }
    assert places == set(range(31))


COMPOSED = """
from tests.benchmarks.benchpres.test_memory import DENSITIES, EVERYONE, Composition, compose
for profile in EVERYONE:
    for mix in ("spread", "same_category"):
        for order in ("scattered", "reversed"):
            for density in DENSITIES:
                made = Composition(density=density, mix=mix, order=order)
                print(compose(profile, EVERYONE, made, 0))
"""


def test_memory_is_the_same_in_every_process() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", COMPOSED],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    # 10 profiles, 2 mixes, 2 orders, 4 densities.
    assert len(printed[0].splitlines()) == 160
    assert printed[0] == printed[1]
