from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persona_lab.benchmarks.realpref.filler import Filler, _sessions, load_filler
from persona_lab.benchmarks.realpref.history import (
    Built,
    Histories,
    Length,
    personal_sessions,
    transcript,
)
from persona_lab.benchmarks.realpref.records import Turn, load_users
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.prompt import Message
from tests.conftest import ROOT

USERS = load_users(ROOT / "data" / "realpref_sample")
TYPE_4 = "experience_feedback"


def turn(number: int) -> Turn:
    return Turn.model_validate(
        {"User": f"question {number}", "Assistant": "word " * (number % 7 + 1)}
    )


def filler(turns: int = 400) -> Filler:
    """Sessions of one and two turns in turn."""
    made, number = list[tuple[Turn, ...]](), 0
    while number < turns:
        made.append(tuple(turn(n) for n in range(number, number + 1 + len(made) % 2)))
        number += len(made[-1])
    return Filler(tuple(made), "digest", "")


def words(text: str) -> int:
    return len(text.split())


def build(length: Length, user: int = 0, seed: int = 0) -> Built:
    return Histories(filler(), words, seed).build(USERS[user], TYPE_4, length)


def test_simple_is_the_users_own_sessions_by_date() -> None:
    built = build(Length(0, 0))
    sessions = personal_sessions(USERS[0], TYPE_4)
    assert [s.date for s in sessions] == sorted(s.date for s in sessions)
    said = [t.user for s in sessions for t in s.turns]
    assert [m.content for m in built.history.messages if m.role == "user"] == said
    assert built.interval_tokens == built.tail_tokens == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 900), st.integers(0, 900), st.integers(0, 3))
def test_budgets_are_reached_within_one_turn(interval: int, tail: int, seed: int) -> None:
    built = build(Length(interval, tail), seed=seed)
    longest = 2 + 7  # words of the longest filler turn
    assert interval <= built.interval_tokens < interval + longest
    assert tail <= built.tail_tokens < tail + longest


def test_contexts_with_one_interval_are_nested() -> None:
    normal, extended, extreme = (build(Length(200, t)).history.path for t in (0, 300, 700))
    assert extended[: len(normal)] == normal
    assert extreme[: len(extended)] == extended
    assert len(normal) < len(extended) < len(extreme)


def test_filler_stands_between_sessions_and_no_turn_comes_twice() -> None:
    built = build(Length(300, 200))
    own = {t.user for s in personal_sessions(USERS[0], TYPE_4) for t in s.turns}
    said = [m.content for m in built.history.messages if m.role == "user"]
    assert said[0] in own  # nothing before the first session
    assert len(said) == len(set(said))
    last_own = max(i for i, text in enumerate(said) if text in own)
    behind = said[last_own + 1 :]
    assert sum(words(text) for text in behind) <= built.tail_tokens
    assert built.tail_tokens > 0
    kept = [text for text in said if text in own]
    assert kept == [t.user for s in personal_sessions(USERS[0], TYPE_4) for t in s.turns]


def test_placement_is_a_function_of_user_type_and_seed() -> None:
    length = Length(200, 100)
    assert build(length).history.digest == build(length).history.digest
    assert build(length, seed=1).history.digest != build(length).history.digest
    fillers = [{m.content for m in build(length, user).history.messages} for user in (0, 1)]
    assert fillers[0] != fillers[1]


def test_too_little_filler_is_refused() -> None:
    with pytest.raises(ConfigError, match="too few distinct turns: a context asks for 100000"):
        build(Length(100_000, 0))


def test_a_transcript_is_one_message() -> None:
    built = build(Length(20, 0))
    whole = transcript(built.history)
    [message] = whole.messages
    assert message.role == "user"
    for part in built.history.messages:
        assert part.content in message.content


def test_documentation_becomes_sessions_of_one_or_two_turns() -> None:
    documents = [(f"module.name{i}", f"What name{i} does. " * 30) for i in range(90)]
    sessions = list(_sessions(documents))
    assert {len(s) for s in sessions} == {1, 2}
    turns = [t for s in sessions for t in s]
    assert all(len(t.assistant) >= 2000 for t in turns[:-1])
    assert all(len(t.assistant) < 2000 + 700 for t in turns)
    asked = "\n".join(t.user for t in turns)
    answered = "\n\n".join(t.assistant for t in turns)
    assert answered == "\n\n".join(f"`{name}`: {text}" for name, text in documents)
    assert all(asked.count(f"`{name}`") == 1 for name, _ in documents)


def test_the_default_filler_is_frozen_real_and_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSONA_LAB_CACHE", str(tmp_path))
    made = load_filler("docs", None, ROOT)
    frozen = (tmp_path / "filler" / "docs-2.json").read_bytes()
    assert load_filler("docs", made.digest, ROOT) == made
    assert (tmp_path / "filler" / "docs-2.json").read_bytes() == frozen
    turns = [t for s in made.sessions for t in s]
    assert len({t.assistant for t in turns}) == len(turns)
    assert "not conversation" in made.note
    # At 4 characters a token or fewer, enough for the 245K tokens of `extreme`.
    assert sum(len(t.user) + len(t.assistant) for t in turns) > 4.5 * 245_000
    with pytest.raises(ConfigError, match=r"context\.filler_digest asks for other"):
        load_filler("docs", "other", ROOT)


def test_filler_from_a_folder(tmp_path: Path) -> None:
    text = '[{"Turns": [{"User": "u", "Assistant": "a"}]}]'
    (tmp_path / "random.json").write_text(text)
    made = load_filler(str(tmp_path), None, ROOT)
    assert [[(t.user, t.assistant) for t in s] for s in made.sessions] == [[("u", "a")]]
    assert made.note == ""
    (tmp_path / "random.json").write_text('[{"Date": "2020/01/01"}]')
    with pytest.raises(DataError, match='a session without "Turns"'):
        load_filler(str(tmp_path), None, ROOT)
    (tmp_path / "random.json").unlink()
    with pytest.raises(DataError, match=r"no \*\.json file"):
        load_filler(str(tmp_path), None, ROOT)


def test_messages_alternate() -> None:
    roles = [m.role for m in build(Length(100, 50)).history.messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    assert isinstance(build(Length(0, 0)).history.messages[0], Message)
