"""The command for human checks: draws sheets for annotators and reads them back as scores.

python -m persona_lab.annotate write answer_scores --run runs/NAME --out sheets
python -m persona_lab.annotate write easy_test --data data/realpref_sample --out sheets
python -m persona_lab.annotate write blind_pairs --first ours.jsonl --second theirs.csv --out sheets
python -m persona_lab.annotate write benchpres_labels --data data/benchpres_sample --out sheets
python -m persona_lab.annotate write benchpres_responses --run runs/NAME --out sheets
python -m persona_lab.annotate write persevalbench_verdicts --data DIR --out sheets
python -m persona_lab.annotate read answer_scores sheets/answer_scores_1.csv
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from persona_lab.benchmarks.benchpres.label_sheets import (
    FEWEST_ANNOTATORS,
    draw_labels,
    gold_labels,
    read_labels,
)
from persona_lab.benchmarks.benchpres.response_sheets import draw_responses, read_responses
from persona_lab.benchmarks.persevalbench.audit_sheets import audited, draw_audit, read_audit
from persona_lab.benchmarks.persevalbench.fidelity_sheets import draw_fidelity, read_fidelity
from persona_lab.benchmarks.persevalbench.role_sheets import draw_roles, read_roles
from persona_lab.benchmarks.persevalbench.verdict_sheets import draw_verdicts, read_verdicts
from persona_lab.benchmarks.realpref.answer_sheets import draw_answer_scores, read_answer_scores
from persona_lab.benchmarks.realpref.easy_test_sheets import draw_easy_test, read_easy_test
from persona_lab.benchmarks.realpref.pair_sheets import draw_blind_pairs, read_blind_pairs
from persona_lab.core.errors import BadInput, ConfigError, PersonaLabError
from persona_lab.core.recipe import find_root
from persona_lab.core.scores import Row, RowsTable, Score, Summary
from persona_lab.parsing.csv_sheet import CELL_LIMIT, Rows, write_sheet
from persona_lab.parsing.sheet_key import Sheets, write_sheets
from persona_lab.reporting.published import load_published
from persona_lab.reporting.tables import results_tables, rows_table

WIDTH = 100
_COLUMNS = ("expression", "family")
_EPILOG = """\
Give annotators the sheets, with the text file where one is written, and keep KIND.key.csv from
them. A sheet is read with the key that was written beside it, or with --key FILE; its file name is
the annotator's name. What two annotators settle together is a sheet named adjudicated.csv
(persevalbench_fidelity, persevalbench_roles). The scores go to NAME.scores.csv beside the first
sheet, what benchpres_labels and persevalbench_audit make to NAME.labels.csv and NAME.audit.csv.
Exit codes: 0 did its part, 1 failed, 2 bad input."""


@dataclass(frozen=True)
class Kind:
    """A kind of sheet.

    Attributes:
        about: what it checks.
        options: argparse's settings of each option that drawing it takes, by name.
        draw: called with them. read: called with the filled-in sheets and their key.
        result: what is written besides the scores: its name in the file's, and its rows.
        published: a file of data/published/ and the table to show beside what was read.
    """

    about: str
    options: Mapping[str, Mapping[str, Any]]
    draw: Callable[..., Sheets]
    read: Callable[[Sequence[Path], Path], Summary]
    result: Callable[[Summary], tuple[str, Rows]] | None = None
    published: tuple[str, str] | None = None


def _path(about: str) -> dict[str, Any]:
    return {"type": Path, "required": True, "metavar": "PATH", "help": about}


def _number(default: int, about: str, least: int = 0) -> dict[str, Any]:
    def number(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return {"type": number, "default": default, "metavar": "N", "help": f"{about} ({default})"}


_SEED = _number(0, "seed of the draw")
_SCENARIOS = _path("a PersEvalBench data folder")
_PAIR = _number(2, "annotators, all with the same items", 2)
_STUDY = {
    "data": _SCENARIOS,
    "items": _number(100, "scenarios, spread over error subtypes and relations", 1),
    "annotators": _PAIR,
    "seed": _SEED,
}
KINDS = {
    "answer_scores": Kind(
        "RealPref: two people score open-ended answers of a run on the judge's three dimensions",
        {
            "run": _path("folder of a finished run"),
            "items": _number(100, "answers in all", 1),
            "shared": _number(20, "answers that both annotators score"),
            "seed": _SEED,
        },
        draw_answer_scores,
        read_answer_scores,
    ),
    "easy_test": Kind(
        "RealPref: people choose an option after the sessions that voice one preference",
        {
            "data": _path("a RealPref data folder"),
            "items": _number(200, "questions in all, half of them of each expression type", 1),
            "seed": _SEED,
        },
        draw_easy_test,
        read_easy_test,
    ),
    "blind_pairs": Kind(
        "RealPref: people compare conversations of two sources, not knowing which is which",
        {
            "first": _path(".csv or .jsonl with the fields preference and conversation"),
            "second": _path("the other source, paired with the first line by line"),
            "items": _number(100, "pairs", 1),
            "seed": _SEED,
        },
        draw_blind_pairs,
        read_blind_pairs,
    ),
    "benchpres_labels": Kind(
        "BenchPreS: three people or more give the gold labels of a data folder",
        {
            "data": _path("a BenchPreS data folder; its labels.csv is not read"),
            "annotators": _number(FEWEST_ANNOTATORS, "sheets", FEWEST_ANNOTATORS),
            "seed": _SEED,
        },
        draw_labels,
        read_labels,
        gold_labels,
    ),
    "benchpres_responses": Kind(
        "BenchPreS: people say whether responses of a run follow a preference, like the judge",
        {
            "run": _path("folder of a finished run"),
            "items": _number(10, "instances of each category and gold value", 1),
            "annotators": _number(1, "sheets, all with the same instances", 1),
            "seed": _SEED,
        },
        draw_responses,
        read_responses,
    ),
    "persevalbench_fidelity": Kind(
        "PersEvalBench, Study 1: does an error response commit the error that it is meant to?",
        _STUDY,
        draw_fidelity,
        read_fidelity,
        published=("persevalbench.csv", "Table 12"),
    ),
    "persevalbench_roles": Kind(
        "PersEvalBench, Study 2: should a state be ignored, support the response or dominate it?",
        _STUDY,
        draw_roles,
        read_roles,
    ),
    "persevalbench_verdicts": Kind(
        "PersEvalBench, Study 3: people do the evaluator's task, one response at a time",
        _STUDY,
        draw_verdicts,
        read_verdicts,
        published=("persevalbench.csv", "Table 4"),
    ),
    "persevalbench_audit": Kind(
        "PersEvalBench, Appendix C.3: is an under-personalization response also over-personalized?",
        {"data": _SCENARIOS, "annotators": _PAIR, "seed": _SEED},
        draw_audit,
        read_audit,
        audited,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    arguments = _parser().parse_args(argv)
    out = Console(width=WIDTH, highlight=False)
    try:
        if arguments.command == "write":
            _write(arguments, out)
        else:
            _read(arguments.kind, arguments.files, arguments.key, out)
    except PersonaLabError as error:
        sys.stderr.write(f"{'cannot run' if isinstance(error, BadInput) else 'failed'}: {error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"failed: {error.filename}: {error.strerror}\n")
        return 1
    return 0


def entry() -> None:
    """The console script."""
    sys.exit(main())


def _write(arguments: argparse.Namespace, out: Console) -> None:
    kind = KINDS[arguments.kind]
    drawn = kind.draw(**{name: getattr(arguments, name) for name in kind.options})
    abouts = [f"{len(rows)} items" for rows in drawn.filled_in.values()]
    abouts += ["for annotators, with their sheet"] * len(drawn.guidelines)
    abouts.append("the key, not for annotators")
    written = write_sheets(arguments.out, arguments.kind, drawn)
    for path, about in zip(written, abouts, strict=True):
        out.print(f"{path}: {about}", markup=False, soft_wrap=True)
    cells = [c for rows in drawn.filled_in.values() for row in rows for c in row.values()]
    notes = list(drawn.notes)
    if long := sum(len(cell) > CELL_LIMIT for cell in cells):
        notes.append(
            f"{long} cells are longer than the {CELL_LIMIT:,} characters that common spreadsheet "
            "programs keep: saving the sheet with one of them would break it."
        )
    for note in notes:
        out.print(note, markup=False)


def _read(name: str, files: Sequence[Path], key: Path | None, out: Console) -> None:
    key = key or files[0].with_name(f"{name}.key.csv")
    if not key.is_file():
        raise ConfigError(
            f"{key}: no such file; give the key written with the sheets as --key FILE"
        )
    kind = KINDS[name]
    summary = kind.read(files, key)
    title = files[0].stem if len(files) == 1 else name
    made: dict[str, Rows] = {"scores": [_cells(score) for score in summary.scores]}
    if kind.result:
        made.update([kind.result(summary)])
    paths = {what: files[0].with_name(f"{title}.{what}.csv") for what in made}
    for what, rows in made.items():
        write_sheet(paths[what], rows, replace=True)
    for results in results_tables(summary.estimates, title, _COLUMNS):
        out.print(results)
    for table in [*summary.tables, *_published(kind)]:
        out.print(rows_table(table))
    for note in summary.notes:
        out.print(note, markup=False)
    for what, rows in made.items():
        out.print(f"{len(rows)} {what}: {paths[what]}", markup=False, soft_wrap=True)


def _published(kind: Kind) -> list[RowsTable]:
    """The paper's own table in its shape; its people saw other items."""
    if kind.published is None:
        return []
    file, name = kind.published
    cells: dict[str, Row] = {}
    for row in load_published(find_root() / "data" / "published" / file):
        if row.table == name:
            cells.setdefault(row.row, {"": row.row})[row.column] = row.printed
    return [RowsTable(f"{name} as published (other data)", list(cells.values()))]


