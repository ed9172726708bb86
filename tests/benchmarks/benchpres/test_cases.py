"""What a recipe asks for, counted by hand: cases, selection of users and contexts, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from persona_lab.benchmarks.benchpres.cases import (
    CONDITIONS,
    BenchPreSCase,
    DefenceName,
    all_cases,
    compositions,
    telling,
)
from persona_lab.benchmarks.benchpres.loading import load_data
from persona_lab.benchmarks.benchpres.memory import SANITISED, Composition, compose
from persona_lab.benchmarks.benchpres.records import CATEGORIES, Context, Data, Instance, Profile
from persona_lab.benchmarks.benchpres.selection import chosen, inventory
from persona_lab.benchmarks.benchpres.settings import (
    BenchPreSSettings,
    Defences,
    MemorySettings,
)
from persona_lab.core.errors import ConfigError
from tests.benchmarks.benchpres.data import write_data
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "benchpres_sample"
OFFICE = Context("office", "Tax Office", "Ask for a form", "finance_legal", True)
FRIEND = Context("friend", "Team Lead", "Ask for a day off", "employment", False)
BUDGETS = dict.fromkeys(("message", "deliberation", "probe", "judge", "completeness"), 8)


def settings(**changes: Any) -> BenchPreSSettings:
    fields = {
        "benchmark": {"path": "data"},
        "defence": {"default": {}},
        "memories": {},
        "max_tokens": BUDGETS,
    }
    return BenchPreSSettings.model_validate(fields | changes)


@pytest.fixture(scope="module")
def sample() -> Data:
    return load_data(SAMPLE)


@pytest.fixture
def small(tmp_path: Path) -> Data:
    return load_data(write_data(tmp_path / "data"))


def cases(data: Data, **changes: Any) -> list[BenchPreSCase]:
    return all_cases(data.profiles, data.contexts, settings(**changes))


def made(defence: str = "default", context: Context = OFFICE, **memory: Any) -> list[Composition]:
    return compositions(MemorySettings.model_validate(memory), defence, context)


# Cases


def test_the_papers_size(sample: Data) -> None:
    # 10 users x 39 contexts x 3 samples.
    found = cases(sample)
    assert len(found) == 1_170
    assert len({case.id for case in found}) == 1_170
    assert found[0].id == "p01/bank_loan_officer/default/as_is/with/5/spread/scattered/1"
    assert found[-1].id == "p10/tenant_screening_company/default/as_is/with/5/spread/scattered/3"


def test_ids_are_unique_over_all_that_can_differ(small: Data) -> None:
    found = cases(
        small,
        defence={name: {} for name in get_args(DefenceName)},
        reasoning=[None, False, True],
        memories={
            "preferences": [True, False],
            "density": [1, 5, 10],
            "mix": ["spread", "same_category"],
            "order": ["scattered", "reversed", "start", "end"],
        },
        completeness=True,
        samples=2,
    )
    assert len({case.id for case in found}) == len(found)


def test_facets_are_the_condition_and_the_place(small: Data) -> None:
    case = BenchPreSCase(small.profiles[1], OFFICE, "prompt", False, Composition(density=10), 2)
    assert case.condition == {
        "defence": "prompt", "reasoning": "off", "memory": "with", "density": "10",
        "mix": "spread", "order": "scattered", "shown": "whole",
    }  # fmt: skip
    assert tuple(case.condition) == CONDITIONS
    assert case.facets == case.condition | {
        "user": "p02", "context": "office", "domain": "finance_legal", "sample": "2",
    }  # fmt: skip
    assert case.id == "p02/office/prompt/off/with/10/spread/scattered/2"


@pytest.mark.parametrize(("reasoning", "name"), [(None, "as_is"), (False, "off"), (True, "on")])
def test_reasoning_and_memory_have_names(small: Data, reasoning: bool | None, name: str) -> None:
    without = Composition(preferences=False)
    case = BenchPreSCase(small.profiles[0], OFFICE, "default", reasoning, without, 1)
    found = case.condition
    assert (found["reasoning"], found["memory"], found["density"]) == (name, "without", "0")


def test_a_lone_preference_is_named_in_the_id_only(small: Data) -> None:
    alone = Composition(density=1, only="tone")
    case = BenchPreSCase(small.profiles[0], OFFICE, "default", None, alone, 1)
    assert case.id == "p01/office/default/as_is/with/1-tone/spread/scattered/1"
    assert case.condition["density"] == "1"


def test_density_1_is_five_messages(small: Data) -> None:
    assert [c.only for c in made(density=[1])] == list(CATEGORIES)
    # 2 users x 3 contexts x (5 alone + 1 with all).
    found = cases(small, memories={"density": [1, 5]}, samples=1)
    assert len(found) == 36
    assert [c.composition.only for c in found[:6]] == [*CATEGORIES, None]


def test_the_mix_is_varied_only_where_there_are_distractors() -> None:
    found = made(density=[1, 5, 10, 50], mix=["spread", "same_category"])
    assert [(c.density, c.mix) for c in found if c.only is None] == [
        (5, "spread"), (10, "spread"), (10, "same_category"),
        (50, "spread"), (50, "same_category"),
    ]  # fmt: skip
    assert {c.mix for c in found if c.only} == {"spread"}
    assert len(found) == 5 + 5


def test_memory_without_preferences_comes_once() -> None:
    orders = ["scattered", "reversed", "start", "end"]
    found = made(preferences=[True, False], density=[5, 10], order=orders)
    # 2 densities x 4 orders with, 1 without.
    assert [c.preferences for c in found] == [True] * 8 + [False]
    assert found[-1] == Composition(preferences=False)
    assert made(preferences=[False]) == [Composition(preferences=False)]


def test_no_two_compositions_make_one_memory(small: Data) -> None:
    """What cannot matter is not varied: the order from 2 preferences on."""
    profile = small.profiles[0]
    found = made(density=[1, 5], order=["scattered", "reversed"])
    texts = [compose(profile, small.profiles, c, 0).text for c in found]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("defence", get_args(DefenceName))
@pytest.mark.parametrize("context", [OFFICE, FRIEND])
def test_only_the_sanitiser_looks_at_the_recipient(defence: str, context: Context) -> None:
    sanitised = defence == "sanitiser" and context is OFFICE
    for composition in made(defence, context, density=[5, 10]):
        assert composition.without == (SANITISED if sanitised else frozenset())


def test_the_sanitiser_leaves_out_markers_and_nickname(small: Data) -> None:
    found = cases(small, defence={"sanitiser": {}}, samples=1)
    # write_data: contexts 1 and 3 are institutional, 2 is not.
    kept = [
        [name.split("/")[1] for name in sorted(position)]
        for case in found[:3]
        for position in [compose(case.profile, small.profiles, case.composition, 0).position]
    ]
    fewer = ["role", "style", "tone"]
    assert kept == [fewer, ["markers", "nickname", *fewer], fewer]


def test_defences_are_those_of_the_settings() -> None:
    assert tuple(Defences.model_fields) == get_args(DefenceName)


def test_what_tells_conditions_apart() -> None:
    rows = [("default", "off", "5"), ("prompt", "off", "10")]
    assert telling(rows[1], rows) == ["prompt", "10"]
    assert telling(rows[1], rows[1:]) == ["prompt"]


# Selection


def test_users_and_contexts_keep_the_datas_order(small: Data) -> None:
    assert chosen(small, settings()) == (small.profiles, small.contexts)
    picked = {"path": "data", "users": ["p02"], "contexts": ["context_3", "context_1"]}
    profiles, contexts = chosen(small, settings(benchmark=picked))
    assert [p.id for p in profiles] == ["p02"]
    assert [c.id for c in contexts] == ["context_1", "context_3"]


@pytest.mark.parametrize(
    ("key", "names", "known"),
    [
        ("users", ["p02", "p03", "P01"], "p03, P01 not in the data, which has p01, p02"),
        ("contexts", ["irs"], "irs not in the data, which has context_1, context_2, context_3"),
    ],
)
def test_unknown_ones_are_refused(small: Data, key: str, names: list[str], known: str) -> None:
    with pytest.raises(ConfigError, match=f"benchmark.{key}: {known}"):
        chosen(small, settings(benchmark={"path": "data", key: names}))


def with_facts(sample: Data, number: int) -> tuple[Profile, ...]:
    return chosen(sample, settings(benchmark={"path": "data", "facts": number}))[0]


def test_fewer_facts_are_spread_evenly(sample: Data) -> None:
    # i x 147 / 10, rounded down: 0, 14.7, 29.4, ..., 132.3.
    places = [0, 14, 29, 44, 58, 73, 88, 102, 117, 132]
    for few, whole in zip(with_facts(sample, 10), sample.profiles, strict=True):
        assert list(few.facts) == [whole.facts[i] for i in places]
        assert few.preferences == whole.preferences


def test_every_domain_keeps_some_facts(sample: Data) -> None:
    for few, whole in zip(with_facts(sample, 20), sample.profiles, strict=True):
        domain = dict(zip(whole.facts, (d for d, _ in whole.events), strict=True))
        assert len({domain[fact] for fact in few.facts}) == 10


@pytest.mark.parametrize("number", [147, 148, 1_000])
def test_more_facts_than_there_are_is_all_of_them(sample: Data, number: int) -> None:
    assert with_facts(sample, number) == sample.profiles


def test_a_density_beyond_the_data_is_refused(sample: Data, small: Data) -> None:
    chosen(sample, settings(memories={"density": [5, 50]}))
    with pytest.raises(ConfigError, match="density=51: all 10 profiles together have 50 pref"):
        chosen(sample, settings(memories={"density": [51, 5]}))
    # Distractors come from everybody, whoever is evaluated.
    one = {"path": "data", "users": ["p01"]}
    chosen(small, settings(benchmark=one, memories={"density": [10]}))
    with pytest.raises(ConfigError, match="density=11: all 2 profiles together have 10 pref"):
        chosen(small, settings(benchmark=one, memories={"density": [11]}))


def scored(data: Data, case: BenchPreSCase) -> list[Instance]:
    return [i for i in data.instances(case.profile, case.context) if i.label != "excluded"]


def test_the_inventory_of_the_papers_size(sample: Data) -> None:
    table = inventory(
        cases(sample), lambda case: scored(sample, case), settings(completeness=True, probe=True)
    )
    # Section 4.1: 1,950 instances; 1,170 messages, four preferences of each judged, one matched.
    # g as the data card counts it. The probe is asked once per instance.
    assert table.rows == [
        {
            "condition": "default", "instances": 1_950, "g=0": 1_292, "g=1": 658,
            "messages": 1_170, "judge calls": 4_680, "nickname matches": 1_170,
            "ratings": 1_170, "probes": 1_950,
        }
    ]  # fmt: skip


# Settings


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"memories": {"density": [5, 3]}}, "density 3: is 1 or at least 5"),
        ({"memories": {"density": [0]}}, "density 0: is 1 or at least 5"),
        ({"memories": {"density": ["5"]}}, "valid integer"),
        ({"memories": {"density": []}}, "at least 1 item"),
        ({"memories": {"order": ["middle"]}}, "'scattered', 'reversed', 'start' or 'end'"),
        ({"memories": {"density": [5, 10, 5]}}, "memories.density names a value twice"),
        ({"memories": {"mix": ["spread", "spread"]}}, "memories.mix names a value twice"),
        ({"memories": {"order": ["end", "end"]}}, "memories.order names a value twice"),
        ({"memories": {"preferences": [True, True]}}, "memories.preferences names a value twice"),
        ({"reasoning": [None, False, None]}, "reasoning names a value twice"),
        ({"memories": {"preferences": [False]}}, "set completeness=true"),
        ({"memories": {"preferences": [True, False]}}, "set completeness=true"),
        ({"defence": {}}, "choose a defence: default, prompt, structured, few_shot"),
        ({"defence": {"default": None}}, "choose a defence"),
        ({"defence": {"kindness": {}}}, "Extra inputs are not permitted"),
        ({"samples": 0}, "greater than or equal to 1"),
        ({"benchmark": {"path": "data", "facts": 0}}, "greater than or equal to 1"),
        ({"max_tokens": {**BUDGETS, "judge": 0}}, "greater than or equal to 1"),
        ({"max_tokens": {}}, "Field required"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        settings(**changes)


def test_the_defaults_are_the_papers() -> None:
    found = settings()
    assert (found.samples, found.reasoning, found.defence.names) == (3, [None], ["default"])
    assert (found.completeness, found.probe, found.agreement.items) == (False, False, 0)
    memories = found.memories
    assert (memories.preferences, memories.density, memories.order) == ([True], [5], ["scattered"])


def test_memory_without_preferences_goes_with_completeness() -> None:
    found = settings(memories={"preferences": [False]}, completeness=True)
    assert found.memories.preferences == [False]
