"""Every error that persona_lab raises on purpose, and the exit code that each one means.

PersonaLabError             1  failed
├── BadInput                2  the user can mend it; nothing was run
│   ├── ConfigError            a wrong recipe, key, choice, type or model path
│   │   └── ModelAbsent        a hub model that is not here; a plan can do without it
│   ├── DataError              a data file, with file, line and field
│   └── PromptTooLong          a prompt and its answer do not fit the model's window
├── StoreError              1  a reply file is damaged, or the disk refuses to take more
│   └── StoreLocked         2  another process writes this file now
├── EngineError             1  the model process died or refused to start
└── Stopped                75  a signal asked for a stop; everything so far is saved

Messages say what was wrong, where, and what to do. They are raised once and caught once, in the
command, which prints them without a traceback.
"""

from __future__ import annotations

from pathlib import Path


class PersonaLabError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class BadInput(PersonaLabError):
    """Configuration or data that cannot be run as it is."""

    exit_code = 2


class ConfigError(BadInput):
    """A wrong recipe, key, choice, type or model path."""


class ModelAbsent(ConfigError):
    """A hub model that is neither in the local cache nor to be fetched."""


class DataError(BadInput):
    """A data file that breaks its own shape.

    Args:
        file: the file.
        problem: what is wrong and what was expected.
        line: 1-based line in the file, where it is known.
        field: dotted path of the field, such as `00001.3.MCQ_options`.
    """

    def __init__(
        self, file: Path, problem: str, *, line: int | None = None, field: str = ""
    ) -> None:
        place = f"{file}:{line}" if line else str(file)
        super().__init__(f"{place}: {field + ': ' if field else ''}{problem}")
        self.file, self.line, self.field = file, line, field


class PromptTooLong(BadInput):
    """A prompt that does not fit the window together with the answer's budget."""


class StoreError(PersonaLabError):
    """The reply store is damaged or cannot be written."""


class StoreLocked(StoreError):
    """Another process holds the reply file of this run."""

    exit_code = 2


class EngineError(PersonaLabError):
    """The model process died, or never came up."""


class Stopped(PersonaLabError):
    """A signal asked the run to stop; it goes on from here when started again."""

    exit_code = 75

    def __init__(
        self,
        message: str = "stopped by a signal; everything so far is saved: run again to go on",
    ) -> None:
        super().__init__(message)
