from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from persona_lab.metrics.intervals import Interval, cluster_bootstrap, jackknife, wilson
from persona_lab.metrics.operating import (
    Curve,
    Graded,
    Point,
    operating_curve,
    resampled_interval,
    thinned,
)

NONE = Interval(None, None, "n/a: no variance")


def error(scenario: object, recognised: float, flagged: float) -> Graded:
    return Graded(str(scenario), f"{scenario} error", True, recognised, flagged)


def right(scenario: object, flagged: float) -> Graded:
    return Graded(str(scenario), f"{scenario} right", False, 0.0, flagged)


def pairs(number: int, seed: int, samples: int = 5) -> list[Graded]:
    """An error and a Right response a scenario, weights as shares of repeated samples."""
    rng = np.random.default_rng(seed)
    made = []
    for scenario in range(number):
        flagged = rng.integers(0, samples + 1, 2)
        recognised = int(rng.integers(0, flagged[0] + 1))
        made.append(error(scenario, recognised / samples, flagged[0] / samples))
        made.append(right(scenario, flagged[1] / samples))
    return made


def rows(curve: Curve) -> list[tuple[float, float, float]]:
    return [(point.threshold, point.err, point.far) for point in curve.points]


@st.composite
def responses(draw: st.DrawFn) -> list[Graded]:
    weight = st.one_of(st.integers(0, 4).map(lambda k: k / 4), st.floats(0, 1))
    errors = draw(st.lists(st.tuples(weight, weight), min_size=1, max_size=12))
    rights = draw(st.lists(weight, min_size=1, max_size=12))
    return [error(i, min(pair), max(pair)) for i, pair in enumerate(errors)] + [
        right(i, flagged) for i, flagged in enumerate(rights)
    ]


def test_a_curve_by_hand() -> None:
    # Errors: 1 named at 1; 2 named at 0.6; 3 flagged at 0.6 with 0.2 for its direction, so never
    # recognised; 4 named at 0.2. Rights at 0, 0.2, 0.6, 0. ERR and FAR in quarters:
    # from 1: 1, 0; from 0.6: 2, 1; from 0.2: 3, 2; from 0: 3, 4.
    # Area: 1/4 * (1 + 2)/8 + 1/4 * (2 + 3)/8 + 2/4 * 3/4 = 3/32 + 5/32 + 12/32 = 20/32.
    curve = operating_curve(
        [
            error(1, 1.0, 1.0), error(2, 0.6, 0.6), error(3, 0.2, 0.6), error(4, 0.2, 0.2),
            right(1, 0.0), right(2, 0.2), right(3, 0.6), right(4, 0.0),
        ]
    )  # fmt: skip
    assert rows(curve) == [
        (2.0, 0.0, 0.0), (1.0, 0.25, 0.0), (0.6, 0.5, 0.25), (0.2, 0.75, 0.5), (0.0, 0.75, 1.0),
    ]  # fmt: skip
    assert curve.area == pytest.approx(20 / 32, abs=1e-15)
    assert (curve.errors, curve.rights, curve.clusters) == (4, 4, 4)
    assert (curve.low, curve.high, curve.interval) == (None, None, "n/a: 4 scenarios")


@pytest.mark.parametrize(
    ("recognised", "flagged", "err"),
    [(0.4, 0.8, 0.0), (1 / 3, 2 / 3, 0.0), (0.5, 0.8, 1.0), (0.3, 0.8, 0.0), (0.0, 0.0, 0.0)],
)
def test_the_right_direction_must_be_the_heavier_one(
    recognised: float, flagged: float, err: float
) -> None:
    curve = operating_curve([error(1, recognised, flagged), right(1, 0.0)])
    assert max(point.err for point in curve.points) == err


