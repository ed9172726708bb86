"""Two ways to answer multiple choice without the history: what an accuracy has to be seen against.

The longest option, and the option least like the others: the "odd one out" that Appendix G.2
suspects models to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from persona_lab.benchmarks.realpref.records import Query
from persona_lab.benchmarks.realpref.wording import content_words


def longest_option_baseline(queries: Sequence[Query]) -> float | None:
    """Share of queries that the longest option answers right; None without queries.

    Of k options equally long, each counts 1/k.
    """
    return _baseline(queries, lambda options: {k: Fraction(-len(o)) for k, o in options.items()})


def odd_one_out_baseline(queries: Sequence[Query]) -> float | None:
    """Share that the option least like the other three answers right (Appendix G.2).

    Likeness is the mean Jaccard index of its content words with theirs; ties as above.
    """
    return _baseline(queries, _likeness)


def _likeness(options: Mapping[str, str]) -> dict[str, Fraction]:
    """The sum of an option's Jaccard indices, which ranks as their mean does."""
    sets = {label: content_words(option).keys() for label, option in options.items()}
    return {
        label: sum(
            (
                Fraction(len(mine & other), len(mine | other)) if mine | other else Fraction(1)
                for another, other in sets.items()
                if another != label
            ),
            Fraction(0),
        )
        for label, mine in sets.items()
    }


def _baseline(
    queries: Sequence[Query], cost: Callable[[Mapping[str, str]], Mapping[str, Fraction]]
) -> float | None:
    right = Fraction(0)
    for query in queries:
        costs = cost(query.options)
        chosen = [label for label, value in costs.items() if value == min(costs.values())]
        right += Fraction(query.correct in chosen, len(chosen))
    return float(right / len(queries)) if queries else None
