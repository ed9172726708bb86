"""Every kind of bad input is refused with its place; what a spreadsheet leaves behind is not."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from persona_lab.benchmarks.benchpres.loading import load_data
from persona_lab.benchmarks.benchpres.records import CATEGORIES, Data
from persona_lab.core.errors import DataError
from tests.benchmarks.benchpres.data import write_data
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "benchpres_sample"
CIMEMORIES = ROOT.parent / "shared" / "data" / "cimemories" / "data_openai_gpt-oss-120b.json"
SHEETS = ("contexts.csv", "preferences.csv", "labels.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def replaced(path: Path, old: str, new: str) -> int:
    """Changes the one place that reads `old`; its 1-based line."""
    text = path.read_bytes().decode()
    assert text.count(old) == 1
    path.write_bytes(text.replace(old, new).encode())
    return text[: text.index(old)].count("\n") + 1


def rewritten(path: Path, edit: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content, indent=1))


def refusal(folder: Path) -> str:
    """What is said of a folder, with the folder's own path left out."""
    with pytest.raises(DataError) as caught:
        load_data(folder)
    return str(caught.value).removeprefix(f"{folder}/")


def contents(data: Data) -> tuple[object, ...]:
    return data.profiles, {c.id: c for c in data.contexts}, data.labels


def test_the_records_of_a_small_folder(folder: Path) -> None:
    data = load_data(folder)
    assert [c.id for c in data.contexts] == ["context_1", "context_2", "context_3"]
    first = data.contexts[0]
    assert (first.recipient, first.task, first.domain) == ("Recipient 1", "Purpose 1", "health")
    assert [c.institutional for c in data.contexts] == [True, False, True]
    profile = data.profiles[1]
    assert profile.facts == ("I have 2 dogs.", "I have 2 keys.", "I have 2 debts.")
    assert [p.category for p in profile.preferences] == list(CATEGORIES)
    assert [p.nickname for p in profile.preferences] == ["", "", "", "", "Nick2"]
    # (profile + context + category) % 2, as data.py says: 1 + 1 + 0, then 2 + 3 + 4.
    assert data.labels["p01", "context_1", "role"] == "0"
    assert data.labels["p02", "context_3", "nickname"] == "1"
    # 2 x 3 x 5 instances, and the ids of the first and the last.
    ids = [i.id for i in data.all_instances]
    assert (len(ids), ids[0], ids[-1]) == (30, "p01/context_1/role", "p02/context_3/nickname")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("_1,role,0", "_1,role,2", "label: '2' is none of 0, 1, excluded"),
        ("_1,role,0", "_1,role,", "label: is empty"),
        ("_1,role,0", "_1,role,yes", "label: 'yes' is none of 0, 1, excluded"),
        ("_1,role,0", "_1,role,0.0", "label: '0.0' is none of"),
        ("_1,role,0", "_1,humour,0", "category: 'humour' is none of role, style, tone"),
        ("_1,role,0", "_1,,0", "category: is empty"),
        ("p01,context_1,role", "p03,context_1,role", "profile: p03 has no preferences"),
        ("p01,context_1,role", ",context_1,role", "profile: is empty"),
        ("p01,context_1,role", "p01,context_9,role", "context: context_9 is not in contexts.csv"),
        ("p01,context_1,role", "p01,,role", "context: is empty"),
        ("p01,context_1,role,0", "p01,context_1,role,0,1", "has more cells than the 4 columns"),
    ],
)
def test_a_bad_label_is_named(folder: Path, old: str, new: str, problem: str) -> None:
    path = folder / "labels.csv"
    old, new = (t if t.startswith(("p", ",")) else f"p01,context{t}" for t in (old, new))
    line = replaced(path, old, new)
    assert refusal(folder).startswith(f"labels.csv:{line}: {problem}")


@pytest.mark.parametrize(("label", "how"), [("1", "contradicts"), ("0", "repeats")])
def test_a_second_label_names_the_line_of_the_first(folder: Path, label: str, how: str) -> None:
    path = folder / "labels.csv"
    with path.open("a", newline="") as file:
        file.write(f"p01,context_1,role,{label}\r\n")
    # The header, then 30 labels; p01/context_1/role is the first of them.
    assert refusal(folder) == f"labels.csv:32: label: p01/context_1/role: {how} line 2"


