from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.metrics.agreement import cohen_kappa
from persona_lab.metrics.annotators import fleiss_kappa, pairwise_agreement


def test_fleiss_by_hand() -> None:
    # Three raters: aaa, aab, bbb, abb. Pairs that agree: 3, 1, 3, 1 of 3 each: 8/12. a and b are
    # used 6 times of 12 each: by chance 0.5; kappa = (2/3 - 1/2) / (1/2) = 1/3.
    found = fleiss_kappa(["aaa", "aab", "bbb", "abb"])
    assert (found.value, found.agreement) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (found.n, found.raters, found.reason) == (4, 3, "")


def test_kappa_of_fleiss_that_does_not_exist() -> None:
    found = fleiss_kappa([[1, 1, 1], [1, 1, 1]])
    assert (found.value, found.agreement, found.reason) == (None, 1.0, "all raters use only 1")
    assert (fleiss_kappa([]).value, fleiss_kappa([]).reason) == (None, "no items")
    assert (fleiss_kappa([[1]]).agreement, fleiss_kappa([[1]]).reason) == (None, "1 rater, of 2")
    with pytest.raises(ValueError, match="row 1 has 2 ratings, row 0 has 3"):
        fleiss_kappa([[1, 1, 1], [1, 1]])


@given(
    st.integers(2, 5).flatmap(
        lambda raters: st.lists(
            st.lists(st.integers(0, 2), min_size=raters, max_size=raters), min_size=1, max_size=20
        )
    )
)
def test_fleiss_written_out_with_numpy(ratings: list[list[int]]) -> None:
    # Fleiss (1971), equations 2 to 7, over the table of counts [items, classes].
    counts = np.array([[row.count(c) for c in range(3)] for row in ratings])
    n, raters = len(ratings), len(ratings[0])
    by_item = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    chance = ((counts.sum(axis=0) / (n * raters)) ** 2).sum()
    found = fleiss_kappa(ratings)
    assert found.agreement == pytest.approx(by_item.mean())
    if (counts.sum(axis=0) > 0).sum() == 1:
        assert found.value is None
    else:
        assert found.value == pytest.approx((by_item.mean() - chance) / (1 - chance))


def test_pairs_of_raters_by_hand() -> None:
    # ann and ben share 1 2 3: agree on 2 of 3; yes 2 and 1 of 3: chance 2/9 + 2/9 = 4/9;
    # kappa = (6/9 - 4/9) / (5/9) = 0.4. Each rated one item that the other did not.
    by_rater = {
        "ann": {1: "yes", 2: "yes", 3: "no", 4: "no"},
        "ben": {3: "no", 2: "no", 1: "yes", 5: "yes"},
        "judge": {9: "yes"},
    }
    first, second, third = pairwise_agreement(by_rater)
    assert (first.first, first.second, first.unshared) == ("ann", "ben", 2)
    assert (first.kappa.value, first.kappa.agreement, first.kappa.n) == (
        pytest.approx(0.4), 2 / 3, 3,
    )  # fmt: skip
    assert first.kappa == cohen_kappa(["yes", "yes", "no"], ["yes", "no", "no"])
    assert (second.first, second.second) == ("ann", "judge")
    assert (second.kappa.value, second.kappa.reason, second.unshared) == (None, "no pairs", 5)
    assert (third.first, third.second) == ("ben", "judge")
    assert pairwise_agreement({"ann": {1: "yes"}}) == []
