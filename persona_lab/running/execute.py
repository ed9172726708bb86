"""Runs a set-up recipe: plan, drive, score, write, print."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.table import Table

from persona_lab.core.drive import drive
from persona_lab.core.errors import EngineError, PersonaLabError, Stopped
from persona_lab.core.flow import Outcome
from persona_lab.core.plan import RolePlan
from persona_lab.core.scores import Score, Summary
from persona_lab.core.store import Store
from persona_lab.reporting import run_folder
from persona_lab.reporting.progress import LiveProgress, NowAndThen, Watchers
from persona_lab.reporting.published import load_published, matching
from persona_lab.reporting.published_table import published_table
from persona_lab.reporting.tables import results_tables, rows_table, tests_table, usage_table
from persona_lab.reporting.usage import Usage
from persona_lab.retrieval.vectors import VectorStore
from persona_lab.running.encoders import encoders_table, open_encoders
from persona_lab.running.judge_card import card_lines, cards_for
from persona_lab.running.manifest import adaptations, write_manifest
from persona_lab.running.setup import (
    Setup,
    needless_scaling,
    planned,
    refuse_misfits,
    timed,
)

_log = logging.getLogger("persona_lab")


@dataclass
class Run:
    """A run under way.

    Attributes:
        folder: where its files go.
        usage: what each role costs. encoders: loaded, with what they did.
        outcomes: cases that have ended. shared: what they share, as far as it has ended.
    """

    setup: Setup
    folder: Path
    usage: Usage
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    encoders: dict[str, VectorStore] = field(default_factory=dict)
    outcomes: list[Outcome[Any, list[Score]]] = field(default_factory=list)
    shared: list[Outcome[Any, Any]] = field(default_factory=list)


def execute(setup: Setup, runs: Path, out: Console) -> None:
    """Runs to the end, or as far as it gets; what there is is scored and written either way.

    Args:
        runs: folder of runs and replies. out: where the table goes.

    Raises:
        PersonaLabError: the run did not do its part; the files are there.
    """
    models = {role: p.model for role, p in setup.prepared.items()}
    run = Run(setup, runs / setup.name, Usage(models))
    ended: PersonaLabError | None = None
    with _stop_flag() as stop, Store(runs / "replies", setup.name) as store:
        for model in models.values():
            store.shelf(model.identity)  # refuses a second writer before anything is done
        run.folder.mkdir(parents=True, exist_ok=True)
        _log_to(run.folder / "run.log")
        _log.info("%s: %d cases", setup.name, len(setup.cases))
        plans = _plan(run, store, runs / "vectors", stop)
        refuse_misfits(plans)
        for note in needless_scaling(setup, plans):
            _log.warning(note)
            out.print(note, markup=False)
        run_folder.write_config(run.folder, setup.configured.config)
        write_manifest(setup, run.folder, "running", run.started)
        try:
            _drive(run, store, plans, stop)
        except (Stopped, EngineError) as error:
            ended = error
            _log.error("%s", error)
        _finish(run, ended, out)


def _plan(run: Run, store: Store, vectors: Path, stop: Callable[[], bool]) -> dict[str, RolePlan]:
    """Opens the encoders and plans; where texts are encoded, that takes its time."""
    tell = NowAndThen(_console())
    run.encoders.update(open_encoders(run.setup.encoders, vectors, stop, tell))
    return planned(run.setup, store, run.encoders, stop, tell)


def _drive(run: Run, store: Store, plans: dict[str, RolePlan], stop: Callable[[], bool]) -> None:
    setup = run.setup
    missing = sum(p.to_serve for p in plans.values())
    models = {role: p.model for role, p in setup.prepared.items()}
    with (
        timed(setup.seconds, "drive"),
        LiveProgress(len(setup.cases), missing, _console()) as progress,
    ):
        watch = Watchers(run.usage, progress)
        ending = drive(
            setup.cases,
            setup.experiment.flow,
            models,
            store,
            watch,
            roles=setup.serve,
            encoders=run.encoders,
            stop=stop,
        )
        try:
            for outcome in ending:
                (run.shared if outcome.shared else run.outcomes).append(outcome)
                if outcome.error:
                    _log.error("case %s failed:\n%s", outcome.case.id, outcome.error)
        except EngineError:
            if stop():  # the signal reached the model's process first
                raise Stopped from None
            raise


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def _finish(run: Run, ended: PersonaLabError | None, out: Console) -> None:
    """Scores what there is, writes the run's files, prints the table, and says how it went."""
    setup, place = run.setup, {case.id: i for i, case in enumerate(run.setup.cases)}
    run.outcomes.sort(key=lambda outcome: place[outcome.case.id])
    run.shared.sort(key=lambda outcome: outcome.case.id)
    with timed(setup.seconds, "summary"):
        summary = setup.experiment.summarize([*run.shared, *run.outcomes])
        summary = replace(summary, tables=[*summary.tables, *encoders_table(run.encoders)])
    problem = ended or _problem(run, summary)
    status = _status(run, problem)
    run_folder.write_scores(run.folder, summary.scores)
    run_folder.write_transcripts(run.folder, run.outcomes)
    run_folder.write_files(run.folder, summary.files)
    recipe = setup.configured.recipe
    run_folder.write_results(run.folder, recipe, status, summary, run.usage.table())
    write_manifest(setup, run.folder, status, run.started, summary)
    _log.info("%s", status)
    target = setup.prepared.get("target") or next(iter(setup.prepared.values()), None)
    title = f"{recipe}: {target.settings.name}" if target else recipe
    for results in results_tables(summary.estimates, title, setup.experiment.columns):
        out.print(results)
    if summary.tests:
        out.print(tests_table(summary.tests))
    for extra in summary.tables:
        out.print(rows_table(extra))
    for table in published_beside(setup, summary):
        out.print(table)
    if run.usage.roles:
        out.print(usage_table(run.usage.roles))
    if len(run.outcomes) < len(setup.cases):
        out.print(f"{len(run.outcomes)} of {len(setup.cases)} cases have a result so far.")
    out.print(f"{status}: {run.folder}", markup=False, soft_wrap=True)
    cards = card_lines(setup, cards_for(setup, run.folder.parent))
    for note in [*adaptations(setup), *summary.notes, *cards, *_recipe_notes(setup)]:
        out.print(note, markup=False)
    if problem is not None:
        raise problem


