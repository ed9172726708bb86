from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from persona_lab.core.scores import Score
from persona_lab.metrics.estimate import RATING
from persona_lab.metrics.intervals import wilson
from persona_lab.metrics.judge_noise import ErrorTable, corrected_rate
from tests.metrics.crossed import APPLIED, crossed_rows, left_out_variance, user

TABLE = ErrorTable(45, 5, 40, 10)
"""Sensitivity 0.9, specificity 0.8."""
# From (x + 1) / (n + 2), by hand: 46/52 * 6/52 / 52 and 41/52 * 11/52 / 52.
SENSITIVITY_VARIANCE, SPECIFICITY_VARIANCE = 276 / 52**3, 451 / 52**3


def rates(*per_user: float, items: int = 4, metric: str = "judged") -> list[Score]:
    """Users whose first items are 1, in the given shares."""
    values = [[float(i < round(share * items)) for i in range(items)] for share in per_user]
    return crossed_rows(np.array(values).reshape(len(per_user), items), metric)


def label_variance(rate: float) -> float:
    """Rogan and Gladen (1978) over the label sample, TABLE's Youden index being 0.7."""
    found = rate**2 * SENSITIVITY_VARIANCE + (1 - rate) ** 2 * SPECIFICITY_VARIANCE
    return found / 0.7**2


def test_a_judged_rate_by_hand() -> None:
    # Ten users, five at 3/4 and five at 1/4: p = 0.5, corrected (0.5 + 0.8 - 1) / 0.7 = 0.428571.
    # Items: s^2 = 0.0625 * 10 / 9, / 10 = 0.00694444, / 0.7^2 = 0.0141723. Labels:
    # (0.183673 * 0.00196290 + 0.326531 * 0.00320750) / 0.49 = 0.00287320. SE 0.130558;
    # t(0.975, 9) = 2.262157 (table); reach 0.295343.
    found = corrected_rate(rates(*[0.75] * 5, *[0.25] * 5), [], TABLE, APPLIED, unit="user")
    assert (found.value, found.apparent, found.share) == (pytest.approx(3 / 7), 0.5, 1.0)
    assert (found.low, found.high) == pytest.approx((0.133229, 0.723914), abs=1e-5)
    assert found.interval == "cluster jackknife, label error added"
    assert (found.flags, found.n, found.clusters) == ((), 40, 10)


def test_a_matched_part_is_weighted_by_its_items_and_not_corrected() -> None:
    # 40 judged items at 0.5 -> 3/7, 10 matched at 0.6: 0.8 * 3/7 + 0.2 * 0.6 = 0.462857.
    # A user's whole is 0.8 (p_k - 0.2) / 0.7 + 0.2 m_k; users are of one size, so s^2 / 10 of
    # these by numpy; labels scaled by 0.8^2.
    judged_rates, matched_rates = [0.75] * 5 + [0.25] * 5, [1.0] * 4 + [0.0] * 4 + [1.0] * 2
    found = corrected_rate(
        rates(*judged_rates), rates(*matched_rates, items=1, metric="matched"), TABLE, APPLIED
    )
    whole = 0.8 * (np.array(judged_rates) - 0.2) / 0.7 + 0.2 * np.array(matched_rates)
    variance = whole.var(ddof=1) / 10 + 0.8**2 * label_variance(3 / 7)
    reach = stats.t.ppf(0.975, 9) * variance**0.5
    assert found.value == pytest.approx(0.8 * 3 / 7 + 0.12)
    assert (found.low, found.high) == pytest.approx((whole.mean() - reach, whole.mean() + reach))
    assert (found.share, found.apparent, found.n) == (0.8, pytest.approx(0.52), 50)


