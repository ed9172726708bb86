from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from persona_lab.core.errors import ConfigError
from persona_lab.core.scores import Score
from persona_lab.metrics.comparisons import (
    as_test,
    holm,
    mcnemar_exact,
    ordered_comparisons,
    sign_flip,
    wilcoxon_by_item,
)

HALVES = st.integers(-8, 8).map(lambda n: n / 2)
P_VALUES = st.floats(1e-6, 1.0)


def score(
    level: str, user: str, value: float | None, metric: str = "awareness", question: str = "q"
) -> Score:
    outcome = "failed" if value is None else "ok"
    return Score(f"{user}/{level}", f"{user}-{question}", metric, user, value, outcome, "",
                 {"expression": level})  # fmt: skip


def table(
    values: Mapping[str, Sequence[float | None]], metrics: Sequence[str] = ("awareness",)
) -> list[Score]:
    """One question a user, the same on all metrics: level -> value of user 0, 1, ..."""
    return [
        score(level, f"u{user}", value, metric)
        for level, given in values.items()
        for metric in metrics
        for user, value in enumerate(given)
    ]


@pytest.mark.parametrize(
    ("means", "p"),
    [
        # Sums of the 8 flips of (3, 1, 2): 6, 4, 2, 0 and their negatives; one is >= 6.
        ([3.0, 1.0, 2.0], 1 / 8),
        # Of (2, -1, 3), observed 4: the sums are 6, 4, 2, 0 and their negatives; two are >= 4.
        ([2.0, -1.0, 3.0], 2 / 8),
        # Of (1, 1): 2, 0, 0, -2; one is >= 2. Of (-1, -1) all four are >= -2.
        ([1.0, 1.0], 1 / 4),
        ([-1.0, -1.0], 1.0),
        # A zero does not change with its sign: each of the four sums counts twice.
        ([1.0, 0.0, 1.0], 2 / 8),
        ([0.0, 0.0, 0.0], 1.0),
        ([2.0], 1 / 2),
        # Observed 0 on paper and 5.6e-17 in floating point: .6, .4, .2, 0, 0 are >= 0.
        ([0.1, 0.2, -0.3], 5 / 8),
    ],
)
def test_sign_flips_by_hand(means: list[float], p: float) -> None:
    clusters = [f"u{i}" for i in range(len(means))]
    assert sign_flip(means, clusters) == (p, f"exact, {2 ** len(means)} flips")


def test_items_of_one_user_are_flipped_together() -> None:
    # User means (4 + 0) / 2 = 2, -1 and (3 + 3) / 2 = 3: the case above with p = 2/8.
    found, _ = sign_flip([4.0, 3.0, -1.0, 0.0, 3.0], ["a", "c", "b", "a", "c"])
    assert found == 2 / 8
    # 20 equal gains of 2 users are no evidence beyond 2 users.
    assert sign_flip([1.0] * 20, ["a"] * 10 + ["b"] * 10)[0] == 1 / 4


