"""Which instances of a run the judge is checked on (section 6, Table 4).

As many of each category and gold value: the paper's 100 instances are 10 of each. Which they are
follows from digests of their names and from nothing else, so that a second judge, chosen before any
reply is there, and people, asked after the run, judge the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from persona_lab.core.experiment import stable_digest

Item = tuple[str, str, str, str]
"""Case, question, category and label (0 or 1) of an instance that a run scores."""


def agreement_sample(items: Iterable[Item], per_cell: int) -> set[tuple[str, str]]:
    """Case and question of the first `per_cell` instances of each category and label.

    Args:
        items: in any order; they are put in that of a digest of case and question.
    """
    cells: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for case, question, category, label in items:
        cells.setdefault((category, label), set()).add((case, question))
    return {name for cell in cells.values() for name in sorted(cell, key=_place)[:per_cell]}


def _place(name: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    return stable_digest("/".join(name)), name
