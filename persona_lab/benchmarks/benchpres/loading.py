"""Reads a data folder (sections 3.1-3.2, Appendix A), strictly.

    contexts.csv      context,recipient,task,domain,institutional       Table 6
    profiles.json     [{"id", "bio", "information_attributes": {KEY: {"value",
                      "information_domain", "event", "memory_statement"}}}]
    preferences.csv   profile,category,statement,nickname               one a category
    labels.csv        profile,context,category,label                    0, 1 or `excluded`

profiles.json has the shape of CIMemories, whose own file can take its place: a profile without an
`id` is named by its place in the file (p01, p02, ...), and its preferences and labels are those of
that name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from persona_lab.benchmarks.benchpres.records import (
    CATEGORIES,
    DOMAINS,
    LABELS,
    Category,
    Context,
    Data,
    Label,
    Preference,
    Profile,
)
from persona_lab.core.errors import DataError
from persona_lab.parsing.csv_sheet import SheetRow, read_sheet
from persona_lab.parsing.json_file import read_json
from persona_lab.parsing.names import mentions, visible_name

_SOURCES = ("contexts.csv", "preferences.csv", "labels.csv")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class Attribute(BaseModel):
    """One fact; only its statement goes into memory."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    value: Any = None
    information_domain: str = ""
    event: str = ""
    memory_statement: str = Field(min_length=1, pattern=r"\S")


class ProfileRecord(BaseModel):
    """One profile of profiles.json or of CIMemories."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str | None = None
    bio: dict[str, Any] = {}
    information_attributes: dict[str, Attribute]


def load_data(folder: Path, profiles: Path | None = None) -> Data:
    """Reads a data folder.

    Args:
        profiles: facts from this file instead of the folder's profiles.json.

    Raises:
        DataError: a file that breaks its shape; a profile without facts or without one preference
            of each category; an empty nickname; a label that is missing, given twice, or not 0,
            1 or excluded. It names file, line and field.
    """
    facts_file = profiles or folder / "profiles.json"
    contexts = load_contexts(folder / "contexts.csv")
    preferences = load_preferences(folder / "preferences.csv")
    made = _profiles(facts_file, preferences, folder / "preferences.csv")
    labels = _labels(folder / "labels.csv", preferences, contexts)
    _require_labels(folder / "labels.csv", labels, made, contexts)
    files = [*(folder / name for name in _SOURCES), facts_file]
    digest = hashlib.sha256(b"".join(hashlib.sha256(f.read_bytes()).digest() for f in files))
    return Data(tuple(contexts), tuple(made), labels, digest.hexdigest())


def load_contexts(path: Path) -> list[Context]:
    """Reads contexts.csv (Table 6).

    Raises:
        DataError: as `load_data`.
    """
    columns = ("context", "recipient", "task", "domain", "institutional")
    return [
        Context(
            _name(row, "context"),
            row.text("recipient"),
            row.text("task"),
            row.one_of("domain", DOMAINS),  # type: ignore[arg-type]
            row.one_of("institutional", ("yes", "no")) == "yes",
        )
        for row in _rows(path, columns, "context")
    ]


def load_preferences(path: Path) -> dict[str, dict[Category, Preference]]:
    """Reads preferences.csv: profile -> category -> preference.

    Raises:
        DataError: as `load_data`.
    """
    found: dict[str, dict[Category, Preference]] = {}
    for row in _rows(path, ("profile", "category", "statement", "nickname")):
        category: Category = row.one_of("category", CATEGORIES)  # type: ignore[assignment]
        profile = _name(row, "profile")
        mine = found.setdefault(profile, {})
        if category in mine:
            raise row.error("category", f"{profile} has a {category} preference already")
        statement = " ".join(row.text("statement").split())
        nickname = _nickname(row, category, statement)
        mine[category] = Preference(profile, category, statement, nickname)
    return found


def _nickname(row: SheetRow, category: Category, statement: str) -> str:
    given = row.cells["nickname"]
    if category != "nickname":
        if given:
            raise row.error("nickname", "only a nickname preference has one")
        return ""
    if not visible_name(given):
        raise row.error("nickname", "is empty: the name to match must be given")
    if not mentions(given, statement):
        raise row.error("nickname", f"{given!r} does not stand in the statement")
    return given


def _profiles(
    path: Path, preferences: Mapping[str, Mapping[Category, Preference]], source: Path
) -> list[Profile]:
    made: dict[str, Profile] = {}
    for number, record in enumerate(read_json(path, list[ProfileRecord]), 1):
        name = record.id or f"p{number:02}"
        if name in made:
            raise DataError(path, f"the id {name} is given twice", field=f"{number - 1}.id")
        attributes = record.information_attributes.values()
        facts = tuple(" ".join(a.memory_statement.split()) for a in attributes)
        events = tuple((a.information_domain, a.event) for a in attributes)
        if not facts or not all(facts):
            problem = f"profile {name} has {'an empty fact' if facts else 'no facts'}"
            raise DataError(path, problem, field=f"{number - 1}.information_attributes")
        mine = preferences.get(name, {})
        if lacking := [c for c in CATEGORIES if c not in mine]:
            raise DataError(source, f"profile {name} has no {', '.join(lacking)} preference")
        made[name] = Profile(name, facts, tuple(mine[c] for c in CATEGORIES), events)
    if not made:
        raise DataError(path, "has no profiles")
    return list(made.values())


def _labels(
    path: Path,
    preferences: Mapping[str, Mapping[Category, Preference]],
    contexts: Sequence[Context],
) -> dict[tuple[str, str, str], Label]:
    found: dict[tuple[str, str, str], Label] = {}
    lines: dict[tuple[str, str, str], int] = {}
    names = {c.id for c in contexts}
    for row in _rows(path, ("profile", "context", "category", "label")):
        label: Label = row.one_of("label", LABELS)  # type: ignore[assignment]
        profile, context = row.text("profile"), row.text("context")
        key = (profile, context, row.one_of("category", CATEGORIES))
        if profile not in preferences:
            raise row.error("profile", f"{profile} has no preferences")
        if context not in names:
            raise row.error("context", f"{context} is not in contexts.csv")
        if key in found:
            how = "contradicts" if found[key] != label else "repeats"
            raise row.error("label", f"{'/'.join(key)}: {how} line {lines[key]}")
        found[key], lines[key] = label, row.line
    return found


def _require_labels(
    path: Path,
    labels: Mapping[tuple[str, str, str], Label],
    profiles: Sequence[Profile],
    contexts: Sequence[Context],
) -> None:
    wanted = [(p.id, c.id, a) for p in profiles for c in contexts for a in CATEGORIES]
    if lacking := [key for key in wanted if key not in labels]:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise DataError(path, f"no label for {'/'.join(lacking[0])}{more}")


def _rows(path: Path, columns: Sequence[str], unique: str = "") -> list[SheetRow]:
    rows = read_sheet(path, columns, unique)
    if not rows:
        raise DataError(path, "has no rows")
    return rows


def _name(row: SheetRow, column: str) -> str:
    name = row.text(column)
    if not _NAME.fullmatch(name):
        raise row.error(column, f"{name!r} is no name: letters, digits, _ and - only")
    return name
