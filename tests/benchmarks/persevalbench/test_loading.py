"""Every kind of bad scenario is refused with its place; the scenario grammar is the paper's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from persona_lab.benchmarks.persevalbench.loading import FILE, load_scenarios
from persona_lab.benchmarks.persevalbench.records import (
    APPLICABILITY,
    APPLY_B,
    CATEGORICAL,
    FAMILIES,
    FAMILY_OF,
    GRADED,
    LEGAL,
    PRECEDENCE,
    RELATIONS,
    SUBTYPES,
    Applicability,
    StateRelation,
)
from persona_lab.core.errors import DataError
from tests.benchmarks.persevalbench.data import TARGET, write_scenarios

Record = dict[str, Any]
ABBREVIATIONS = {
    "CO": "complete_omission", "PO": "partial_omission", "EV": "explicit_violation",
    "IU": "irrelevant_use", "SL": "scope_leakage", "UI": "unsupported_inference",
    "SS": "stale_superseded", "OD": "over_dominance", "UW": "underweighting",
}  # fmt: skip
# Table 7, typed from the paper.
TABLE_7 = {
    "re_entry": "CO PO EV IU SL SS OD UW",
    "cross_domain": "CO PO EV IU UI SS OD UW",
    "out_of_scope": "IU SL UI",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """s01 is a complete omission without state B, s02 a stale use with one, s03 an irrelevant use.

    Each has 13 turns in episodes of 6 and 7.
    """
    return write_scenarios(tmp_path / "data", 3)


def changed(folder: Path, edit: Callable[[list[Record]], object]) -> list[str]:
    """Edits the scenarios; the lines of the file."""
    path = folder / FILE
    records = json.loads(path.read_text(encoding="utf-8"))
    edit(records)
    path.write_text(json.dumps(records, indent=1), encoding="utf-8")
    return path.read_text(encoding="utf-8").splitlines()


def refusal(folder: Path) -> str:
    """What is said of a folder, with the folder's own path left out."""
    with pytest.raises(DataError) as caught:
        load_scenarios(folder)
    return str(caught.value).removeprefix(f"{folder}/")


def line_of_key(lines: list[str], number: int, field: str) -> int:
    """The line of a scenario's field, counted in the written file: ids stand one a scenario, and
    keys of a path stand below each other."""
    at = [i for i, line in enumerate(lines) if line.startswith('  "id":')][number]
    for key in field.split("."):
        if not key.isdigit():
            at = next(i for i in range(at, len(lines)) if lines[i].lstrip().startswith(f'"{key}":'))
    return at + 1


def state(name: str, **fields: object) -> Callable[[Record], None]:
    return lambda record: record["states"][name].update(fields)


def without_b(record: Record) -> None:
    record["states"]["B"] = None


def ends_with_the_assistant(record: Record) -> None:
    record["episodes"][-1]["turns"][-1]["role"] = "assistant"


def turn_text(text: object) -> Callable[[Record], None]:
    return lambda record: record["episodes"][1]["turns"][2].update(text=text)


# What the scenario grammar forbids


