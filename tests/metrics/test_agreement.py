from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from persona_lab.core.scores import Score
from persona_lab.metrics.agreement import (
    Weights,
    cohen_kappa,
    judge_agreement,
    paired_values,
    pearson,
    score_histogram,
)

DIMENSIONS = ("awareness", "alignment")
RATINGS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=30)


def judged(metric: str, *values: float | None, case: str = "direct") -> list[Score]:
    """One item a value, named by its position."""
    return [
        Score(f"{i}/{case}", f"q{i}", metric, "u", v, "ok" if v is not None else "unparsed")
        for i, v in enumerate(values)
    ]


def test_pearson_by_hand() -> None:
    # Deviations (-1, 0, 1) and (-1, 1, 0): r = 1 / 2. On 1 degree of freedom t = r / sqrt(1 - r^2)
    # = tan(30 degrees) is Cauchy: p = 1 - (2 / pi) (pi / 6) = 2/3.
    found = pearson([1, 2, 3], [1, 3, 2])
    assert (found.r, found.p, found.n) == (pytest.approx(0.5), pytest.approx(2 / 3), 3)
    # Sum of products 4, of squares 5 and 5: r = 0.8. With 4 pairs r is uniform: p = 1 - 0.8.
    found = pearson([1, 2, 3, 4], [1, 3, 2, 4])
    assert (found.r, found.p) == (pytest.approx(0.8), pytest.approx(0.2))


@pytest.mark.parametrize("number", [5, 20, 100])
def test_pearson_matches_scipy_and_numpy(number: int) -> None:
    rng = np.random.default_rng(number)
    one = rng.integers(1, 6, number).astype(float)
    two = np.clip(one + rng.integers(-1, 2, number), 1, 5)
    expected = stats.pearsonr(one, two)
    found = pearson(list(one), list(two))
    assert (found.r, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert found.r == pytest.approx(np.corrcoef(one, two)[0, 1])


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([3, 3, 3], [1, 2, 3], "constant: first"),
        ([1, 2, 3], [3, 3, 3], "constant: second"),
        ([4, 4, 4], [3, 3, 3], "constant: first and second"),
        ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3], "constant: first"),  # equal on paper
        ([1, 2], [1, 2], "2 pairs, of 3"),
        ([1], [1], "1 pair, of 3"),
        ([], [], "0 pairs, of 3"),
    ],
)
def test_a_correlation_that_does_not_exist(
    first: list[float], second: list[float], reason: str
) -> None:
    found = pearson(first, second)
    assert (found.r, found.p, found.n, found.reason) == (None, None, len(first), reason)


@pytest.mark.parametrize("second", [[1.0, float("nan"), 2.0], [1.0, 2.0]])
def test_values_that_cannot_be_correlated_are_refused(second: list[float]) -> None:
    with pytest.raises(ValueError, match=r"finite|cannot be paired"):
        pearson([1.0, 2.0, 3.0], second)


def test_kappa_by_hand() -> None:
    # 20 both yes, 15 both no, 5 and 10 apart: agreement 35/50 = 0.7; by chance
    # 0.5 * 0.6 + 0.5 * 0.4 = 0.5; kappa = 0.2 / 0.5 = 0.4.
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = cohen_kappa(first, second)
    assert (found.value, found.agreement, found.n) == (pytest.approx(0.4), 0.7, 50)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # First 1 1 2 3, second 1 3 2 3: counts 2, 1, 1 and 1, 1, 2. By steps and counts
        # 1-2: 2, 1-3: 4, 2-1: 1, 2-3: 2, 3-1: 1, 3-2: 1 (each step weight apart).
        ("none", 1 - 4 * 1 / 11),  # all apart: 2 + 4 + 1 + 2 + 1 + 1 = 11
        ("linear", 1 - 4 * 2 / 16),  # 2 + 2 * 4 + 1 + 2 + 2 * 1 + 1 = 16
        ("quadratic", 1 - 4 * 4 / 26),  # 2 + 4 * 4 + 1 + 2 + 4 * 1 + 1 = 26
    ],
)
def test_weighted_kappa_by_hand(weights: Weights, expected: float) -> None:
    found = cohen_kappa([1, 1, 2, 3], [1, 3, 2, 3], (1, 2, 3), weights)
    assert (found.value, found.agreement) == (pytest.approx(expected), 0.75)
    assert found.weights == weights


def test_weights_count_the_steps_of_the_scale_and_not_of_the_classes_in_use() -> None:
    # First 1 1 2 5, second 1 1 5 5: 3 steps apart; by chance 4 * 4 + 1 * 2 + 3 * 2 + 4 * 2 = 32;
    # 1 - 4 * 3 / 32. Were 1, 2, 5 neighbours, it would be 1 - 4 * 1 / 16 = 0.75.
    first, second = [1, 1, 2, 5], [1, 1, 5, 5]
    assert cohen_kappa(first, second, range(1, 6), "linear").value == 0.625
    assert cohen_kappa(first, second, (1, 2, 5), "linear").value == 0.75


