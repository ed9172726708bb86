from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from persona_lab.core.scores import Score
from persona_lab.metrics.contrasts import Term, contrast, paired
from persona_lab.metrics.estimate import RATING, estimates
from persona_lab.metrics.intervals import mover, wilson
from tests.metrics.crossed import (
    APPLIED,
    FREE,
    MISAPPLIED,
    both,
    context,
    crossed_rows,
    left_out_variance,
    user,
)


def random_rates(users: int, contexts: int, seed: int, metric: str = "rate") -> list[Score]:
    """0/1 rows with a level of each user."""
    rng = np.random.default_rng(seed)
    level = rng.random((users, 1))
    return crossed_rows((rng.random((users, contexts)) < level).astype(float), metric)


def difference(rows: Sequence[Score]) -> float:
    """Mean of `aar` less mean of `mr`."""
    aar, mr = ([r.value for r in rows if r.metric == name] for name in ("aar", "mr"))
    return float(np.mean(aar) - np.mean(mr))


def gap(aar: list[Score], mr: list[Score]) -> list[Term]:
    return [Term(1, aar, APPLIED), Term(-1, mr, MISAPPLIED)]


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        # Newcombe (1998), comparison of eleven methods, Table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0000),
    ],
)
def test_mover_is_newcombes_method_10(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    rates = [k / n for k, n in (first, second)]
    found = mover([1, -1], rates, [first[1], second[1]])
    assert found == pytest.approx((low, high), abs=5e-5)
    assert mover([1], rates[:1], [first[1]]) == pytest.approx(wilson(rates[0], first[1]))


def test_a_gap_of_equal_users_is_the_t_interval_of_their_gaps() -> None:
    # Users of one size in each term: the jackknife of the difference is that of the users' own
    # gaps, whose variance is s^2 / K; so the interval is scipy's one-sample t interval.
    aar, mr = random_rates(10, 6, 1, "aar"), random_rates(10, 9, 2, "mr")
    ones, twos = (np.array([r.value for r in rows]).reshape(10, -1) for rows in (aar, mr))
    gaps = ones.mean(axis=1) - twos.mean(axis=1)
    expected = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    found = contrast("gap", gap(aar, mr), basis="all", unit="user", facets={"model": "m"})
    assert found.value == pytest.approx(gaps.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.metric, found.interval, found.facets) == (
        "gap", "cluster jackknife", {"model": "m"},
    )  # fmt: skip
    assert (found.n, found.clusters) == (10 * 6 + 10 * 9, 10)


def test_thirty_users_get_a_bootstrap_that_draws_the_same_users_for_both_terms() -> None:
    # scipy.stats.bootstrap (percentile) over the users' gaps, another stream.
    aar = random_rates(40, 8, 1, "aar")
    mr = [replace(r, question=f"mr/{r.question}", metric="mr") for r in aar[:160]]
    mr += random_rates(40, 8, 2, "mr")[160:]
    ones, twos = (np.array([r.value for r in rows]).reshape(40, -1) for rows in (aar, mr))
    gaps = ones.mean(axis=1) - twos.mean(axis=1)
    expected = stats.bootstrap(
        (gaps,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(7)
    ).confidence_interval
    found = contrast("gap", gap(aar, mr), basis="all")
    assert found.interval == "cluster bootstrap"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.01)
    assert contrast("gap", gap(aar, mr), basis="all") == found
    assert contrast("gap", gap(aar, mr), basis="all", seed=1).low != found.low


def test_an_interaction_by_hand() -> None:
    # Users' rates without and with the defence, in two modes: 5 users, one item each.
    # Interaction (a - b) - (c - d) of a user: 1-0-1+1 = 1, 0, 1, -1, 0: mean 0.2, deviations
    # 0.8 -0.2 0.8 -1.2 -0.2: squares 2.8, s^2 = 0.7, SE = sqrt(0.14) = 0.374166;
    # t(0.975, 4) = 2.776445 (table); reach 1.038850.
    cells = np.array([[1, 1, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 1, 1, 1], [1, 0, 1, 1, 1]], float)
    terms = [
        Term(weight, crossed_rows(cell[:, None]), APPLIED)
        for weight, cell in zip((1, -1, -1, 1), cells, strict=True)
    ]
    found = contrast("interaction", terms, basis="all")
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.2 - 1.038850, 0.2 + 1.038850), abs=1e-5)
    assert (found.n, found.clusters) == (5, 5), "an item in four conditions is one"


