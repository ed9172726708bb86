"""Sheets of Study 2, state roles (section 3.4, Appendix D).

The annotators of Study 3 see dialogue and request and give each state the influence that it should
have on the response. Which state is A or B, and the benchmark's role, stand in the key. Consensus
and adjudication are as in Study 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from persona_lab.benchmarks.persevalbench.human_studies import (
    CONSENSUS,
    KEY,
    UNSETTLED,
    Rated,
    agreement_table,
    drawn_scenarios,
    hidden,
    in_own_orders,
    read_rated,
    score,
    shown,
    unsettled_items,
)
from persona_lab.benchmarks.persevalbench.records import INFLUENCES
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.metrics.agreement import Weights
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.parsing.sheet_key import Sheets, item_name, read_key

KIND = "persevalbench_roles"
STATES = ("A", "B")
MATCH = "role_match"
WEIGHTS: Weights = "linear"
"""The paper does not name the weights of its kappa (.709)."""
_GUIDELINES = """\
How to give a role

Each row has a dialogue, the user's latest request, and one thing that the dialogue tells about the
user (user_state). Decide how much it should weigh in a response to this request, and write one of
three words into the column role.

Ignore     It should not affect the response.
Support    It may guide the response, but need not be met.
Dominate   It must be met.

Go by the dialogue alone: whom it is about, what it was said for, whether it still holds, how firmly
it was said, and whether it carries over to this request. A dialogue may come in two rows, with
another thing in each; both can have the same role. Decide alone and leave no row empty. Where the
two of you differ, talk it over afterwards and write what you settle into a sheet adjudicated.csv
(columns item and role).
"""


def draw_roles(data: Path, items: int, annotators: int, seed: int) -> Sheets:
    """The states of each drawn scenario, a row each, in a sheet for each annotator.

    Args:
        items: scenarios, spread over error subtypes and then relations as the data is.

    Raises:
        DataError: a broken data folder.
    """
    scenarios, notes = drawn_scenarios(data, items, seed)
    groups, key = [], []
    for scenario in scenarios:
        rows = []
        for name, state in zip(STATES, (scenario.a, scenario.b), strict=True):
            if state is None:
                continue
            seen = {**shown(scenario), "user_state": " ".join(state.statement.split())}
            source = {**hidden(scenario), "state": name, "role": state.role}
            item = {"item": item_name(*seen.values(), *source.values())}
            rows.append({**item, **seen, "role": ""})
            key.append({**item, **source})
        groups.append(rows)
    sheets = in_own_orders(KIND, groups, annotators, seed)
    return Sheets(sheets, key, notes, {"role_guidelines.txt": _GUIDELINES})


def read_roles(files: Sequence[Path], key: Path) -> Summary:
    """Everybody's roles and the consensus: match with the benchmark, agreement, weighted kappa.

    Raises:
        ConfigError: fewer than two annotators.
        DataError: a sheet or key that is not filled in as it should be.
    """
    rated = read_rated(KIND, files, ("role",), read_key(key, (*KEY, "state", "role")))
    scores = [made for one in rated for made in _scores(one)]
    consensus = [made for made in scores if made.facets["annotator"] == CONSENSUS]
    consensus.sort(key=lambda made: INFLUENCES.index(made.facets["role"]))
    estimated = [
        found
        for by in ((), ("role",))
        for found in estimates(consensus, {MATCH: ACCURACY}, by, unit="scenario")
    ]
    given = {
        annotator: {r.source.text("item"): r.labels("role", INFLUENCES)[annotator] for r in rated}
        for annotator in rated[0].given
    }
    unsettled, notes = unsettled_items(rated, "role", INFLUENCES)
    notes.append(f"Kappa has {WEIGHTS} weights; the paper does not say which its .709 has.")
    tables = [
        _by_role(consensus),
        agreement_table("three roles", given, INFLUENCES, WEIGHTS),
        *unsettled,
    ]
    return Summary(scores, estimated, notes=notes, tables=tables)


def _scores(rated: Rated) -> list[Score]:
    """1 where a role is the benchmark's: each annotator's, and the consensus."""
    role = rated.source.one_of("role", INFLUENCES)
    said: dict[str, str | None] = {
        **rated.labels("role", INFLUENCES),
        CONSENSUS: rated.consensus("role", INFLUENCES),
    }
    return [
        score(
            rated.source,
            rated.source.one_of("state", STATES),
            MATCH,
            None if given is None else float(given == role),
            UNSETTLED if given is None else "",
            annotator=annotator,
            role=role,
            given=given or "",
        )
        for annotator, given in said.items()
    ]


def _by_role(consensus: Sequence[Score]) -> RowsTable:
    """How often the consensus gives each role where the benchmark gives one."""
    rows: list[TableRow] = []
    for role in INFLUENCES:
        given = [made.facets["given"] for made in consensus if made.facets["role"] == role]
        if given:
            counts: TableRow = {name: given.count(name) for name in INFLUENCES}
            row: TableRow = {"benchmark": role, "states": len(given), **counts}
            rows.append({**row, UNSETTLED: given.count("")})
    return RowsTable("The consensus where the benchmark gives a role", rows)