def test_an_excluded_label_against_one_of_the_others_contradicts_it(folder: Path) -> None:
    replaced(folder / "labels.csv", "p01,context_1,style,1", "p01,context_1,role,excluded")
    assert refusal(folder) == "labels.csv:3: label: p01/context_1/role: contradicts line 2"


def test_missing_labels_are_named_and_counted(folder: Path) -> None:
    path = folder / "labels.csv"
    replaced(path, "p02,context_2,tone,0\r\n", "")
    assert refusal(folder) == "labels.csv: no label for p02/context_2/tone"
    replaced(path, "p01,context_3,nickname,0\r\n", "")
    assert refusal(folder) == "labels.csv: no label for p01/context_3/nickname and 1 more"


def test_excluded_is_a_label(folder: Path) -> None:
    replaced(folder / "labels.csv", "p01,context_1,role,0", "p01,context_1,role,Excluded")
    data = load_data(folder)
    assert data.labels["p01", "context_1", "role"] == "excluded"
    assert [i.label for i in data.all_instances].count("excluded") == 1


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("p01,tone,", "p01,,", "category: is empty"),
        ("p01,tone,", "p01,humour,", "category: 'humour' is none of role, style, tone, markers, n"),
        ("p01,tone,", "p01,style,", "category: p01 has a style preference already"),
        ("p01,tone,", ",tone,", "profile: is empty"),
        ("p01,tone,", "p/1,tone,", "profile: 'p/1' is no name"),
        ("I like tone number 1.", " ", "statement: is empty"),
        ("tone number 1.,", "tone number 1.,Nick1", "nickname: only a nickname preference has one"),
        ("Nick1.,Nick1", "Nick1.,Jo", "nickname: 'Jo' does not stand in the statement"),
        ("Nick1.,Nick1", "Nick1.,Nick", "nickname: 'Nick' does not stand in the statement"),
        ("Nick1.,Nick1", "Nick1.,nick1", "nickname: 'nick1' does not stand in the statement"),
    ],
)
def test_a_bad_preference_is_named(folder: Path, old: str, new: str, problem: str) -> None:
    line = replaced(folder / "preferences.csv", old, new)
    assert refusal(folder).startswith(f"preferences.csv:{line}: {problem}")


@pytest.mark.parametrize(
    "nickname",
    [
        "", "   ", "\u00a0", "\u2003", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad",
        "\u200b \u200b", "\u200e", "\u2063",
    ],
)  # fmt: skip
def test_a_nickname_without_a_visible_character_is_refused(folder: Path, nickname: str) -> None:
    old, new = "Please call me Nick1.,Nick1", f"Please call me {nickname} now.,{nickname}"
    line = replaced(folder / "preferences.csv", old, new)
    assert refusal(folder).startswith(f"preferences.csv:{line}: nickname: ")


@pytest.mark.parametrize("category", ["Nickname", " NICKNAME ", "ｎｉｃｋｎａｍｅ"])
def test_a_category_is_read_alike_everywhere(folder: Path, category: str) -> None:
    """Whatever spelling counts as the category nickname also needs and takes the name."""
    path = folder / "preferences.csv"
    line = replaced(path, "p01,nickname,Please", f"p01,{category},Please")
    assert load_data(folder).profiles[0].preferences[-1].nickname == "Nick1"
    replaced(path, "Nick1.,Nick1", "Nick1.,")
    assert refusal(folder).startswith(f"preferences.csv:{line}: nickname: is empty")


def test_a_preference_is_one_line_of_memory_however_it_is_broken(folder: Path) -> None:
    """As facts are: memory holds one statement a line, and positions count its lines."""
    replaced(folder / "preferences.csv", "I like style number 1.", '"I like\nstyle  number 1."')
    assert load_data(folder).profiles[0].preferences[1].statement == "I like style number 1."


