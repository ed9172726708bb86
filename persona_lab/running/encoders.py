"""The sentence encoders of a run, resident beside the loaded model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.experiment import Row, RowsTable
from persona_lab.retrieval.encoder_files import EncoderFiles
from persona_lab.retrieval.encoders import SentenceEncoder
from persona_lab.retrieval.vectors import VectorStore

_MADE_UP_DIMENSIONS = 8


class MadeUp:
    """Vectors that mean nothing, the same for the same text: a plan encodes nothing."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit rows [N, 8]."""
        rows = [_drawn(text) for text in texts]
        found = np.array(rows, dtype=np.float32).reshape(-1, _MADE_UP_DIMENSIONS)
        unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit


def open_encoders(found: Mapping[str, EncoderFiles | None], folder: Path) -> dict[str, VectorStore]:
    """Loads encoders, each with its remembered vectors.

    Args:
        folder: of all vectors, shared by runs.

    Raises:
        ConfigError: weights without a part that is needed. StoreError: damaged vectors.
    """
    return {
        name: VectorStore(folder, SentenceEncoder(files, "auto"))
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


def _drawn(text: str) -> NDArray[np.float64]:
    seed = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(seed)).standard_normal(_MADE_UP_DIMENSIONS)