def _cells(score: Score) -> dict[str, str]:
    """The columns of a run's scores.parquet."""
    return {
        "case": score.case,
        "question": score.question,
        "metric": score.metric,
        "cluster": score.cluster,
        "value": "" if score.value is None else f"{score.value:g}",
        "outcome": score.outcome,
        "reason": score.reason,
        **score.facets,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m persona_lab.annotate",
        description="Draws sheets for human annotators and reads them back as scores.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="write|read")
    write = commands.add_parser("write", help="draw sheets of a kind")
    kinds = write.add_subparsers(dest="kind", required=True, metavar="|".join(KINDS))
    for name, kind in KINDS.items():
        drawing = kinds.add_parser(name, help=kind.about, description=kind.about)
        for option, settings in kind.options.items():
            drawing.add_argument(f"--{option}", **settings)
        drawing.add_argument("--out", **_path("folder that the sheets and their key go to"))
    read = commands.add_parser("read", help="read filled-in sheets of a kind")
    read.add_argument("kind", choices=KINDS)
    read.add_argument("files", nargs="+", type=Path, metavar="FILE", help="filled-in sheets")
    read.add_argument("--key", type=Path, metavar="FILE", help="their key (KIND.key.csv beside)")
    return parser


if __name__ == "__main__":
    entry()