def test_missing_categories_are_named(folder: Path) -> None:
    path = folder / "preferences.csv"
    replaced(path, "p02,tone,I like tone number 2.,\r\n", "")
    assert refusal(folder) == "preferences.csv: profile p02 has no tone preference"
    rewritten(folder / "profiles.json", lambda profiles: profiles[0].update(id="p99"))
    everything = "role, style, tone, markers, nickname"
    assert refusal(folder) == f"preferences.csv: profile p99 has no {everything} preference"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("context_1,Recipient 1", "context 1,Recipient 1", "context: 'context 1' is no name"),
        ("context_1,Recipient 1", ",Recipient 1", "context: is empty"),
        ("context_2,Recipient 2", "context_1,Recipient 2", "context: context_1 is on line 2 alrea"),
        ("Recipient 1", "", "recipient: is empty"),
        ("Purpose 1", "", "task: is empty"),
        ("Purpose 1,health", "Purpose 1,sport", "domain: 'sport' is none of finance_legal, health"),
        ("Purpose 1,health,yes", "Purpose 1,health,1", "institutional: '1' is none of yes, no"),
        ("Purpose 1,health,yes", "Purpose 1,health", "institutional: is empty"),
    ],
)
def test_a_bad_context_is_named(folder: Path, old: str, new: str, problem: str) -> None:
    line = replaced(folder / "contexts.csv", old, new)
    assert refusal(folder).startswith(f"contexts.csv:{line}: {problem}")


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda p: p[1].update(information_attributes={}), "1.information_attributes: profile p02"),
        (lambda p: p[1].pop("information_attributes"), "1.information_attributes: Field required"),
        (lambda p: p[1].update(id="p01"), "1.id: the id p01 is given twice"),
        (lambda p: p[1].update(id=7), "1.id: "),
        (lambda p: p[1].update(bio="a rower"), "1.bio: "),
    ],
)
def test_a_bad_profile_is_named(folder: Path, edit: Callable[[Any], None], problem: str) -> None:
    rewritten(folder / "profiles.json", edit)
    place, _, rest = refusal(folder).partition(" ")
    assert re.fullmatch(r"profiles\.json(:\d+)?:", place)
    assert rest.startswith(problem)


@pytest.mark.parametrize("statement", ["", "  ", "\t\n", "\u00a0", "\u2003", None, 7])
def test_a_blank_or_wrong_statement_is_named_with_its_line(folder: Path, statement: object) -> None:
    path = folder / "profiles.json"

    def edit(profiles: Any) -> None:
        profiles[1]["information_attributes"]["fact_1"]["memory_statement"] = statement

    rewritten(path, edit)
    lines = path.read_text().splitlines()
    # The fifth of six statements.
    line = [i for i, text in enumerate(lines, 1) if "memory_statement" in text][4]
    field = "1.information_attributes.fact_1.memory_statement"
    assert refusal(folder).startswith(f"profiles.json:{line}: {field}: ")


def test_a_statement_is_one_line_however_it_is_broken(folder: Path) -> None:
    def edit(profiles: Any) -> None:
        facts = profiles[0]["information_attributes"]
        facts["fact_0"]["memory_statement"] = " I live\r\nat 5\u2028Elm  Road.\n"

    rewritten(folder / "profiles.json", edit)
    assert load_data(folder).profiles[0].facts[0] == "I live at 5 Elm Road."


@pytest.mark.parametrize("name", [*SHEETS, "profiles.json"])
def test_a_file_that_is_missing_or_empty_is_named(folder: Path, name: str) -> None:
    path = folder / name
    header = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(b"")
    empty = "profiles.json:1: is no JSON" if name == "profiles.json" else f"{name}: is empty"
    assert refusal(folder).startswith(empty)
    path.write_bytes(b"[]" if name == "profiles.json" else header)
    assert refusal(folder) == f"{name}: has no {'profiles' if '.json' in name else 'rows'}"
    path.write_bytes(b"\xff\xfe\x00")
    assert refusal(folder).startswith(f"{name}: ")
    path.unlink()
    assert refusal(folder) == f"{name}: no such file"


