"""The data set (sections 3.1-3.3, Appendices E and F.1), as its JSON files hold it.

Each file is one object keyed by user id, so a folder of them is the published shape:

    profiles.json                 {"00001": {"Demographics", "Original Persona", ...}}
    life_events.json              {"00001": [{"Date": "2011/06/15", "Event", "Duration"}]}
    preferences.json              {"00001": [{"Preference", "Type", "Topic", "Date", "Event"}]}
    generalized_preferences.json  {"00001": [{"Original Preference", "Generalized Preference"}]}
    queries.json                  {"00001": [{"Preference", "Query", "MCQ_options", ...}]}
    life_event_sessions.json      {"00001": [{"Date", "Turns": [{"User", "Assistant"}]}]}
    expression_sessions.json      {"00001": [{"Preference", "Sessions": {TYPE: [session]}}]}
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from persona_lab.core.errors import DataError
from persona_lab.parsing.json_file import line_of, read_json

Expression = Literal[
    "direct_statement", "contextualized_mention", "stylistic_expression", "experience_feedback"
]
"""Expression types 1 to 4 (section 3.3, Appendix E.3.3)."""
PreferenceType = Literal["relative", "negative", "exclusive", "positive"]
"""Table 1."""
LABELS = "ABCD"


def _day(value: Any) -> Any:
    try:
        return datetime.strptime(value, "%Y/%m/%d").date()
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no date like 2011/06/15") from None


def _type_name(value: Any) -> Any:
    return value.removesuffix(" Preference").lower() if isinstance(value, str) else value


Day = Annotated[date, BeforeValidator(_day)]
TypeName = Annotated[PreferenceType, BeforeValidator(_type_name)]
Text = Annotated[str, Field(min_length=1)]


class Record(BaseModel):
    """Base of the records: strict types; further keys of a published file are passed over."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Profile(Record):
    """Appendix E.1."""

    demographics: dict[str, str] = Field(alias="Demographics")
    original_persona: Text = Field(alias="Original Persona")
    extended_persona: Text = Field(alias="Extended Persona")


class LifeEvent(Record):
    """Appendix E.1; the paper's example leaves the duration out."""

    date: Day = Field(alias="Date")
    event: Text = Field(alias="Event")
    duration: str | None = Field(default=None, alias="Duration")


class Preference(Record):
    """Appendix E.2: an original preference with its initialise event."""

    preference: Text = Field(alias="Preference")
    type: TypeName = Field(alias="Type")
    topic: Text = Field(alias="Topic")
    date: Day = Field(alias="Date")
    event: Text = Field(alias="Event")


class Inferred(Record):
    """The new preference of Appendix E.2's generalized example; its type is optional there."""

    preference: Text = Field(alias="Preference")
    topic: Text = Field(alias="Topic")
    infer_reason: Text = Field(alias="Infer_reason")
    type: TypeName | None = Field(default=None, alias="Type")


class GeneralizedPreference(Record):
    """Appendix E.2: a preference that follows from several original ones."""

    originals: list[dict[str, str]] = Field(alias="Original Preference", min_length=1)
    generalized: Inferred = Field(alias="Generalized Preference")


class Query(Record):
    """Appendix F.1: one query in its three forms."""

    preference: Text = Field(alias="Preference")
    query: Text = Field(alias="Query")
    explanation: str = Field(alias="Explanation")
    options: dict[str, Text] = Field(alias="MCQ_options")
    correct: str = Field(alias="Correct_Answer")
    true_form: Text = Field(alias="T_Query")
    false_form: Text = Field(alias="F_Query")

    @model_validator(mode="after")
    def _coherent(self) -> Query:
        if sorted(self.options) != list(LABELS):
            raise ValueError(f"MCQ_options must be A, B, C and D, not {', '.join(self.options)}")
        if len(set(self.options.values())) < len(LABELS):
            raise ValueError("two MCQ_options are the same")
        if self.correct not in self.options:
            raise ValueError(f"Correct_Answer {self.correct!r} is none of A, B, C and D")
        if self.true_form == self.false_form:
            raise ValueError("T_Query and F_Query are the same")
        return self


class Turn(Record):
    """A user message and the assistant's answer."""

    user: Text = Field(alias="User")
    assistant: Text = Field(alias="Assistant")


class Session(Record):
    """A dialogue on one day."""

    date: Day = Field(alias="Date")
    turns: list[Turn] = Field(alias="Turns", min_length=1)


class Expressed(Record):
    """The sessions that voice one original preference, by expression type."""

    preference: Text = Field(alias="Preference")
    sessions: dict[Expression, list[Session]] = Field(alias="Sessions")