@pytest.mark.parametrize(
    ("number", "edit", "field", "problem"),
    [
        (0, lambda r: r.update(relation="out_of_scope"), "subtype", "complete_omission is no "),
        (1, lambda r: r.update(subtype="scope_leakage"), "subtype", "scope_leakage is no error of"),
        (2, lambda r: r.update(subtype="underweighting"), "subtype", "underweighting is no error"),
        (1, state("A", turns=[0]), "states.A.turns", "turn 0 is not among the 12 before"),
        (1, state("A", turns=[-1]), "states.A.turns", "turn -1 is not among the 12 before"),
        (1, state("A", turns=[1, 13]), "states.A.turns", "turn 13 is not among the 12 before"),
        (1, state("A", turns=[3, 14]), "states.A.turns", "turn 14 is not among the 12 before"),
        (1, state("B", turns=[0, 5]), "states.B.turns", "turn 0 is not among the 12 before"),
        (1, state("B", turns=[13]), "states.B.turns", "turn 13 is not among the 12 before"),
        (1, state("B", turns=[99]), "states.B.turns", "turn 99 is not among the 12 before"),
        (1, state("B", turns=[5, 3]), "states.B.turns", "a turn expresses both states"),
        (1, state("A", role="Ignore"), "states.A.role", "the applicable state cannot be ignored"),
        (1, without_b, "states.B", "stale_superseded applies state B, and there is none"),
        (2, without_b, "states.B", "irrelevant_use applies state B, and there is none"),
        (0, ends_with_the_assistant, "episodes", "the last turn is the target request and must be"),
        (2, lambda r: r.update(id="s01"), "id", "s01 is given twice"),
        (2, lambda r: r.update(id="a b"), "id", "'a b' is no name: letters, digits, _ and - only"),
        (2, lambda r: r.update(id="../s"), "id", "'../s' is no name"),
        (2, lambda r: r.update(id="_s"), "id", "'_s' is no name"),
        (2, lambda r: r.update(id="é"), "id", "'é' is no name"),
    ],
)  # fmt: skip
def test_what_the_grammar_forbids_is_named(
    folder: Path, number: int, edit: Callable[[Record], None], field: str, problem: str
) -> None:
    lines = changed(folder, lambda records: edit(records[number]))
    name = json.loads("\n".join(lines))[number]["id"]
    place = f"{FILE}:{line_of_key(lines, number, field)}: {number}.{field}: {name}: {problem}"
    assert refusal(folder).startswith(place)


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_errors_that_apply_the_competing_state_need_one(folder: Path, subtype: str) -> None:
    """Prompt 1: apply-B subtypes against withhold-A subtypes."""
    applies_b = {
        "irrelevant_use", "scope_leakage", "stale_superseded", "over_dominance",
        "unsupported_inference",
    }  # fmt: skip
    relation = next(r for r in RELATIONS if subtype in LEGAL[r])

    def edit(records: list[Record]) -> None:
        records[1].update(relation=relation, subtype=subtype)
        records[1]["states"]["B"] = None

    changed(folder, edit)
    assert (subtype in APPLY_B) == (subtype in applies_b)
    if subtype in applies_b:
        assert f"{subtype} applies state B" in refusal(folder)
    else:
        assert load_scenarios(folder)[0][1].b is None


# Turn 13 is the target: 10, 9, 5 and 4 are 3, 4, 8 and 9 turns before it.
@pytest.mark.parametrize(
    ("latest", "distance", "name"),
    [(12, 1, "near"), (10, 3, "near"), (9, 4, "medium"), (5, 8, "medium"), (4, 9, "far"),
     (1, 12, "far")],
)  # fmt: skip
def test_the_borders_of_distance(folder: Path, latest: int, distance: int, name: str) -> None:
    def edit(records: list[Record]) -> None:
        records[0]["states"]["A"]["turns"] = [1, latest]
        records[0]["evidence_distance"] = said

    for said in ("near", "medium", "far"):
        lines = changed(folder, edit)
        if said == name:
            found = load_scenarios(folder)[0][0]
            assert (found.distance, found.distance_bin) == (distance, name)
        else:
            line = line_of_key(lines, 0, "evidence_distance")
            problem = f"is said to be {said}, but {distance} turns are {name}"
            assert refusal(folder) == f"{FILE}:{line}: 0.evidence_distance: s01: {problem}"


def test_distance_is_counted_from_state_a(folder: Path) -> None:
    changed(folder, lambda records: state("B", turns=[12])(records[1]))
    found = load_scenarios(folder)[0][1]
    assert (found.a.turns, found.distance) == ((1, 3), 10)
    assert found.evidence == (1, 3, 12)


@pytest.mark.parametrize(
    "error",
    ["Go to the quiet place.", "GO to the QUIET place.", " Go  to\nthe quiet\u00a0place. "],
)
def test_two_responses_that_say_the_same_are_refused(folder: Path, error: str) -> None:
    def edit(records: list[Record]) -> None:
        records[1].update(right_response="Go to the quiet place.", error_response=error)

    lines = changed(folder, edit)
    line = line_of_key(lines, 1, "error_response")
    problem = "is the same as right_response"
    assert refusal(folder) == f"{FILE}:{line}: 1.error_response: s02: {problem}"


# What breaks the shape


