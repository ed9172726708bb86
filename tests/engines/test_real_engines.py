"""The slow tier: the packaged model through real vLLM on the CPU, one loaded engine for all."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from persona_lab.benchmarks.realpref.prompts import JUDGE_SCHEMA, judge_prompt
from persona_lab.core.drive import drive
from persona_lab.core.errors import EngineError
from persona_lab.core.flow import Model
from persona_lab.core.prompt import EMPTY, Message, Prompt, Reply, Request, Sampling
from persona_lab.core.store import Store
from persona_lab.engines.choose import prepare
from persona_lab.parsing.score import parse_score
from persona_lab.running.setup import configure, set_up
from tests.conftest import ROOT
from tests.engines.shared import computed_over_unique, run_on, shared
from tests.models import ask, packaged_settings

pytestmark = pytest.mark.slow

TOPICS = [
    "rivers", "bread", "clay", "bees", "trains", "novels", "winter", "lamps", "maps", "coffee",
    "sailing", "gardens", "bridges", "cheese", "clocks", "rain", "chess", "wool", "birds", "tiles",
]  # fmt: skip


def answers(engine: Any, requests: Sequence[Request]) -> list[Reply]:
    for request in requests:
        engine.submit(request)
    found: dict[int, Reply] = {}
    while len(found) < len(requests):
        found |= {id(request): reply for request, reply in engine.poll(1.0)}
    return [found[id(request)] for request in requests]


@pytest.fixture(scope="module")
def reference() -> Any:
    settings = packaged_settings(engine="transformers")
    loaded = prepare({"target": settings}, "auto", "2026-01-01")["target"].model.open()
    yield loaded
    loaded.close()


def test_the_two_engines_agree(engine: Any, reference: Any) -> None:
    """Greedy float32: 20 prompts x 32 tokens, the same text from both."""
    requests = [ask(f"Tell me three things about {topic}.", max_tokens=32) for topic in TOPICS]
    ours = answers(engine, requests)
    theirs = [answers(reference, [request])[0] for request in requests]
    assert [r.text for r in ours] == [r.text for r in theirs]
    assert [r.finish_reason for r in ours] == [r.finish_reason for r in theirs]
    assert [r.counts.prompt for r in ours] == [r.counts.prompt for r in theirs]


def test_the_reference_keeps_the_common_prefix(reference: Any) -> None:
    history = EMPTY.then(
        [Message("user", "My dog is called Bruno. " * 20), Message("assistant", "Ok.")]
    )
    first, second = (answers(reference, [ask(q, history)])[0] for q in ("His name?", "His breed?"))
    assert second.counts.cached > 100
    fresh = prepare({"target": packaged_settings(engine="transformers")}, "auto", "2026-01-01")
    cold = fresh["target"].model.open()
    assert answers(cold, [ask("His breed?", history)])[0].text == second.text
    cold.close()
    assert first.counts.unique == first.counts.prompt - first.counts.cached


@pytest.mark.parametrize("which", ["engine", "reference"])
def test_structured_output_obeys_its_schema(which: str, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(which)
    text = judge_prompt("answer_quality", "Likes tea.", "What should I drink?", "Have some tea.")
    verdict = Request("judge", Prompt.ask(text), Sampling(128), example="{}", schema=JUDGE_SCHEMA)
    [reply] = answers(loaded, [verdict])
    assert reply.outcome == "ok"
    assert set(json.loads(reply.text)) == {"Judge_Reason", "Score"}
    assert parse_score(reply.text).value in range(1, 6)


@pytest.mark.parametrize("which", ["engine", "reference"])
def test_samples_are_reproducible_and_differ(which: str, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(which)
    base = ask("Invent a name for a boat.", max_tokens=12)
    hot = replace(base.sampling, temperature=1.0)
    texts = [
        answers(loaded, [Request("target", base.prompt, hot, "ok", sample=sample)])[0].text
        for sample in (0, 0, 1, 2, 3)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_seeded_samples_on_long_prompts_do_not_depend_on_the_batch(engine: Any) -> None:
    """Prompts that together exceed a usual batch, read while others generate."""
    hot = Sampling(12, temperature=1.0)
    requests = [
        Request("target", Prompt.ask(f"{topic} " * 700 + "Go on:"), hot, "ok")
        for topic in TOPICS[:6]
    ]
    together = [r.text for r in answers(engine, requests)]
    alone = [answers(engine, [request])[0].text for request in requests]
    assert together == alone


@pytest.mark.parametrize("which", ["engine", "reference"])
def test_a_cut_answer_is_truncated(which: str, request: pytest.FixtureRequest) -> None:
    [reply] = answers(request.getfixturevalue(which), [ask("Tell me a long story.", max_tokens=5)])
    assert (reply.outcome, reply.finish_reason, reply.counts.completion) == (
        "truncated",
        "length",
        5,
    )


@pytest.mark.parametrize("which", ["engine", "reference"])
def test_what_does_not_fit_is_not_cut(which: str, request: pytest.FixtureRequest) -> None:
    [reply] = answers(request.getfixturevalue(which), [ask("word " * 9000)])
    assert reply.outcome == "failed"
    assert reply.reason.startswith("prompt_too_long: needs ")
    assert reply.counts.prompt == 0


@pytest.mark.parametrize("which", ["engine", "reference"])
def test_stop_strings_end_an_answer(which: str, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(which)
    plain = ask("Count from 1 to 9, separated by commas.", max_tokens=32)
    [whole] = answers(loaded, [plain])
    stop = whole.text[3:5]
    [cut] = answers(loaded, [Request("target", plain.prompt, Sampling(32, stop=(stop,)), "ok")])
    assert cut.text == whole.text.split(stop)[0]
    assert cut.finish_reason == "stop"


def test_log_probabilities_agree(engine: Any, reference: Any) -> None:
    asked = Request("target", Prompt.ask("Yes or no?"), Sampling(2, logprobs=2), "ok")
    ours, theirs = (answers(e, [asked])[0].logprobs for e in (engine, reference))
    assert ours is not None
    assert theirs is not None
    assert [dict(step).keys() for step in ours] == [dict(step).keys() for step in theirs]
    for step, other in zip(ours, theirs, strict=True):
        for token, value in step:
            assert value == pytest.approx(dict(other)[token], abs=1e-3)


def test_a_models_own_generation_settings_decide_nothing(engine: Any) -> None:
    from persona_lab.engines.vllm import _sampling

    sampling = _sampling(Request("target", Prompt.ask("x"), Sampling(7), "ok"))
    assert (sampling.max_tokens, sampling.temperature) == (7, 0.0)
    assert (sampling.top_p, sampling.min_p, sampling.repetition_penalty) == (1.0, 0.0, 1.0)
    assert sampling.top_k in (0, -1)  # both switch it off
    assert engine._engine.vllm_config.model_config.generation_config == "vllm"


def test_an_answers_ids_follow_the_prompts(smollm2: Any) -> None:
    r = smollm2.renderer
    for gold in ("B", "True", " B", "No."):
        prompt = r.render(ask("Which one?").prompt)
        assert r.encode.whole(prompt) + r.encode.whole(gold) == r.encode.whole(prompt + gold)


def small_run(folder: Path, engine: Any, stop_after: int | None = None) -> list[Any]:
    """A part of the quickstart, driven on the shared engine; returns (score, value) pairs."""
    overrides = ["benchmark.users=['00002']", "task=[true_or_false,open_ended]", "limit=12"]
    overrides += ["max_tokens.open_ended=24", "max_tokens.judge=64"]
    setup = set_up(configure(ROOT, ["recipe=quickstart", *overrides]))
    real = setup.prepared["target"].model
    model = Model(real.name, real.identity, shared(engine, stop_after))
    with Store(folder, "w") as store:
        roles = dict.fromkeys(setup.experiment.roles, model)
        outcomes = list(drive(setup.cases, setup.experiment.flow, roles, store))
    return sorted(
        (s.case, s.question, s.metric, s.value, s.outcome) for o in outcomes for s in o.result or []
    )


def test_a_run_that_died_goes_on_to_the_same_scores(engine: Any, tmp_path: Path) -> None:
    undisturbed = small_run(tmp_path / "a", engine)
    with pytest.raises(EngineError, match="killed here"):
        small_run(tmp_path / "b", engine, stop_after=9)
    [path] = (tmp_path / "b").glob("*/w.jsonl")
    saved = path.read_bytes()
    assert saved.count(b"\n") > 0
    path.write_bytes(saved + b'{"key":"torn')
    assert small_run(tmp_path / "b", engine) == undisturbed
    assert path.read_bytes().startswith(saved)
    keys = [json.loads(line)["key"] for line in path.read_bytes().splitlines()]
    assert len(keys) == len(set(keys))


def test_a_history_is_computed_once(engine: Any, tmp_path: Path) -> None:
    histories = [
        EMPTY.then([Message("user", f"My {t} diary. " * 60), Message("assistant", "Noted.")])
        for t in ("red", "blue")
    ]
    requests = [ask(f"Question {q}: what colour?", h) for q in range(4) for h in histories]
    replies = answers(engine, sorted(requests, key=lambda r: r.order))
    computed = sum(r.counts.prompt - r.counts.cached for r in replies)
    unique = sum(r.counts.unique for r in replies)
    assert computed <= 1.02 * unique
    assert computed < 0.6 * sum(r.counts.prompt for r in replies)


MEM0 = "mem0_minilm_messages_2_facts_1"
ROWS = {
    "realpref_rq1": {"multiple_choice", "true_or_false", "open_ended"},
    "realpref_rq2": {
        "direct_statement", "contextualized_mention", "stylistic_expression", "experience_feedback",
    },
    "realpref_rq3": {"simple", "normal", "long", "very_long", "extended"},
    "realpref_rq4": {
        "extended", "extreme", "zero_shot", "reminder", "few_shot_cot", "rag_minilm",
    },
    "realpref_rq5": {"original", "generalized", "zero_shot", "reminder"},
    "realpref_quickstart_rag": {
        "direct_statement", "experience_feedback", "zero_shot", "rag_minilm",
    },
    "realpref_mem0": {"extended", "direct_statement", "rag_minilm", MEM0},
}  # fmt: skip
"""Recipe -> the conditions that its table compares (Figures 4 to 8, Table 15)."""
LESS = {
    "realpref_rq4": ["method=[zero_shot,reminder,few_shot_cot,rag]"],
    "realpref_mem0": ["expression=[direct_statement]"],
}
"""What is left out: a memory is written turn by turn, for minutes even of the shortest history."""


@pytest.mark.parametrize("recipe", ROWS)
def test_the_papers_questions_run_in_their_cpu_form(
    recipe: str, engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mistral_common")
    header = (ROOT / "recipes" / f"{recipe}.yaml").read_text()
    [form] = re.findall(r"^# CPU form: (form=\w+)\.$", header, re.MULTILINE)
    found = run_on(engine, tmp_path, f"recipe={recipe}", form, *LESS.get(recipe, []))
    seen = {value for e in found["estimates"] for value in e["facets"].values()}
    assert ROWS[recipe] <= seen
    metrics = {e["metric"] for e in found["estimates"]}
    assert {"preference_awareness", "preference_alignment", "answer_quality"} <= metrics
    assert computed_over_unique(found) <= 1.02
    shown = capsys.readouterr().out
    for name in ROWS[recipe]:
        assert all(word in shown for word in name.split("_"))
