"""The slow tier: the longest context of Table 2 through real vLLM on the CPU.

A random Llama of two layers reads what a real model would, in seconds per question; what it
answers means nothing, what it computes is the point: one `extreme` history serves every question
on it, and every question on the `normal` and `extended` histories inside it.
"""

from __future__ import annotations

import shutil
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from persona_lab.core.flow import Engine
from persona_lab.core.order import PrefixQueue
from persona_lab.core.prompt import Reply, Request
from persona_lab.engines.packaged import unpacked
from persona_lab.running.setup import Setup, configure, set_up
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

WINDOW = 262_144
CONTEXTS = ("normal", "extended", "extreme")
_QUESTIONS = 4
"""Of each context: two queries, each bare and with the reminder."""


@pytest.fixture(scope="module")
def tiny(smollm2: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama with the extreme context's window and the packaged model's tokenizer."""
    if smollm2.engine != "vllm":
        pytest.skip("vLLM is not installed")
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny")
    config = LlamaConfig(
        vocab_size=len(smollm2.renderer.tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(unpacked("smollm2_135m") / name, folder)
    return folder


@pytest.fixture(scope="module")
def setup(tiny: Path) -> Setup:
    """The recipe of the extreme context, for one user.

    Its budget is counted with the model's own tokenizer and scaled, so that the prompt with its
    template has about the 247K tokens of Table 2 (245K of filler, the user's own, the template).
    """
    model = [f"path='{tiny}'", "name=tiny", f"max_model_len={WINDOW}", "max_num_seqs=4"]
    overrides = [f"{role}.{value}" for role in ("model", "judge") for value in model]
    overrides += ["model=smollm2_135m", "judge=smollm2_135m", "engine=vllm", "task=[open_ended]"]
    overrides += [f"context=[{','.join(CONTEXTS)}]", "method=[zero_shot,reminder]"]
    overrides += [f"context.tokenizer='{tiny}'", "context.scale=0.97"]
    overrides += ["benchmark.users=['00001']", "benchmark.queries=2"]
    overrides += ["max_tokens.open_ended=4", "max_tokens.judge=4"]
    return set_up(configure(ROOT, ["recipe=realpref_extreme", *overrides]))


@pytest.fixture(scope="module")
def engine(setup: Setup) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        # GiB. The tiny model keeps 1 KiB a token: a million tokens, so nothing is evicted.
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        loaded = setup.prepared["target"].model.open()
        yield loaded
        loaded.close()


@pytest.fixture(scope="module")
def replies(setup: Setup, engine: Engine) -> list[tuple[str, Reply]]:
    """(context, reply) of every question, in the order asked."""
    contexts = {
        request: case.context for case in setup.cases for request in first_round(setup, case)
    }
    ordered = longest_first(contexts)
    return [(contexts[r], reply) for r, reply in zip(ordered, serve(engine, ordered), strict=True)]


def first_round(setup: Setup, case: Any) -> list[Request]:
    flow = setup.experiment.flow(case)
    requests = next(flow)
    flow.close()
    return requests


def longest_first(contexts: dict[Request, str]) -> list[Request]:
    """The queue's order when the extreme questions arrived first: the lift starts at the top."""
    queue = PrefixQueue()
    for request in (r for r, context in contexts.items() if context == "extreme"):
        queue.push(request)
    ordered = [queue.pop()]
    for request in (r for r, context in contexts.items() if context != "extreme"):
        queue.push(request)
    return ordered + [queue.pop() for _ in range(len(queue))]


def serve(engine: Engine, requests: Sequence[Request]) -> list[Reply]:
    """The replies in the order asked; like `drive`, as many at once as the engine wants."""
    waiting = deque(requests)
    answered: dict[Request, Reply] = {}
    while len(answered) < len(requests):
        while waiting and engine.room() > 0:
            engine.submit(waiting.popleft())
        answered |= dict(engine.poll(1.0))
    return [answered[request] for request in requests]


def computed(reply: Reply) -> int:
    return reply.counts.prompt - reply.counts.cached


def test_the_extreme_prompt_has_the_papers_length(replies: list[tuple[str, Reply]]) -> None:
    assert [reply.reason for _, reply in replies if reply.outcome == "failed"] == []
    assert Counter(context for context, _ in replies) == dict.fromkeys(CONTEXTS, _QUESTIONS)
    lengths = [reply.counts.prompt for context, reply in replies if context == "extreme"]
    assert min(lengths) > 240_000
    assert max(lengths) < WINDOW


def test_one_extreme_history_serves_every_question(replies: list[tuple[str, Reply]]) -> None:
    """The first question computes it; each other one computes less than 1 % of it."""
    (context, first), *later = replies
    assert context == "extreme"
    assert computed(first) == first.counts.prompt
    assert max(computed(reply) for _, reply in later) < 0.01 * first.counts.prompt


def test_nothing_is_computed_twice(replies: list[tuple[str, Reply]]) -> None:
    unique = sum(reply.counts.unique for _, reply in replies)
    assert sum(computed(reply) for _, reply in replies) <= 1.02 * unique