def test_a_perfect_evaluator_has_area_1_and_one_that_flags_nothing_0() -> None:
    perfect = operating_curve([r for i in range(12) for r in (error(i, 1, 1), right(i, 0))])
    assert rows(perfect) == [(2.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, 1.0)]
    assert perfect.area == 1
    assert (perfect.low, perfect.high) == wilson(1, 12)
    assert perfect.interval == "Wilson, n = clusters"
    silent = operating_curve([r for i in range(12) for r in (error(i, 0, 0), right(i, 0))])
    assert rows(silent) == [(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]
    assert silent.area == 0


def test_constant_over_on_the_papers_composition() -> None:
    # 130 under, 151 over, 122 misapplied (Table 7): 273 of 403 recognised, every Right flagged.
    # The area is below one straight line: half of 273/403.
    named = [0.0] * 130 + [1.0] * 151 + [1.0] * 122
    curve = operating_curve([r for i, w in enumerate(named) for r in (error(i, w, 1), right(i, 1))])
    assert rows(curve) == [(2.0, 0.0, 0.0), (1.0, 273 / 403, 1.0)]
    assert curve.area == pytest.approx(273 / 806, abs=1e-15)
    assert curve.interval == "cluster bootstrap"


def test_errors_that_are_never_flagged_are_no_errors_recognised_by_flagging_everything() -> None:
    # One error of two is flagged, ahead of every Right: horizontal at 1/2, not up to (1, 1).
    curve = operating_curve([error(1, 1, 1), error(2, 0, 0), right(1, 0), right(2, 0)])
    assert rows(curve)[-1] == (0.0, 0.5, 1.0)
    assert curve.area == 0.5


@given(responses())
def test_points_rise_within_bounds_and_the_area_is_theirs(graded: list[Graded]) -> None:
    curve = operating_curve(graded)
    thresholds, errs, fars = (np.array(column) for column in zip(*rows(curve), strict=True))
    assert (np.diff(thresholds) < 0).all()
    assert (np.diff(errs) >= 0).all()
    assert (np.diff(fars) >= 0).all()
    assert (errs[0], fars[0], fars[-1]) == (0, 0, 1)
    assert errs[-1] <= 1
    # Independent tool: scipy.integrate.trapezoid.
    assert curve.area == pytest.approx(integrate.trapezoid(errs, fars), abs=1e-12)
    for point in curve.points:
        flagged = [r for r in graded if r.flagged >= point.threshold]
        hits = sum(r.error and r.recognised > r.flagged - r.recognised for r in flagged)
        assert point.err == pytest.approx(hits / curve.errors, abs=1e-12)
        assert point.far == pytest.approx(sum(not r.error for r in flagged) / curve.rights)


@given(st.lists(st.integers(1, 4), min_size=1), st.lists(st.integers(0, 4), min_size=1))
def test_where_all_directions_are_right_the_area_is_mann_whitneys(
    errors: list[int], rights: list[int]
) -> None:
    # Independent tool: scipy.stats.mannwhitneyu, whose U counts ties half.
    curve = operating_curve(
        [error(i, k / 4, k / 4) for i, k in enumerate(errors)]
        + [right(i, k / 4) for i, k in enumerate(rights)]
    )
    found = stats.mannwhitneyu(errors, rights, method="asymptotic").statistic
    assert curve.area == pytest.approx(found / len(errors) / len(rights))


@given(responses())
def test_the_order_of_rows_does_not_matter(graded: list[Graded]) -> None:
    assert operating_curve(graded[::-1]) == operating_curve(graded)


def test_the_jackknife_by_hand() -> None:
    # Rights are never flagged, so the area is ERR: 1 1 1 1 0 over 5 scenarios, one each. Their
    # variance is 0.2, SE sqrt(0.2 / 5) = 0.2; t(0.975, 4) = 2.776445 (table); reach 0.555289.
    graded = [r for i in range(5) for r in (error(i, float(i > 0), float(i > 0)), right(i, 0))]
    curve = operating_curve(graded)
    assert curve.area == pytest.approx(0.8)
    assert curve.interval == "cluster jackknife"
    assert (curve.low, curve.high) == pytest.approx((0.244711, 1.0), abs=1e-6)


@given(st.integers(5, 12), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_jackknife_written_out(number: int, seed: int) -> None:
    graded = pairs(number, seed) + [right(f"{i}", 0.4 * i) for i in range(2)]
    graded = [Graded(r.cluster, str(i), r.error, r.recognised, r.flagged)
              for i, r in enumerate(graded)]  # fmt: skip
    curve = operating_curve(graded)
    without = [
        operating_curve([r for r in graded if r.cluster != str(i)]).area for i in range(number)
    ]
    assert curve.area is not None
    squares = sum((a - curve.area) ** 2 for a in without if a is not None)
    reach = stats.t.ppf(0.975, number - 1) * ((number - 1) / number * squares) ** 0.5
    if reach > 1e-6:
        ends = max(0, curve.area - reach), min(1, curve.area + reach)
        assert (curve.low, curve.high) == pytest.approx(ends)


def test_the_bootstrap_draws_scenarios_as_that_of_means_does() -> None:
    # Rights are never flagged, so the area is a mean over scenarios, labelled in sorted order.
    hits = [float(i % 3 > 0) for i in range(40)]
    graded = [r for i, h in enumerate(hits) for r in (error(f"{i:02}", h, h), right(f"{i:02}", 0))]
    curve = operating_curve(graded, seed=3)
    ends = cluster_bootstrap(np.array(hits), np.ones(40), 3)
    assert (curve.low, curve.high) == pytest.approx(ends, abs=1e-12)


def test_the_bootstrap_is_seeded() -> None:
    graded = pairs(35, seed=1)
    assert operating_curve(graded, seed=3) == operating_curve(graded, seed=3)
    assert operating_curve(graded, seed=3) != operating_curve(graded, seed=4)


@given(st.integers(1, 34), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_rule_by_number_of_scenarios(number: int, seed: int) -> None:
    curve = operating_curve(pairs(number, seed))
    assert curve.area is not None
    if number < 5:
        assert (curve.low, curve.high) == (None, None)
        assert curve.interval == f"n/a: {number} scenario{'s' if number > 1 else ''}"
        return
    usual = "cluster bootstrap" if number >= 30 else "cluster jackknife"
    assert curve.interval in (usual, "Wilson, n = clusters")
    assert curve.low is not None
    assert curve.high is not None
    assert 0 <= curve.low <= curve.area <= curve.high <= 1


def test_the_rarer_kind_of_response_decides() -> None:
    graded = [error(i, 0.5, 0.5) for i in range(40)] + [right(i, i / 10) for i in range(3)]
    assert operating_curve(graded).interval == "n/a: 3 scenarios with a right response"
    graded += [right(i, i / 10) for i in range(3, 9)]
    assert operating_curve(graded).interval == "cluster jackknife"


def test_resampled_equal_clusters_are_the_jackknife_of_a_ratio() -> None:
    sums, counts = np.array([0.0, 1, 2, 2, 1, 0, 2]), np.full(7, 2.0)
    found = resampled_interval(lambda w: (sums @ w) / (counts @ w), 7, 7, NONE, 0)
    assert (found.low, found.high) == pytest.approx(jackknife(sums, counts))


@pytest.mark.parametrize(
    ("graded", "why"),
    [
        ([], "n/a: no responses"),
        ([right(1, 0.5)], "n/a: no error responses"),
        ([error(1, 0.5, 0.5)], "n/a: no right responses"),
    ],
)
def test_without_one_kind_there_is_no_curve(graded: list[Graded], why: str) -> None:
    curve = operating_curve(graded)
    assert (curve.points, curve.area, curve.low, curve.high) == ((), None, None, None)
    assert curve.interval == why
    assert thinned(curve) == []


@pytest.mark.parametrize(
    ("recognised", "flagged"), [(0.6, 0.5), (-0.1, 0.5), (0.5, 1.5), (float("nan"), 0.5)]
)
def test_weights_out_of_range_are_refused(recognised: float, flagged: float) -> None:
    with pytest.raises(ValueError, match="0 <= recognised <= flagged <= 1"):
        error("s1", recognised, flagged)


def test_a_right_responses_flag_is_checked_and_its_direction_is_not() -> None:
    with pytest.raises(ValueError, match="'s1 right' of 's1'"):
        right("s1", -0.1)
    assert Graded("s1", "q", False, recognised=1.0, flagged=0.5).flagged == 0.5


def test_a_response_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="3 rows for 2 responses"):
        operating_curve([error(1, 1, 1), right(1, 0), right(1, 1)])


def made(fars: list[float]) -> Curve:
    points = tuple(Point(-i, i / 100, far) for i, far in enumerate(fars))
    return Curve(points, 0.5, None, None, "", 1, 1, 1)


def test_thinned_points_spread_by_far() -> None:
    # 101 points at FAR 0, 0.01, ... 1: of eleven, every tenth. A short curve stays whole.
    curve = made([i / 100 for i in range(101)])
    assert [p.far for p in thinned(curve)] == [i / 10 for i in range(11)]
    assert [p.far for p in thinned(curve, 3)] == [0, 0.5, 1]
    assert thinned(made([0, 0.5, 1])) == list(made([0, 0.5, 1]).points)


def test_thinned_keeps_the_highest_err_of_equal_fars() -> None:
    # 20 points at FAR 0, then 1: the first, the last of FAR 0, the last.
    assert [p.err for p in thinned(made([0.0] * 20 + [1.0]))] == [0, 0.19, 0.2]


@given(st.lists(st.floats(0, 1), min_size=1), st.integers(2, 15))
def test_thinned_keeps_both_ends_and_at_most_n(fars: list[float], n: int) -> None:
    curve = made(sorted(fars))
    kept = thinned(curve, n)
    assert len(kept) <= n
    assert (kept[0], kept[-1]) == (curve.points[0], curve.points[-1])
    assert kept == [point for point in curve.points if point in kept]


def test_thinned_needs_two_points() -> None:
    with pytest.raises(ValueError, match="n=1 is too few"):
        thinned(made([0.0, 1.0]), 1)
