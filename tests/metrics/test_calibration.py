from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from persona_lab.metrics.calibration import (
    Stated,
    brier,
    expected_calibration_error,
    reliability,
)
from persona_lab.metrics.intervals import interval


def stated(*given: tuple[float, bool], cluster: str = "") -> list[Stated]:
    """Each statement in a scenario of its own, or all in one."""
    return [Stated(cluster or str(i), str(i), *each) for i, each in enumerate(given)]


def drawn(number: int, each: int, seed: int) -> list[Stated]:
    rng = np.random.default_rng(seed)
    return [
        Stated(f"{scenario:02}", str(i), float(rng.integers(0, 21) / 20), bool(rng.integers(0, 2)))
        for scenario in range(number)
        for i in range(each)
    ]


statements = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30)


def ece(given: list[Stated], bins: int = 10) -> float:
    value = expected_calibration_error(given, bins).value
    assert value is not None
    return value


def test_brier_by_hand() -> None:
    # 0.1^2 + 0.6^2 + 0.5^2 = 0.01 + 0.36 + 0.25 = 0.62, over 3.
    found = brier(stated((0.9, True), (0.6, False), (0.5, True)))
    assert found.value == pytest.approx(0.62 / 3, abs=1e-15)
    assert (found.metric, found.basis, found.n, found.clusters) == ("brier", "scored", 3, 3)
    assert (found.low, found.high, found.interval) == (None, None, "n/a: 3 scenarios")


def test_calibrated_statements_have_no_ece() -> None:
    # 3 of 4 right at 0.75, 1 of 2 at 0.5.
    given = stated(*[(0.75, i > 0) for i in range(4)], *[(0.5, i > 0) for i in range(2)])
    assert ece(given) == 0


def test_ece_by_hand() -> None:
    # [0.9, 1]: 0.95 right, 0.9 wrong: |0.925 - 0.5| = 0.425 for 2 of 4.
    # [0.3, 0.4): 0.3 wrong, 0.35 right: |0.325 - 0.5| = 0.175 for 2 of 4. In all 0.3.
    # In one bin: |2.5 / 4 - 2 / 4| = 0.125.
    given = stated((0.95, True), (0.9, False), (0.3, False), (0.35, True))
    assert ece(given) == pytest.approx(0.3)
    assert ece(given, bins=1) == pytest.approx(0.125)
    assert ece(stated((1.0, True), (1.0, False))) == 0.5


def test_reliability_by_hand() -> None:
    given = stated((1.0, True), (0.95, True), (0.9, False), (0.3, False), (0.35, True))
    low, high = reliability(given)
    assert (low.low, low.high, low.n) == (0.3, 0.4, 2)
    assert (low.confidence, low.right) == pytest.approx((0.325, 0.5))
    assert (high.low, high.high, high.n) == (0.9, 1.0, 3)
    assert (high.confidence, high.right) == pytest.approx((0.95, 2 / 3))


@pytest.mark.parametrize("bins", [1, 3, 10, 20, 100])
def test_a_bin_begins_with_its_low_end_and_the_last_holds_1(bins: int) -> None:
    # The quotients k / bins are the decimals as written: 0.3, 0.58, 0.07.
    given = stated(*[(k / bins, True) for k in range(bins)], (1.0, True))
    found = reliability(given, bins)
    assert [row.low for row in found] == [k / bins for k in range(bins)]
    assert [row.n for row in found] == [1] * (bins - 1) + [2]


@given(statements, st.integers(1, 20))
def test_bounds(given: list[tuple[float, bool]], bins: int) -> None:
    # The bins' gaps cancel in one bin. By Jensen a bin's squared gap is at most its Brier score.
    found, score = ece(stated(*given), bins), brier(stated(*given)).value
    assert score is not None
    assert 0 <= score <= 1
    assert ece(stated(*given), 1) - 1e-12 <= found <= score**0.5 + 1e-9


