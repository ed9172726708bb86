"""Do annotators agree? BenchPreS's gold labels need three unanimous ones (Appendix A.2), and its
judge is compared with another and with a human pair by pair (Table 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from persona_lab.metrics.agreement import Kappa, cohen_kappa

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class FleissKappa:
    """Fleiss' kappa, or None and why.

    Attributes:
        agreement: share of the pairs of raters of one item that agree, mean over the items.
        n, raters: items, and raters of each.
    """

    value: float | None
    agreement: float | None
    n: int
    raters: int
    reason: str = ""


@dataclass(frozen=True)
class PairAgreement:
    """Two raters on the items that both rated.

    Attributes:
        kappa: Cohen's, with the share of agreement beside it and the number of shared items.
        unshared: items that only one of them rated.
    """

    first: str
    second: str
    kappa: Kappa
    unshared: int


def fleiss_kappa(ratings: Sequence[Sequence[Hashable]]) -> FleissKappa:
    """Agreement of any number of raters beyond chance (Fleiss 1971).

    Args:
        ratings: a row an item, with a class by each rater; who gave it does not matter.

    Raises:
        ValueError: rows of different lengths.
    """
    raters = len(ratings[0]) if ratings else 0
    if ragged := [row for row, given in enumerate(ratings) if len(given) != raters]:
        raise ValueError(
            f"row {ragged[0]} has {len(ratings[ragged[0]])} ratings, row 0 has {raters}; "
            "leave out items that not all raters rated"
        )
    n = len(ratings)
    if n == 0 or raters < 2:
        why = f"{raters} rater{'s' if raters != 1 else ''}, of 2" if n else "no items"
        return FleissKappa(None, None, n, raters, why)
    pairs = sum(count * (count - 1) for given in ratings for count in Counter(given).values())
    agreement = pairs / (n * raters * (raters - 1))
    used = Counter(rating for given in ratings for rating in given)
    if len(used) == 1:
        return FleissKappa(None, agreement, n, raters, f"all raters use only {ratings[0][0]!r}")
    chance = sum(count * count for count in used.values()) / (n * raters) ** 2
    return FleissKappa((agreement - chance) / (1 - chance), agreement, n, raters)


def pairwise_agreement(
    by_rater: Mapping[str, Mapping[Item, Hashable]],
) -> list[PairAgreement]:
    """Every pair of raters on the items that both rated (Table 4).

    Args:
        by_rater: what each rater gave each item; an item without a rating is not in it.
    """
    made = []
    for (first, ones), (second, twos) in combinations(by_rater.items(), 2):
        shared = [item for item in ones if item in twos]
        kappa = cohen_kappa([ones[i] for i in shared], [twos[i] for i in shared])
        made.append(PairAgreement(first, second, kappa, len(ones) + len(twos) - 2 * len(shared)))
    return made
