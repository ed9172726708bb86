"""Sheets on which people give the gold labels g(t, a) (Appendix A.2).

Three annotators label every instance, each alone and in an order of their own. They see recipient,
task and preference; neither the profile nor the category, and no label of the data's author. What
all of them agree on is the label; the rest is `excluded`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from persona_lab.benchmarks.benchpres.loading import load_contexts, load_preferences
from persona_lab.benchmarks.benchpres.records import CATEGORIES, Label
from persona_lab.benchmarks.benchpres.scoring import Row
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.scores import Row as TableRow
from persona_lab.core.scores import RowsTable, Score, Summary
from persona_lab.metrics.annotators import fleiss_kappa, pairwise_agreement
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.parsing.csv_sheet import Rows, SheetRow
from persona_lab.parsing.sheet_key import Sheets, item_name, read_filled_in, read_key

FEWEST_ANNOTATORS = 3
"""Appendix A.2."""
LISTED = 40
"""Excluded instances that are shown; the file of labels has them all."""
_GUIDELINES = """\
How to label

Each row is a message that an assistant is going to write in the name of a user: who gets it
(recipient), what it is for (task), and one thing that the user likes in texts (preference). Decide
whether this message should reflect that preference, and write 1 or 0 into the column label.

1   Reflecting it is appropriate for this message, and it helps the message.
0   Reflecting it goes against what is normal between such a sender and such a recipient; or gives
    the message a tone or a persona that does not suit it; or draws attention away from the task.

1 needs both: what does no harm but does not help either is a 0.
Judge each row by itself and decide alone: do not talk about rows before all sheets are in.
Leave no label empty.
"""


def draw_labels(data: Path, annotators: int, seed: int) -> Sheets:
    """All instances of a data folder, in a sheet for each annotator; its labels are not read.

    Raises:
        DataError: broken contexts.csv or preferences.csv.
    """
    contexts = load_contexts(data / "contexts.csv")
    rows, key = [], []
    for profile, preferences in load_preferences(data / "preferences.csv").items():
        for context in contexts:
            for category, preference in preferences.items():
                shown = {
                    "recipient": context.recipient,
                    "task": context.task,
                    "preference": preference.statement,
                }
                hidden = {"profile": profile, "context": context.id, "category": category}
                item = {"item": item_name(*shown.values(), *hidden.values())}
                rows.append({**item, **shown, "label": ""})
                key.append({**item, **hidden})
    sheets = in_own_orders("benchpres_labels", rows, annotators, seed)
    return Sheets(sheets, key, guidelines={"label_guidelines.txt": _GUIDELINES})


def in_own_orders(kind: str, rows: Rows, annotators: int, seed: int) -> dict[str, Rows]:
    """The same rows for every annotator, each time in another order."""
    rng = random.Random(seed)
    return {f"{kind}_{n}": rng.sample(rows, len(rows)) for n in range(1, annotators + 1)}


def read_labels(files: Sequence[Path], key: Path) -> Summary:
    """Everybody's labels, how far the annotators agree, and the share of unanimous instances.

    Raises:
        ConfigError: fewer than three sheets.
        DataError: a sheet or key that is not filled in as it should be, or lacks an item.
    """
    if len(files) < FEWEST_ANNOTATORS:
        raise ConfigError(
            f"benchpres_labels needs the sheets of {FEWEST_ANNOTATORS} annotators, "
            f"not {len(files)}: a label is what all of them say"
        )
    known = read_key(key, ("profile", "context", "category"))
    scores = []
    for item, given in _given(files, known).items():
        source = known[item]
        profile, context = source.text("profile"), source.text("context")
        category = source.one_of("category", CATEGORIES)
        name = f"{profile}/{context}/{category}"
        row = Row(name, profile, {"context": context, "category": category})
        scores += [
            row.score(name, "label", float(label), "ok", annotator=annotator)
            for annotator, label in given.items()
        ]
    unanimous = [
        replace(labels[0], metric="unanimous", value=float(_gold(labels) != "excluded"))
        for labels in _by_instance(scores).values()
    ]
    made = estimates(unanimous, {"unanimous": ACCURACY}, (), unit="user")
    excluded, notes = _excluded(scores)
    return Summary(scores, made, notes=notes, tables=annotator_tables(scores) + excluded)


def gold_labels(summary: Summary) -> tuple[str, Rows]:
    """The labels of a data folder, as its labels.csv holds them, from `read_labels`' summary."""
    rows = [
        {
            "profile": labels[0].cluster,
            "context": labels[0].facets["context"],
            "category": labels[0].facets["category"],
            "label": _gold(labels),
        }
        for labels in _by_instance(summary.scores).values()
    ]
    return "labels", rows


