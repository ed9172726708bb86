from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from persona_lab.core.scores import Estimate, Score
from persona_lab.metrics.estimate import Metric, estimates
from persona_lab.metrics.intervals import wilson
from tests.metrics.crossed import (
    APPLIED,
    FREE,
    both,
    context,
    crossed_rows,
    left_out_variance,
    user,
)


def estimate(rows: list[Score], metric: Metric, crossed: str = "context") -> Estimate:
    return estimates(rows, {"rate": metric}, [], unit="user", crossed=crossed)[0]


def mean(rows: list[Score]) -> float:
    return float(np.mean([row.value for row in rows]))


def test_users_and_contexts_that_add_up_by_hand() -> None:
    # 5 users with 0 1 2 3 4 and 5 contexts with the same, added: mean 4. For equal clusters the
    # jackknife variance is s^2 / K: 2.5 / 5 = 0.5 over users, as much over contexts; over the 25
    # cells the squares are 5 * 10 + 5 * 10 = 100, so 100 / 24 / 25 = 1/6. In all 5/6, SE 0.912871;
    # t(0.975, 4) = 2.776445 (table); reach 2.534536.
    found = estimate(crossed_rows(np.add.outer(np.arange(5.0), np.arange(5.0))), FREE)
    assert found.two_way == pytest.approx((4 - 2.534536, 4 + 2.534536), abs=1e-5)
    # One way 0.707107 * 2.776445 = 1.963243.
    assert (found.low, found.high) == pytest.approx((4 - 1.963243, 4 + 1.963243), abs=1e-5)


@given(st.integers(5, 8), st.integers(5, 8), st.floats(0, 2), st.floats(0, 2), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_formula_written_out(
    users: int, contexts: int, by_user: float, by_context: float, seed: int
) -> None:
    # Both signs of V1 + V2 - V12 - max(V1, V2) occur: effects of a side may be absent.
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, (users, contexts))
    values += by_user * rng.normal(0, 1, (users, 1)) + by_context * rng.normal(0, 1, (1, contexts))
    rows = crossed_rows(values)
    v1, v2, v12 = (left_out_variance(rows, label, mean) for label in (user, context, both))
    reach = stats.t.ppf(0.975, min(users, contexts) - 1) * max(v1 + v2 - v12, v1, v2) ** 0.5
    found = estimate(rows, FREE)
    assert found.two_way == pytest.approx((values.mean() - reach, values.mean() + reach))


@given(st.integers(5, 12), st.integers(5, 12), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_two_ways_are_at_least_as_wide_as_one_and_stay_in_range(
    users: int, contexts: int, rate: float, seed: int
) -> None:
    values = (np.random.default_rng(seed).random((users, contexts)) < rate).astype(float)
    found = estimate(crossed_rows(values), APPLIED)
    assert found.two_way is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.two_way[0] <= found.low <= found.high <= found.two_way[1] <= 1


def test_the_bootstrap_is_no_wider_either() -> None:
    values = (np.random.default_rng(3).random((30, 6)) < 0.5).astype(float)
    found = estimate(crossed_rows(values), APPLIED)
    assert found.interval == "cluster bootstrap"
    assert found.two_way is not None
    assert found.low is not None
    assert found.high is not None
    assert found.two_way[0] <= found.low
    assert found.two_way[1] >= found.high


def test_without_variance_a_rate_gets_wilsons_of_the_smaller_side_and_a_rating_none() -> None:
    ones = estimate(crossed_rows(np.ones((10, 6))), APPLIED)
    assert (ones.low, ones.high) == pytest.approx(wilson(1.0, 10))
    assert ones.two_way == pytest.approx(wilson(1.0, 6))
    assert estimate(crossed_rows(np.ones((10, 6))), FREE).two_way is None


@pytest.mark.parametrize(("users", "contexts"), [(4, 10), (10, 4), (1, 1)])
def test_fewer_than_five_on_a_side_leave_none(users: int, contexts: int) -> None:
    values = np.random.default_rng(0).random((users, contexts))
    assert estimate(crossed_rows(values), FREE).two_way is None


def test_it_is_made_only_where_asked_for() -> None:
    rows = crossed_rows(np.random.default_rng(0).random((6, 6)))
    assert estimate(rows, FREE, crossed="").two_way is None
    assert estimate(rows, FREE, crossed="contxt").two_way is None, "one second cluster"
    assert estimates([], {"rate": FREE}, [], crossed="context") == []
