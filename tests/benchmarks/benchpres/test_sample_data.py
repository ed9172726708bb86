"""The sample held to the paper's description and to its own data card, by means of its own."""

from __future__ import annotations

import csv
import json
import re
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from itertools import combinations
from typing import Any

import pytest

from persona_lab.benchmarks.benchpres.data_checks import check, masked, shared_statements
from persona_lab.benchmarks.benchpres.loading import load_data
from persona_lab.benchmarks.benchpres.records import CATEGORIES, DOMAINS, Data
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "benchpres_sample"
CONTEXTS = ROOT.parent / "shared" / "data" / "cimemories" / "contexts.tsv"
MONTH = f"(?:{'|'.join(month_name[1:])})"
WEEKDAY = f"(?P<weekday>{'|'.join(day_name)})"
DATE = rf"(?P<date>{MONTH} \d{{1,2}}, \d{{4}})"
DATED = [
    rf"{WEEKDAY},? {DATE}",  # Monday, May 12, 2025
    rf"{DATE}, (?:a|both) {WEEKDAY}",  # May 12, 2025, a Monday
    rf"every (?:other|second) {WEEKDAY} [^;]*next (?:one )?on {DATE}",
]


@pytest.fixture(scope="module")
def data() -> Data:
    return load_data(SAMPLE)


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    found = json.loads((SAMPLE / "profiles.json").read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def statements(records: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(value, statement) of every fact."""
    for record in records:
        for attribute in record["information_attributes"].values():
            yield str(attribute["value"]), attribute["memory_statement"]


def test_the_contexts_of_table_6(data: Data) -> None:
    # PROTOCOL, section 2: finance/legal 13, health 10, education 5, employment 6, housing 5.
    counts = Counter(c.domain for c in data.contexts)
    assert [counts[domain] for domain in DOMAINS] == [13, 10, 5, 6, 5]
    assert len({(c.recipient, c.task) for c in data.contexts}) == 39


def test_the_contexts_are_those_that_benchpres_keeps_of_cimemories(data: Data) -> None:
    if not CONTEXTS.is_file():
        pytest.skip("CIMemories is not beside the project")
    names = {
        "finance; legal": "finance_legal", "health; mental_health": "health",
        "education": "education", "employment": "employment", "housing; finance": "housing",
    }  # fmt: skip
    with CONTEXTS.open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t") if r["in_benchpres_39"] == "1"]
    kept = {(r["recipient"], r["benchpres_task"], names[r["benchpres_domain"]]) for r in rows}
    assert len(rows) == len(kept) == 39
    assert {(c.recipient, c.task, c.domain) for c in data.contexts} == kept


def test_ten_profiles_of_147_facts_and_five_preferences(data: Data) -> None:
    assert [p.id for p in data.profiles] == [f"p{n:02}" for n in range(1, 11)]
    for profile in data.profiles:
        assert len(profile.facts) == len(set(profile.facts)) == 147
        assert [p.category for p in profile.preferences] == list(CATEGORIES)
        domains, events = ({e[i] for e in profile.events} for i in (0, 1))
        assert len(domains) == 10
        assert "" not in domains | events
        assert len(events) == 4
        assert "general" in events
    for category in CATEGORIES:
        told = [p.statement for u in data.profiles for p in u.preferences if p.category == category]
        assert len(set(told)) == 10


def test_the_labels_of_the_data_card(data: Data) -> None:
    counts = Counter(i.label for i in data.all_instances)
    # 10 x 39 x 5; 658 / 390 = 1.687 and 1,292 / 390 = 3.313 per context.
    assert len(data.all_instances) == len(data.labels) == 1_950
    assert counts == {"1": 658, "0": 1_292}
    assert round(counts["1"] / 390, 2) == 1.69
    assert round(counts["0"] / 390, 2) == 3.31
    applied = Counter(i.preference.category for i in data.all_instances if i.label == "1")
    assert (applied["nickname"], applied["role"]) == (16, 54)


def test_the_data_card_counts_what_depends_on_the_recipient(data: Data) -> None:
    labels: dict[str, set[str]] = {}
    for instance in data.all_instances:
        labels.setdefault(instance.preference.id, set()).add(instance.label)
    card = (SAMPLE / "README.md").read_text(encoding="utf-8")
    [told] = re.findall(r"(\d+) of 50 depend", card)
    assert sum(found == {"0", "1"} for found in labels.values()) == int(told)


def bare(statement: str) -> str:
    """Own masking, stricter than the module's: the first word too, and runs are one sign."""
    words: list[str] = []
    for word in re.findall(r"[^\s\u2014]+", statement):
        core = word.strip(".,;:!?()'\"")
        sign = "#" if re.search(r"\d", core) else "@" if core[:1].isupper() else core
        if not (words and words[-1] == sign and sign in "#@"):
            words.append(sign)
    return " ".join(words)


def test_masking_leaves_out_names_and_numbers() -> None:
    one, other = "My rent is $1,250 at Elm Court.", "My rent is $980 at Oak Hill Terrace."
    assert bare(one) == bare(other) == "@ rent is # at @"
    assert masked(one) == masked(other)
    assert masked("My rent is $980.") != masked("My loan is $980.")
    assert bare("My rent is $980.") != bare("My loan is $980.")


def test_profiles_are_individual(data: Data) -> None:
    """Acceptance line: with names and numbers masked, under 10 % of statements are shared."""
    own = {p.id: {bare(f) for f in p.facts} for p in data.profiles}
    for first, second in combinations(data.profiles, 2):
        ours, theirs = own[first.id], own[second.id]
        assert len(ours & theirs) / min(len(ours), len(theirs)) < 0.10
        assert shared_statements(first, second) < 0.10


def test_every_value_stands_in_its_statement(records: list[dict[str, Any]]) -> None:
    pairs = list(statements(records))
    assert len(pairs) == 1_470
    assert [pair for pair in pairs if pair[0].casefold() not in pair[1].casefold()] == []


def test_ages_agree_with_birth_dates(records: list[dict[str, Any]]) -> None:
    for bio in (record["bio"] for record in records):
        born, today = (date.fromisoformat(bio[key]) for key in ("birth_date", "as_of"))
        had_birthday = (today.month, today.day) >= (born.month, born.day)
        assert bio["age"] == today.year - born.year - (not had_birthday)


def test_weekdays_are_right_by_the_calendar(records: list[dict[str, Any]]) -> None:
    found = [
        (match["weekday"], match["date"])
        for _, statement in statements(records)
        for pattern in DATED
        for match in re.finditer(pattern, statement)
    ]
    assert len(found) == 62 + 3 + 3  # counted with grep, a pattern at a time
    for weekday, day in found:
        number = datetime.strptime(day, "%B %d, %Y").weekday()
        assert (day, weekday) == (day, day_name[number])


def test_the_module_finds_nothing(data: Data) -> None:
    report, findings = check(data)
    assert findings == 0
    assert report.splitlines() == [
        "10 profiles, 147.0 facts each; 39 contexts; 1,950 instances",
        "per context: 1.69 apply, 3.31 suppress, 0.00 excluded",
        "",
        "no findings",
    ]
