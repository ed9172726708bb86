"""Remembered replies: on disk before a flow sees them, found again by what was asked.

    runs/replies/<model identity>/<writer>.jsonl             one line a reply
    runs/replies/<model identity>/failures/<writer>.jsonl    requests that got none; asked again

A file has one writer at a time (a lock says so); every file of an identity is read. Only offsets
are kept in memory. A torn last line, which a kill leaves behind, is cut off by the file's own
writer; a damaged line anywhere else is refused with its place. Where two files hold one key, the
first file by name counts, and in a file the first line.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from persona_lab.core.errors import StoreError, StoreLocked
from persona_lab.core.prompt import Counts, Reply, Request


class Shelf:
    """The replies of one model identity.

    Args:
        folder: `runs/replies/<model identity>`.
        writer: name of this run's own file, or None to read only (a dry run).

    Raises:
        StoreLocked: another process writes the same file.
        StoreError: a line is damaged, or the disk cannot be written.
    """

    def __init__(self, folder: Path, writer: str | None) -> None:
        self.folder, self.writer = folder, writer
        self._places: dict[str, tuple[Path, int, int]] = {}
        self._readers: dict[Path, IO[bytes]] = {}
        self._file: IO[bytes] | None = None
        self._failures: IO[bytes] | None = None
        if writer is not None:
            self._file = _open_locked(folder / f"{writer}.jsonl")
            _cut_torn_tail(self._file)
        try:
            for path in sorted(folder.glob("*.jsonl")):
                self._index(path)
        except StoreError:
            self.close()
            raise

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Reply | None:
        """The remembered reply, or None."""
        if key not in self._places:
            return None
        path, start, length = self._places[key]
        reader = self._readers.get(path) or self._readers.setdefault(path, path.open("rb"))
        reader.seek(start)
        return _reply(json.loads(reader.read(length)))

    def put(self, request: Request, reply: Reply) -> None:
        """Saves a reply; returns once the file holds it. Failures go to a file of their own."""
        if self._file is None:
            raise StoreError(f"{self.folder} was opened to read only")
        if reply.outcome == "failed":
            self._failures = self._failures or _open_locked(
                self.folder / "failures" / f"{self.writer}.jsonl"
            )
            record = {"key": request.key, "role": request.role, "reason": reply.reason}
            _append(self._failures, record)
            return
        path = Path(self._file.name)
        start, length = _append(self._file, _record(request.key, reply))
        self._places.setdefault(request.key, (path, start, length))

    def sync(self) -> None:
        """Asks the system to bring everything saved so far to the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Releases the file for other writers; an empty file is not left behind."""
        for file in (*self._readers.values(), self._failures, self._file):
            if file is None:
                continue
            if file is self._file and os.fstat(file.fileno()).st_size == 0:
                Path(file.name).unlink(missing_ok=True)
            file.close()

    def _index(self, path: Path) -> None:
        start = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break  # the tail of a writer that is at work, or was killed
                try:
                    key = json.loads(line)["key"]
                except (ValueError, KeyError, TypeError) as error:
                    raise StoreError(
                        f"{path}:{number}: damaged line ({error}). Move the file away, or delete "
                        "that line, and run again: only its reply is asked for anew."
                    ) from None
                self._places.setdefault(key, (path, start, len(line)))
                start += len(line)


class Store:
    """All shelves of a run.

    Args:
        root: `runs/replies`.
        writer: this run's name, unique to it; None reads only.
    """

    def __init__(self, root: Path, writer: str | None) -> None:
        self.root, self.writer = root, writer
        self._shelves: dict[str, Shelf] = {}

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def shelf(self, identity: str) -> Shelf:
        """The shelf of one model identity, indexed on first use."""
        if identity not in self._shelves:
            self._shelves[identity] = Shelf(self.root / identity, self.writer)
        return self._shelves[identity]

    def close(self) -> None:
        """Releases all files."""
        for shelf in self._shelves.values():
            shelf.close()


def _open_locked(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("r+b" if path.exists() else "x+b")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}).") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StoreLocked(
            f"{path}: another process is writing this file: the same run is under way. Wait for "
            "it, or stop it; nothing that it saves is lost."
        ) from None
    file.seek(0, os.SEEK_END)
    return file


def _cut_torn_tail(file: IO[bytes]) -> None:
    """Cuts what follows the last line end, reading backwards."""
    end = file.seek(0, os.SEEK_END)
    position = end
    while position > 0:
        step = min(1 << 16, position)
        file.seek(position - step)
        newline = file.read(step).rfind(b"\n")
        if newline >= 0:
            position = position - step + newline + 1
            break
        position -= step
    if position != end:
        file.truncate(position)
    file.seek(0, os.SEEK_END)


def _append(file: IO[bytes], record: dict[str, Any]) -> tuple[int, int]:
    line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    start = file.tell()
    try:
        file.write(line)
        file.flush()
    except OSError as error:
        raise StoreError(
            f"{file.name}: the reply could not be saved ({error.strerror}). Make room and run "
            "again: everything saved before is kept and is not asked for again."
        ) from None
    return start, len(line)


def _record(key: str, reply: Reply) -> dict[str, Any]:
    fields = asdict(reply)
    counts = fields.pop("counts")
    return {"key": key, "reply": fields, "counts": counts}


def _reply(record: dict[str, Any]) -> Reply:
    fields = dict(record["reply"])
    fields["flags"] = tuple(fields["flags"])
    if fields["logprobs"] is not None:
        fields["logprobs"] = tuple(
            tuple((token, value) for token, value in step) for step in fields["logprobs"]
        )
    return Reply(**fields, counts=Counts(**record["counts"]))
