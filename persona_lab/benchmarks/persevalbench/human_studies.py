"""What the human studies share (Appendix D): sample, dialogue as shown, agreement, consensus.

The three studies draw the same scenarios for one seed, those that a run with the same
`benchmark.sample` and `benchmark.seed` evaluates. A label is what all annotators say; where they
differ it is what the sheet `adjudicated.csv` says, and without a row there the item is unsettled.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from persona_lab.benchmarks.persevalbench.cases import stratified
from persona_lab.benchmarks.persevalbench.context import context_text
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.records import (
    FAMILY_OF,
    RELATIONS,
    SUBTYPES,
    Scenario,
    Subtype,
)
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score
from persona_lab.metrics.agreement import Weights, cohen_kappa
from persona_lab.parsing.csv_sheet import Rows, SheetRow
from persona_lab.parsing.sheet_key import read_filled_in

FEWEST_ANNOTATORS = 2
ADJUDICATED, CONSENSUS = "adjudicated", "consensus"
LISTED = 40
"""Unsettled items that are shown; the file of scores has them all."""
UNSETTLED = "unsettled"
KEY = ("scenario", "subtype", "relation")


@dataclass(frozen=True)
class Rated:
    """An item of the key with what everybody filled in for it.

    Attributes:
        given: annotator -> row. adjudicated: its row in `adjudicated.csv`, if it has one.
    """

    source: SheetRow
    given: Mapping[str, SheetRow]
    adjudicated: SheetRow | None

    def labels(self, column: str, allowed: Sequence[str]) -> dict[str, str]:
        """Annotator -> label."""
        return {annotator: row.one_of(column, allowed) for annotator, row in self.given.items()}

    def consensus(self, column: str, allowed: Sequence[str]) -> str | None:
        """What all annotators say, else what was adjudicated, else None."""
        said = set(self.labels(column, allowed).values())
        if len(said) == 1:
            return said.pop()
        return self.adjudicated.one_of(column, allowed) if self.adjudicated else None


def drawn_scenarios(data: Path, items: int, seed: int) -> tuple[list[Scenario], list[str]]:
    """The scenarios of a study, and a note where there are fewer than wanted.

    Raises:
        DataError: as `load_scenarios`.
    """
    everything, _ = load_scenarios(data)
    chosen = stratified(everything, items, seed)
    few = f"The data has {len(everything)} scenarios, fewer than the {items} wanted: all are drawn."
    return chosen, [few] * (len(chosen) < items)


def shown(scenario: Scenario) -> dict[str, str]:
    """What every study shows: the dialogue as evaluators see it, and the request."""
    return {"dialogue": context_text(scenario, "full"), "request": scenario.request}


def hidden(scenario: Scenario) -> dict[str, str]:
    """What the key holds of a scenario."""
    cells = (scenario.id, scenario.subtype, scenario.relation)
    return dict(zip(KEY, cells, strict=True))


def in_own_orders(kind: str, groups: Sequence[Rows], annotators: int, seed: int) -> dict[str, Rows]:
    """The same rows for every annotator, each time in another order.

    Args:
        groups: rows that stay together, such as those of one dialogue; shuffled inside too.
    """
    rng = random.Random(seed)
    return {
        f"{kind}_{n}": [
            row
            for group in rng.sample(groups, len(groups))
            for row in rng.sample(group, len(group))
        ]
        for n in range(1, annotators + 1)
    }


def read_rated(
    kind: str, files: Sequence[Path], columns: Sequence[str], key: Mapping[str, SheetRow]
) -> list[Rated]:
    """The items of a study whose annotators have all rated all of them, in the key's order.

    Args:
        columns: those that annotators fill in; the first is the label that is adjudicated.

    Raises:
        ConfigError: fewer than two annotators.
        DataError: a sheet that is not filled in as it should be, or lacks an item.
    """
    annotators = [path for path in files if path.stem != ADJUDICATED]
    if len(annotators) < FEWEST_ANNOTATORS:
        raise ConfigError(
            f"{kind} needs the sheets of {FEWEST_ANNOTATORS} annotators, not {len(annotators)}"
        )
    given: dict[str, dict[str, SheetRow]] = {item: {} for item in key}
    for read in read_filled_in(annotators, columns, key):
        given[read.row.text("item")][read.annotator] = read.row
    for path in annotators:
        if lacking := [item for item, rows in given.items() if path.stem not in rows]:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            problem = f"has no row for {lacking[0]}{more}; every annotator rates every item"
            raise DataError(path, problem)
    settled = [path for path in files if path.stem == ADJUDICATED]
    rows = read_filled_in(settled, columns[:1], key)
    adjudicated = {read.row.text("item"): read.row for read in rows}
    return [Rated(key[item], rows, adjudicated.get(item)) for item, rows in given.items()]


def score(
    source: SheetRow, part: str, metric: str, value: float | None, reason: str, **facets: str
) -> Score:
    """A row of the table: `part` of a scenario (`error`, `right`, `A`, `B`) on a metric."""
    scenario = source.text("scenario")
    subtype: Subtype = source.one_of("subtype", SUBTYPES)  # type: ignore[assignment]
    about = {
        "subtype": subtype,
        "family": FAMILY_OF[subtype],
        "relation": source.one_of("relation", RELATIONS),
    }
    name, outcome = f"{scenario}/{part}", "unparsed" if value is None else "ok"
    return Score(name, name, metric, scenario, value, outcome, reason, {**about, **facets})  # type: ignore[arg-type]


def agreement_table(
    what: str,
    given: Mapping[str, Mapping[str, Hashable]],
    classes: Sequence[Hashable],
    weights: Weights = "none",
) -> RowsTable:
    """Cohen's kappa of each two annotators over what both rated, raw agreement beside it.

    Args:
        what: was rated. given: annotator -> item -> label. classes: all labels, in their order.
    """
    rows: list[TableRow] = []
    for (first, ones), (second, twos) in combinations(given.items(), 2):
        both = [item for item in ones if item in twos]
        kappa = cohen_kappa([ones[i] for i in both], [twos[i] for i in both], classes, weights)
        rows.append(
            {
                "first": first,
                "second": second,
                "kappa": kappa.value,
                "agreement": kappa.agreement,
                "items": kappa.n,
                "not shared": len(ones) + len(twos) - 2 * len(both),
                "why not": kappa.reason,
            }
        )
    named = "Cohen's kappa" if weights == "none" else f"Cohen's kappa, {weights} weights"
    return RowsTable(f"Agreement of two annotators on {what} ({named})", rows)


def unsettled_items(
    rated: Sequence[Rated], column: str, allowed: Sequence[str]
) -> tuple[list[RowsTable], list[str]]:
    """The items that annotators differ on and nobody has adjudicated, and how many they are."""
    labels = [(one, one.labels(column, allowed)) for one in rated]
    differing = [(one, said) for one, said in labels if len(set(said.values())) > 1]
    rows: list[TableRow] = [
        {"item": one.source.text("item"), "said": " ".join(said.values())}
        for one, said in differing
        if one.adjudicated is None
    ]
    if not rows:
        return [], [
            f"Annotators differ on {len(differing)} of {len(rated)} items; all are settled."
        ]
    note = (
        f"Annotators differ on {len(differing)} of {len(rated)} items, {len(rows)} of them "
        f"unsettled: they have no label and count as unparsed. Rows in a sheet {ADJUDICATED}.csv "
        "settle them."
    )
    if len(rows) > LISTED:
        note += f" The first {LISTED} are listed."
    return [RowsTable("Unsettled items, labels in the order of the sheets", rows[:LISTED])], [note]