@pytest.mark.parametrize(
    ("edit", "field", "problem"),
    [
        (lambda r: r.update(relation="reentry"), "relation", "Input should be 're_entry', 'cross"),
        (lambda r: r.update(subtype="CO"), "subtype", "Input should be 'complete_omission', "),
        (lambda r: r.update(state_relation="x"), "state_relation", "Input should be 'same_attri"),
        (lambda r: r.update(evidence_form="Explicit"), "evidence_form", "Input should be 'expli"),
        (lambda r: r.update(evidence_distance=10), "evidence_distance", "Input should be 'near'"),
        (lambda r: r.update(right_response=" \n"), "right_response", "String should have at lea"),
        (lambda r: r.update(error_response=None), "error_response", "Input should be a valid st"),
        (lambda r: r.update(id=7), "id", "Input should be a valid string"),
        (lambda r: r.update(episodes=[]), "episodes", "List should have at least 1 item"),
        (turn_text(""), "episodes.1.turns.2.text", "String should have at least 1 character"),
        (turn_text("\u2003"), "episodes.1.turns.2.text", "String should have at least 1 characte"),
        (state("A", statement=""), "states.A.statement", "String should have at least 1 charact"),
        (state("B", role="ignore"), "states.B.role", "Input should be 'Ignore', 'Support' or 'D"),
        (state("A", turns=[]), "states.A.turns", "List should have at least 1 item"),
        (state("B", turns=["five"]), "states.B.turns.0", "Input should be a valid integer"),
        (state("B", turns=[5.5]), "states.B.turns.0", "Input should be a valid integer"),
        (state("B", turns=[None]), "states.B.turns.0", "Input should be a valid integer"),
    ],
)  # fmt: skip
def test_what_breaks_the_shape_is_named(
    folder: Path, edit: Callable[[Record], None], field: str, problem: str
) -> None:
    changed(folder, lambda records: edit(records[1]))
    place, _, said = refusal(folder).partition(f": 1.{field}: ")
    assert place.startswith(f"{FILE}:")
    assert said.startswith(problem)


@pytest.mark.parametrize("turn", [True, "3"])
def test_a_turn_number_is_read_strictly(folder: Path, turn: object) -> None:
    """`true` is not turn 1."""
    changed(folder, lambda records: state("A", turns=[turn, 3])(records[1]))
    assert ": 1.states.A.turns.0: Input should be a valid integer" in refusal(folder)


@pytest.mark.parametrize("field", ["relation", "right_response", "states.A.statement"])
def test_a_wrong_value_is_named_with_its_line(folder: Path, field: str) -> None:
    def edit(records: list[Record]) -> None:
        *way, last = field.split(".")
        place = records[2]
        for key in way:
            place = place[key]
        place[last] = 7

    lines = changed(folder, edit)
    assert refusal(folder).startswith(f"{FILE}:{line_of_key(lines, 2, field)}: 2.{field}: ")


@pytest.mark.parametrize(
    "field", ["id", "relation", "subtype", "state_relation", "evidence_form", "evidence_distance",
              "states", "episodes", "right_response", "error_response"],
)  # fmt: skip
def test_a_missing_field_is_named(folder: Path, field: str) -> None:
    changed(folder, lambda records: records[1].pop(field))
    assert refusal(folder).endswith(f": 1.{field}: Field required")


def test_a_file_that_is_missing_or_empty_is_named(folder: Path) -> None:
    path = folder / FILE
    text = path.read_text(encoding="utf-8")
    path.write_text("[]", encoding="utf-8")
    assert refusal(folder) == f"{FILE}: has no scenarios"
    path.write_text("", encoding="utf-8")
    assert refusal(folder).startswith(f"{FILE}:1: is no JSON")
    lines = text.splitlines()
    lines[3] = lines[3].replace('"', "", 1)
    path.write_text("\n".join(lines), encoding="utf-8")
    assert refusal(folder).startswith(f"{FILE}:4: is no JSON")
    path.write_text('{"id": "s01"}', encoding="utf-8")
    assert "valid list" in refusal(folder)
    path.write_text('[{"id": "s01", "id": "s02"}]', encoding="utf-8")
    assert refusal(folder) == f"{FILE}: the key 'id' is given twice in one object"
    path.write_bytes(b"\xff\xfe\x00")
    assert refusal(folder).startswith(f"{FILE}: cannot be read")
    path.unlink()
    assert refusal(folder) == f"{FILE}: no such file"
    path.parent.rename(folder.parent / "elsewhere")
    assert refusal(folder) == f"{FILE}: no such file"


# What is read


def test_the_records_of_a_small_folder(folder: Path) -> None:
    scenarios, _ = load_scenarios(folder)
    assert [s.id for s in scenarios] == ["s01", "s02", "s03"]
    first, second, _ = scenarios
    assert (first.family, second.family) == ("under", "misapplied")
    assert first.b is None
    assert second.b is not None
    assert (second.a.role, second.b.role) == ("Support", "Ignore")
    assert (second.a.turns, second.b.turns, second.evidence) == ((1, 3), (5,), (1, 3, 5))
    # Episodes of 6 and 7 turns.
    assert (second.target, len(second.turns), second.episodes) == (TARGET, 13, (1, 7))
    assert second.turns[0].role == "user"
    assert second.turns[1].text == "Turn 2 of s02."
    assert second.request == "Where should s02 go?"
    assert second.response("right") == "s02 should go to the quiet place."
    assert second.response("error") == "s02 should go to the loud place."