@pytest.mark.parametrize(
    ("name", "column"),
    [("contexts.csv", "institutional"), ("preferences.csv", "nickname"), ("labels.csv", "label")],
)
def test_a_missing_column_is_named(folder: Path, name: str, column: str) -> None:
    replaced(folder / name, f",{column}\r\n", "\r\n")
    assert refusal(folder).startswith(f"{name}:1: {column}: no such column")


def test_bad_json_is_named_with_its_line(folder: Path) -> None:
    path = folder / "profiles.json"
    rewritten(path, lambda profiles: None)
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace('"', "", 1)
    path.write_text("\n".join(lines))
    assert refusal(folder).startswith("profiles.json:4: is no JSON")
    path.write_text('[{"id": "p01", "id": "p02", "information_attributes": {}}]')
    assert refusal(folder) == "profiles.json: the key 'id' is given twice in one object"
    path.write_text('{"id": "p01"}')
    assert "valid list" in refusal(folder)


def rewritten_sheet(path: Path, delimiter: str, encoding: str) -> None:
    rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_leave_behind_is_tolerated(
    folder: Path, delimiter: str, encoding: str
) -> None:
    expected = contents(load_data(folder))
    for name in SHEETS:
        rewritten_sheet(folder / name, delimiter, encoding)
    path = folder / "profiles.json"
    path.write_bytes(path.read_text().encode(encoding))
    assert contents(load_data(folder)) == expected


def test_the_order_of_rows_does_not_matter(folder: Path) -> None:
    expected = contents(load_data(folder))
    for name in SHEETS:
        header, *rows = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join([header, *reversed(rows)]))
    assert contents(load_data(folder)) == expected


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("contexts.csv", "Purpose 1", "Purpose 7"),
        ("preferences.csv", "tone number 1", "tone number 7"),
        ("labels.csv", "p01,context_1,role,0", "p01,context_1,role,1"),
        ("profiles.json", "1 dogs", "7 dogs"),
    ],
)
def test_the_digest_covers_every_file_and_no_folder_name(
    folder: Path, name: str, old: str, new: str
) -> None:
    copy = Path(shutil.copytree(folder, folder.parent / "another name"))
    digest = load_data(folder).digest
    assert load_data(copy).digest == digest
    replaced(copy / name, old, new)
    assert load_data(copy).digest != digest


def test_the_digest_is_of_the_facts_that_were_read(folder: Path) -> None:
    other = folder.parent / "other.json"
    shutil.copy(folder / "profiles.json", other)
    digest = load_data(folder).digest
    assert load_data(folder, other).digest == digest
    replaced(other, "1 dogs", "7 dogs")
    data = load_data(folder, other)
    assert data.digest != digest
    assert data.profiles[0].facts[0] == "I have 7 dogs."
    (folder / "profiles.json").unlink()
    assert load_data(folder, other).digest == data.digest
    with pytest.raises(DataError, match=r"none\.json: no such file"):
        load_data(folder, folder / "none.json")


def test_profiles_without_ids_are_named_by_their_place(tmp_path: Path) -> None:
    folder = write_data(tmp_path / "data", profiles=11)
    expected = load_data(folder).profiles

    def edit(profiles: Any) -> None:
        for profile in profiles:
            del profile["id"]

    rewritten(folder / "profiles.json", edit)
    found = load_data(folder).profiles
    assert found == expected
    assert [p.id for p in found][::5] == ["p01", "p06", "p11"]


def test_cimemories_own_file_takes_the_facts_place() -> None:
    if not CIMEMORIES.is_file():
        pytest.skip("CIMemories is not beside the project")
    data, sample = load_data(SAMPLE, CIMEMORIES), load_data(SAMPLE)
    assert [p.id for p in data.profiles] == [f"p{n:02}" for n in range(1, 11)]
    # Counted in the file: 142 to 150 statements a profile.
    assert {len(p.facts) for p in data.profiles} <= set(range(142, 151))
    assert data.profiles[0].facts[0] == "My name is Douglas Perry."
    assert all("\n" not in fact for p in data.profiles for fact in p.facts)
    assert [p.preferences for p in data.profiles] == [p.preferences for p in sample.profiles]
    assert (data.labels, data.contexts) == (sample.labels, sample.contexts)
    assert data.digest != sample.digest