@given(statements, st.integers(1, 20))
def test_ece_is_the_mean_of_the_reliability_rows_gaps(
    given: list[tuple[float, bool]], bins: int
) -> None:
    found = reliability(stated(*given), bins)
    assert sum(row.n for row in found) == len(given)
    assert all(row.low <= row.confidence <= row.high + 1e-12 for row in found)
    gaps = sum(row.n * abs(row.confidence - row.right) for row in found)
    assert ece(stated(*given), bins) == pytest.approx(gaps / len(given), abs=1e-12)


def test_repeats_are_statements_of_their_own_in_one_cluster() -> None:
    # One question three times, 1.0 wrong once: Brier and ECE are 1/3, not halves of two items.
    given = [Stated("s", "q", 1.0, i > 0) for i in range(3)]
    assert brier(given).value == pytest.approx(1 / 3)
    assert ece(given) == pytest.approx(1 / 3)
    assert (brier(given).n, brier(given).clusters) == (3, 1)
    assert expected_calibration_error(given).interval == "n/a: 1 scenario"


def test_briers_interval_is_that_of_a_mean() -> None:
    for number, method in ((12, "cluster jackknife"), (35, "cluster bootstrap")):
        given = drawn(number, 3, seed=1)
        squares = np.array([(s.confidence - s.right) ** 2 for s in given])
        expected = interval(squares, np.array([s.cluster for s in given]), 0, 1, rate=False)
        found = brier(given)
        assert (found.low, found.high, found.interval) == (expected.low, expected.high, method)


@given(st.integers(5, 12), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_jackknife_of_the_ece_written_out(number: int, each: int, seed: int) -> None:
    given = drawn(number, each, seed)
    value = ece(given)
    without = [ece([s for s in given if s.cluster != f"{i:02}"]) for i in range(number)]
    squares = sum((e - value) ** 2 for e in without)
    reach = stats.t.ppf(0.975, number - 1) * ((number - 1) / number * squares) ** 0.5
    found = expected_calibration_error(given)
    assert (found.low, found.high) == pytest.approx((max(0, value - reach), min(1, value + reach)))
    assert found.interval == "cluster jackknife"


@pytest.mark.parametrize(
    ("number", "method"), [(20, "cluster jackknife"), (40, "cluster bootstrap")]
)
def test_an_interval_holds_an_ece_that_all_resamples_exceed(number: int, method: str) -> None:
    # Half are right at 0.5: the ECE is 0, and leaving any scenario out gives 0.5 / (number - 1),
    # all alike, so that their variance around their own mean would be none.
    found = expected_calibration_error(stated(*[(0.5, i % 2 > 0) for i in range(number)]))
    assert (found.value, found.low, found.interval) == (0, 0, method)
    assert found.high is not None
    # The standard error of a share of halves is 0.5 / sqrt(number): the end is about two of it.
    assert found.high == pytest.approx(2 * 0.5 / number**0.5, rel=0.15)


@given(st.integers(30, 34), st.integers(0, 9))
@settings(max_examples=10, deadline=None)
def test_the_bootstrap_is_in_range_around_the_value_and_seeded(number: int, seed: int) -> None:
    given = drawn(number, 2, seed)
    found = expected_calibration_error(given, seed=seed)
    assert found.interval == "cluster bootstrap"
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert expected_calibration_error(given, seed=seed) == found


def test_no_variance_between_scenarios_is_no_interval() -> None:
    given = stated(*[(1.0, True)] * 6)
    for found in (brier(given, unit="user"), expected_calibration_error(given, unit="user")):
        assert (found.value, found.low, found.high) == (0, None, None)
        assert found.interval == "n/a: no variance between users"


def test_nothing_stated_is_null_with_a_reason() -> None:
    for found in (brier([]), expected_calibration_error([])):
        assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)
        assert found.interval == "n/a: no statements"
    assert reliability([]) == []


@pytest.mark.parametrize("confidence", [-0.1, 1.01, 85, float("nan")])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"'q' of 's'.*divide a percentage by 100"):
        Stated("s", "q", confidence, True)


def test_bins_are_needed() -> None:
    for made in (expected_calibration_error, reliability):
        with pytest.raises(ValueError, match="at least 1"):
            made([], 0)
