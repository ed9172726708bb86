from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from persona_lab.metrics.intervals import cluster_bootstrap, interval, jackknife, wilson


def clustered(number: int, each: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = rng.normal(3, 0.5, number)
    values = np.clip(np.repeat(level, each) + rng.normal(0, 0.3, number * each), 1, 5)
    return values, np.repeat(np.arange(number), each)


@pytest.mark.parametrize(
    ("rate", "number", "low", "high"),
    [
        # By hand from Wilson (1927) with z = 1.959964; the first is the textbook case of
        # Newcombe (1998), Table I, method 3: 81 of 263 gives 0.2553 to 0.3662.
        (81 / 263, 263, 0.2553, 0.3662),
        (15 / 148, 148, 0.0624, 0.1605),
        (0 / 20, 20, 0.0000, 0.1611),
        (1 / 29, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_matches_newcombes_table(rate: float, number: int, low: float, high: float) -> None:
    assert wilson(rate, number) == pytest.approx((low, high), abs=5e-5)


def test_wilson_matches_scipy() -> None:
    for k, n in ((0, 7), (3, 7), (50, 61), (61, 61)):
        found = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert wilson(k / n, n) == pytest.approx((found.low, found.high), abs=1e-12)


def test_jackknife_of_equal_clusters_is_the_t_interval_of_their_means() -> None:
    # For clusters of one size the ratio is the mean of the cluster means, whose delete-one
    # jackknife variance is s^2 / K exactly; so the interval is scipy's one-sample t interval.
    values, clusters = clustered(10, 4)
    means = values.reshape(10, 4).mean(axis=1)
    expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    found = interval(values, clusters, 1, 5, rate=False)
    assert found.method == "cluster jackknife"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-10)


def test_jackknife_of_unequal_clusters_by_hand() -> None:
    # Clusters (sum, count): (2, 1) (3, 2) (9, 3) (4, 2) (6, 2). Ratio 24/10 = 2.4.
    # Left out: 22/9, 21/8, 15/7, 20/8, 18/8 = 2.4444, 2.625, 2.142857, 2.5, 2.25; mean 2.392460.
    # Squared deviations 0.002702 + 0.054075 + 0.062302 + 0.011565 + 0.020295 = 0.150939;
    # times 4/5 = 0.120751; SE 0.347492. t(0.975, 4) = 2.776445 (table); reach 0.964793.
    low, high = jackknife(np.array([2.0, 3, 9, 4, 6]), np.array([1.0, 2, 3, 2, 2]))
    assert (low, high) == pytest.approx((2.4 - 0.964793, 2.4 + 0.964793), abs=2e-5)


def test_bootstrap_matches_scipys() -> None:
    # scipy.stats.bootstrap (percentile) over the cluster means of equal clusters, another stream.
    values, clusters = clustered(40, 5)
    means = values.reshape(40, 5).mean(axis=1)
    expected = stats.bootstrap(
        (means,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(7)
    ).confidence_interval
    found = interval(values, clusters, 1, 5, rate=False)
    assert found.method == "cluster bootstrap"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_bootstrap_is_seeded() -> None:
    sums, counts = np.arange(30.0), np.full(30, 2.0)
    assert cluster_bootstrap(sums, counts, 0) == cluster_bootstrap(sums, counts, 0)
    assert cluster_bootstrap(sums, counts, 0) != cluster_bootstrap(sums, counts, 1)


def test_questions_of_one_user_are_not_independent() -> None:
    # 20 personas x 10 equal answers, 7 of the personas right. The jackknife of equal clusters is
    # the t interval over cluster means: SE = sqrt(0.35 * 0.65 / 19) = 0.109425, against
    # sqrt(0.35 * 0.65 / 200) = 0.033727 if all 200 were independent.
    values = np.repeat([1.0] * 7 + [0.0] * 13, 10)
    found = interval(values, np.repeat(np.arange(20), 10), 0, 1, rate=True)
    reach = float(stats.t.ppf(0.975, 19)) * math.sqrt(0.35 * 0.65 / 19)
    assert (found.low, found.high) == pytest.approx((0.35 - reach, 0.35 + reach), abs=1e-9)


@pytest.mark.parametrize(
    ("clusters", "each", "method"),
    [
        (1, 3, "n/a: 1 user"),
        (2, 13, "n/a: 2 users"),
        (4, 1, "n/a: 4 users"),
        (5, 2, "cluster jackknife"),
        (29, 2, "cluster jackknife"),
        (30, 2, "cluster bootstrap"),
    ],
)
def test_the_rule_by_number_of_clusters(clusters: int, each: int, method: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 5, clusters * each)
    labels = np.repeat(np.arange(clusters), each)
    found = interval(values, labels, 1, 5, rate=False, unit="user")
    assert found.method == method
    assert (found.low is None) == (clusters < 5)


def test_items_that_are_their_own_clusters_get_wilsons() -> None:
    found = interval(np.array([1.0] * 30 + [0.0] * 10), np.arange(40), 0, 1, rate=True)
    assert found.method == "Wilson"
    assert (found.low, found.high) == pytest.approx(wilson(0.75, 40))


def test_no_variance_between_clusters_gets_wilsons_with_their_number() -> None:
    values = np.tile([1.0, 0.0], 6)
    found = interval(values, np.repeat(np.arange(6), 2), 0, 1, rate=True)
    assert found.method == "Wilson, n = clusters"
    assert (found.low, found.high) == pytest.approx(wilson(0.5, 6))


@given(st.integers(5, 40), st.integers(1, 4), st.integers(0, 99))
def test_intervals_stay_in_range_around_the_mean(number: int, each: int, seed: int) -> None:
    values = np.random.default_rng(seed).choice([1.0, 2, 3, 4, 5], number * each)
    found = interval(values, np.repeat(np.arange(number), each), 1, 5, rate=False)
    assert found.low is not None
    assert found.high is not None
    assert 1 <= found.low <= values.mean() + 1e-9
    assert values.mean() - 1e-9 <= found.high <= 5
