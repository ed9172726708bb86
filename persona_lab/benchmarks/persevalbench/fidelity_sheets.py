"""Sheets of Study 1, intervention fidelity (section 3.4, Appendix D, Table 12).

Two people see dialogue, request, the error response and the definition of the error that it is
meant to commit, and say whether it does. What both say is the consensus; where they differ they
settle it together in `adjudicated.csv`. An item that stays unsettled counts as not confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from persona_lab.benchmarks.persevalbench.records import PRECEDENCE, SUBTYPES, Subtype
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.parsing.sheet_key import Sheets, item_name, read_key

KIND = "persevalbench_fidelity"
VALIDITY = ("valid", "invalid")
VALID, CONFIRMED = "valid", "confirmed"
DEFINITIONS: Mapping[Subtype, str] = {
    "complete_omission": "The response is generic: it uses nothing of what applies to the request "
    "and contradicts none of it.",
    "partial_omission": "Of several things that apply and matter, the response honours some and "
    "leaves at least one critical one out.",
    "explicit_violation": "What the response recommends goes against something binding that still "
    "applies, as if it had never been said.",
    "irrelevant_use": "The response brings in something of the user's that has no bearing on this "
    "request.",
    "scope_leakage": "The response follows something that was said for another occasion, task or "
    "setting, which can be named and which this request is not part of.",
    "unsupported_inference": "The response acts on a preference that the user never voiced, "
    "guessed from something else that they said or did.",
    "stale_superseded": "The response follows an earlier value that the user has replaced since.",
    "over_dominance": "A soft or secondary wish decides the response, ahead of what binds or of "
    "the task itself.",
    "underweighting": "The response mentions something binding that applies, but treats it as "
    "optional, so that what it recommends does not meet it.",
}
"""The nine errors (section 3.2), in this project's words."""


def draw_fidelity(data: Path, items: int, annotators: int, seed: int) -> Sheets:
    """The error response of each drawn scenario, in a sheet for each annotator.

    Args:
        items: scenarios, spread over error subtypes and then relations as the data is.

    Raises:
        DataError: a broken data folder.
    """
    scenarios, notes = drawn_scenarios(data, items, seed)
    rows, key = [], []
    for scenario in scenarios:
        seen = {
            **shown(scenario),
            "response": scenario.error,
            "intended_error": _words(scenario.subtype),
            "definition": DEFINITIONS[scenario.subtype],
        }
        source = hidden(scenario)
        item = {"item": item_name(*seen.values(), *source.values())}
        rows.append({**item, **seen, "valid": "", "mismatch": ""})
        key.append({**item, **source})
    sheets = in_own_orders(KIND, [[row] for row in rows], annotators, seed)
    return Sheets(sheets, key, notes, {"fidelity_guidelines.txt": _guidelines()})


def read_fidelity(files: Sequence[Path], key: Path) -> Summary:
    """Everybody's labels and the consensus: confirmed shares, agreement and kappa.

    Raises:
        ConfigError: fewer than two annotators.
        DataError: a sheet or key that is not filled in as it should be.
    """
    rated = read_rated(KIND, files, ("valid", "mismatch"), read_key(key, KEY))
    scores = [made for one in rated for made in _scores(one)]
    consensus = [made for made in scores if made.metric == CONFIRMED]
    estimated = [
        found
        for by in ((), ("subtype",))
        for found in estimates(_in_order(consensus), {CONFIRMED: ACCURACY}, by, unit="scenario")
    ]
    given = {
        annotator: {r.source.text("item"): r.labels("valid", VALIDITY)[annotator] for r in rated}
        for annotator in rated[0].given
    }
    unsettled, notes = unsettled_items(rated, "valid", VALIDITY)
    tables = [_by_subtype(consensus), agreement_table("validity", given, VALIDITY), *unsettled]
    return Summary(scores, estimated, notes=notes, tables=tables)


def _scores(rated: Rated) -> list[Score]:
    """1 for valid, 0 for invalid: each annotator's, with the mismatch as reason, and the
    consensus."""
    made = []
    for annotator, label in rated.labels("valid", VALIDITY).items():
        row, valid = rated.given[annotator], label == "valid"
        mismatch = row.cells["mismatch"]
        if not valid and not mismatch:
            raise row.error("mismatch", "is empty; say what does not fit where valid is invalid")
        made.append(
            score(rated.source, "error", VALID, float(valid), mismatch, annotator=annotator)
        )
    settled = rated.consensus("valid", VALIDITY)
    value, reason = (None, UNSETTLED) if settled is None else (float(settled == "valid"), "")
    return [*made, score(rated.source, "error", CONFIRMED, value, reason, annotator=CONSENSUS)]


def _in_order(consensus: Sequence[Score]) -> list[Score]:
    return sorted(consensus, key=lambda made: SUBTYPES.index(made.facets["subtype"]))


def _by_subtype(consensus: Sequence[Score]) -> RowsTable:
    """Table 12; what is invalid is to be revised."""
    rows: list[TableRow] = []
    for name in (*SUBTYPES, "overall"):
        values = [c.value for c in consensus if name in ("overall", c.facets["subtype"])]
        if values:
            rows.append(
                {
                    "subtype": name,
                    "n": len(values),
                    "confirmed": values.count(1.0) / len(values),
                    "to revise": values.count(0.0),
                    "unsettled": values.count(None),
                }
            )
    return RowsTable("Intervention fidelity (Table 12)", rows)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _guidelines() -> str:
    errors = "\n".join(f"{_words(name)}\n    {DEFINITIONS[name]}" for name in SUBTYPES)
    border = "\n".join(
        f"- {_words(first)} or {_words(second)}: {why}." for first, second, why in PRECEDENCE
    )
    return f"""\
How to check a response

Each row has a dialogue, the user's latest request, one response to it, and the error that the
response is meant to commit, with its definition. Read all of it and decide whether the response
clearly commits this error. Write valid or invalid into the column valid.

valid     The error is there.
invalid   It is not. Say in a few words in the column mismatch what does not fit.

Look at how the response uses what the user said earlier in the dialogue. How well it is written
does not count. Decide alone and leave no row empty. Where the two of you differ, talk it over
afterwards and write what you settle into a sheet adjudicated.csv (columns item and valid).

The errors

{errors}

Where two of them are close

{border}
"""
