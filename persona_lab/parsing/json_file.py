"""JSON data files: read strictly, with the line and the field of whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from persona_lab.core.errors import DataError

T = TypeVar("T")


def read_json(path: Path, shape: type[T]) -> T:
    """Reads a file into a typed shape, such as `dict[str, list[Query]]`.

    Raises:
        DataError: no such file, no JSON, a key given twice, or a field of the wrong kind; it
            names file, line and field.
    """
    text = read_text(path)
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise DataError(path, f"is no JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise DataError(path, "is nested too deeply to be read") from None
    except _RepeatedKey as error:
        raise DataError(path, f"the key {error} is given twice in one object") from None
    except ValueError as error:  # a number of thousands of digits
        raise DataError(path, f"cannot be read ({error})") from None
    try:
        return TypeAdapter(shape).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = [part for part in first["loc"] if isinstance(part, int | str)]
        field = ".".join(map(str, place))
        raise DataError(path, first["msg"], line=line_of(text, place), field=field) from None


def read_text(path: Path) -> str:
    """The text of a data file, a byte-order mark left out.

    Raises:
        DataError: no such file, or it cannot be read as UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"cannot be read ({error})") from None


def line_of(text: str, place: Sequence[int | str]) -> int:
    """The 1-based line of the value at a path of keys and indices; of the deepest part found."""
    at = _skip(text, 0)
    for step in place:
        inside = _enter(text, at, step)
        if inside is None:
            break
        at = inside
    return text.count("\n", 0, at) + 1


def _enter(text: str, at: int, step: int | str) -> int | None:
    """The position of one member of the object or array that begins at `at`."""
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return None
    decoder = json.JSONDecoder()
    at, index = _skip(text, at + 1), 0
    while text[at : at + 1] not in ("}", "]", ""):
        name: int | str = index
        if opening == "{":
            name, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        if name == step:
            return at
        at = _skip(text, decoder.raw_decode(text, at)[1])
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        index += 1
    return None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


class _RepeatedKey(Exception):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKey(repr(next(key for key in keys if keys.count(key) > 1)))
    return made
