"""Reads scenarios (section 3.2) and refuses what the scenario grammar forbids.

A data folder holds `scenarios.json`, a list of

    {"id", "relation", "subtype", "state_relation", "evidence_form", "evidence_distance",
     "states": {"A": {"statement", "holder", "scope", "time", "strength", "transferability",
                      "role", "turns": [numbers from 1]}, "B": {...} or null},
     "episodes": [{"turns": [{"role", "text"}]}],
     "right_response", "error_response"}

Further keys, such as why a scenario is tricky, are passed over.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints

from persona_lab.benchmarks.persevalbench.records import (
    APPLY_B,
    LEGAL,
    Distance,
    Form,
    Influence,
    Relation,
    Scenario,
    State,
    StateRelation,
    Subtype,
    Turn,
)
from persona_lab.core.errors import DataError
from persona_lab.parsing.json_file import line_of, read_json, read_text
from persona_lab.parsing.names import normalized

FILE = "scenarios.json"
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class StateRecord(_Record):
    """A state as the file holds it."""

    statement: Text
    holder: Text
    scope: Text
    time: Text
    strength: Text
    transferability: Text
    role: Influence
    turns: list[StrictInt] = Field(min_length=1)


class StatesRecord(_Record):
    """States A and B."""

    a: StateRecord = Field(alias="A")
    b: StateRecord | None = Field(default=None, alias="B")


class TurnRecord(_Record):
    """A message."""

    role: Literal["user", "assistant"]
    text: Text


class EpisodeRecord(_Record):
    """An episode's turns."""

    turns: list[TurnRecord] = Field(min_length=1)


class ScenarioRecord(_Record):
    """A scenario as the file holds it."""

    id: Text
    relation: Relation
    subtype: Subtype
    state_relation: StateRelation
    evidence_form: Form
    evidence_distance: Distance
    states: StatesRecord
    episodes: list[EpisodeRecord] = Field(min_length=1)
    right_response: Text
    error_response: Text


def load_scenarios(folder: Path) -> tuple[list[Scenario], str]:
    """Reads a data folder: its scenarios, and the digest of their file.

    Raises:
        DataError: a file that breaks its shape, or a scenario that the grammar forbids: an illegal
            pair of relation and subtype, a state without its turns, evidence that is out of range
            or in the target turn, two identical responses, a distance that is not what it is said
            to be. It names file, line and field.
    """
    path = folder / FILE
    records = read_json(path, list[ScenarioRecord])
    if not records:
        raise DataError(path, "has no scenarios")
    made, seen = [], set[str]()
    for place, record in enumerate(records):
        scenario = _scenario(record)
        problems = [*_problems(record, scenario)]
        if scenario.id in seen:
            problems.insert(0, ("id", f"{scenario.id} is given twice"))
        for field, problem in problems[:1]:
            line = line_of(read_text(path), [place, *field.split(".")])
            raise DataError(path, f"{scenario.id}: {problem}", line=line, field=f"{place}.{field}")
        seen.add(scenario.id)
        made.append(scenario)
    return made, hashlib.sha256(path.read_bytes()).hexdigest()


def _scenario(record: ScenarioRecord) -> Scenario:
    starts = [1]
    for episode in record.episodes[:-1]:
        starts.append(starts[-1] + len(episode.turns))
    return Scenario(
        id=record.id,
        relation=record.relation,
        subtype=record.subtype,
        state_relation=record.state_relation,
        form=record.evidence_form,
        a=_state(record.states.a),
        b=_state(record.states.b) if record.states.b else None,
        turns=tuple(Turn(t.role, t.text) for e in record.episodes for t in e.turns),
        episodes=tuple(starts),
        right=record.right_response,
        error=record.error_response,
    )


def _state(record: StateRecord) -> State:
    return State(
        record.statement, record.holder, record.scope, record.time, record.strength,
        record.transferability, record.role, tuple(sorted(set(record.turns))),
    )  # fmt: skip


def _problems(record: ScenarioRecord, scenario: Scenario) -> Iterator[tuple[str, str]]:
    """(field, what is wrong), the first of which is reported."""
    if not _NAME.fullmatch(scenario.id):
        yield "id", f"{scenario.id!r} is no name: letters, digits, _ and - only"
    if scenario.subtype not in LEGAL[scenario.relation]:
        yield "subtype", f"{scenario.subtype} is no error of {scenario.relation} (Table 7)"
    if scenario.turns[-1].role != "user":
        yield "episodes", "the last turn is the target request and must be the user's"
    if scenario.subtype in APPLY_B and scenario.b is None:
        yield "states.B", f"{scenario.subtype} applies state B, and there is none"
    for name, state in (("A", scenario.a), ("B", scenario.b)):
        wrong = [t for t in (state.turns if state else ()) if not 1 <= t < scenario.target]
        if wrong:
            yield (
                f"states.{name}.turns",
                (f"turn {wrong[0]} is not among the {scenario.target - 1} before the target turn"),
            )
            return
    if scenario.a.role == "Ignore":
        yield "states.A.role", "the applicable state cannot be ignored"
    if scenario.b is not None and set(scenario.a.turns) & set(scenario.b.turns):
        yield "states.B.turns", "a turn expresses both states"
    if record.evidence_distance != scenario.distance_bin:
        yield (
            "evidence_distance",
            (
                f"is said to be {record.evidence_distance}, but {scenario.distance} turns are "
                f"{scenario.distance_bin}"
            ),
        )
    if _folded(scenario.right) == _folded(scenario.error):
        yield "error_response", "is the same as right_response"


def _folded(text: str) -> str:
    return normalized(text).casefold()