@pytest.mark.parametrize("number", [2, 5, 9, 12])
def test_exact_sign_flips_match_scipy(number: int) -> None:
    # scipy.stats.permutation_test of one sample flips signs; exact with unlimited resamples.
    means = np.random.default_rng(number).normal(0.3, 1, number)
    expected = stats.permutation_test(
        (means,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    )
    found, method = sign_flip(list(means), [str(i) for i in range(number)])
    assert found == pytest.approx(expected.pvalue, abs=1e-12)
    assert method.startswith("exact")


def test_many_clusters_are_flipped_at_random_and_close_to_scipys_exact_p() -> None:
    # All 2^14 flips by scipy; 10,000 random ones have a standard error of at most 0.005.
    means = np.random.default_rng(3).normal(0.2, 1, 14)
    expected = stats.permutation_test(
        (means,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    )
    clusters = [str(i) for i in range(14)]
    found, method = sign_flip(list(means), clusters)
    assert found == pytest.approx(expected.pvalue, abs=0.02)
    assert method == "10000 seeded flips"
    assert sign_flip(list(means), clusters, seed=0) == (found, method)
    assert sign_flip(list(means), clusters, seed=1)[0] != found


def test_the_least_p_of_random_flips_is_one_in_all_of_them() -> None:
    # 40 users, all better: 2^-40 exactly, no random flip reaches it, so (0 + 1) / (10,000 + 1).
    assert sign_flip([1.0] * 40, [str(i) for i in range(40)])[0] == 1 / 10_001


def test_the_method_changes_above_12_clusters() -> None:
    assert sign_flip([1.0] * 12, [str(i) for i in range(12)])[0] == 1 / 4096
    assert sign_flip([1.0] * 13, [str(i) for i in range(13)])[1] == "10000 seeded flips"


@pytest.mark.parametrize("differences", [[], [1.0, float("nan")], [float("inf")]])
def test_differences_that_are_no_numbers_are_refused(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        sign_flip(differences, ["u"] * len(differences))


@given(st.lists(st.tuples(HALVES, st.integers(0, 14)), min_size=1, max_size=30))
def test_sign_flip_p_is_a_probability_and_no_order_matters(items: list[tuple[float, int]]) -> None:
    found, _ = sign_flip([d for d, _ in items], [str(c) for _, c in items])
    assert 0 < found <= 1
    turned = items[::-1]
    assert sign_flip([d for d, _ in turned], [str(c) for _, c in turned])[0] == found


@given(st.lists(HALVES, min_size=1, max_size=6))
def test_symmetric_differences_are_no_evidence(half: list[float]) -> None:
    both = [*half, *(-d for d in half)]
    assert sign_flip(both, [str(i) for i in range(len(both))])[0] >= 0.5


@given(st.lists(HALVES, min_size=1, max_size=12))
def test_one_side_or_the_other(means: list[float]) -> None:
    # Every flip is >= the observed or, turned round, >= its opposite.
    clusters = [str(i) for i in range(len(means))]
    one, other = sign_flip(means, clusters)[0], sign_flip([-d for d in means], clusters)[0]
    assert one + other >= 1


def test_wilcoxon_by_hand() -> None:
    # (1, 2, 3): W+ = 6, the largest of 8 equally likely sums.
    assert wilcoxon_by_item([1.0, 2.0, 3.0]) == pytest.approx(1 / 8)
    # (0, 1, 2, -3), Pratt: the zero keeps rank 1, so W+ = 2 + 3 = 5 of ranks 2, 3, 4, whose sums
    # are 0, 2, 3, 4, 5, 6, 7, 9: four of eight are >= 5.
    assert wilcoxon_by_item([0.0, 1.0, 2.0, -3.0]) == pytest.approx(4 / 8)


def test_wilcoxon_needs_a_difference() -> None:
    assert wilcoxon_by_item([]) is None
    assert wilcoxon_by_item([0.0, 0.0]) is None
    assert wilcoxon_by_item([0.1 + 0.2 - 0.3]) is None, "zero on paper"


def test_wilcoxon_ranks_differences_that_are_equal_on_paper_as_equal() -> None:
    thirds = [10 / 3 - 3, 13 / 3 - 4, 7 / 3 - 2, 3 - 10 / 3]
    assert len(set(map(abs, thirds))) > 1
    assert wilcoxon_by_item(thirds) == wilcoxon_by_item([1.0, 1.0, 1.0, -1.0])


@pytest.mark.parametrize("number", [6, 30, 80])
def test_wilcoxon_matches_scipy(number: int) -> None:
    differences = np.random.default_rng(number).integers(-2, 4, number).astype(float)
    expected = stats.wilcoxon(differences, zero_method="pratt", alternative="greater").pvalue
    assert wilcoxon_by_item(list(differences)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        (0, 6, 2 / 64),  # two tails of one in 2^6
        (1, 5, 14 / 64),  # 2 * (1 + 6) / 2^6
        (3, 3, 1.0),
        (0, 0, 1.0),
    ],
)
def test_mcnemar_by_hand(b: int, c: int, p: float) -> None:
    assert mcnemar_exact(b, c) == pytest.approx(p)
    assert mcnemar_exact(c, b) == pytest.approx(p)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_twice_the_smaller_tail(b: int, c: int) -> None:
    # scipy.stats.binom, summed from the tail.
    tail = float(stats.binom.cdf(min(b, c), b + c, 0.5))
    assert mcnemar_exact(b, c) == pytest.approx(min(1.0, 2 * tail))


def test_holm_by_hand() -> None:
    # Sorted .01, .03, .04: 3 * .01 = .03; 2 * .03 = .06; 1 * .04 < .06, so .06.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(P_VALUES, min_size=1, max_size=6))
def test_holm_is_the_closed_test_of_bonferronis(p_values: list[float]) -> None:
    # By its definition: the largest Bonferroni p of any set of hypotheses that holds this one.
    ids = range(len(p_values))
    sets = [set(s) for size in ids for s in combinations(ids, size + 1)]
    expected = [
        max(min(1.0, len(s) * min(p_values[j] for j in s)) for s in sets if i in s) for i in ids
    ]
    assert holm(p_values) == pytest.approx(expected)


@given(st.lists(P_VALUES, max_size=20))
def test_holm_keeps_the_order_and_is_never_below_the_raw_p(p_values: list[float]) -> None:
    found = holm(p_values)
    assert all(raw <= corrected <= 1 for raw, corrected in zip(p_values, found, strict=True))
    ordered = [corrected for _, corrected in sorted(zip(p_values, found, strict=True))]
    assert ordered == sorted(ordered)


def test_a_pair_needs_all_metrics() -> None:
    # Awareness differs by (3, 1, 2): p = 1/8. Alignment by (2, -1, 3): p = 2/8, which decides.
    scores = table({"direct": [4, 3, 5], "implicit": [1, 2, 3]})
    scores += table({"direct": [4, 1, 5], "implicit": [2, 2, 2]}, ["alignment"])
    [found] = ordered_comparisons(
        scores, "expression", ["direct", "implicit"], ["awareness", "alignment"]
    )
    assert (found.greater, found.lesser) == ("direct", "implicit")
    assert found.by_metric == {"awareness": 1 / 8, "alignment": 2 / 8}
    assert (found.p, found.p_holm, found.significant, found.reason) == (2 / 8, 2 / 8, False, "")
    # Wilcoxon: ranks 3, 1, 2 all positive, 1/8; ranks 2, -1, 3 give W+ = 5, and 6 and 5 of the
    # 8 sums are >= 5: 2/8.
    assert found.wilcoxon == {"awareness": pytest.approx(1 / 8), "alignment": pytest.approx(2 / 8)}
    assert (found.n, found.clusters) == (3, 3)


def test_holm_is_over_the_pairs_of_the_order() -> None:
    # 5 users. 1 > 2: all better, 1/32. 1 > 3 the same. 2 > 3: (1, 1, 1, 1, -1), observed 3; the
    # sums >= 3 are 5 (once) and 3 (five times): 6/32. Holm: 3/32, 3/32, 6/32.
    scores = table({"1": [5, 5, 5, 5, 5], "2": [4, 4, 4, 4, 3], "3": [3, 3, 3, 3, 4]})
    found = ordered_comparisons(scores, "expression", ["1", "2", "3"], ["awareness"])
    assert [(c.greater, c.lesser) for c in found] == [("1", "2"), ("1", "3"), ("2", "3")]
    assert [c.p for c in found] == [1 / 32, 1 / 32, 6 / 32]
    assert [c.p_holm for c in found] == [3 / 32, 3 / 32, 6 / 32]
    assert [c.significant for c in found] == [True, True, False], "by the raw p, as the tables"
    strict = ordered_comparisons(scores, "expression", ["1", "2"], ["awareness"], alpha=1 / 32)
    assert strict[0].significant is False, "below alpha, not at it"


def test_adjacent_pairs() -> None:
    scores = table({"1": [5, 5], "2": [4, 4], "3": [3, 3]})
    found = ordered_comparisons(scores, "expression", ["1", "2", "3"], ["awareness"], "adjacent")
    assert [(c.greater, c.lesser) for c in found] == [("1", "2"), ("2", "3")]


def test_only_questions_with_a_value_in_both_are_paired() -> None:
    # User 1 failed in one condition and user 3 in the other: 0 and 2 are left, 1/4.
    scores = table({"1": [5, None, 5, 5], "2": [4, 1, 4, None]})
    scores.append(score("1", "u0", 1.0, question="asked once"))
    scores.append(score("elsewhere", "u0", 1.0))
    [found] = ordered_comparisons(scores, "expression", ["1", "2"], ["awareness"])
    assert (found.n, found.clusters, found.p) == (2, 2, 1 / 4)


def test_a_question_is_paired_within_its_user_only() -> None:
    one = Score("a", "q", "awareness", "a", 5.0, "ok", "", {"expression": "1"})
    two = Score("b", "q", "awareness", "b", 1.0, "ok", "", {"expression": "2"})
    [found] = ordered_comparisons([one, two], "expression", ["1", "2"], ["awareness"])
    assert (found.n, found.p) == (0, None)


def test_repeats_are_averaged_first() -> None:
    # User 0: (5 + 1) / 2 - 3 = 0. User 1: 4 - 3 = 1. Sums of the flips of (0, 1): 1, 1, -1, -1.
    scores = table({"1": [5, 4], "2": [3, 3]})
    scores.append(score("1", "u0", 1.0))
    [found] = ordered_comparisons(scores, "expression", ["1", "2"], ["awareness"])
    assert (found.n, found.p) == (2, 1 / 2)


def test_a_comparison_that_cannot_be_made_says_why() -> None:
    scores = table({"1": [5], "2": [4]}) + table({"3": [3, 3]}, ["alignment"])
    pair, nothing, _ = ordered_comparisons(scores, "expression", ["1", "2", "3"], ["awareness"])
    assert (pair.p, pair.p_holm, pair.significant) == (None, None, None)
    assert pair.reason == "awareness: fewer than 2 clusters"
    assert (pair.n, pair.clusters) == (1, 1)
    assert pair.wilcoxon == {"awareness": 0.5}, "one positive difference of one"
    assert nothing.reason == "awareness: no paired items"
    assert (nothing.n, nothing.clusters, nothing.by_metric) == (0, 0, {"awareness": None})


def test_a_pair_without_one_of_its_metrics_has_no_p() -> None:
    scores = table({"1": [5, 5], "2": [4, 4]})
    [found] = ordered_comparisons(scores, "expression", ["1", "2"], ["awareness", "quality"])
    assert found.by_metric == {"awareness": 1 / 4, "quality": None}
    assert (found.p, found.n, found.reason) == (None, 0, "quality: no paired items")


def test_pairs_without_a_p_are_no_part_of_holms_family() -> None:
    scores = table({"1": [5] * 5, "2": [4] * 5})
    found = ordered_comparisons(scores, "expression", ["1", "2", "3"], ["awareness"])
    assert [c.p_holm for c in found] == [1 / 32, None, None]


@pytest.mark.parametrize(("order", "metrics"), [(["1", "1"], ["awareness"]), (["1", "2"], [])])
def test_a_wrong_order_is_refused(order: list[str], metrics: list[str]) -> None:
    with pytest.raises(ConfigError, match="comparison by expression"):
        ordered_comparisons([], "expression", order, metrics)


def test_results_json_takes_every_comparison() -> None:
    scores = table({"1": [5, 5], "2": [4, 4]})
    found = ordered_comparisons(scores, "expression", ["1", "2", "3"], ["awareness"])
    [made, empty, _] = json.loads(json.dumps([as_test(c) for c in found], allow_nan=False))
    assert made == {
        "facet": "expression",
        "greater": "1",
        "lesser": "2",
        "p": 0.25,
        "p_holm": 0.25,
        "alpha": 0.05,
        "significant": False,
        "reason": "",
        "basis": "scored",
        "n": 2,
        "clusters": 2,
        "clustered": {
            "test": "one-sided sign-flip permutation of cluster mean differences",
            "method": "exact, 4 flips",
            "p_by_metric": {"awareness": 0.25},
        },
        "unclustered": {
            "test": "one-sided Wilcoxon signed-rank by item (Pratt)",
            "p_by_metric": {"awareness": 0.25},
        },
    }
    assert (empty["p"], empty["reason"]) == (None, "awareness: no paired items")
