"""The command: from a recipe to a table and a run folder.

python -m persona_lab.run recipe=quickstart
python -m persona_lab.run recipe=quickstart engine=transformers limit=10
python -m persona_lab.run --list
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from persona_lab.core.errors import BadInput, PersonaLabError, Stopped, StoreLocked
from persona_lab.core.recipe import find_root, list_recipes
from persona_lab.core.store import Store
from persona_lab.reporting.run_folder import config_yaml
from persona_lab.reporting.tables import plan_table, recipes_table, rows_table
from persona_lab.running.execute import execute
from persona_lab.running.setup import (
    configure,
    needless_scaling,
    planned,
    refuse_misfits,
    set_up,
)

WIDTH = 100
_EPILOG = """\
Settings are given as key=value in Hydra's grammar, such as

  python -m persona_lab.run recipe=quickstart limit=10
  python -m persona_lab.run recipe=quickstart model=qwen3_8b 'method=[zero_shot,reminder]'
  python -m persona_lab.run recipe=quickstart judge.temperature=0.2 max_unparsed=0.05
  python -m persona_lab.run recipe=quickstart roles=target      serve the judge in a later run

Run the same command again and only what is missing is asked for. Exit codes: 0 did its part,
1 failed, 2 bad configuration or data, 75 stopped by a signal with everything saved."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    arguments = _parser().parse_intermixed_args(argv)
    try:
        _command(arguments)
    except PersonaLabError as error:
        sys.stderr.write(f"{_kind(error)}: {error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(
            f"failed: {error.filename}: {error.strerror}. Replies saved before are kept; mend it "
            "and run again.\n"
        )
        return 1
    return 0


def entry() -> None:
    """The console script."""
    sys.exit(main())


def _command(arguments: argparse.Namespace) -> None:
    out = Console(width=WIDTH, highlight=False)
    root = find_root(arguments.root)
    if arguments.list:
        out.print(recipes_table(list_recipes(root)))
        return
    configured = configure(root, arguments.settings)
    if arguments.print_config:
        sys.stdout.write(config_yaml(configured.config))
        return
    setup = set_up(configured, need_weights=not (arguments.dry_run or arguments.check_data))
    if arguments.check_data:
        report, findings = setup.experiment.check_data()
        sys.stdout.write(report + "\n")
        if findings:
            raise BadInput(f"{findings} findings in the data")
        return
    if arguments.dry_run:
        with Store(arguments.runs / "replies", None) as store:
            plans = planned(setup, store)
        for table in setup.experiment.inventory():
            out.print(rows_table(table))
        out.print(plan_table(plans, {r: p.settings.name for r, p in setup.prepared.items()}))
        for absent in {p.absent for p in setup.prepared.values() if p.absent}:
            out.print(f"Tokens estimated by words: {absent}", markup=False)
        refuse_misfits(plans)
        for note in needless_scaling(setup, plans):
            out.print(note, markup=False)
        return
    execute(setup, arguments.runs, out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m persona_lab.run",
        description="Runs a recipe: plans it, serves what is not remembered yet, prints a table.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("settings", nargs="*", metavar="key=value", help="recipe=NAME and its overrides")
    add("--list", action="store_true", help="list the recipes")
    add("--print-config", action="store_true", help="print the whole configuration of a recipe")
    add("--dry-run", action="store_true", help="plan only: requests, tokens, what does not fit")
    add("--check-data", action="store_true", help="hold the data to its paper's rules, and stop")
    add("--root", type=Path, help="folder with recipes/, configs/ and data/")
    add("--runs", type=Path, default=Path("runs"), help="folder of runs and replies (runs)")
    return parser


def _kind(error: PersonaLabError) -> str:
    if isinstance(error, Stopped):
        return "stopped"
    return "cannot run" if isinstance(error, BadInput | StoreLocked) else "failed"


if __name__ == "__main__":
    entry()
