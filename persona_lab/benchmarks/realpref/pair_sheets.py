"""Sheets of the blind pair comparison (Appendix G.1, Table 7): which conversation is plausible?

People see a preference and its conversation from each of two sources, and not which is which.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from persona_lab.benchmarks.realpref.scoring import Row
from persona_lab.core.errors import DataError
from persona_lab.core.scores import Summary
from persona_lab.metrics.estimate import ACCURACY, estimates
from persona_lab.parsing.csv_sheet import SheetRow, read_items
from persona_lab.parsing.sheet_key import (
    Sheets,
    item_name,
    missing_note,
    read_filled_in,
    read_key,
)

VERDICTS = ("1 wins", "2 wins", "tie")
OUTCOMES = ("win", "loss", "tie")
"""Of the first source, as in Table 7."""


def draw_blind_pairs(first: Path, second: Path, items: int, seed: int) -> Sheets:
    """Draws pairs of (preference, conversation) items: line by line, sides and order shuffled.

    Args:
        first, second: .csv or .jsonl, with the fields `preference` and `conversation`.

    Raises:
        DataError: a file without items, or with an item that lacks one of the two.
    """
    sources = [read_items(path, ("preference", "conversation")) for path in (first, second)]
    for path, rows in zip((first, second), sources, strict=True):
        if not rows:
            raise DataError(path, "has no items")
    rng = random.Random(seed)
    pairs = list(zip(*sources, strict=False))
    chosen = rng.sample(pairs, min(items, len(pairs)))
    sides = [1 + n % 2 for n in range(len(chosen))]  # the first source is left in half of them
    rng.shuffle(sides)
    names = [p.name for p in (first, second)]
    if names[0] == names[1]:
        names = [str(first), str(second)]
    sheet, key = [], []
    for pair, side in zip(chosen, sides, strict=True):
        left, right = pair if side == 1 else pair[::-1]
        texts = [row.text(c) for row in (left, right) for c in ("preference", "conversation")]
        lines = {"first_line": str(pair[0].line), "second_line": str(pair[1].line)}
        item = item_name(*texts, *lines.values())
        fields = ("preference_1", "conversation_1", "preference_2", "conversation_2")
        sheet.append({"item": item, **dict(zip(fields, texts, strict=True)), "answer": ""})
        own = {"first_side": str(side), "first": names[0], "second": names[1]}
        key.append({"item": item, **own, **lines})
    return Sheets({"blind_pairs": sheet}, key, _pairing_notes(names, sources, len(chosen), items))


def read_blind_pairs(files: Sequence[Path], key: Path) -> Summary:
    """Shares of pairs that the first source wins, loses and ties (Table 7).

    Raises:
        ConfigError, DataError: a sheet or key that is not filled in as it should be.
    """
    scores = []
    known = read_key(key, ("first_side", "first", "second"))
    rows = read_filled_in(files, ("answer",), known)
    for read in rows:
        row, source = read.row, read.source
        answer, side = row.one_of("answer", VERDICTS), source.one_of("first_side", "12")
        outcome = "tie" if answer == "tie" else "win" if answer[0] == side else "loss"
        names = {name: source.text(name) for name in ("first", "second")}
        name = source.text("item")
        item = Row(name, name, name, {**names, "annotator": read.annotator})
        scores += [item.score(metric, float(metric == outcome), "ok") for metric in OUTCOMES]
    by = ("first", "second")
    made = estimates(scores, dict.fromkeys(OUTCOMES, ACCURACY), by, unit="pair")
    first, second = (scores[0].facets[name] for name in by)
    notes = [f"A win is one of {first} over {second}."]
    return Summary(scores, made, notes=notes + missing_note(known, rows))


def _pairing_notes(
    names: Sequence[str], sources: Sequence[Sequence[SheetRow]], drawn: int, wanted: int
) -> list[str]:
    notes = [f"Only {drawn} of the {wanted} wanted pairs are there."] if drawn < wanted else []
    shorter = min(map(len, sources))
    for name, rows in zip(names, sources, strict=True):
        if len(rows) > shorter:
            notes.append(f"The last {len(rows) - shorter} items of {name} have no partner.")
    return notes
