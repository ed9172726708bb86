"""What the experiment asks, what it refuses to ask, and how its scores are compared; by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.benchmarks.benchpres.scoring import Row, completeness_score
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Score
from persona_lab.metrics.comparisons import ordered_comparisons
from persona_lab.parsing.score import parse_rating
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import (
    estimate,
    experiment,
    outcomes_of,
    summary_of,
    writes,
)


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("It names 2/3 of the facts.\nRating: [[4]]", 4),
        ("I give its tone 5/5, its facts 2/10.\nRating: [[3]]", 3),
        ("The placeholder {name is open.\n**Rating**: [[2]]", 2),
        ('{"score": 5}\nrating: [[ 4.0 ]]', 4),
        ("On a scale out of 10 it would be 8.\nRating：[[４]].", 4),
        ("<think>Rating: [[5]]</think>Half of it.\nRating: [[2]]", 2),
        # Without the form that is asked for, as any other score.
        ("Rating: [4]", 4),
        ("Score: 4/5", 4),
    ],
)
def test_a_rating_is_taken_from_its_form_whatever_else_is_said(reply: str, rating: int) -> None:
    found = parse_rating(reply)
    assert (found.value, found.reason) == (rating, "")
    assert "differing" not in found.flags


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"score": 3}\nRating: [[7]]', "out_of_range"),
        ("I give it a 3.\nRating: [[0]]", "out_of_range"),
        ("Score: 3\nRating: [[-1]]", "out_of_range"),
        ("A 3.\nRating: [[3.5]]", "not_an_integer"),
        ("Rating: [[8/10]]", "wrong_scale"),
        ("Rating: [[X]]", "no_answer"),
        ("Underrating: [[4]] is a word.", "no_answer"),
        ("<think>Rating: [[4]]", "truncated_reasoning"),
        (" ", "empty"),
        ('{"score": 1' + "0" * 400 + "}", "out_of_range"),
    ],
)
def test_a_rating_that_is_none_is_refused(reply: str, reason: str) -> None:
    found = parse_rating(reply)
    assert (found.value, found.reason) == (None, reason)
    lost = completeness_score(Row("case", "p01", {}), "q", Reply(reply))
    assert (lost.value, lost.reason) == (None, reason)


def test_the_last_of_several_ratings_counts_and_is_flagged() -> None:
    score = completeness_score(
        Row("case", "p01", {}), "q", Reply("Rating: [[2]]? No.\nRating: [[5]]\nNot 1/10.")
    )
    assert (score.value, score.outcome, score.reason) == (5.0, "ok", "differing")


def test_a_first_step_that_is_cut_off_is_not_written_on(data: Path) -> None:
    made = experiment(data, "defence=[structured]", "completeness=true")
    cut = Reply("I like tone number 1. KE", "length", "truncated", "max_tokens")
    outcomes = outcomes_of(made, data.parent, lambda _: cut)
    assert [len(outcome.exchanges) for outcome in outcomes] == [1] * 6
    scores = made.summarize(outcomes).scores
    assert {(s.value, s.outcome, s.reason) for s in scores} == {(None, "truncated", "max_tokens")}
    assert len(scores) == 30 + 6


def test_the_probe_asks_about_what_is_in_memory(data: Path) -> None:
    """Contexts 1 and 3 are institutions: there the sanitiser takes out markers and nickname."""
    plain = writes(lambda *_: set(CATEGORIES))

    def reply(request: Request) -> Reply:
        asked = request.prompt.tail[-1].content
        return Reply("No.") if "Yes or No" in asked else plain(request)

    found = summary_of(data, reply, "defence=[sanitiser]", "probe=true", "completeness=true")
    probed = {(s.facets["context"], s.facets["category"]) for s in found.scores
              if s.metric == "probe_accuracy"}  # fmt: skip
    kept = {"role", "style", "tone"}
    everywhere = {(f"context_{n}", category) for n in (1, 2, 3) for category in kept}
    assert probed == everywhere | {("context_2", "markers"), ("context_2", "nickname")}
    parts = {s.question for s in found.scores if s.metric == "misapplied_knowing"}
    assert not any(q.endswith(("context_1/markers", "context_3/nickname")) for q in parts)
    # The rates keep what is not in memory: 15 instances each.
    assert (estimate(found, "MR").n, estimate(found, "AAR").n) == (15, 15)


def test_knew_when_misapplied_is_over_misapplications(tmp_path: Path) -> None:
    """Role, tone and nickname have g = 0. Role is misapplied in both samples, unknowingly; tone in
    the first, knowingly: 1 of 3, and not the mean 1/2 of role's and tone's."""
    plain = writes(lambda request, *_: {"role"} if request.sample else {"role", "tone"})

    def reply(request: Request) -> Reply:
        asked = request.prompt.tail[-1].content
        if "Yes or No" in asked:
            return Reply("Yes" if "to be: I like role" in asked else "No.")
        return plain(request)

    folder = write_data(tmp_path / "data", profiles=1, contexts=1)
    sampled = ("samples=2", "model.temperature=1.0")
    found = estimate(summary_of(folder, reply, "probe=true", *sampled), "knew_when_misapplied",
                     "scored")  # fmt: skip
    assert (found.value, found.n) == (pytest.approx(1 / 3), 3)


SECOND = ("second_judge=qwen3_8b", "agreement.items=5")
SAME = ("second_judge=qwen3_32b", "agreement.items=5")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (SAME, "second_judge=qwen3_32b is the same model as the judge"),
        ((*SAME, "second_judge.name=other", "second_judge.max_num_seqs=1"), "second_judge=other"),
        (
            ("model=qwen3_8b", "thinking=qwen3_8b", "thinking.temperature=1", "reasoning=[true]"),
            "thinking=qwen3_8b is the same model as the target",
        ),
        (("second_judge=qwen3_8b",), "agreement.items=N"),
        (("agreement.items=5",), "who is the judge held to"),
        (("agreement.reference=people",), "add agreement.human_labels=FILE"),
        ((*SECOND, "agreement.reference=people"), "add agreement.human_labels=FILE"),
        (("agreement.reference=second_judge",), "add second_judge=NAME"),
        (("ifbench={off: 40.0, on: 50.0}",), "ifbench stands beside reasoning off and on"),
        (("ifbench={off: 40.0, on: 50.0}", "reasoning=[true,null]"), "ifbench stands beside"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    data: Path, overrides: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        experiment(data, *overrides)


def test_a_second_judge_that_is_asked_differently_is_another(data: Path) -> None:
    made = experiment(data, *SAME, "second_judge.temperature=0.5")
    assert made.roles == ("target", "judge", "second_judge")


def test_human_labels_are_read_before_anything_is_asked(data: Path) -> None:
    with pytest.raises(DataError, match=r"people\.csv: no such file"):
        experiment(data, f"agreement.human_labels={data / 'people.csv'}")


def level(name: str, values: list[float | None], metric: str = "MR") -> list[Score]:
    """One question of each of the users u0, u1, ..."""
    return [
        Score(f"{name}/{n}", "q", metric, f"u{n}", value, "failed" if value is None else "ok", "",
              {"defence": name})
        for n, value in enumerate(values)
    ]  # fmt: skip


def test_an_item_without_a_value_counts_as_the_worse_by_hand() -> None:
    """MR of 4 users, where 1 is worse. Default less a: 1 1 1 1, all 16 sign patterns but one are
    smaller: 1/16. Default less b: 1 1 0 0, of 16 the 4 with both ones are as large: 4/16. Default
    less c: -1 0 0 0: the sums are -1 and 1, all of them as large: 1. Holm over these three:
    3/16, 2 * 4/16, 1. Of scored items alone: 3 users, 1/8; 2 users, 1/4."""
    scores = level("default", [1, 1, 1, None]) + level("a", [0, 0, 0, 0])
    scores += level("b", [0, 0, None, None]) + level("c", [None, 1, 1, 1])
    made = ordered_comparisons(
        scores, "defence", ["default", "a", "b", "c"], ["MR"], "first", worse={"MR": 1.0}
    )
    assert [(c.greater, c.lesser) for c in made] == [("default", other) for other in "abc"]
    assert [c.n for c in made] == [4, 4, 4]
    assert [c.p for c in made] == [1 / 16, 4 / 16, 1.0]
    assert [c.p_holm for c in made] == [3 / 16, 8 / 16, 1.0]
    assert {c.basis for c in made} == {"all"}
    left_out = ordered_comparisons(scores, "defence", ["default", "a", "b"], ["MR"], "first")
    assert [(c.n, c.p, c.basis) for c in left_out] == [(3, 1 / 8, "scored"), (2, 1 / 4, "scored")]


def test_a_lost_repeat_counts_as_the_worse_too() -> None:
    """AAR, where 0 is worse. User 0: (1 + 0) / 2 - 3/4 = -1/4, user 1: 1. Sums of the four sign
    patterns: 3/4 (observed), 5/4, -5/4, -3/4: 2/4. Without the lost repeat 1/4 and 1: 1/4."""
    scores = level("x", [1, 1], "AAR") + level("x", [None], "AAR") + level("y", [0.75, 0], "AAR")
    [found] = ordered_comparisons(
        scores, "defence", ["x", "y"], ["AAR"], "first", worse={"AAR": 0.0}
    )
    [scored] = ordered_comparisons(scores, "defence", ["x", "y"], ["AAR"], "first")
    assert (found.p, scored.p) == (2 / 4, 1 / 4)


def test_tests_of_a_run_are_over_all_items_and_holm_over_its_defences(data: Path) -> None:
    """By default everything is applied, with either defence nothing: both users' differences are 1
    and p = 1/4; Holm over two defences 1/2. p02's messages with few_shot are cut off: MR counts
    them as misapplied, differences 1 and 0, two of four sums as large: 1/2; AAR as not applied."""
    plain = writes(lambda r, *_: set(CATEGORIES) if kind(r) == "default" else set())

    def kind(request: Request) -> str:
        asked = request.prompt.tail[-1].content
        if "Suppress any preferences" in asked:
            return "prompt"
        return "few_shot" if "Three examples" in asked else "default"

    def reply(request: Request) -> Reply:
        lost = kind(request) == "few_shot" and "I have 2 dogs" in request.prompt.tail[-1].content
        if request.role == "target" and lost:
            return Reply("Dear", "length", "truncated", "max_tokens")
        return plain(request)

    found = summary_of(data, reply, "defence=[default,prompt,few_shot]")
    made = {(t["table"], t["lesser"]): t for t in found.tests}
    assert {key: (t["p"], t["p_holm"]) for key, t in made.items()} == {
        ("MR", "prompt"): (1 / 4, 1 / 2), ("MR", "few_shot"): (1 / 2, 1 / 2),
        ("AAR", "prompt"): (1 / 4, 1 / 2), ("AAR", "few_shot"): (1 / 4, 1 / 2),
    }  # fmt: skip
    assert {(t["basis"], t["greater"], t["clusters"]) for t in made.values()} == {
        ("all", "default", 2)
    }
