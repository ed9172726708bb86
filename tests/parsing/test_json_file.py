from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.errors import DataError
from persona_lab.parsing.json_file import line_of, read_json

TEXT = """{
  "a": [
    {"x": 1},
    {"x": "{ not a brace }",
     "y": [1, 2,
           3]}
  ],
  "b": "\\"quoted\\"", "c": null
}"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ([], 1), (["a"], 2), (["a", 0], 3), (["a", 0, "x"], 3), (["a", 1], 4),
        (["a", 1, "y"], 5), (["a", 1, "y", 2], 6), (["b"], 8), (["c"], 8),
        (["a", 1, "missing"], 4), (["a", 9, "x"], 2), (["b", "deeper"], 8),
    ],
)  # fmt: skip
def test_line_of_by_hand(place: list[int | str], line: int) -> None:
    assert line_of(TEXT, place) == line


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(value: Any, here: tuple[int | str, ...] = ()) -> list[tuple[int | str, ...]]:
    found = [here]
    items: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        found += places(inner, (*here, key))
    return found


@given(values)
def test_line_of_finds_every_place(value: Any) -> None:
    """With indent, the value at a place begins on the line whose text json.dumps gives it."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    lines = text.split("\n")
    for place in places(value):
        inner: Any = value
        for step in place:
            inner = inner[step]
        first = json.dumps(inner, indent=1, ensure_ascii=False).split("\n")[0]
        assert first in lines[line_of(text, place) - 1]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"x\.json: cannot be read"):
        read_json(path, dict[str, int])
    path.write_text('{"a": 1,\n "b": "two"}')
    with pytest.raises(DataError, match=r"x\.json:2: b: .*integer"):
        read_json(path, dict[str, int])
    path.write_text('{"a": 1,\n}')
    with pytest.raises(DataError, match=r"x\.json:2: is no JSON"):
        read_json(path, dict[str, int])