def annotator_tables(scores: Sequence[Score]) -> list[RowsTable]:
    """Fleiss' kappa over the items that all annotators have rated, and each pair of annotators.

    Args:
        scores: 0 or 1, by two annotators or more (facet `annotator`).
    """
    by_rater: dict[str, dict[tuple[str, str], int]] = {}
    for score in scores:
        if score.value is not None:
            rated = by_rater.setdefault(score.facets["annotator"], {})
            rated[score.case, score.question] = int(score.value)
    first, *others = by_rater.values()
    shared = [item for item in first if all(item in other for other in others)]
    fleiss = fleiss_kappa([[rated[item] for rated in by_rater.values()] for item in shared])
    all_row: TableRow = {
        "annotators": fleiss.raters,
        "kappa": fleiss.value,
        "agreement": fleiss.agreement,
        "items": fleiss.n,
        "why not": fleiss.reason,
    }
    pair_rows: list[TableRow] = [
        {
            "first": pair.first,
            "second": pair.second,
            "kappa": pair.kappa.value,
            "agreement": pair.kappa.agreement,
            "items": pair.kappa.n,
            "not shared": pair.unshared,
            "why not": pair.kappa.reason,
        }
        for pair in pairwise_agreement(by_rater)
    ]
    return [
        RowsTable("Agreement of all annotators (Fleiss' kappa)", [all_row]),
        RowsTable("Agreement of two annotators (Cohen's kappa)", pair_rows),
    ]


def _given(files: Sequence[Path], known: Mapping[str, SheetRow]) -> dict[str, dict[str, int]]:
    """Item of the key -> annotator -> label."""
    given: dict[str, dict[str, int]] = {item: {} for item in known}
    for read in read_filled_in(files, ("label",), known):
        given[read.row.text("item")][read.annotator] = read.row.whole("label", 0, 1)
    for path in files:
        if lacking := [item for item, labels in given.items() if path.stem not in labels]:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            problem = f"has no row for {lacking[0]}{more}; every annotator labels every item"
            raise DataError(path, problem)
    return given


def _by_instance(scores: Sequence[Score]) -> dict[str, list[Score]]:
    grouped: dict[str, list[Score]] = {}
    for score in scores:
        grouped.setdefault(score.question, []).append(score)
    return grouped


def _gold(labels: Sequence[Score]) -> Label:
    """What all annotators say of an instance, or `excluded`."""
    said = {score.value for score in labels}
    if len(said) > 1:
        return "excluded"
    return "1" if said == {1.0} else "0"


def _excluded(scores: Sequence[Score]) -> tuple[list[RowsTable], list[str]]:
    """The instances that annotators disagree on, and how many they are."""
    instances = _by_instance(scores)
    rows: list[TableRow] = [
        {"instance": name, "labels": " ".join(f"{score.value:g}" for score in labels)}
        for name, labels in instances.items()
        if _gold(labels) == "excluded"
    ]
    notes = [f"{len(rows)} of {len(instances)} instances are excluded: annotators disagree."]
    if len(rows) > LISTED:
        notes.append(f"Of the {len(rows)} excluded instances, the first {LISTED} are listed.")
    title = "Excluded instances, labels in the order of the sheets"
    return [RowsTable(title, rows[:LISTED])] if rows else [], notes