@given(st.integers(5, 8), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_users_left_out_change_the_shares_too(users: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    judged = rates(*rng.random(users), items=5)
    matched = rates(*rng.random(users), items=3, metric="matched")
    judged, matched = ([r for r in rows if rng.random() < 0.8] for rows in (judged, matched))
    rows = [*judged, *matched]

    def whole(chosen: list[Score]) -> float:
        p, m = ([r.value for r in chosen if r.metric == n] for n in ("judged", "matched"))
        share = len(p) / (len(p) + len(m))
        return float(share * (np.mean(p) - 0.2) / 0.7 + (1 - share) * np.mean(m))

    assume(min(len(judged), len(matched)) > 7 and len({r.cluster for r in rows}) == users)
    found = corrected_rate(judged, matched, TABLE, APPLIED)
    part = (float(np.mean([r.value for r in judged])) - 0.2) / 0.7
    share = len(judged) / len(rows)
    assume(left_out_variance(rows, user, whole) > 1e-12)
    variance = left_out_variance(rows, user, whole) + share**2 * label_variance(part)
    reach = stats.t.ppf(0.975, users - 1) * variance**0.5
    assert found.low is not None
    assert found.high is not None
    if not found.flags:
        assert found.value == pytest.approx(whole(rows))
        assert found.low == pytest.approx(max(0.0, whole(rows) - reach))
        assert found.high == pytest.approx(min(1.0, whole(rows) + reach))


@given(st.integers(5, 12), st.integers(1, 500), st.integers(1, 500), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_a_perfect_judge_changes_no_value_but_widens(
    users: int, positives: int, negatives: int, seed: int
) -> None:
    shares = np.random.default_rng(seed).random(users)
    rows = rates(*shares)
    plain = corrected_rate([], rows, TABLE, APPLIED)
    found = corrected_rate(rows, [], ErrorTable(positives, 0, negatives, 0), APPLIED)
    assert found.value == pytest.approx(plain.value)
    assert found.flags == ()
    assert found.low is not None
    assert found.high is not None
    assert plain.low is not None
    assert plain.high is not None
    assert found.low <= plain.low + 1e-12
    assert found.high >= plain.high - 1e-12


def test_without_judged_items_nothing_is_corrected_whatever_the_table() -> None:
    rows = rates(*[0.75] * 5, *[0.25] * 5)
    found = corrected_rate([], rows, ErrorTable(0, 0, 0, 0), APPLIED)
    expected = stats.ttest_1samp([0.75] * 5 + [0.25] * 5, 0).confidence_interval(0.95)
    assert (found.value, found.share, found.interval) == (0.5, 0.0, "cluster jackknife")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_users_that_do_not_vary_get_wilsons() -> None:
    # All at 0.5, so 3/7; Wilson's of 0.5 over 10 users through the correction, its distances
    # squared and added to those of the labels.
    found = corrected_rate(rates(*[0.5] * 10), [], TABLE, APPLIED)
    reach = stats.t.ppf(0.975, 9) * label_variance(3 / 7) ** 0.5
    half = (0.5 - wilson(0.5, 10)[0]) / 0.7
    assert found.interval == "Wilson, n = clusters, label error added"
    assert found.low == pytest.approx(max(0, 3 / 7 - math.hypot(half, reach)))
    assert found.high == pytest.approx(3 / 7 + math.hypot(half, reach))
    # Both parts: the distances of the judged one times 0.5 / 0.7, of the matched one times 0.5.
    both = corrected_rate(rates(*[0.5] * 10), rates(*[0.5] * 10, metric="m"), TABLE, APPLIED)
    centre = (3 / 7 + 0.5) / 2
    apart = math.hypot(0.5 * half, 0.5 * (0.5 - wilson(0.5, 10)[0]), 0.5 * reach)
    assert (both.low, both.high) == pytest.approx((centre - apart, centre + apart))


@pytest.mark.parametrize(
    ("shares", "value"),
    [
        ([0.0] * 5 + [0.25] * 5, 0.0),  # p = 0.125, below the false positives' 0.2
        ([1.0] * 5 + [0.95] * 5, 1.0),  # p above the sensitivity of 0.9
    ],
)
def test_a_rate_that_no_judge_of_that_kind_gives_is_cut_and_flagged(
    shares: list[float], value: float
) -> None:
    found = corrected_rate(rates(*shares, items=20), [], TABLE, APPLIED)
    assert (found.value, found.flags) == (value, ("cut",))
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= value <= found.high <= 1
    # The judged part is cut before: half of it, and half of 0.5.
    matched = rates(*[0.5] * 10, items=20, metric="matched")
    assert corrected_rate(rates(*shares, items=20), matched, TABLE, APPLIED).value == (
        pytest.approx((value + 0.5) / 2)
    )


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        # 0.6 + 0.5 and 0.7 + 0.4 are 1.1 on paper.
        (ErrorTable(6, 4, 5, 5), "n/a: sensitivity + specificity is 1.100, not above 1.1"),
        (ErrorTable(7, 3, 4, 6), "n/a: sensitivity + specificity is 1.100, not above 1.1"),
        (ErrorTable(1, 9, 1, 9), "n/a: sensitivity + specificity is 0.200, not above 1.1"),
        (ErrorTable(0, 0, 9, 1), "n/a: no positives among the labels"),
        (ErrorTable(9, 1, 0, 0), "n/a: no negatives among the labels"),
    ],
)
def test_a_table_that_corrects_nothing(table: ErrorTable, reason: str) -> None:
    found = corrected_rate(rates(*[0.75] * 5, *[0.25] * 5), [], table, APPLIED)
    assert (found.value, found.low, found.high, found.interval) == (None, None, None, reason)
    assert (found.apparent, found.n, found.clusters) == (0.5, 40, 10)


def test_a_table_just_above_the_limit_corrects() -> None:
    # 0.6 + 0.51 - 1 = 0.11: (0.5 + 0.51 - 1) / 0.11 = 1/11.
    found = corrected_rate(rates(0.75, 0.25), [], ErrorTable(6, 4, 51, 49), APPLIED, unit="user")
    assert (found.value, found.low, found.interval) == (pytest.approx(1 / 11), None, "n/a: 2 users")


def test_sensitivity_and_specificity_are_shares_of_the_human_labels() -> None:
    assert (TABLE.sensitivity, TABLE.specificity) == (0.9, 0.8)
    empty = ErrorTable(0, 0, 0, 0)
    assert (empty.sensitivity, empty.specificity) == (None, None)


def test_only_rows_with_a_value_are_in_it_and_the_others_are_counted() -> None:
    judged, matched = rates(*[0.75] * 5, *[0.25] * 5), rates(*[0.5] * 10, metric="matched")
    expected = corrected_rate(judged, matched, TABLE, APPLIED)
    gone = [replace(r, question="other", value=None, outcome="failed") for r in judged[:3]]
    cut = [replace(r, question="other", value=None, outcome="truncated") for r in matched[:2]]
    found = corrected_rate(judged + gone, matched + cut, TABLE, APPLIED)
    assert found == replace(expected, failed=3, truncated=2)
    nothing = corrected_rate(gone, [], TABLE, APPLIED)
    assert (nothing.value, nothing.apparent, nothing.interval, nothing.failed) == (
        None, None, "n/a: no item has a value", 3,
    )  # fmt: skip
    assert corrected_rate([], [], TABLE, APPLIED).interval == "n/a: no items"


def test_ratings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"only rates in \[0, 1\]"):
        corrected_rate([], [], TABLE, RATING)
