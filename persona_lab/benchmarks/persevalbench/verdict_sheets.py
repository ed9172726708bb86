"""Sheets of Study 3, the human reference (section 3.4, Appendix D, Table 4).

People do the evaluator's task before they have seen the benchmark's policy: dialogue, request and
one response, Right or error, all shuffled. The responses to scenarios with a misapplied state are a
round of their own, in a second sheet. Nothing is adjudicated; scoring is that of evaluators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from persona_lab.benchmarks.persevalbench.human_studies import (
    KEY,
    agreement_table,
    drawn_scenarios,
    hidden,
    in_own_orders,
    score,
    shown,
)
from persona_lab.benchmarks.persevalbench.records import FAMILIES, FAMILY_OF, SIDES, Subtype
from persona_lab.benchmarks.persevalbench.scoring import ERR, FAR, RATES, recognised
from persona_lab.benchmarks.persevalbench.verdicts import OVER, RIGHT, UNDER
from persona_lab.core.scores import Estimate, Score, Summary
from persona_lab.metrics.estimate import estimates
from persona_lab.parsing.csv_sheet import Rows
from persona_lab.parsing.sheet_key import Annotated, Sheets, item_name, read_filled_in, read_key

KIND = "persevalbench_verdicts"
SECOND_ROUND = "_round2"
"""Ends the name of an annotator's second sheet."""
ALL, MEAN = "all", "mean of annotators"
WORDS = {"Right": RIGHT, "Under": UNDER, "Over": OVER}
_GUIDELINES = """\
How to judge a response

Each row has a dialogue, the user's latest request, and one response of an assistant. Judge how the
response uses what the user said earlier, going by what the row shows and nothing else. Write one of
three words into the column verdict.

Right   It uses what applies to this request, with the weight that it deserves, and leaves out what
        should play no part.
Under   It leaves out something that applies, goes against it, or gives it too little weight.
Over    It uses something that should not apply here, or gives what the user said more weight than
        is warranted.

How fluent or well written the response is does not count. Judge each row by itself: a dialogue may
come again with another response, and the verdicts on the two need not differ. Do all of the first
sheet before the second one (round2), decide alone, and leave no row empty. Keep the file names:
NAME.csv and NAME_round2.csv are one person's.
"""


def draw_verdicts(data: Path, items: int, annotators: int, seed: int) -> Sheets:
    """Both responses of each drawn scenario, a row each; two sheets for each annotator.

    Args:
        items: scenarios, spread over error subtypes and then relations as the data is.

    Raises:
        DataError: a broken data folder.
    """
    scenarios, notes = drawn_scenarios(data, items, seed)
    rounds: dict[str, list[Rows]] = {"": [], SECOND_ROUND: []}
    key = []
    for scenario in scenarios:
        for side in SIDES:
            seen = {**shown(scenario), "response": scenario.response(side)}
            source = {**hidden(scenario), "side": side}
            item = {"item": item_name(*seen.values(), *source.values())}
            which = SECOND_ROUND if scenario.family == "misapplied" else ""
            rounds[which].append([{**item, **seen, "verdict": ""}])
            key.append({**item, **source})
    sheets = {
        f"{name}{which}": rows
        for which, groups in rounds.items()
        for name, rows in in_own_orders(KIND, groups, annotators, seed).items()
        if groups
    }
    return Sheets(sheets, key, notes, {"verdict_guidelines.txt": _GUIDELINES})


def read_verdicts(files: Sequence[Path], key: Path) -> Summary:
    """ERR and FAR of each annotator and their mean, agreement and kappa.

    Raises:
        ConfigError, DataError: a sheet or key that is not filled in as it should be, or an item
            that one annotator has in both sheets.
    """
    known = read_key(key, (*KEY, "side"))
    given: dict[str, dict[str, str]] = {}
    scores = []
    for read in read_filled_in(files, ("verdict",), known):
        annotator, item = read.annotator.removesuffix(SECOND_ROUND), read.row.text("item")
        mine = given.setdefault(annotator, {})
        if item in mine:
            raise read.row.error("item", f"{item} is in the other sheet of {annotator} already")
        mine[item] = WORDS[read.row.one_of("verdict", WORDS)]
        scores.append(_scored(read, annotator, mine[item]))
    notes = [
        f"{annotator} has no verdict on {len(known) - len(mine)} of {len(known)} responses."
        for annotator, mine in given.items()
        if len(mine) < len(known)
    ]
    tables = [agreement_table("verdicts", given, tuple(WORDS.values()))] if len(given) > 1 else []
    return Summary(scores, _estimates(scores, [*given]), notes=notes, tables=tables)


def _scored(read: Annotated, annotator: str, verdict: str) -> Score:
    """ERR or FAR of one response, by the rule for evaluators (section 4)."""
    side = read.source.one_of("side", SIDES)
    facets = {"annotator": annotator, "verdict": verdict}
    made = score(read.source, side, FAR, float(verdict != RIGHT), "", **facets)
    if side == "right":
        return made
    subtype: Subtype = made.facets["subtype"]  # type: ignore[assignment]
    return replace(made, metric=ERR, value=float(recognised(FAMILY_OF[subtype], verdict)))


def _estimates(scores: Sequence[Score], annotators: Sequence[str]) -> list[Estimate]:
    """By annotator and family as in Table 4; FAR has no family. Several annotators of one response
    are averaged first in their mean."""
    ordered = sorted(scores, key=lambda s: FAMILIES.index(s.facets["family"]))
    rows = [s for s in ordered if s.metric == ERR]
    rows += [replace(s, facets={**s.facets, "family": ALL}) for s in ordered]
    groups = [s for name in annotators for s in rows if s.facets["annotator"] == name]
    if len(annotators) > 1:
        groups += [replace(s, facets={**s.facets, "annotator": MEAN}) for s in rows]
    return estimates(groups, RATES, ("annotator", "family"), unit="scenario")
