"""The sentence encoders of a run, resident beside the loaded model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from persona_lab.core.errors import Stopped
from persona_lab.core.scores import Row, RowsTable
from persona_lab.retrieval.encoder_files import EncoderFiles
from persona_lab.retrieval.encoders import SentenceEncoder
from persona_lab.retrieval.vectors import VectorStore


def open_encoders(
    found: Mapping[str, EncoderFiles | None],
    folder: Path,
    stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> dict[str, VectorStore]:
    """Loads encoders, each with its remembered vectors.

    Args:
        folder: of all vectors, shared by runs.
        stop: asked while texts are encoded; True raises `Stopped`. tell: told how far that is.

    Raises:
        ConfigError: weights without a part that is needed. StoreError: damaged vectors.
    """

    def between(name: str, done: int, missing: int) -> None:
        tell(f"encoding for {name}: {done:,} of {missing:,} texts")
        if stop():
            raise Stopped

    return {
        name: VectorStore(folder, SentenceEncoder(files, "auto"), partial(between, name))
        for name, files in found.items()
        if files is not None
    }


def encoders_table(stores: Mapping[str, VectorStore]) -> list[RowsTable]:
    """What each encoder had to do; nothing where there is none."""
    rows: list[Row] = [
        {
            "encoder": name,
            "identity": store.encoder.identity,
            "pooling": str(store.encoder.settings["pooling"]),
            "max tokens": int(store.encoder.settings["max_tokens"]),
            "distinct texts": store.distinct,
            "encoded": store.encoded,
            "cut": store.truncated,
        }
        for name, store in stores.items()
    ]
    return [RowsTable("Encoders", rows, ("identity",))] if rows else []
