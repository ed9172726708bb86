"""The next token: by sampling settings, and under a JSON schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from persona_lab.core.errors import EngineError
from persona_lab.core.prompt import Request, Sampling
from persona_lab.engines.chat import ChatRenderer


class Chooser:
    """Picks the next token: greedy at temperature 0, else a seeded sample."""

    def __init__(self, sampling: Sampling, seed: int) -> None:
        import torch

        self.sampling = sampling
        self._random = torch.Generator().manual_seed(seed)
        self._steps = list(_warpers(sampling))

    def __call__(self, logits: Any, before: list[int]) -> int:
        import torch

        scores = logits[None].cpu()
        seen = torch.tensor([before])
        for step in self._steps:
            scores = step(seen, scores)
        if self.sampling.temperature == 0:
            return int(scores[0].argmax())
        return int(torch.multinomial(scores[0].softmax(-1), 1, generator=self._random))


def _warpers(sampling: Sampling) -> Iterator[Any]:
    """transformers' own processors, in vLLM's order."""
    from transformers.generation import logits_process as lp

    if sampling.repetition_penalty != 1.0:
        yield lp.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty)
    if sampling.temperature == 0:
        return
    yield lp.TemperatureLogitsWarper(sampling.temperature)
    if sampling.min_p > 0:
        yield lp.MinPLogitsWarper(sampling.min_p)
    if sampling.top_k > 0:
        yield lp.TopKLogitsWarper(sampling.top_k)
    if sampling.top_p < 1:
        yield lp.TopPLogitsWarper(sampling.top_p)


class Grammars:
    """JSON schemas compiled by xgrammar, once each."""

    def __init__(self, renderer: ChatRenderer, vocabulary: int) -> None:
        self.renderer, self.vocabulary = renderer, vocabulary
        self._compiler: Any = None

    def matcher(self, request: Request) -> Matcher | None:
        """A matcher for the request's schema; None without one."""
        if request.schema is None:
            return None
        try:
            import xgrammar
        except ImportError:
            raise EngineError(
                "structured output with transformers needs xgrammar: pip install xgrammar"
            ) from None
        if self._compiler is None:
            info = xgrammar.TokenizerInfo.from_huggingface(
                self.renderer.tokenizer, vocab_size=self.vocabulary
            )
            self._compiler = xgrammar.GrammarCompiler(info)
        compiled = self._compiler.compile_json_schema(request.schema)
        after = self.renderer.reasoning_end(request)
        return Matcher(xgrammar.GrammarMatcher(compiled), self.vocabulary, after)


class Matcher:
    """Masks logits by a grammar that begins after the token `after` (None: at once)."""

    def __init__(self, matcher: Any, vocabulary: int, after: int | None) -> None:
        import xgrammar

        self._matcher, self._after = matcher, after
        self._bits = xgrammar.allocate_token_bitmask(1, vocabulary)

    def mask(self, logits: Any) -> Any:
        import xgrammar

        if self._after is None and not self._matcher.is_terminated():
            self._matcher.fill_next_token_bitmask(self._bits)
            scores = logits[None].cpu()
            xgrammar.apply_token_bitmask_inplace(scores, self._bits)
            return scores[0]
        return logits

    def accept(self, token: int) -> None:
        if self._after is None and not self._matcher.is_terminated():
            self._matcher.accept_token(token)
        elif token == self._after:
            self._after = None
