"""What experiments on RealPref's histories share: users, histories, and the checks of the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from persona_lab.benchmarks.realpref.cases import share_of
from persona_lab.benchmarks.realpref.context import CaseHistories, SeesHistory
from persona_lab.benchmarks.realpref.data_checks import check_users, report
from persona_lab.benchmarks.realpref.records import (
    Expression,
    User,
    check_voiced,
    data_digest,
    load_users,
)
from persona_lab.benchmarks.realpref.settings import Benchmark, Contexts
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import resolve_data
from persona_lab.core.scores import RowsTable


class OnHistories:
    """An experiment whose cases are asked after a user's history (section 3.4).

    Args:
        expressions: that the histories voice preferences in.
        root: the folder that data paths start from.
        as_transcript: whether a history is one message with all that was said.

    Attributes:
        filler_notes: what the filler's source asks to be said.

    Raises:
        ConfigError: an unknown user. DataError: a data file that breaks its shape.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        contexts: Contexts,
        expressions: Sequence[Expression],
        root: Path,
        *,
        as_transcript: bool = False,
    ) -> None:
        folder = resolve_data(benchmark.path, root)
        self.users = share_of(_chosen_users(load_users(folder), benchmark.users), benchmark.share)
        check_voiced(folder, self.users, expressions)
        self.histories = CaseHistories(self.users, contexts, root, as_transcript=as_transcript)
        filler = self.histories.filler
        self.data_hash = data_digest(folder) + (f"+filler-{filler.digest}" if filler else "")
        self.filler_notes = [filler.note] if filler and filler.note else []

    def cases(self) -> Sequence[SeesHistory]:
        """All cases, in a fixed order."""
        raise NotImplementedError

    def inventory(self) -> list[RowsTable]:
        """The histories of a run."""
        rows = self.histories.inventory(self.cases())
        return [RowsTable("Histories, in tokens", rows)] if rows else []

    def check_data(self) -> tuple[str, int]:
        """The paper's quality rules, held to by program (Appendices E, F.1 and G.2)."""
        findings = check_users(self.users)
        return report(self.users, findings), len(findings)


def _chosen_users(users: list[User], wanted: list[str] | None) -> list[User]:
    """The users that a recipe names; all, if it names none.

    Raises:
        ConfigError: one of them is not in the data.
    """
    if wanted is None:
        return users
    known = {user.id for user in users}
    if unknown := [user for user in wanted if user not in known]:
        raise ConfigError(
            f"benchmark.users: {', '.join(unknown)} not in the data, which has "
            f"{', '.join(sorted(known))}"
        )
    return [user for user in users if user.id in wanted]
