"""What a recipe asks for, counted by hand: cases, strata, settings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from persona_lab.benchmarks.persevalbench.cases import (
    CONDITIONS,
    ORDERS,
    PARTS,
    PersEvalCase,
    all_cases,
    stratified,
)
from persona_lab.benchmarks.persevalbench.context import CONTEXTS
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.records import (
    LEGAL,
    SIDES,
    Relation,
    Scenario,
    State,
    Subtype,
    Turn,
)
from persona_lab.benchmarks.persevalbench.settings import PersEvalBenchSettings
from tests.benchmarks.persevalbench.data import write_scenarios

Pair = tuple[Relation, Subtype]
PAIRS: list[Pair] = [(relation, subtype) for relation in LEGAL for subtype in LEGAL[relation]]
BUDGETS = dict.fromkeys(("verdict", "evidence", "state_table", "pointwise", "pairwise"), 8)
FORMULATIONS = ["end_to_end", "evidence_first", "state_table"]
PROTOCOLS = ["verdict", "pointwise", "pairwise"]
ONE = {"target": "a model"}
PANEL = {"target": "one", "judge": "two", "second_judge": "three"}
STATE = State("Quiet.", "user", "all", "now", "strong", "none", "Dominate", (1,))
BASE = Scenario(
    "s0", "re_entry", "complete_omission", "hard_vs_soft", "explicit", STATE, None,
    (Turn("user", "Quiet, please."), Turn("user", "Where to?")), (1,), "There.", "Here.",
)  # fmt: skip


def settings(**changes: Any) -> PersEvalBenchSettings:
    fields = {
        "benchmark": {"path": "data"},
        "contexts": ["full"],
        "formulations": ["end_to_end"],
        "protocols": ["verdict"],
        "max_tokens": BUDGETS,
    }
    return PersEvalBenchSettings.model_validate(fields | changes)


@pytest.fixture
def small(tmp_path: Path) -> list[Scenario]:
    return load_scenarios(write_scenarios(tmp_path / "data", 4))[0]


# Cases


def test_the_main_setting(small: list[Scenario]) -> None:
    found = all_cases(small, ONE, settings())
    assert [case.id for case in found[:3]] == [
        "s01/target/full/verdict/end_to_end/right/1",
        "s01/target/full/verdict/end_to_end/error/1",
        "s02/target/full/verdict/end_to_end/right/1",
    ]
    # 4 scenarios x 2 responses.
    assert len(found) == 8


@pytest.mark.parametrize(
    ("evaluators", "changes", "number"),
    [
        # Scenarios x evaluators x contexts x (formulations or protocols) x subjects x samples.
        (ONE, {"contexts": list(CONTEXTS)}, 4 * 7 * 2),
        (ONE, {"formulations": FORMULATIONS}, 4 * 3 * 2),
        (PANEL, {}, 4 * 3 * 2),
        (ONE, {"samples": 5}, 4 * 2 * 5),
        (ONE, {"protocols": ["pointwise"], "formulations": FORMULATIONS}, 4 * 2),
        (ONE, {"protocols": ["pairwise"], "formulations": FORMULATIONS}, 4 * 2),
        # Three formulations of the verdict, and one of the other two protocols each.
        (ONE, {"protocols": PROTOCOLS, "formulations": FORMULATIONS}, 4 * (3 + 1 + 1) * 2),
        (
            PANEL,
            {
                "contexts": list(CONTEXTS), "formulations": FORMULATIONS, "protocols": PROTOCOLS,
                "samples": 2,
            },
            4 * 3 * 7 * 5 * 2 * 2,
        ),
    ],
)  # fmt: skip
def test_counts_by_hand(
    small: list[Scenario], evaluators: dict[str, str], changes: dict[str, Any], number: int
) -> None:
    found = all_cases(small, evaluators, settings(**changes))
    assert len(found) == number
    assert len({case.id for case in found}) == number
    assert all(not case.id.startswith("/") and case.id.count("/") == 6 for case in found)


def test_formulations_are_of_the_verdict_alone(small: list[Scenario]) -> None:
    found = all_cases(small, ONE, settings(protocols=PROTOCOLS, formulations=FORMULATIONS))
    asked = {(case.protocol, case.formulation) for case in found}
    assert asked == {
        *(("verdict", name) for name in FORMULATIONS),
        ("pointwise", "direct"), ("pairwise", "direct"),
    }  # fmt: skip


def test_a_pair_is_shown_in_both_orders(small: list[Scenario]) -> None:
    """Appendix C.5."""
    found = all_cases(small[:1], ONE, settings(protocols=PROTOCOLS))
    subjects = [(case.protocol, case.subject) for case in found]
    assert subjects == [
        ("verdict", "right"), ("verdict", "error"), ("pointwise", "right"), ("pointwise", "error"),
        ("pairwise", "right_first"), ("pairwise", "error_first"),
    ]  # fmt: skip
    assert (SIDES, ORDERS) == (("right", "error"), ("right_first", "error_first"))
    # Repeats of a question share its name; both orders of a pair are one question.
    questions = [case.question for case in found]
    assert questions == ["s01/right", "s01/error", "s01/right", "s01/error", "s01", "s01"]


def test_samples_come_last(small: list[Scenario]) -> None:
    found = all_cases(small[:1], ONE, settings(samples=3))
    assert [(c.subject, c.sample) for c in found] == [
        ("right", 1), ("right", 2), ("right", 3), ("error", 1), ("error", 2), ("error", 3),
    ]  # fmt: skip


def test_facets_of_a_case(small: list[Scenario]) -> None:
    case = PersEvalCase(small[1], "judge", "two", "recent", "verdict", "state_table", "error", 2)
    assert case.facets == {
        "evaluator": "two", "context": "recent", "formulation": "state_table",
        "protocol": "verdict", "subject": "error", "sample": "2", "family": "misapplied",
        # s02 of the small folder: state relation 2, form 0 and distance 2 of their lists.
        "subtype": "stale_superseded", "relation": "cross_domain", "applicability": "temporal",
        "form": "explicit", "distance": "far",
    }  # fmt: skip
    assert {*CONDITIONS, *PARTS} <= {*case.facets}


# Strata (Appendix C.4)


def population(pairs: Sequence[Pair]) -> list[Scenario]:
    return [
        replace(BASE, id=f"s{n}", relation=relation, subtype=subtype)
        for n, (relation, subtype) in enumerate(pairs)
    ]


def test_equal_strata_by_hand() -> None:
    """Ten of each legal pair: 190. Half of them is five of each."""
    everything = population(PAIRS * 10)
    found = stratified(everything, 95, 0)
    assert Counter((s.relation, s.subtype) for s in found) == dict.fromkeys(PAIRS, 5)


def test_unequal_strata_by_hand() -> None:
    """Of 8 + 4 + 2 half is 4 + 2 + 1; of 6 + 2 in the first, by relation, half is 3 + 1."""
    sizes: dict[Pair, int] = {
        ("re_entry", "complete_omission"): 6, ("cross_domain", "complete_omission"): 2,
        ("out_of_scope", "scope_leakage"): 4, ("re_entry", "underweighting"): 2,
    }  # fmt: skip
    found = stratified(population([*Counter(sizes).elements()]), 7, 0)
    assert Counter((s.relation, s.subtype) for s in found) == {
        ("re_entry", "complete_omission"): 3, ("cross_domain", "complete_omission"): 1,
        ("out_of_scope", "scope_leakage"): 2, ("re_entry", "underweighting"): 1,
    }  # fmt: skip


def test_the_largest_remainder_gets_the_rest() -> None:
    """Two of 3 + 2 are 1.2 + 0.8: one each."""
    sizes: dict[Pair, int] = {
        ("re_entry", "complete_omission"): 3, ("re_entry", "irrelevant_use"): 2,
    }  # fmt: skip
    made = population([*Counter(sizes).elements()])
    for seed in range(10):
        found = stratified(made, 2, seed)
        assert [s.subtype for s in found] == ["complete_omission", "irrelevant_use"]


def test_the_seed_decides_who_is_drawn() -> None:
    made = population([PAIRS[0]] * 12)
    drawn = {tuple(s.id for s in stratified(made, 6, seed)) for seed in range(10)}
    assert len(drawn) > 1


populations = st.lists(st.sampled_from(PAIRS), min_size=1, max_size=60).map(population)


@given(populations, st.integers(1, 70), st.integers(0, 3))
def test_any_draw(everything: list[Scenario], number: int, seed: int) -> None:
    found = stratified(everything, number, seed)
    assert found == stratified(everything, number, seed)
    if number >= len(everything):
        assert found == everything
        return
    assert len(found) == number
    ids = [s.id for s in found]
    assert ids == [s.id for s in everything if s.id in set(ids)]
    sizes, drawn = (Counter(s.subtype for s in group) for group in (everything, found))
    for subtype, size in sizes.items():
        assert abs(drawn[subtype] - size * number / len(everything)) < 1
    inside, taken = (Counter((s.subtype, s.relation) for s in g) for g in (everything, found))
    for (subtype, relation), size in inside.items():
        share = size * drawn[subtype] / sizes[subtype]
        assert abs(taken[subtype, relation] - share) < 1


@given(populations, st.integers(1, 60), st.randoms(use_true_random=False))
def test_a_draw_does_not_depend_on_the_order_of_the_file(
    everything: list[Scenario], number: int, rng: random.Random
) -> None:
    shuffled = rng.sample(everything, len(everything))
    assert {s.id for s in stratified(shuffled, number, 0)} == {
        s.id for s in stratified(everything, number, 0)
    }


# Settings


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"contexts": []}, "at least 1 item"),
        ({"contexts": ["whole"]}, "'target_only', 'recent', 'full'"),
        ({"contexts": ["full", "recent", "full"]}, "contexts names a value twice"),
        ({"formulations": ["end_to_end", "end_to_end"]}, "formulations names a value twice"),
        ({"formulations": ["e2e"]}, "'end_to_end', 'evidence_first' or 'state_table'"),
        ({"protocols": ["pairwise", "pairwise"]}, "protocols names a value twice"),
        ({"protocols": []}, "at least 1 item"),
        ({"samples": 0}, "greater than or equal to 1"),
        ({"samples": "2"}, "valid integer"),
        ({"retrieval": {"k": 0}}, "greater than or equal to 1"),
        ({"retrieval": {"retriever": ""}}, "at least 1 character"),
        ({"retrieval": {"unit": "turn"}}, "Extra inputs are not permitted"),
        ({"panel": "yes"}, "valid boolean"),
        ({"logprobs": 0}, "greater than or equal to 1"),
        ({"logprobs": 21}, "less than or equal to 20"),
        ({"benchmark": {"path": "data", "sample": 0}}, "greater than or equal to 1"),
        ({"benchmark": {"path": "data", "scenarios": []}}, "at least 1 item"),
        ({"benchmark": {"path": "data", "facts": 1}}, "Extra inputs are not permitted"),
        ({"max_tokens": {**BUDGETS, "verdict": 0}}, "greater than or equal to 1"),
        ({"max_tokens": {}}, "Field required"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        settings(**changes)


def test_one_value_may_stand_without_a_list() -> None:
    found = settings(contexts="gold_only", formulations="state_table", protocols="pairwise")
    assert (found.contexts, found.formulations, found.protocols) == (
        ["gold_only"], ["state_table"], ["pairwise"],
    )  # fmt: skip
