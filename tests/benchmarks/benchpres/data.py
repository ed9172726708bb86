"""A small data folder, written by the test that reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from persona_lab.benchmarks.benchpres.records import CATEGORIES, DOMAINS
from persona_lab.parsing.csv_sheet import write_sheet

Labels = Mapping[tuple[str, str, str], str]


def write_data(
    folder: Path, profiles: int = 2, contexts: int = 3, labels: Labels | None = None
) -> Path:
    """Writes the four files: p01, p02, ... with 3 facts each, context_1, context_2, ...

    Labels are 0 and 1 in turn, over profiles, contexts and categories, but for those in `labels`:
    (profile, context, category) -> label. Profile 1 is called Nick1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    people = {f"p{n:02}": n for n in range(1, profiles + 1)}
    places = {f"context_{n}": n for n in range(1, contexts + 1)}
    write_sheet(
        folder / "contexts.csv",
        [
            {
                "context": name,
                "recipient": f"Recipient {n}",
                "task": f"Purpose {n}",
                "domain": DOMAINS[n % len(DOMAINS)],
                "institutional": "yes" if n % 2 else "no",
            }
            for name, n in places.items()
        ],
        replace=True,
    )
    facts = [
        {
            "id": name,
            "information_attributes": {
                f"fact_{i}": {"memory_statement": f"I have {n} {thing}."}
                for i, thing in enumerate(("dogs", "keys", "debts"))
            },
        }
        for name, n in people.items()
    ]
    (folder / "profiles.json").write_text(json.dumps(facts), encoding="utf-8")
    write_sheet(
        folder / "preferences.csv",
        [
            {"profile": name, "category": category, **_preference(category, n)}
            for name, n in people.items()
            for category in CATEGORIES
        ],
        replace=True,
    )
    gold: dict[tuple[str, str, str], str] = {
        (person, place, category): str((n + m + i) % 2)
        for person, n in people.items()
        for place, m in places.items()
        for i, category in enumerate(CATEGORIES)
    }
    columns = ("profile", "context", "category", "label")
    gold.update(labels or {})
    rows = [(*instance, label) for instance, label in gold.items()]
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    write_sheet(folder / "labels.csv", cells, replace=True)
    return folder


def _preference(category: str, number: int) -> dict[str, str]:
    if category == "nickname":
        return {"statement": f"Please call me Nick{number}.", "nickname": f"Nick{number}"}
    return {"statement": f"I like {category} number {number}.", "nickname": ""}