def test_kappa_is_null_where_both_raters_use_one_class() -> None:
    found = cohen_kappa([1, 1, 1, 1], [1, 1, 1, 1])
    assert (found.value, found.agreement, found.n) == (None, 1.0, 4)
    assert found.reason == "both raters use only 1"
    # Expected 0.9 as observed: no better than chance.
    found = cohen_kappa([1] * 10, [1] * 9 + [0])
    assert (found.value, found.agreement, found.reason) == (0.0, 0.9, "")
    # Each rater one class, but not the same: 0 observed, 0 by chance.
    found = cohen_kappa([1, 1], [0, 0])
    assert (found.value, found.agreement) == (0.0, 0.0)
    found = cohen_kappa([], [])
    assert (found.value, found.agreement, found.n, found.reason) == (None, None, 0, "no pairs")


def test_wrong_ratings_are_refused() -> None:
    with pytest.raises(ValueError, match="the rating 6 is not on the scale"):
        cohen_kappa([1, 6], [1, 2], range(1, 6))
    with pytest.raises(ValueError, match="weights=linear needs the classes"):
        cohen_kappa([1, 2], [1, 2], weights="linear")
    with pytest.raises(ValueError, match="shorter"):
        cohen_kappa([1, 2], [1])


@given(RATINGS)
def test_quadratic_kappa_is_lins_concordance(pairs: list[tuple[int, int]]) -> None:
    # By numpy moments (Fleiss and Cohen 1973): 1 - E(a - b)^2 / (var a + var b + (mean a - b)^2).
    one, two = np.array(pairs).T
    expected = one.var() + two.var() + (one.mean() - two.mean()) ** 2
    found = cohen_kappa(list(map(int, one)), list(map(int, two)), range(1, 6), "quadratic")
    if expected == 0:
        assert found.value is None
    else:
        assert found.value == pytest.approx(1 - ((one - two) ** 2).mean() / expected)


@given(RATINGS, st.sampled_from(["none", "linear", "quadratic"]))
def test_kappa_is_symmetric_and_1_only_in_full_agreement(
    pairs: list[tuple[int, int]], weights: Weights
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = cohen_kappa(first, second, range(1, 6), weights)
    assert cohen_kappa(second, first, range(1, 6), weights).value == found.value
    if found.value is None:
        assert len({*first, *second}) == 1
    else:
        assert found.value <= 1
        assert (found.value == 1) == (found.agreement == 1)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_weights_do_not_matter_with_two_classes(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    plain = cohen_kappa(first, second).value
    for weights in ("linear", "quadratic"):
        assert cohen_kappa(first, second, (False, True), weights).value == plain


def test_histograms_count_every_score_of_the_scale() -> None:
    assert score_histogram([1.0, 5.0, 1.0], range(1, 6)) == {1: 2, 2: 0, 3: 0, 4: 0, 5: 1}
    assert score_histogram([], (0, 1)) == {0: 0, 1: 0}
    for value in (6.0, 3.5, float("nan")):
        with pytest.raises(ValueError, match="is not on the scale"):
            score_histogram([value], range(1, 6))


def test_two_judges_by_hand() -> None:
    # Awareness 1 2 3 4 against 1 3 2 4: r = 0.8, p = 0.2 (above). Alignment against itself: 1.
    # Item means over both: (1, 2, 3, 4) against (1, 2.5, 2.5, 4): products 4.5, squares 5 and
    # 4.5: r = 4.5 / sqrt(22.5) = 0.948683; with 4 pairs p = 1 - r.
    first = judged("awareness", 1, 2, 3, 4) + judged("alignment", 1, 2, 3, 4)
    second = judged("awareness", 1, 3, 2, 4) + judged("alignment", 1, 2, 3, 4)
    awareness, alignment, overall = judge_agreement(first, second, DIMENSIONS)
    assert (awareness.metric, alignment.metric, overall.metric) == (*DIMENSIONS, "overall")
    assert (awareness.pearson.r, awareness.pearson.p) == (pytest.approx(0.8), pytest.approx(0.2))
    assert alignment.pearson.r == pytest.approx(1.0)
    assert overall.pearson.r == pytest.approx(0.948683, abs=1e-6)
    assert overall.pearson.p == pytest.approx(1 - 0.948683, abs=1e-6)
    assert (overall.pearson.n, overall.unpaired) == (4, 0)


def test_items_without_a_value_by_both_judges_are_left_out_and_counted() -> None:
    first = judged("awareness", 1, 2, 3, 4, None) + judged("alignment", 1, 2, None, 4, None)
    second = judged("awareness", 1, 3, 2, None) + judged("alignment", 1, 2, 3, 4)
    found = {
        a.metric: (a.pearson.n, a.unpaired) for a in judge_agreement(first, second, DIMENSIONS)
    }
    assert found == {"awareness": (3, 2), "alignment": (3, 2), "overall": (2, 3)}
    json.dumps([asdict(a) for a in judge_agreement(first, second, DIMENSIONS)], allow_nan=False)


def test_one_question_in_two_cases_is_two_items() -> None:
    first = judged("awareness", 1, 2) + judged("awareness", 5, 4, case="implicit")
    second = judged("awareness", 5, 4, case="implicit") + judged("awareness", 2, 2)
    assert paired_values(first, second, ["awareness"]) == ([1, 2, 5, 4], [2, 2, 5, 4], 0)


def test_repeats_of_an_item_are_averaged_first() -> None:
    first = judged("awareness", 1, 2) + judged("awareness", 3)
    assert paired_values(first, judged("awareness", 4, 4), ["awareness"]) == ([2, 2], [4, 4], 0)
