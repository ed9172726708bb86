from __future__ import annotations

from persona_lab.core.scores import Estimate, Score, ScoreOutcome
from persona_lab.metrics.estimate import ACCURACY, RATING, estimates


def score(
    question: str,
    value: float | None,
    outcome: ScoreOutcome = "ok",
    metric: str = "accuracy",
    cluster: str | None = None,
    method: str = "m",
) -> Score:
    return Score(question, question, metric, cluster or question, value, outcome, "",
                 {"method": method})  # fmt: skip


def by_basis(scores: list[Score]) -> dict[str, Estimate]:
    found = estimates(scores, {"accuracy": ACCURACY, "quality": RATING}, ["method"])
    return {e.basis: e for e in found}


def test_errors_count_as_wrong_in_the_headline_and_are_named_beside_it() -> None:
    # 80 right, 10 wrong, 10 without an answer: 80/100, and 80/90 over those scored.
    scores = [score(f"r{i}", 1.0) for i in range(80)] + [score(f"w{i}", 0.0) for i in range(10)]
    scores += [score(f"e{i}", None, "failed") for i in range(4)]
    scores += [score(f"u{i}", None, "unparsed") for i in range(5)]
    scores += [score("t", None, "truncated")]
    found = by_basis(scores)
    assert (found["all"].value, found["all"].n) == (0.8, 100)
    assert (found["scored"].value, found["scored"].n) == (80 / 90, 90)
    assert (found["all"].failed, found["all"].unparsed, found["all"].truncated) == (4, 5, 1)


def test_ratings_are_over_scored_items_only() -> None:
    found = by_basis([score("a", 5.0, metric="quality"), score("b", None, "failed", "quality")])
    assert set(found) == {"scored"}
    assert (found["scored"].value, found["scored"].n, found["scored"].failed) == (5.0, 1, 1)


def test_a_group_without_values_is_null_with_a_reason() -> None:
    found = by_basis([score("a", None, "unparsed", "quality")])["scored"]
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)
    assert found.interval == "n/a: no item has a value"
    assert estimates([], {"accuracy": ACCURACY}, []) == []


def test_repeats_are_averaged_per_question_first() -> None:
    # Question a three times right, b once wrong: mean of (1, 0) = 0.5, not 3/4.
    scores = [score("a", 1.0), score("a", 1.0), score("a", 1.0), score("b", 0.0)]
    found = by_basis(scores)["all"]
    assert (found.value, found.n) == (0.5, 2)


def test_groups_are_made_by_facets() -> None:
    scores = [score("a", 1.0, method="x"), score("a", 0.0, method="y")]
    found = {
        e.facets["method"]: e.value for e in estimates(scores, {"accuracy": ACCURACY}, ["method"])
    }
    assert found == {"x": 1.0, "y": 0.0}


def test_clusters_are_counted() -> None:
    scores = [score(f"{c}{i}", 1.0, cluster=c) for c in "ab" for i in range(3)]
    found = by_basis(scores)["all"]
    assert (found.n, found.clusters, found.low) == (6, 2, None)
