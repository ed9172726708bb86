"""User-free turns that control the length of a history (sections 3.3 and 3.4, "random" sessions).

The paper's turns are not distributed with this project. By default they are made, offline, from
the documentation of Python's standard library and of installed packages: a question about a
function, class or module, answered by its docstring. **Such filler is not conversation**; runs that
use it say so. It is frozen to a file in the cache on first use, whose digest enters the run.
A folder of sessions, or the name of a data set of conversations, can be given instead.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from persona_lab.benchmarks.realpref.records import Turn
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.experiment import resolve_data, stable_digest
from persona_lab.engines.digests import cache_folder
from persona_lab.parsing.json_file import read_json

DOCS = "docs"
NOT_CONVERSATION = (
    "The filler between and after the user's sessions is documentation put as question and answer: "
    "it sets the length of a history, but it is not conversation."
)
_SHORTEST, _LONGEST = 120, 3000
_TURN_CHARACTERS = 2000
"""Few long turns rather than many short ones: a chat template adds tokens to each message, and the
longest context must leave room for them in a window of 262,144 tokens."""
_ENOUGH_CHARACTERS = 2_000_000
_QUESTIONS = (
    "In Python, what is the use of {what}?",
    "Can you explain {what} to me?",
    "I came across {what} in some code. What should I know?",
    "How would you describe {what} in your own words?",
    "Could you remind me of {what}?",
    "Please tell me about {what}.",
)
_SKIPPED = {"test", "tests", "idlelib", "lib2to3", "turtledemo", "site-packages", "__pycache__"}


@dataclass(frozen=True)
class Filler:
    """User-free sessions.

    Attributes:
        sessions: each a tuple of turns. digest: of their content. note: what a report must say.
    """

    sessions: tuple[tuple[Turn, ...], ...]
    digest: str
    note: str


def load_filler(source: str, expected: str | None, root: Path) -> Filler:
    """Reads filler sessions.

    Args:
        source: `docs`, a folder or file of sessions, or the name of a data set of conversations.
        expected: digest that the content must have (None: any), so that the parts of one
            experiment that run on several machines have the same filler.
        root: folder that relative paths start from.

    Raises:
        ConfigError: no such source, or its digest is another one. DataError: a bad file.
    """
    if source == DOCS:
        sessions, note = tuple(_frozen_documentation()), NOT_CONVERSATION
    elif (path := resolve_data(source, root)).exists():
        sessions, note = tuple(_from_files(path)), ""
    else:
        sessions, note = tuple(_from_dataset(source)), ""
    digest = _digest(sessions)
    if expected is not None and digest != expected:
        raise ConfigError(
            f"context.filler={source}: its content has digest {digest}, but context.filler_digest "
            f"asks for {expected}. Copy the file that the other parts used, or leave it out."
        )
    return Filler(sessions, digest, note)


def _digest(sessions: Iterable[tuple[Turn, ...]]) -> str:
    digest = hashlib.sha256()
    for session in sessions:
        for turn in session:
            digest.update(json.dumps([turn.user, turn.assistant]).encode() + b"\n")
        digest.update(b"\n")
    return digest.hexdigest()


def _from_files(path: Path) -> Iterator[tuple[Turn, ...]]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DataError(path, "has no *.json file of sessions")
    for file in files:
        for session in read_json(file, list[dict[str, Any]]):
            turns = session.get("Turns")
            if not turns:
                raise DataError(file, 'a session without "Turns"')
            yield tuple(Turn.model_validate(turn) for turn in turns)


def _from_dataset(name: str) -> Iterator[tuple[Turn, ...]]:
    """Conversations of a data set: a column `messages` or `conversation` of role and content."""
    try:
        import datasets
    except ImportError:
        raise ConfigError(
            f"context.filler={name}: there is no such folder, and a data set needs the package "
            "datasets: pip install datasets"
        ) from None
    try:
        rows = datasets.load_dataset(name, split="train")
    except Exception as error:  # hub, network and format errors of many kinds
        raise ConfigError(f"context.filler={name}: cannot be loaded ({error})") from None
    for row in rows:
        messages = row.get("messages") or row.get("conversation") or []
        if turns := tuple(_turns(messages)):
            yield turns


def _turns(messages: Iterable[dict[str, Any]]) -> Iterator[Turn]:
    """User messages with the assistant's answer behind them."""
    asked: str | None = None
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role == "user":
            asked = content
        elif role == "assistant" and asked and content:
            yield Turn.model_validate({"User": asked, "Assistant": content})
            asked = None


def _frozen_documentation() -> list[tuple[Turn, ...]]:
    path = cache_folder() / "filler" / "docs-2.json"
    if not path.is_file():
        sessions = [
            {"Turns": [{"User": t.user, "Assistant": t.assistant} for t in session]}
            for session in _sessions(documented())
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(sessions, indent=1), encoding="utf-8")
        scratch.replace(path)
    return list(_from_files(path))


def documented() -> Iterator[tuple[str, str]]:
    """(name, docstring) of what the standard library and installed packages document.

    Distinct docstrings of 120 to 3,000 characters, read from source without importing anything;
    packages follow the standard library until there is enough for the longest history.
    """
    paths = sysconfig.get_paths()
    seen: set[str] = set()
    characters = 0
    for base in (Path(paths["stdlib"]), Path(paths["purelib"])):
        for file in sorted(base.rglob("*.py")):
            inside = file.relative_to(base)
            if _SKIPPED & set(inside.parts) or inside.parts[0] == "persona_lab":
                continue
            for name, text in _docstrings(file, ".".join(inside.with_suffix("").parts)):
                if _SHORTEST <= len(text) <= _LONGEST and text not in seen:
                    seen.add(text)
                    characters += len(text)
                    yield name, text
            if characters > _ENOUGH_CHARACTERS:
                return


def _docstrings(file: Path, module: str) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    module = module.removesuffix(".__init__")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text:
                own = "" if isinstance(node, ast.Module) else f".{node.name}"
                yield f"{module}{own}", text.strip()


def _sessions(documents: Iterable[tuple[str, str]]) -> Iterator[tuple[Turn, ...]]:
    """Sessions of one or two turns, as the paper's random sessions have."""
    waiting: list[Turn] = []
    for turn in _documented_turns(documents):
        waiting.append(turn)
        if len(waiting) == 2 or stable_digest(turn.user) % 2:
            yield tuple(waiting)
            waiting = []
    if waiting:
        yield tuple(waiting)


def _documented_turns(documents: Iterable[tuple[str, str]]) -> Iterator[Turn]:
    """Neighbouring docstrings, asked about together until the answer is long enough."""
    names: list[str] = []
    parts: list[str] = []
    for name, text in documents:
        names.append(f"`{name}`")
        parts.append(f"`{name}`: {text}")
        if sum(map(len, parts)) >= _TURN_CHARACTERS:
            yield _turn(names, parts)
            names, parts = [], []
    if parts:
        yield _turn(names, parts)


def _turn(names: list[str], parts: list[str]) -> Turn:
    what = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    question = _QUESTIONS[stable_digest(what) % len(_QUESTIONS)].format(what=what)
    return Turn.model_validate({"User": question, "Assistant": "\n\n".join(parts)})
