"""Files of what people said: refused before a run, and what of them found no response."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.core.errors import DataError
from persona_lab.parsing.csv_sheet import write_sheet
from tests.benchmarks.persevalbench.scripted import (
    always,
    experiment,
    summary_of,
    write_composition,
)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two irrelevant uses: s000 and s001."""
    return write_composition(tmp_path / "two", {"irrelevant_use": 2})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([("s000/error", "FAR")], "metric: FAR is no metric of s000/error"),
        ([("s000/right", "ERR")], "metric: ERR is no metric of s000/right"),
        ([("s000/error", "ERR")] * 2, "question: s000/error is there twice for ann"),
        ([("s000/error", "rating")], "has no verdicts"),
    ],
)
def test_a_file_of_verdicts_is_refused_before_the_run(
    two: Path, tmp_path: Path, given: list[tuple[str, str]], problem: str
) -> None:
    path = tmp_path / "verdicts.csv"
    write_sheet(
        path, [{"question": q, "metric": m, "value": "1", "annotator": "ann"} for q, m in given]
    )
    with pytest.raises(DataError, match=problem):
        experiment(two, f"human_verdicts={path}")
    for key in ("human_verdicts", "under_audit"):
        with pytest.raises(DataError, match="no such file"):
            experiment(two, f"{key}={tmp_path / 'missing.csv'}")


def test_what_people_said_of_other_responses_is_noted(two: Path, tmp_path: Path) -> None:
    verdicts, audit = tmp_path / "verdicts.csv", tmp_path / "audit.csv"
    given = {"s000/error": "ERR", "s001/right": "FAR", "s009/error": "ERR"}
    write_sheet(
        verdicts,
        [
            {"question": q, "metric": m, "value": "1", "annotator": who}
            for q, m in given.items()
            for who in ("ann", "bob")
        ],
    )
    cells = {"flagged_over": "no", "confirmed_under": "yes"}
    write_sheet(audit, [{"scenario": name, **cells} for name in ("s000", "s008", "s009")])
    files = (f"human_verdicts={verdicts}", f"under_audit={audit}")
    assert summary_of(two, tmp_path / "r", always("RIGHT"), *files).notes == [
        "1 of 3 responses with human verdicts are not here.",
        "2 of 3 audited scenarios are not here.",
    ]