@given(st.integers(5, 9), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_gaps_of_unequal_users_by_leaving_each_out(users: int, contexts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    aar, mr = random_rates(users, contexts, seed, "aar"), random_rates(users, 3, seed + 1, "mr")
    rows = [r for r in aar + mr if r.question.startswith("c0/") or rng.random() < 0.7]
    aar, mr = ([r for r in rows if r.metric == name] for name in ("aar", "mr"))
    found = contrast("gap", gap(aar, mr), basis="all")
    spread = left_out_variance(rows, user, difference) ** 0.5
    assert found.value == pytest.approx(difference(rows))
    assert found.low is not None
    assert found.high is not None
    if spread > 1e-9:
        reach = stats.t.ppf(0.975, users - 1) * spread
        assert found.low == pytest.approx(max(-1, difference(rows) - reach))
        assert found.high == pytest.approx(min(1, difference(rows) + reach))


@given(st.integers(5, 7), st.integers(5, 7), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_two_ways_of_a_gap_written_out(users: int, contexts: int, seed: int) -> None:
    aar, mr = random_rates(users, contexts, seed, "aar"), random_rates(users, contexts, 999, "mr")
    found = contrast("gap", gap(aar, mr), basis="all", crossed="context")
    v1, v2, v12 = (left_out_variance(aar + mr, by, difference) for by in (user, context, both))
    reach = stats.t.ppf(0.975, min(users, contexts) - 1) * max(v1 + v2 - v12, v1, v2) ** 0.5
    value = difference(aar + mr)
    assert found.two_way == pytest.approx((max(-1, value - reach), min(1, value + reach)))
    assert found.low is not None
    assert found.high is not None
    assert found.two_way[0] <= found.low
    assert found.two_way[1] >= found.high


@given(st.integers(1, 32), st.integers(1, 6), st.integers(0, 9), st.sampled_from(["all", "scored"]))
@settings(max_examples=40, deadline=None)
def test_one_term_of_weight_1_is_the_estimate(
    users: int, contexts: int, seed: int, basis: str
) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        r if rng.random() < 0.8 else replace(r, value=None, outcome="unparsed")
        for r in random_rates(users, contexts, seed) * 2
    ]
    expected = estimates(rows, {"rate": APPLIED}, [], unit="user", crossed="context")
    found = contrast(
        "rate", [Term(1, rows, APPLIED)], basis="all" if basis == "all" else "scored",
        unit="user", crossed="context",
    )  # fmt: skip
    assert found in expected


@given(st.sampled_from([5, 9, 31]), st.integers(1, 5), st.integers(0, 20))
@settings(max_examples=25, deadline=None)
def test_turning_the_signs_mirrors_the_interval(users: int, contexts: int, seed: int) -> None:
    aar, mr = random_rates(users, contexts, seed, "aar"), random_rates(users, 2, seed + 1, "mr")
    found = contrast("gap", gap(aar, mr), basis="all", crossed="context")
    turned = contrast(
        "gap", [replace(t, weight=-t.weight) for t in gap(aar, mr)], basis="all", crossed="context"
    )
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (-found.value, -found.high, -found.low)
    )
    if found.two_way is None:
        assert turned.two_way is None
    else:
        assert turned.two_way == pytest.approx((-found.two_way[1], -found.two_way[0]))


def test_conditions_that_do_not_differ_by_user_get_newcombes_interval() -> None:
    # Every user 1 and 0: the users' gaps do not vary. 10/10 less 0/10 by Newcombe's Table II,
    # method 10: 0.6075 to 1.
    found = contrast(
        "gap", gap(crossed_rows(np.ones((10, 6)), "aar"), crossed_rows(np.zeros((10, 6)), "mr")),
        basis="all", crossed="context",
    )  # fmt: skip
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 0.6075, 1.0), abs=5e-5)
    assert found.interval == "MOVER of Wilson's, n = clusters"
    assert found.two_way == pytest.approx(mover([1, -1], [1, 0], [6, 6]))
    # The same answers in both conditions: rates vary, their difference does not.
    rows = random_rates(10, 3, 1)
    same = contrast("change", [Term(1, rows, APPLIED), Term(-1, rows, APPLIED)], basis="all")
    rate = float(np.mean([r.value for r in rows]))
    assert (same.value, same.low, same.high) == pytest.approx(
        (0.0, *mover([1, -1], [rate, rate], [10, 10]))
    )


