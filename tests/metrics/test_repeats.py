from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.errors import ConfigError
from persona_lab.core.scores import Score
from persona_lab.metrics.estimate import ACCURACY, RATING
from persona_lab.metrics.repeats import RepeatedRuns, repeated_runs


def run(
    *values: float | None, metric: str = "accuracy", task: str = "multiple_choice"
) -> list[Score]:
    """One question a value."""
    return [
        Score(f"q{i}", f"q{i}", metric, f"u{i}", v, "ok" if v is not None else "failed", "",
              {"task": task})
        for i, v in enumerate(values)
    ]  # fmt: skip


def by_basis(runs: list[list[Score]]) -> dict[str, RepeatedRuns]:
    return {r.basis: r for r in repeated_runs(runs, {"accuracy": ACCURACY, "quality": RATING})}


def test_the_spread_of_three_runs_by_hand() -> None:
    # Means 0.5, 0.75, 1: mean 0.75; deviations -0.25, 0, 0.25; variance 0.125 / 2; SD 0.25.
    found = by_basis([run(1, 1, 0, 0), run(1, 1, 1, 0), run(1, 1, 1, 1)])["all"]
    assert (found.mean, found.variance, found.sd) == (0.75, 0.0625, 0.25)
    assert (found.runs, found.n, found.reason) == ((0.5, 0.75, 1.0), (4, 4, 4), "")


def test_rates_count_a_failure_as_wrong_and_show_the_scored_ones_beside() -> None:
    # All: 1/2, 2/2, 2/2. Scored: 1/1, 2/2, 2/2.
    found = by_basis([run(1, None), run(1, 1), run(1, 1)])
    assert found["all"].runs == (0.5, 1.0, 1.0)
    assert (found["scored"].runs, found["scored"].sd) == ((1.0, 1.0, 1.0), 0.0)
    assert (found["scored"].n, found["scored"].failed) == ((1, 2, 2), 1)


def test_ratings_are_over_scored_items_only() -> None:
    found = by_basis([run(v, None, metric="quality") for v in (1, 2, 3)])
    assert set(found) == {"scored"}
    assert (found["scored"].mean, found["scored"].variance) == (2.0, 1.0)
    assert found["scored"].failed == 3


def test_a_run_without_a_value_leaves_no_spread() -> None:
    found = by_basis([run(4, metric="quality"), run(None, metric="quality"), []])["scored"]
    assert (found.mean, found.sd, found.variance) == (None, None, None)
    assert (found.runs, found.n) == ((4.0, None, None), (1, 0, 0))
    assert found.reason == "no value in run 2, 3"
    json.dumps(asdict(found), allow_nan=False)


def test_runs_of_other_questions_are_no_repeats() -> None:
    found = by_basis([run(1, 1), run(1, 1), run(1)])["all"]
    assert (found.mean, found.runs) == (None, (1.0, 1.0, 1.0))
    assert found.reason == "other questions in run 3 than in run 1"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_fewer_than_three_runs_are_refused(number: int) -> None:
    with pytest.raises(ConfigError, match=f"{number} given, at least 3"):
        repeated_runs([run(1.0)] * number, {"accuracy": ACCURACY})


def test_groups_are_made_by_facets() -> None:
    runs = [run(1) + run(0, task="true_or_false") for _ in range(3)]
    found = repeated_runs(runs, {"accuracy": ACCURACY}, by=["task"])
    assert {(r.facets["task"], r.basis): r.mean for r in found} == {
        ("multiple_choice", "all"): 1.0,
        ("multiple_choice", "scored"): 1.0,
        ("true_or_false", "all"): 0.0,
        ("true_or_false", "scored"): 0.0,
    }


def test_repeats_within_a_run_are_averaged_per_question_first() -> None:
    # Question 0 right twice, question 1 wrong once: (1 + 0) / 2, not 2/3.
    found = by_basis([run(1, 0) + run(1)] * 3)["all"]
    assert (found.runs, found.n) == ((0.5, 0.5, 0.5), (2, 2, 2))


@given(st.integers(3, 6), st.integers(1, 8), st.integers(0, 99))
def test_the_spread_matches_numpys(number: int, items: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(1, 6, (number, items)).astype(float)
    found = by_basis([run(*map(float, row), metric="quality") for row in values])["scored"]
    means = values.mean(axis=1)
    assert found.mean == pytest.approx(means.mean())
    assert found.sd == pytest.approx(means.std(ddof=1), abs=1e-12)
    assert found.variance == pytest.approx(means.var(ddof=1), abs=1e-12)
