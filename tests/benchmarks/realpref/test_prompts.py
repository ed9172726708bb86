"""Protocol text is held to the paper's, where its copy lies beside the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from persona_lab.benchmarks.realpref.prompts import (
    DIMENSIONS,
    JUDGE,
    REMINDER,
    RUBRICS,
    judge_prompt,
)
from tests.conftest import ROOT

PAPER = ROOT.parent / "shared" / "seeds" / "realpref.txt"


@pytest.fixture(scope="module")
def paper() -> str:
    if not PAPER.is_file():
        pytest.skip("the paper's text is not beside the project")
    return flat(PAPER.read_text(encoding="utf-8"))


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_reminder_is_the_papers(paper: str) -> None:
    assert REMINDER in paper


def test_the_judges_prompt_is_the_papers(paper: str) -> None:
    names = {"rubric": "{evaluation rubric}", "template": "{judge_template}"}
    text = JUDGE.format(**names, preference="{preference}", query="{query}", response="{response}")
    assert flat(text) in paper


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_line_of_the_rubrics_is_the_papers(paper: str, dimension: str) -> None:
    for line in RUBRICS[dimension].splitlines():  # type: ignore[index]
        score = re.match(r"(\d): (.*)", line)
        wanted = f"| {score[1]} | {score[2]}" if score else line
        assert flat(wanted) in paper


def test_the_texts_stand_in_the_prompt_as_they_are() -> None:
    text = judge_prompt("answer_quality", "Likes {braces}.", "What now?", " Go.\n")
    assert "User preference: Likes {braces}..\nUser query: What now?.\n" in text
    assert "Assistant response: Go..\n" in text
    assert RUBRICS["answer_quality"] in text


def test_the_paper_is_where_the_test_looks() -> None:
    assert Path(PAPER).name == "realpref.txt"
