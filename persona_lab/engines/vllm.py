"""vLLM, the same code on GPU and CPU: token ids in, replies out one by one.

The model runs in vLLM's engine-core process, so closing frees the device and a crash is seen.
`import vllm` happens only when an engine is opened.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from persona_lab.core.errors import EngineError
from persona_lab.core.experiment import ModelSettings
from persona_lab.core.order import PrefixTree
from persona_lab.core.prompt import Counts, Reply, Request
from persona_lab.engines.chat import ChatRenderer
from persona_lab.engines.orphans import OrphanGuard

_CPU_CACHE_GIB = 4
_FEW_CORES = 4
_LEAST_BATCH = 2048


class VllmEngine:
    """A model served by vLLM.

    Args:
        folder: the model's folder.
        settings: the model's configuration.
        renderer: of the same model.
        cache_blocks: size of the prefix cache in blocks; None lets vLLM use the memory it has.

    Raises:
        EngineError: vLLM cannot start the model.
    """

    def __init__(
        self,
        folder: str,
        settings: ModelSettings,
        renderer: ChatRenderer,
        cache_blocks: int | None = None,
    ) -> None:
        for name, value in _environment().items():
            os.environ.setdefault(name, value)
        self.settings, self.renderer = settings, renderer
        self._waiting: dict[str, tuple[Request, int, int]] = {}
        self._refused: list[tuple[Request, Reply]] = []
        self._number = 0
        try:
            self._engine = _start(folder, settings, renderer, cache_blocks)
        except Exception as error:  # vLLM raises many kinds, from CUDA's to pydantic's
            raise EngineError(f"{settings.name}: vLLM could not start it: {error}") from error
        self._guard = OrphanGuard()
        self.block_size = int(self._engine.vllm_config.cache_config.block_size)
        self._tree = PrefixTree(self.block_size)

    def room(self) -> int:
        """Requests that keep it busy: those it runs at once, and as many behind them."""
        return 2 * self.settings.max_num_seqs - len(self._waiting)

    def submit(self, request: Request) -> None:
        """Hands token ids to vLLM; what does not fit the window is a failed reply."""
        from vllm import TokensPrompt

        ids = self.renderer.ids(request)
        if problem := self.renderer.misfit(request, len(ids)):
            self._refused.append((request, Reply.failed(problem)))
            return
        self._number += 1
        name = f"{self._number}"
        self._waiting[name] = (request, len(ids), self._tree.add(ids))
        self._engine.add_request(name, TokensPrompt(prompt_token_ids=ids), _sampling(request))

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        """Steps the engine until a request ends, or for `timeout` seconds.

        Raises:
            EngineError: the engine-core process died.
        """
        done, self._refused = self._refused, []
        until = time.monotonic() + timeout
        while not done and self._waiting and time.monotonic() < until:
            try:
                outputs = self._engine.step()
            except Exception as error:  # EngineDeadError, or what killed it
                raise EngineError(
                    f"{self.settings.name}: the vLLM process died "
                    f"({type(error).__name__}: {error}). Everything answered before is saved; run "
                    "again to go on."
                ) from error
            done += [self._finished(output) for output in outputs if output.finished]
        return done

    def close(self) -> None:
        """Ends the engine-core process."""
        self._engine.engine_core.shutdown()
        self._guard.close()

    def _finished(self, output: Any) -> tuple[Request, Reply]:
        request, prompt, unique = self._waiting.pop(output.request_id)
        completion = output.outputs[0]
        reply = self.renderer.reply(request, completion.token_ids, completion.finish_reason)
        counts = Counts(
            prompt=prompt,
            cached=output.num_cached_tokens or 0,
            completion=len(completion.token_ids),
            unique=unique,
        )
        logprobs = _logprobs(self.renderer, completion.logprobs)
        return request, replace(reply, counts=counts, logprobs=logprobs)


def _environment() -> dict[str, str]:
    """vLLM's settings by environment, where the user has set none.

    On few cores vLLM keeps one for its scheduler, which leaves a two-core machine with one: there
    its threads are not bound. Measured on two cores, the same 56 requests: 63 s against 90 s.
    """
    chosen = {
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(_CPU_CACHE_GIB),
        # A step that reads a whole long prompt on a CPU takes minutes; vLLM gives up after five.
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "86400",
    }
    if (os.cpu_count() or 1) <= _FEW_CORES:
        chosen["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    return chosen


def _start(
    folder: str, settings: ModelSettings, renderer: ChatRenderer, cache_blocks: int | None
) -> Any:
    import torch
    from vllm import EngineArgs, LLMEngine

    overrides: dict[str, Any] = {}
    if settings.rope_scaling:
        # vLLM replaces the mapping whole and does not lengthen the declared window for it.
        overrides = {
            "rope_parameters": settings.rope_scaling,
            "max_position_embeddings": settings.max_model_len,
        }
    arguments: dict[str, Any] = {
        "model": folder,
        "tokenizer": folder,
        "dtype": settings.dtype,
        "quantization": settings.quantization,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "tensor_parallel_size": settings.tensor_parallel_size,
        "trust_remote_code": settings.trust_remote_code,
        "enable_prefix_caching": True,
        "generation_config": "vllm",
        "seed": 0,
        "num_gpu_blocks_override": cache_blocks,
        "hf_overrides": overrides,
        "reasoning_parser": "" if settings.reasoning is False else renderer.family.parser,
    }
    if torch.cuda.is_available():
        arguments["gpu_memory_utilization"] = settings.gpu_memory_utilization
    else:
        # On a CPU vLLM cannot take back the random numbers that a half-read prompt has drawn:
        # seeded sampling then fails or depends on the batch. So prompts are read in one piece.
        arguments |= {
            "enforce_eager": True,
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(_LEAST_BATCH, settings.max_model_len),
        }
    return LLMEngine.from_engine_args(EngineArgs(**arguments))


def _sampling(request: Request) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    sampling = request.sampling
    return SamplingParams(
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        stop=list(sampling.stop) or None,
        logprobs=sampling.logprobs,
        seed=request.sampling_seed,
        output_kind=RequestOutputKind.FINAL_ONLY,
        structured_outputs=(
            StructuredOutputsParams(json=request.schema) if request.schema else None
        ),
    )


def _logprobs(
    renderer: ChatRenderer, steps: Any
) -> tuple[tuple[tuple[str, float], ...], ...] | None:
    if steps is None:
        return None
    return tuple(
        tuple((str(renderer.tokenizer.decode([i])), float(lp.logprob)) for i, lp in step.items())
        for step in steps
    )
