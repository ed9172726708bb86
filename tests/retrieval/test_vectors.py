from __future__ import annotations

import multiprocessing
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from persona_lab.core.errors import EngineError, Stopped, StoreError
from persona_lab.retrieval.vectors import VectorStore
from tests.retrieval.models import Hashed

RECORD = 32 + 1 + 4 * 4  # digest, cut, four float32


def file_of(store: VectorStore) -> Path:
    return store.folder / "vectors.bin"


def test_each_distinct_text_is_encoded_once(tmp_path: Path) -> None:
    encoder = Hashed()
    store = VectorStore(tmp_path, encoder)
    first = store.vectors(["b", "a", "b"])
    second = store.vectors(["c", "a"])
    assert sorted(encoder.asked) == ["a", "b", "c"]
    assert (store.asked, store.encoded, store.distinct) == (5, 3, 3)
    assert np.array_equal(first, Hashed().encode(["b", "a", "b"]))
    assert np.array_equal(second[1], first[1])


def test_vectors_are_remembered_on_disk(tmp_path: Path) -> None:
    before = VectorStore(tmp_path, Hashed()).vectors(["a", "b", "a long text"])
    encoder = Hashed()
    store = VectorStore(tmp_path, encoder)
    assert np.array_equal(store.vectors(["a", "b", "a long text"]), before)
    assert encoder.asked == []
    assert (store.encoded, store.distinct) == (0, 3)
    assert store.truncated == 1  # known from the run that encoded it


def test_texts_are_told_apart_exactly(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Hashed())
    store.vectors(["é", "e\u0301", "a", "a ", "A"])
    assert store.encoded == 5


def test_encoders_do_not_share_vectors(tmp_path: Path) -> None:
    VectorStore(tmp_path, Hashed(name="one")).vectors(["a"])
    other = VectorStore(tmp_path, Hashed(name="other"))
    other.vectors(["a"])
    assert other.encoded == 1


def test_no_texts(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Hashed())
    assert store.vectors([]).shape == (0, 4)
    assert (store.asked, store.distinct, store.truncated) == (0, 0, 0)


@pytest.mark.parametrize("vector", [[0, 0, 0, 0], [float("nan"), 0, 0, 1], [3, 4, 0, 0]])
def test_a_vector_without_direction_names_its_text(tmp_path: Path, vector: list[float]) -> None:
    store = VectorStore(tmp_path, Hashed({"the bad one": vector}))
    with pytest.raises(EngineError, match="begins 'the bad one'"):
        store.vectors(["fine", "the bad one"])
    assert store.vectors(["fine"]).shape == (1, 4)


def test_a_blank_text_is_refused(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Hashed())
    store.vectors(["a"])
    with pytest.raises(ValueError, match="text 1 of 2 is blank"):
        store.vectors(["a", "  "])
    with pytest.raises(ValueError, match="text 0 of 1 holds half of a surrogate"):
        store.vectors(["\ud83c"])
    assert store.encoded == 1


@pytest.mark.parametrize("torn", range(1, RECORD, 7))
def test_a_torn_tail_is_cut_off(tmp_path: Path, torn: int) -> None:
    store = VectorStore(tmp_path, Hashed())
    store.vectors(["a"])
    store.vectors(["b"])
    data = file_of(store).read_bytes()
    file_of(store).write_bytes(data[: RECORD + torn])
    again = VectorStore(tmp_path, Hashed())
    again.vectors(["a", "b", "c"])
    assert again.encoded == 2
    assert file_of(again).stat().st_size == 3 * RECORD
    assert VectorStore(tmp_path, Hashed()).vectors(["b", "c"]).shape == (2, 4)


def test_a_damaged_record_is_refused_with_its_place(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Hashed())
    store.vectors(["a", "b", "c"])
    data = bytearray(file_of(store).read_bytes())
    data[RECORD + 33 : RECORD + 41] = b"\xff" * 8
    file_of(store).write_bytes(data)
    with pytest.raises(StoreError, match="record 2 of 3 is damaged"):
        VectorStore(tmp_path, Hashed())


def test_vectors_of_another_origin_are_refused(tmp_path: Path) -> None:
    VectorStore(tmp_path, Hashed()).vectors(["a"])
    wider = Hashed()
    wider.dimension = 8
    with pytest.raises(StoreError, match="were made by"):
        VectorStore(tmp_path, wider)


class _Runs:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return Path.mkdir, (self.marker,)


def test_a_pickle_in_the_folder_is_not_run(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Hashed())
    store.folder.joinpath("vectors.bin").write_bytes(pickle.dumps(_Runs(tmp_path / "marker")) * 3)
    with pytest.raises(StoreError, match="record 1 of"):
        VectorStore(tmp_path, Hashed())
    assert not (tmp_path / "marker").exists()


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Hashed())
    shutil.rmtree(store.folder)
    with pytest.raises(StoreError, match="vectors could not be saved"):
        store.vectors(["a"])


def _write(folder: Path, start: int) -> None:
    store = VectorStore(folder, Hashed())
    for i in range(start, start + 40):
        store.vectors([f"text {i}"])


def test_processes_share_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(tmp_path, 20 * n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    texts = [f"text {i}" for i in range(80)]
    store = VectorStore(tmp_path, Hashed())
    assert np.array_equal(store.vectors(texts), Hashed().encode(texts))
    assert store.encoded == 0


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=6))
def test_any_asking_encodes_what_is_new(tmp_path: Path, calls: list[list[str]]) -> None:
    shutil.rmtree(tmp_path / Hashed().identity, ignore_errors=True)
    store = VectorStore(tmp_path, Hashed())
    for texts in calls:
        assert np.array_equal(store.vectors(texts), Hashed().encode(texts))
    distinct = {text for texts in calls for text in texts}
    assert store.encoded == store.distinct == len(distinct)
    assert store.asked == sum(map(len, calls))


def test_a_stop_between_two_parts_loses_nothing_that_is_saved(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def stops(done: int, missing: int) -> None:
        told.append((done, missing))
        if len(told) == 2:
            raise Stopped("a signal")

    texts = [f"text {n}" for n in range(300)]  # in parts of 128
    with pytest.raises(Stopped):
        VectorStore(tmp_path, Hashed(), stops).vectors(texts)
    assert told == [(128, 300), (256, 300)]
    store = VectorStore(tmp_path, Hashed(), lambda done, missing: told.append((done, missing)))
    assert np.array_equal(store.vectors(texts), Hashed().encode(texts))
    assert (store.encoded, told[2:]) == (44, [(44, 44)])