def test_further_keys_are_passed_over(folder: Path) -> None:
    expected = load_scenarios(folder)[0]

    def edit(records: list[Record]) -> None:
        records[0]["why_tricky"] = "Both speak of noise."
        records[1]["episodes"][0]["topic"] = "Evenings out"
        records[1]["episodes"][0]["turns"][0]["time"] = "10:00"
        records[2]["states"]["A"]["note"] = 7
        records[2]["states"]["C"] = None

    changed(folder, edit)
    assert load_scenarios(folder)[0] == expected


def test_evidence_turns_are_sorted_and_none_twice(folder: Path) -> None:
    changed(folder, lambda records: state("A", turns=[3, 1, 3, 2])(records[1]))
    assert load_scenarios(folder)[0][1].a.turns == (1, 2, 3)


def test_white_space_around_a_text_is_left_out(folder: Path) -> None:
    changed(folder, lambda records: records[0].update(right_response="\n So it is. \t"))
    assert load_scenarios(folder)[0][0].right == "So it is."


def test_the_digest_is_of_the_file(folder: Path) -> None:
    path = folder / FILE
    _, digest = load_scenarios(folder)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    changed(folder, lambda records: records[0].update(why_tricky="Both speak of noise."))
    assert load_scenarios(folder)[1] != digest
    same = folder.rename(folder.parent / "another name")
    assert load_scenarios(same)[1] == load_scenarios(same)[1] != digest


# The scenario grammar (Appendix B)


def test_table_7() -> None:
    typed = {r: {ABBREVIATIONS[a] for a in cell.split()} for r, cell in TABLE_7.items()}
    assert {relation: {*subtypes} for relation, subtypes in LEGAL.items()} == typed
    assert [len(subtypes) for subtypes in LEGAL.values()] == [8, 8, 3]
    # 19 of 3 x 9 are legal.
    assert sum(map(len, LEGAL.values())) == 19
    assert len(RELATIONS) * len(SUBTYPES) == 27
    assert all(len({*subtypes}) == len(subtypes) for subtypes in LEGAL.values())


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_only_legal_pairs_are_loaded(folder: Path, relation: str, subtype: str) -> None:
    changed(folder, lambda records: records[1].update(relation=relation, subtype=subtype))
    if subtype in {ABBREVIATIONS[a] for a in TABLE_7[relation].split()}:
        found = load_scenarios(folder)[0][1]
        assert (found.relation, found.subtype) == (relation, subtype)
    else:
        assert f": 1.subtype: s02: {subtype} is no error of {relation}" in refusal(folder)


def test_three_subtypes_a_family() -> None:
    """Section 3.2."""
    named = {"under": "CO PO EV", "over": "IU SL UI", "misapplied": "SS OD UW"}
    assert {ABBREVIATIONS[a]: f for f, cell in named.items() for a in cell.split()} == FAMILY_OF
    assert tuple(named) == FAMILIES


def test_table_8() -> None:
    families: dict[Applicability, set[StateRelation]] = {
        "holder": {"same_attribute_different_object"},
        "scope": {"same_attribute_different_scope"},
        "temporal": {"same_attribute_different_time", "old_vs_new_value"},
        "strength": {"hard_vs_soft", "two_simultaneous"},
        "transferability": {"cross_domain_vs_specific", "unsupported_adjacent"},
    }
    assert {r: family for family, inside in families.items() for r in inside} == APPLICABILITY
    assert {*APPLICABILITY} == {*get_args(StateRelation)}
    assert (CATEGORICAL, GRADED) == (
        ("holder", "scope", "temporal"), ("strength", "transferability"),
    )  # fmt: skip


def test_subtype_precedence() -> None:
    """Appendix B.1: a violated hard constraint is an explicit violation, not an omission; scope
    leakage needs a scope boundary, and irrelevant use is about merely unrelated states."""
    pairs = [(first, second) for first, second, _ in PRECEDENCE]
    assert pairs == [
        ("explicit_violation", "complete_omission"), ("scope_leakage", "irrelevant_use"),
    ]  # fmt: skip
    reasons = [why for _, _, why in PRECEDENCE]
    assert "hard constraint" in reasons[0]
    assert "scope boundary" in reasons[1]
    # Both of a pair are of one family, so that precedence never changes what is counted.
    assert all(FAMILY_OF[first] == FAMILY_OF[second] for first, second in pairs)
