"""Vectors remembered by content: each distinct text is encoded once for each encoder, ever.

    <folder>/<encoder identity>/encoder.json    what made the vectors
    <folder>/<encoder identity>/vectors.bin     one record a text, appended

A record is the digest of the exact text, whether the text was cut at the token limit, and its
vector: plain numbers of fixed size, nothing that loading could run. Processes may share a folder:
each locks the file while it appends, and cuts off the torn record that a kill leaves behind. Where
two wrote the same text, the first record counts.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.errors import EngineError, StoreError
from persona_lab.retrieval.encoders import Encoder, Vectors, check_texts

_DIGEST_BYTES = 32
_AT_ONCE = 128
"""Texts encoded between two appends: what a kill may lose."""
_UNIT_ERROR = 1e-3


class VectorStore:
    """The vectors of one encoder.

    Args:
        folder: shared by all encoders and runs.
        encoder: makes the vectors that are not there yet.
        between: told after each append how many texts are encoded, and of how many; what it raises
            ends the work, and nothing that is saved is lost.

    Attributes:
        asked: texts asked for, repeats included.
        encoded: texts that the encoder was given.

    Raises:
        StoreError: the file is damaged, or was made by something else.
    """

    def __init__(
        self,
        folder: Path,
        encoder: Encoder,
        between: Callable[[int, int], None] = lambda done, missing: None,
    ) -> None:
        self.encoder, self._between = encoder, between
        self.folder = folder / encoder.identity
        self.asked = self.encoded = 0
        self._record = np.dtype(
            [
                ("text", f"V{_DIGEST_BYTES}"),
                ("cut", "u1"),
                ("vector", "<f4", (encoder.dimension,)),
            ]
        )
        self._known: dict[bytes, tuple[Vectors, bool]] = {}
        self._keys: dict[str, bytes] = {}
        self._describe()
        self._load()

    @property
    def distinct(self) -> int:
        """Distinct texts asked for."""
        return len(self._keys)

    @property
    def truncated(self) -> int:
        """Distinct texts asked for that were cut at the encoder's token limit, now or earlier."""
        return sum(self._known[key][1] for key in self._keys.values())

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit rows [N, D], in the order of the texts.

        Raises:
            ValueError: a text is blank or no valid Unicode. EngineError: the encoder gave a zero
            or NaN vector. StoreError: the disk takes no more.
        """
        new = [text for text in dict.fromkeys(texts) if text not in self._keys]
        if new:
            check_texts(texts)
        keys = {text: _digest(text) for text in new}
        # By length, so that the parts that are saved together are cheap to encode together.
        missing = sorted(
            (t for t, key in keys.items() if key not in self._known), key=lambda t: (len(t), t)
        )
        for start in range(0, len(missing), _AT_ONCE):
            self._encode(missing[start : start + _AT_ONCE])
            self._between(min(start + _AT_ONCE, len(missing)), len(missing))
        self._keys.update(keys)
        self.asked += len(texts)
        if not texts:
            return np.zeros((0, self.encoder.dimension), dtype=np.float32)
        return np.stack([self._known[self._keys[text]][0] for text in texts])

    def _encode(self, texts: list[str]) -> None:
        vectors = self.encoder.encode(texts)
        if (bad := _not_unit(vectors)) is not None:
            raise EngineError(
                f"{self.encoder.name}: no unit vector (zero, NaN or not normalised) for the text "
                f"that begins {texts[bad][:60]!r}"
            )
        self.encoded += len(texts)
        records = np.zeros(len(texts), dtype=self._record)
        records["text"] = np.array([_digest(text) for text in texts], dtype=f"V{_DIGEST_BYTES}")
        records["cut"] = self.encoder.cut(texts)
        records["vector"] = vectors
        self._append(records)
        self._learn(records)

    def _learn(self, records: NDArray[Any]) -> None:
        rows: Vectors = np.ascontiguousarray(records["vector"], dtype=np.float32)
        columns = records["text"].tolist(), rows, records["cut"].tolist()
        for key, vector, cut in zip(*columns, strict=True):
            self._known.setdefault(key, (vector, bool(cut)))

    def _describe(self) -> None:
        """Writes down what makes the vectors, or holds the folder to it."""
        path = self.folder / "encoder.json"
        made_by = {
            "identity": self.encoder.identity,
            "dimension": self.encoder.dimension,
            **self.encoder.settings,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                scratch = path.with_suffix(f".{id(self)}")
                scratch.write_text(json.dumps(made_by, indent=2) + "\n", encoding="utf-8")
                scratch.replace(path)
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path}: cannot be written or read ({error})") from None
        if found != made_by:
            raise StoreError(
                f"{path}: the vectors here were made by {found}, not by {made_by}. Move the folder "
                "away and run again."
            )

    def _load(self) -> None:
        path = self.folder / "vectors.bin"
        if not path.exists():
            return
        whole = path.stat().st_size // self._record.itemsize
        records = np.fromfile(path, dtype=self._record, count=whole)
        if (bad := _not_unit(records["vector"])) is not None:
            raise StoreError(
                f"{path}: record {bad + 1} of {whole} is damaged. Move the file away and run "
                "again: its texts are encoded anew."
            )
        self._learn(records)

    def _append(self, records: NDArray[Any]) -> None:
        path = self.folder / "vectors.bin"
        try:
            with path.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                end = file.seek(0, 2)
                file.truncate(end - end % self._record.itemsize)
                file.write(records.tobytes())
        except OSError as error:
            raise StoreError(
                f"{path}: vectors could not be saved ({error.strerror}). Make room and run again: "
                "those saved before are kept."
            ) from None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


def _not_unit(rows: NDArray[Any]) -> int | None:
    """The first row that is not of length 1, or None."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    # NaN compares as False.
    bad = np.flatnonzero(~(np.abs(lengths - 1) <= _UNIT_ERROR))
    return int(bad[0]) if len(bad) else None