def _status(run: Run, problem: PersonaLabError | None) -> str:
    if problem is not None and not isinstance(problem, Stopped):
        return "failed"
    whole = len(run.outcomes) == len(run.setup.cases)
    return "complete" if whole and problem is None else "partial"


def _problem(run: Run, summary: Summary) -> PersonaLabError | None:
    """Why a run that came to its end did not do its part."""
    asked = {case.id for case in run.setup.cases}  # scores made of several are left out
    shared = {outcome.case.id for outcome in run.shared}
    scores = [score for score in summary.scores if score.case in asked]
    resting_on = [score for score in summary.scores if score.case in shared]
    if errors := [outcome for outcome in run.outcomes if outcome.error]:
        return PersonaLabError(f"{len(errors)} cases failed ({errors[0].why}); see run.log")
    if failed := [score for score in scores + resting_on if score.outcome == "failed"]:
        return PersonaLabError(
            f"{len(failed)} of {len(scores) + len(resting_on)} scores have no reply "
            f"({failed[0].reason}); run again to ask for them anew"
        )
    lost = sum(score.outcome in ("unparsed", "truncated") for score in scores)
    return _too_much_lost(run, lost, len(scores), summary.unread)


def _too_much_lost(
    run: Run, lost: int, scores: int, unread: tuple[int, int]
) -> PersonaLabError | None:
    """Whether `max_unparsed` is exceeded by scores without a value, by replies cut off, or by
    replies for what cases share that could not be used."""
    limit = run.setup.run.max_unparsed
    if limit is None:
        return None
    replies = [reply for outcome in run.outcomes for _, reply in outcome.exchanges]
    cut = sum(reply.outcome == "truncated" for reply in replies)
    for count, total, what in (
        (lost, scores, "scores are unparsed or truncated"),
        (cut, len(replies), "replies reached their token budget"),
        (*unread, "replies of the memory could not be used"),
    ):
        if count > limit * total:
            return PersonaLabError(
                f"{count} of {total} {what}, a larger share than max_unparsed={limit}"
            )
    return None


def published_beside(setup: Setup, summary: Summary) -> list[Table]:
    """The paper's figures for the conditions of this run, marked where they do not compare."""
    path = setup.configured.root / "data" / "published" / setup.experiment.published
    if not path.is_file():
        return []
    rows = load_published(path)
    matched = dict.fromkeys(pair.row.table for pair in matching(rows, summary.estimates))
    judge = setup.run.judge.name if setup.run.judge else None
    data_hash = setup.experiment.data_hash
    return [published_table(t, rows, summary.estimates, judge, data_hash) for t in matched]


def _recipe_notes(setup: Setup) -> list[str]:
    """What a recipe wants said below its numbers: the lines behind `# note:` in its header."""
    path = setup.configured.root / "recipes" / f"{setup.configured.recipe}.yaml"
    mark = "# note:"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]


def _log_to(path: Path) -> None:
    for handler in list(_log.handlers):
        _log.removeHandler(handler)
        handler.close()
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False


@contextmanager
def _stop_flag() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT, SIGTERM or SIGUSR1 came."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