def test_ratings_that_do_not_vary_have_no_interval() -> None:
    rows = crossed_rows(np.full((6, 6), 4.0))
    found = contrast(
        "change", [Term(1, rows, RATING), Term(-1, rows, RATING)],
        basis="scored", unit="user", crossed="context",
    )  # fmt: skip
    assert (found.value, found.low, found.high, found.two_way) == (0.0, None, None, None)
    assert found.interval == "n/a: no variance between users"


def test_few_clusters_leave_no_interval() -> None:
    aar, mr = random_rates(4, 3, 1, "aar"), random_rates(4, 3, 2, "mr")
    found = contrast("gap", gap(aar, mr), basis="all", unit="user")
    assert (found.low, found.high, found.interval) == (None, None, "n/a: 4 users")
    # Leaving out the one user of the second term would empty it.
    found = contrast(
        "gap", gap(random_rates(9, 3, 1, "aar"), mr[:3]), basis="all", unit="user",
        crossed="context",
    )  # fmt: skip
    assert (found.low, found.interval, found.clusters) == (None, "n/a: 1 user in a term", 9)
    assert found.two_way is None


def test_a_term_without_a_value_leaves_none() -> None:
    rows = random_rates(6, 2, 1, "aar")
    gone = [replace(r, value=None, outcome="failed") for r in random_rates(6, 2, 2, "mr")]
    found = contrast("gap", gap(rows, gone), basis="scored", crossed="context")
    assert (found.value, found.low, found.two_way) == (None, None, None)
    assert found.interval == "n/a: no item has a value in term 2"
    assert (found.n, found.failed) == (12, 12)
    assert contrast("gap", gap([], rows), basis="all").interval == "n/a: no items in term 1"
    assert contrast("one", [Term(1, [], FREE)], basis="scored").interval == "n/a: no items"


def test_rows_without_a_value_count_as_each_terms_worse_outcome() -> None:
    # AAR 1 of (1, none -> 0), MR 1 of (0, none -> 1): 0.5 - 0.5 over all, 1 - 0 over scored.
    aar, mr = crossed_rows(np.array([[1.0, 0.0]]), "aar"), crossed_rows(np.zeros((1, 2)), "mr")
    aar[1] = replace(aar[1], value=None, outcome="truncated")
    mr[1] = replace(mr[1], value=None, outcome="unparsed")
    over_all = contrast("gap", gap(aar, mr), basis="all")
    scored = contrast("gap", gap(aar, mr), basis="scored")
    assert (over_all.value, over_all.n) == (0.0, 4)
    assert (scored.value, scored.n) == (1.0, 2)
    assert (scored.truncated, scored.unparsed, scored.failed) == (1, 1, 0)


def test_pairing_keeps_the_items_that_both_have() -> None:
    rows = crossed_rows(np.array([[1.0, 0.0, 1.0]]))
    gone = replace(rows[1], value=None, outcome="failed")
    first, second = paired(rows[:2] + rows[:1], [rows[0], gone, rows[2]])
    assert (first, second) == (rows[:2] + rows[:1], [rows[0], gone])
    first, second = paired(rows[:2], [rows[0], gone], basis="scored")
    assert (first, second) == ([rows[0]], [rows[0]])
    # A repeat with a value keeps the item, and the other repeat its count.
    first, second = paired(rows[:2], [gone, rows[1]], basis="scored")
    assert (first, second) == ([rows[1]], [gone, rows[1]])
    assert paired(rows, rows[:2], rows[1:]) == [[rows[1]]] * 3
    assert paired() == []


def test_wrong_contrasts_are_refused() -> None:
    with pytest.raises(ValueError, match="gap: needs a term"):
        contrast("gap", [], basis="all")
    with pytest.raises(ValueError, match="metrics with a worse outcome"):
        contrast("change", [Term(1, [], RATING)], basis="all")
