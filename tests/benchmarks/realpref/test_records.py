from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from persona_lab.benchmarks.realpref.history import Histories, Length
from persona_lab.benchmarks.realpref.records import (
    LABELS,
    Expression,
    check_voiced,
    data_digest,
    load_users,
)
from persona_lab.core.errors import DataError
from persona_lab.core.prompt import Prompt
from tests.conftest import ROOT, needs_packaged_model

SAMPLE = ROOT / "data" / "realpref_sample"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "data"))


def change(copy: Path, name: str, edit: Callable[[Any], None]) -> Path:
    path = copy / f"{name}.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content, indent=2))
    return path


def test_the_sample_loads() -> None:
    users = load_users(SAMPLE)
    assert [u.id for u in users] == ["00001", "00002"]
    for user in users:
        assert (len(user.life_events), len(user.life_sessions)) == (8, 10)
        kinds = [a.kind for a in user.asked]
        assert kinds == ["original"] * 10 + ["generalized"] * 3
        assert {p.type for p in user.preferences} == {
            "relative", "negative", "exclusive", "positive"
        }  # fmt: skip


def test_statements_are_query_and_option() -> None:
    for user in load_users(SAMPLE):
        for asked in user.asked:
            query = asked.query
            forms = {
                label: f"{query.query} Do you think {option[0].lower()}{option[1:].rstrip('.')} "
                "would be the one for me?"
                for label, option in query.options.items()
            }
            assert query.true_form == forms.pop(query.correct)
            assert query.false_form in forms.values()


def test_an_experience_is_fed_back_over_sessions_around_its_event() -> None:
    for user in load_users(SAMPLE):
        for preference in user.preferences:
            sessions = user.expressions[preference.preference]["experience_feedback"]
            dates = [session.date for session in sessions]
            assert 2 <= len(sessions) <= 3
            assert dates == sorted(dates)
            assert dates[0] < preference.date < dates[-1]


def test_the_right_letter_is_spread() -> None:
    for user in load_users(SAMPLE):
        letters = [asked.query.correct for asked in user.asked]
        assert all(3 <= letters.count(label) <= 4 for label in LABELS)


@pytest.mark.parametrize("expression", get_args(Expression))
def test_simple_histories_stay_short(expression: Expression) -> None:
    """Under 6.5K tokens of the packaged model, whose window is 8,192."""
    needs_packaged_model()
    from persona_lab.engines.choose import prepare
    from tests.models import packaged_settings

    settings = packaged_settings(engine="transformers")
    renderer = prepare({"target": settings}, "auto", "2026-01-01")["target"].renderer
    assert renderer is not None
    for user in load_users(SAMPLE):
        built = Histories(None, None, 0).build(user, expression, Length(0, 0))
        prompt = Prompt(built.history, ())
        assert len(renderer.encode.whole(renderer.render(prompt))) < 6_500


def test_a_field_of_the_wrong_kind_is_named_with_its_line(copy: Path) -> None:
    def edit(content: Any) -> None:
        content["00002"][3]["Query"] = 7

    path = change(copy, "queries", edit)
    line = next(
        i for i, text in enumerate(path.read_text().splitlines(), 1) if '"Query": 7' in text
    )
    with pytest.raises(DataError, match=rf"queries\.json:{line}: 00002\.3\.Query: .*string"):
        load_users(copy)


def test_a_missing_field_is_named_at_its_record(copy: Path) -> None:
    def edit(content: Any) -> None:
        del content["00001"][1]["Topic"]

    change(copy, "preferences", edit)
    with pytest.raises(DataError, match=r"preferences\.json:\d+: 00001\.1\.Topic: Field required"):
        load_users(copy)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda q: q.update(Correct_Answer="E"), "Correct_Answer 'E' is none of A, B, C and D"),
        (lambda q: q["MCQ_options"].pop("D"), "must be A, B, C and D, not A, B, C"),
        (lambda q: q["MCQ_options"].update(A=q["MCQ_options"]["B"]), "are the same"),
        (lambda q: q.update(T_Query=q["F_Query"]), "T_Query and F_Query are the same"),
        (lambda q: q.update(Query=""), "at least 1 character"),
        (lambda q: q.update(Preference="nobody's"), "is none of the user's"),
    ],
)
def test_an_incoherent_query_is_refused(copy: Path, edit: Any, problem: str) -> None:
    change(copy, "queries", lambda content: edit(content["00001"][0]))
    with pytest.raises(DataError, match=rf"queries\.json:\d+: 00001\.0.*{problem}"):
        load_users(copy)


def test_a_bad_line_is_named(copy: Path) -> None:
    path = copy / "life_events.json"
    lines = path.read_text().splitlines()
    lines[4] = lines[4].replace('"', "", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"life_events\.json:5: is no JSON"):
        load_users(copy)


def test_bad_dates_and_types_are_refused(copy: Path) -> None:
    change(copy, "preferences", lambda c: c["00001"][0].update(Date="2019-02-30"))
    with pytest.raises(DataError, match="is no date like"):
        load_users(copy)
    change(copy, "preferences", lambda c: c["00001"][0].update(Date="2019/02/20", Type="Mixed"))
    with pytest.raises(DataError, match=r"00001\.0\.Type: .*'relative', 'negative'"):
        load_users(copy)


def test_missing_files_users_and_sessions_are_refused(copy: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load_users(copy / "none")
    change(copy, "expression_sessions", lambda c: c["00001"].pop())
    with pytest.raises(DataError, match="no expression_sessions for this Preference"):
        load_users(copy)
    change(copy, "life_events", lambda c: c.pop("00002"))
    with pytest.raises(DataError, match=r"users differ from profiles\.json: \['00002'\]"):
        load_users(copy)
    (copy / "queries.json").unlink()
    with pytest.raises(DataError, match=r"queries\.json: no such file"):
        load_users(copy)


def test_a_preference_that_no_session_voices_is_refused(copy: Path) -> None:
    change(copy, "expression_sessions", lambda c: c["00002"][4]["Sessions"].pop("direct_statement"))
    users = load_users(copy)
    check_voiced(copy, users, ["experience_feedback"])
    with pytest.raises(DataError, match=r"preferences\.json:\d+: 00002\.4.*no direct_statement"):
        check_voiced(copy, users, ["experience_feedback", "direct_statement"])


def test_a_data_set_without_users_is_refused(copy: Path) -> None:
    for path in copy.glob("*.json"):
        path.write_text("{}")
    with pytest.raises(DataError, match="has no user"):
        load_users(copy)


def test_a_byte_order_mark_is_no_error(copy: Path) -> None:
    path = copy / "queries.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load_users(copy)) == 2


def test_a_repeated_key_is_refused(copy: Path) -> None:
    path = copy / "profiles.json"
    path.write_text('{"00001": {}, "00001": {}}')
    with pytest.raises(DataError, match="'00001' is given twice"):
        load_users(copy)


def test_further_keys_of_a_published_file_are_passed_over(copy: Path) -> None:
    change(copy, "queries", lambda c: c["00001"][0].update(Comment="fine"))
    assert len(load_users(copy)) == 2


def test_the_digest_covers_every_file(copy: Path) -> None:
    before = data_digest(copy)
    assert before == data_digest(SAMPLE)
    change(copy, "life_events", lambda c: c["00001"][0].update(Event="another"))
    assert data_digest(copy) != before
