from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.errors import StoreError, StoreLocked
from persona_lab.core.prompt import Counts, Reply
from persona_lab.core.store import Shelf, Store
from tests.core.writers import write_sixty
from tests.models import ask

REPLY = Reply("née 小明 🦊", reasoning="hm", flags=("f",), counts=Counts(5, 4, 3, 2))


def saved(folder: Path, *texts: str, writer: str = "w") -> Path:
    with Shelf(folder, writer) as shelf:
        for text in texts:
            shelf.put(ask(text), Reply(text))
    return folder / f"{writer}.jsonl"


def test_a_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "w")
    logged = Reply("x", logprobs=((("a", -0.5), ("b", -1.25)),))
    shelf.put(ask("1"), REPLY)
    shelf.put(ask("2"), logged)
    assert shelf.get(ask("1").key) == REPLY
    shelf.close()
    with Shelf(tmp_path, "other") as again:
        assert (again.get(ask("1").key), again.get(ask("2").key)) == (REPLY, logged)
        assert again.get(ask("3").key) is None


@given(st.text(), st.none() | st.text())
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, a: str, b: str | None) -> None:
    folder = tmp_path_factory.mktemp("store")
    with Shelf(folder, "w") as shelf:
        shelf.put(ask("q"), Reply(a, reasoning=b))
    with Shelf(folder, None) as again:
        assert again.get(ask("q").key) == Reply(a, reasoning=b)


def test_a_torn_tail_is_cut_before_appending(tmp_path: Path) -> None:
    path = saved(tmp_path, "1", "2")
    whole = path.read_bytes()
    first = whole.split(b"\n")[0] + b"\n"
    path.write_bytes(whole[:-9])  # a kill left half of the second line
    shelf = Shelf(tmp_path, "w")
    assert ask("1").key in shelf
    assert ask("2").key not in shelf
    shelf.put(ask("3"), Reply("3"))
    shelf.close()
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[0] == first
    assert [json.loads(line)["key"] for line in lines] == [ask("1").key, ask("3").key]


def test_a_file_of_nothing_but_a_torn_line_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_bytes(b'{"key":"' + b"x" * 100_000)
    shelf = Shelf(tmp_path, "w")
    shelf.put(ask("1"), Reply("1"))
    shelf.close()
    assert len((tmp_path / "w.jsonl").read_bytes().splitlines()) == 1


def test_another_writers_torn_tail_is_left_alone(tmp_path: Path) -> None:
    path = saved(tmp_path, "1")
    path.write_bytes(path.read_bytes() + b'{"key":"half')
    before = path.read_bytes()
    shelf = Shelf(tmp_path, "mine")
    assert len(shelf) == 1
    shelf.close()
    assert path.read_bytes() == before


def test_a_damaged_line_in_the_middle_is_refused_with_its_place(tmp_path: Path) -> None:
    path = saved(tmp_path, "1", "2", "3")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{broken\n" + lines[2])
    with pytest.raises(StoreError, match=r"w\.jsonl:2: damaged line"):
        Shelf(tmp_path, "mine")


def test_the_first_of_two_records_counts(tmp_path: Path) -> None:
    saved(tmp_path, "1", writer="a")
    shelf = Shelf(tmp_path, "b")
    shelf.put(ask("1"), Reply("late"))
    shelf.close()
    with Shelf(tmp_path, None) as again:
        assert len(again) == 1
        reply = again.get(ask("1").key)
    assert reply is not None
    assert reply.text == "1"


def test_failures_are_kept_apart_and_asked_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "w")
    shelf.put(ask("1"), Reply.failed("engine died"))
    shelf.close()
    assert ask("1").key not in Shelf(tmp_path, None)
    assert "engine died" in (tmp_path / "failures" / "w.jsonl").read_text()


def test_models_do_not_share_replies(tmp_path: Path) -> None:
    store = Store(tmp_path, "w")
    store.shelf("model_a").put(ask("1"), Reply("a"))
    assert store.shelf("model_b").get(ask("1").key) is None
    store.close()


def test_nothing_is_written_by_a_reader(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "none", None)
    with pytest.raises(StoreError, match="read only"):
        shelf.put(ask("1"), Reply("1"))
    assert not (tmp_path / "none").exists()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    first = Shelf(tmp_path, "w")
    with pytest.raises(StoreLocked, match="another process is writing"):
        Shelf(tmp_path, "w").close()
    first.close()
    Shelf(tmp_path, "w").close()


def test_eight_processes_lose_nothing(tmp_path: Path) -> None:
    context = get_context("spawn")
    workers = [context.Process(target=write_sixty, args=(str(tmp_path), i)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(Shelf(tmp_path, None)) == 8 * 60


FILL_THE_DISK = """
import resource, sys
from pathlib import Path
from persona_lab.core.errors import StoreError
from persona_lab.core.prompt import Reply
from persona_lab.core.store import Shelf
from tests.models import ask
shelf = Shelf(Path(sys.argv[1]), "w")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # the system refuses more, as a full disk
try:
    for i in range(99):
        shelf.put(ask(str(i)), Reply("x" * 100))
except StoreError as error:
    print(i, error)
"""


def test_a_full_disk_loses_nothing_saved(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(tmp_path)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip
    number, message = done.stdout.split(" ", 1)
    assert "could not be saved" in message
    shelf = Shelf(tmp_path, "w")  # the torn line is cut, the others are there
    assert len(shelf) == int(number) > 0
    shelf.put(ask("more"), Reply("room again"))
    shelf.close()
