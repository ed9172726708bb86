"""What of the first step's reply is evidence, and how a verdict on part of it is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.core.prompt import Reply
from persona_lab.core.scores import Score
from tests.benchmarks.persevalbench.scripted import (
    experiment,
    outcomes_of,
    says,
    shown,
    summary_of,
    write_composition,
)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two irrelevant uses: s000 and s001."""
    return write_composition(tmp_path / "two", {"irrelevant_use": 2})


def evidence_first(two: Path, tmp_path: Path, first: Reply) -> tuple[list[Score], set[str]]:
    """The scores, and the prompts of second steps."""
    made = experiment(two, "formulations=evidence_first", "benchmark.scenarios=[s000]")
    outcomes = outcomes_of(
        made, tmp_path, lambda r: first if "Extract all" in shown(r) else says("RIGHT")
    )
    asked = {shown(request) for o in outcomes for request, _ in o.exchanges[1:]}
    return [s for o in outcomes for s in o.result or []], asked


def test_reasoning_is_no_evidence(two: Path, tmp_path: Path) -> None:
    first = Reply("<think>Is it turn 3?</think>\n- wants it, turn 1\n")
    scores, asked = evidence_first(two, tmp_path, first)
    assert [s.reason for s in scores] == ["", ""]
    assert all("evidence: - wants it, turn 1\nUser" in text for text in asked)
    assert not any("think" in text for text in asked)


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("<think>Is it turn 3?</think>\n", "unparsed", "empty"),
        ("<think>Is it turn 3?", "truncated", "truncated_reasoning"),
    ],
)
def test_reasoning_alone_gives_no_second_step(
    two: Path, tmp_path: Path, text: str, outcome: str, reason: str
) -> None:
    scores, asked = evidence_first(two, tmp_path, Reply(text))
    assert asked == set()
    assert [(s.outcome, s.reason) for s in scores] == [(outcome, reason)] * 2


def test_a_verdict_on_evidence_that_was_cut_off_says_so(two: Path, tmp_path: Path) -> None:
    first = Reply("- wants it, tu", "length", "truncated", "truncated")
    scores, _ = evidence_first(two, tmp_path, first)
    assert [(s.outcome, s.reason) for s in scores] == [("ok", "evidence_cut")] * 2
    found = summary_of(
        two, tmp_path / "again", lambda r: first if "Extract all" in shown(r) else says("RIGHT"),
        "formulations=[end_to_end,evidence_first]",
    )  # fmt: skip
    # Four of eight cases: two scenarios, two responses, one of the formulations.
    [note] = found.notes
    assert note.startswith("In 4 cases the extracted evidence reached its budget")
