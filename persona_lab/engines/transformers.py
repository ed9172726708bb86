"""transformers: the second engine, and the reference that vLLM is compared with.

One request at a time. The key-value cache of the last prompt is kept, and what the next prompt
shares with it is not computed again; in prefix order that is nearly everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from persona_lab.core.errors import EngineError
from persona_lab.core.experiment import ModelSettings
from persona_lab.core.order import PrefixTree
from persona_lab.core.prompt import Counts, Reply, Request, Sampling
from persona_lab.engines.chat import ChatRenderer
from persona_lab.engines.decoding import Chooser, Grammars

_CHUNK = 1024


class TransformersEngine:
    """A model run by transformers in this process.

    Args:
        folder: the model's folder.
        settings: the model's configuration.
        renderer: of the same model.

    Raises:
        EngineError: the model cannot be loaded.
    """

    block_size = 1

    def __init__(self, folder: str, settings: ModelSettings, renderer: ChatRenderer) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self.settings, self.renderer = settings, renderer
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        extra = {"rope_parameters": settings.rope_scaling} if settings.rope_scaling else {}
        try:
            self._model: Any = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, settings.dtype),
                use_safetensors=True,
                trust_remote_code=settings.trust_remote_code,
                **extra,
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineError(f"{settings.name}: transformers cannot load it: {error}") from error
        self._model.to(self.device).eval()
        self._ends = _end_ids(self._model, renderer.tokenizer)
        self._grammars = Grammars(renderer, int(self._model.config.vocab_size))
        self._cache: Any = None
        self._cached: list[int] = []
        self._tree = PrefixTree(self.block_size)
        self._taken: list[Request] = []

    def room(self) -> int:
        """One request at a time."""
        return 1 - len(self._taken)

    def submit(self, request: Request) -> None:
        """Takes a request in; it runs in `poll`."""
        self._taken.append(request)

    def poll(self, timeout: float) -> list[tuple[Request, Reply]]:
        """Runs the request at hand to its end; `timeout` does not interrupt it."""
        if not self._taken:
            return []
        request = self._taken.pop()
        ids = self.renderer.ids(request)
        if problem := self.renderer.misfit(request, len(ids)):
            return [(request, Reply.failed(problem))]
        unique = self._tree.add(ids)
        cached = self._shared(ids)
        out, logprobs, finish = self._generate(request, ids, cached)
        reply = self.renderer.reply(request, out, finish)
        counts = Counts(len(ids), cached, len(out), unique)
        return [(request, replace(reply, counts=counts, logprobs=logprobs))]

    def close(self) -> None:
        """Drops the model and its cache."""
        import gc

        import torch

        self._model = self._cache = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _shared(self, ids: list[int]) -> int:
        """Cuts the cache to what `ids` shares with it and returns how many tokens that is."""
        from transformers import DynamicCache

        shared = 0
        for old, new in zip(self._cached, ids[:-1], strict=False):
            if old != new:
                break
            shared += 1
        if shared and not any(getattr(layer, "is_sliding", False) for layer in self._cache.layers):
            self._cache.crop(shared)
        else:
            self._cache, shared = DynamicCache(config=self._model.config), 0
        self._cached = ids[:shared]
        return shared

    def _generate(
        self, request: Request, ids: list[int], cached: int
    ) -> tuple[list[int], tuple[tuple[tuple[str, float], ...], ...] | None, str]:
        out: list[int] = []
        logprobs: list[tuple[tuple[str, float], ...]] = []
        sampling = request.sampling
        choose = Chooser(sampling, request.sampling_seed)
        grammar = self._grammars.matcher(request)
        logits = self._prefill(ids[cached:])
        while True:
            if sampling.logprobs is not None:
                logprobs.append(self._top(logits, sampling.logprobs))
            if grammar is not None:
                logits = grammar.mask(logits)
            token = choose(logits, [*ids, *out])
            out.append(token)
            if grammar is not None:
                grammar.accept(token)
            ended = token in self._ends or self._stopped(out, sampling)
            if ended or len(out) >= sampling.max_tokens:
                return out, tuple(logprobs) or None, "stop" if ended else "length"
            logits = self._prefill([token])

    def _prefill(self, ids: Sequence[int]) -> Any:
        """Feeds tokens and returns the logits [V] after the last one."""
        import torch

        logits = None
        with torch.inference_mode():
            for start in range(0, len(ids), _CHUNK):
                chunk = torch.tensor([list(ids[start : start + _CHUNK])], device=self.device)
                result = self._model(
                    chunk, past_key_values=self._cache, use_cache=True, logits_to_keep=1
                )
                logits = result.logits[0, -1].float()
        self._cached += list(ids)
        return logits

    def _stopped(self, out: list[int], sampling: Sampling) -> bool:
        if not sampling.stop:
            return False
        text = self.renderer.tokenizer.decode(out, skip_special_tokens=True)
        return any(stop in text for stop in sampling.stop)

    def _top(self, logits: Any, count: int) -> tuple[tuple[str, float], ...]:
        import torch

        values, tokens = torch.log_softmax(logits, -1).topk(max(count, 1))
        decode = self.renderer.tokenizer.decode
        pairs = zip(tokens.tolist(), values.tolist(), strict=True)
        return tuple((str(decode([token])), value) for token, value in pairs)


def _end_ids(model: Any, tokenizer: Any) -> set[int]:
    named = model.generation_config.eos_token_id
    ends = set(named if isinstance(named, list) else [named]) | {tokenizer.eos_token_id}
    return {int(i) for i in ends if i is not None}
