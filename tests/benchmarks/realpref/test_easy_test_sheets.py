from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from persona_lab.benchmarks.realpref.easy_test_sheets import (
    IMPLICIT,
    draw_easy_test,
    read_easy_test,
)
from persona_lab.benchmarks.realpref.records import load_users
from persona_lab.core.errors import DataError
from tests.benchmarks.realpref.annotators import written
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "realpref_sample"


def test_the_easy_test_is_half_of_each_type() -> None:
    sheets = draw_easy_test(SAMPLE, items=16, seed=3)
    assert Counter(row["expression"] for row in sheets.key) == dict.fromkeys(IMPLICIT, 8)
    assert len({row["question"] for row in sheets.key}) == 16  # of 20: none is asked twice
    assert sheets.notes == []
    assert Counter(row["expression"] for row in draw_easy_test(SAMPLE, 5, 0).key) == {
        IMPLICIT[0]: 3, IMPLICIT[1]: 2
    }  # fmt: skip


def test_a_draw_depends_on_its_seed_alone() -> None:
    assert draw_easy_test(SAMPLE, 6, 0) == draw_easy_test(SAMPLE, 6, 0)
    assert draw_easy_test(SAMPLE, 6, 0) != draw_easy_test(SAMPLE, 6, 1)


def test_fewer_questions_than_wanted_are_said() -> None:
    sheets = draw_easy_test(SAMPLE, items=200, seed=0)
    assert len(sheets.key) == 40  # 2 users, 10 original preferences each, 2 types
    assert sheets.notes == [
        "Only 20 of the 100 wanted stylistic_expression items exist.",
        "Only 20 of the 100 wanted experience_feedback items exist.",
    ]


def test_an_easy_question_shows_all_sessions_of_its_preference_alone() -> None:
    sheets = draw_easy_test(SAMPLE, items=40, seed=0)
    places = {row["item"]: row for row in sheets.key}
    asked = {a.id: (u, a.query) for u in load_users(SAMPLE) for a in u.asked}
    for row in sheets.filled_in["easy_test"]:
        assert list(row) == ["item", "conversation", "query", "options", "answer"]
        assert row["answer"] == ""
        place = places[row["item"]]
        user, query = asked[place["question"]]
        assert row["query"] == query.query
        assert row["options"].splitlines() == [f"{k}. {query.options[k]}" for k in "ABCD"]
        assert place["correct"] == query.correct
        sessions = user.expressions[query.preference][place["expression"]]  # type: ignore[index]
        messages = [m for s in sessions for t in s.turns for m in (t.user, t.assistant)]
        assert all(message in row["conversation"] for message in messages)
        bare = row["conversation"].replace("User: ", "").replace("Assistant: ", "")
        heads = [f"Session {n}" for n in range(1, len(sessions) + 1)]
        for text in [*messages, *heads]:
            bare = bare.replace(text, "", 1)
        assert bare.strip() == ""
        assert query.preference not in row["conversation"]


def test_sessions_that_voice_nothing_are_refused(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    path = copy / "expression_sessions.json"
    content = json.loads(path.read_text())
    for entry in (e for entries in content.values() for e in entries):
        del entry["Sessions"]["stylistic_expression"]
    path.write_text(json.dumps(content))
    sheets = draw_easy_test(copy, items=8, seed=0)
    assert sheets.notes == ["Only 0 of the 4 wanted stylistic_expression items exist."]
    for entry in (e for entries in content.values() for e in entries):
        entry["Sessions"] = {}
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"expression_sessions\.json: has no stylistic_expression"):
        draw_easy_test(copy, items=8, seed=0)


def test_easy_answers_become_accuracy(tmp_path: Path) -> None:
    """Always right on type 3; on type 4 right on the first user only."""
    sheets = draw_easy_test(SAMPLE, items=40, seed=0)
    places = {row["item"]: row for row in sheets.key}

    def fill(row: Mapping[str, str]) -> Mapping[str, str]:
        place = places[row["item"]]
        wrong = place["expression"] == IMPLICIT[1] and place["user"] == "00002"
        letter = "ABCDA"["ABCD".index(place["correct"]) + wrong]
        return {"answer": f" {letter.lower()}"}

    files, key = written(tmp_path / "back", sheets, fill)
    summary = read_easy_test(files, key)
    assert len(summary.scores) == 40
    found = {(e.facets["expression"], e.basis): (e.value, e.n) for e in summary.estimates}
    assert found == {
        (IMPLICIT[0], "all"): (1.0, 20),
        (IMPLICIT[0], "scored"): (1.0, 20),
        (IMPLICIT[1], "all"): (0.5, 20),
        (IMPLICIT[1], "scored"): (0.5, 20),
    }
    assert {s.facets["annotator"] for s in summary.scores} == {"easy_test"}