@dataclass(frozen=True)
class Asked:
    """A preference and its query.

    Attributes:
        id: `00001-p01` for the first original preference, `00001-g01` for a generalized one.
        kind: whether the history voices the preference, or others that it follows from.
    """

    id: str
    kind: Literal["original", "generalized"]
    query: Query
    topic: str
    type: str


@dataclass(frozen=True)
class User:
    """All that the data set holds of one user."""

    id: str
    profile: Profile
    life_events: Sequence[LifeEvent]
    preferences: Sequence[Preference]
    asked: Sequence[Asked]
    life_sessions: Sequence[Session]
    expressions: Mapping[str, Mapping[Expression, Sequence[Session]]]


_SHAPES: dict[str, Any] = {
    "profiles": dict[str, Profile],
    "life_events": dict[str, list[LifeEvent]],
    "preferences": dict[str, list[Preference]],
    "generalized_preferences": dict[str, list[GeneralizedPreference]],
    "queries": dict[str, list[Query]],
    "life_event_sessions": dict[str, list[Session]],
    "expression_sessions": dict[str, list[Expressed]],
}


def load_users(folder: Path) -> list[User]:
    """Reads a data set folder, users in the order of their ids.

    Raises:
        DataError: naming file, line and field of the first thing that is wrong.
    """
    if not folder.is_dir():
        raise DataError(folder, "no such folder; benchmark.path names a RealPref data folder")
    files = {name: read_json(folder / f"{name}.json", shape) for name, shape in _SHAPES.items()}
    ids = sorted(files["profiles"])
    if not ids:
        raise DataError(folder / "profiles.json", "has no user")
    for name, content in files.items():
        if lacking := sorted(set(ids) ^ set(content)):
            raise DataError(folder / f"{name}.json", f"users differ from profiles.json: {lacking}")
    return [_user(folder, user_id, files) for user_id in ids]


def check_voiced(folder: Path, users: Sequence[User], expressions: Sequence[Expression]) -> None:
    """Holds the data to what a recipe asks: every preference voiced in every expression type.

    Raises:
        DataError: a preference that no session would tell the model about.
    """
    for user in users:
        for number, preference in enumerate(user.preferences):
            for expression in expressions:
                if not user.expressions[preference.preference].get(expression):
                    place: list[int | str] = [user.id, number, "Preference"]
                    problem = f"no {expression} session in expression_sessions.json voices it"
                    raise _misplaced(folder, "preferences", place, problem)


def data_digest(folder: Path) -> str:
    """Digest of a data folder's files."""
    digest = hashlib.sha256()
    for name in _SHAPES:
        digest.update(name.encode() + b"\0" + (folder / f"{name}.json").read_bytes())
    return digest.hexdigest()


def _user(folder: Path, user_id: str, files: Mapping[str, Any]) -> User:
    mine = {name: content[user_id] for name, content in files.items()}
    voiced = {e.preference: e.sessions for e in mine["expression_sessions"]}
    for number, preference in enumerate(mine["preferences"]):
        if preference.preference not in voiced:
            problem = "no expression_sessions for this Preference"
            raise _misplaced(folder, "preferences", [user_id, number, "Preference"], problem)
    return User(
        id=user_id,
        profile=mine["profiles"],
        life_events=mine["life_events"],
        preferences=mine["preferences"],
        asked=_asked(folder, user_id, mine),
        life_sessions=mine["life_event_sessions"],
        expressions=voiced,
    )


def _asked(folder: Path, user_id: str, mine: Mapping[str, Any]) -> list[Asked]:
    known: dict[str, tuple[str, Literal["original", "generalized"], str, str]] = {}
    for number, original in enumerate(mine["preferences"], 1):
        known[original.preference] = (
            f"{user_id}-p{number:02}", "original", original.topic, original.type
        )  # fmt: skip
    for number, entry in enumerate(mine["generalized_preferences"], 1):
        new = entry.generalized
        known[new.preference] = (
            f"{user_id}-g{number:02}", "generalized", new.topic, new.type or ""
        )  # fmt: skip
    asked = []
    for number, query in enumerate(mine["queries"]):
        if query.preference not in known:
            problem = "this Preference is none of the user's, or is asked twice"
            raise _misplaced(folder, "queries", [user_id, number, "Preference"], problem)
        item, kind, topic, type_name = known.pop(query.preference)
        asked.append(Asked(item, kind, query, topic, type_name))
    return asked


def _misplaced(folder: Path, name: str, place: list[int | str], problem: str) -> DataError:
    path = folder / f"{name}.json"
    line = line_of(path.read_text(encoding="utf-8"), place)
    return DataError(path, problem, line=line, field=".".join(map(str, place)))
