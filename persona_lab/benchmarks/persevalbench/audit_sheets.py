"""Sheets of the audit of under-personalization responses (Appendix C.3).

The annotators of Study 3 see every error response that is meant to commit an under-personalization
error, and say of each whether that error is there and whether an over-personalization error is
there besides. What is made of it is the file that the Under-to-Over rate is recomputed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from persona_lab.benchmarks.persevalbench.fidelity_sheets import DEFINITIONS
from persona_lab.benchmarks.persevalbench.human_studies import (
    KEY,
    Rated,
    agreement_table,
    hidden,
    in_own_orders,
    read_rated,
    score,
    shown,
)
from persona_lab.benchmarks.persevalbench.loading import FILE, load_scenarios
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.metrics.estimate import ACCURACY, Metric, estimates
from persona_lab.parsing.csv_sheet import Rows
from persona_lab.parsing.sheet_key import Sheets, item_name, read_key

KIND = "persevalbench_audit"
ANSWERS = ("yes", "no")
UNDER_PRESENT, OVER_PRESENT = "under_present", "over_present"
SHARES = {UNDER_PRESENT: ACCURACY, OVER_PRESENT: Metric(0.0, 1.0, worse=1.0)}
ALL, ANY = "all of them", "any of them"
_GUIDELINES = """\
How to audit a response

Each row has a dialogue, the user's latest request, one response to it, and the error that the
response is meant to commit, with its definition: it leaves out something that applies, goes against
it, or gives it too little weight. Answer two questions with yes or no.

under_present   Is this error there?
over_present    Is there another error besides: does the response use something that should not
                apply to the request, or give what the user said more weight than is warranted?

Answer them one by one: all four combinations are possible. Look at how the response uses what the
user said earlier, not at how well it is written. Decide alone and leave no row empty.
"""


def draw_audit(data: Path, annotators: int, seed: int) -> Sheets:
    """All under-personalization error responses of a data folder, in a sheet for each annotator.

    Args:
        seed: of the annotators' orders.

    Raises:
        DataError: a broken data folder, or one without such a response.
    """
    scenarios, _ = load_scenarios(data)
    rows, key = [], []
    for scenario in scenarios:
        if scenario.family != "under":
            continue
        seen = {
            **shown(scenario),
            "response": scenario.error,
            "intended_error": scenario.subtype.replace("_", " "),
            "definition": DEFINITIONS[scenario.subtype],
        }
        source = hidden(scenario)
        item = {"item": item_name(*seen.values(), *source.values())}
        rows.append({**item, **seen, UNDER_PRESENT: "", OVER_PRESENT: ""})
        key.append({**item, **source})
    if not rows:
        raise DataError(data / FILE, "has no under-personalization error to audit")
    sheets = in_own_orders(KIND, [[row] for row in rows], annotators, seed)
    return Sheets(sheets, key, guidelines={"audit_guidelines.txt": _GUIDELINES})


def read_audit(files: Sequence[Path], key: Path) -> Summary:
    """Each annotator's shares, what any or all of them found, and their agreement.

    Raises:
        ConfigError: fewer than two annotators.
        DataError: a sheet or key that is not filled in as it should be.
    """
    rated = read_rated(KIND, files, (UNDER_PRESENT, OVER_PRESENT), read_key(key, KEY))
    scores = [made for one in rated for made in _scores(one)]
    annotators = [*rated[0].given]
    ordered = [s for name in (*annotators, ALL, ANY) for s in scores if _by(s) == name]
    estimated = estimates(ordered, SHARES, ("annotator",), unit="scenario")
    tables = [_agreement(rated, annotators, column) for column in SHARES]
    flagged, notes = _findings(scores)
    return Summary(scores, estimated, notes=notes, tables=tables + flagged)


def audited(summary: Summary) -> tuple[str, Rows]:
    """A row per scenario, from `read_audit`'s summary: whether any annotator saw a secondary Over
    error, and whether all of them confirmed the intended Under one."""
    under, over = _found(summary.scores)
    rows = [
        {"scenario": name, "flagged_over": _answer(over[name]), "confirmed_under": _answer(value)}
        for name, value in under.items()
    ]
    return "audit", rows


def _scores(rated: Rated) -> list[Score]:
    """1 for yes, 0 for no: each annotator's, then all of them for the Under error and any of them
    for the Over one."""
    made = []
    for column, (who, several) in {UNDER_PRESENT: (ALL, all), OVER_PRESENT: (ANY, any)}.items():
        said = {name: label == "yes" for name, label in rated.labels(column, ANSWERS).items()}
        for annotator, yes in {**said, who: several(said.values())}.items():
            made.append(score(rated.source, "error", column, float(yes), "", annotator=annotator))
    return made


def _agreement(rated: Sequence[Rated], annotators: Sequence[str], column: str) -> RowsTable:
    given = {
        name: {r.source.text("item"): r.labels(column, ANSWERS)[name] for r in rated}
        for name in annotators
    }
    return agreement_table(column, given, ANSWERS)


def _findings(scores: Sequence[Score]) -> tuple[list[RowsTable], list[str]]:
    """The scenarios that C.3 leaves out, and how many they are."""
    under, over = _found(scores)
    rows: list[TableRow] = [
        {"scenario": name, "flagged over": _answer(over[name]), "confirmed under": _answer(value)}
        for name, value in under.items()
        if over[name] or not value
    ]
    flagged, unconfirmed = sum(over.values()), len(under) - sum(under.values())
    notes = [
        f"{flagged:g} of {len(under)} responses are flagged with a secondary Over error by an "
        f"annotator; {unconfirmed:g} lack the confirmation of all that the Under error is there."
    ]
    return [RowsTable("Flagged or not confirmed", rows)] if rows else [], notes


def _found(scores: Sequence[Score]) -> tuple[dict[str, float], dict[str, float]]:
    """Scenario -> whether all confirmed the Under error, and whether any flagged an Over one."""
    values = {
        who: {s.cluster: s.value or 0.0 for s in scores if _by(s) == who} for who in (ALL, ANY)
    }
    return values[ALL], values[ANY]


def _by(made: Score) -> str:
    return made.facets["annotator"]


def _answer(value: float) -> str:
    return "yes" if value else "no"
