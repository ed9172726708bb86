"""From messages to token ids and from output ids to replies.

Everything that decides the ids of a prompt is here and needs no weights, so a dry run counts with
it and both local engines hand the very same ids to the model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings
from persona_lab.core.prompt import Message, Prompt, Reply, Request
from persona_lab.engines.pieces import PieceEncoder, any_of
from persona_lab.engines.reasoning import (
    Split,
    family_of,
    settled_reply,
    split_channels,
    split_tags,
)
from persona_lab.engines.templates import ChatTemplate

_VERSION = 1
"""Raised when the same messages make other ids, so that old replies are not taken for new ones."""
_BRACKETED = re.compile(r"^[<\[{(].*[>\]})]$", re.DOTALL)


class ChatRenderer:
    """Renders prompts for one model and reads its output ids.

    Args:
        folder: the model's folder (tokenizer and template).
        settings: the model's configuration.
        date: the day the template sees as today, `YYYY-MM-DD`.

    Raises:
        ConfigError: no tokenizer or template, or a reasoning setting that it cannot give.
    """

    def __init__(self, folder: Path, settings: ModelSettings, date: str) -> None:
        self.settings, self.family = settings, family_of(settings.reasoning_family)
        self.tokenizer = _tokenizer(folder, settings)
        self._date = date
        self._template = ChatTemplate(self.tokenizer, folder, settings, self.family, date)
        self.encode = PieceEncoder(self.tokenizer)
        added = {str(t): t for t in self.tokenizer.added_tokens_decoder.values()}
        self._control = any_of(s for s, t in added.items() if t.special or _BRACKETED.match(s))
        self._neutralised = False
        bos = self.tokenizer.bos_token_id
        self._adds_bos = bos is not None and self.tokenizer("x")["input_ids"][:1] == [bos]
        self._opens = cache(self._opens_reasoning)

    @property
    def notes(self) -> list[str]:
        """What had to be adapted to this model or in the data, for the manifest."""
        notes = list(self._template.notes)
        if getattr(self.tokenizer, "is_fast", False) and not self.encode.in_pieces:
            notes.append("pieces of text do not tokenise alone: prompts are encoded whole")
        if self._neutralised:
            notes.append("control tokens inside messages are broken by a space")
        return notes

    @property
    def fingerprint(self) -> str:
        """Digest of tokenizer, template and date (where the template shows one)."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        vocabulary = backend.to_str() if backend else json.dumps(self.tokenizer.get_vocab())
        date = self._date if self._template.dated else ""
        parts = [vocabulary, self._template.text, date, str(_VERSION)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()

    def ids(self, request: Request) -> list[int]:
        """Token ids of a prompt, [T], with exactly one start token where the model has one."""
        ids = self.encode(self.render(request.prompt, request.reasoning))
        bos = self.tokenizer.bos_token_id
        if self._adds_bos and ids[:1] != [bos]:
            ids = [bos, *ids]
        while bos is not None and ids[:2] == [bos, bos]:
            ids = ids[1:]
        return ids

    def render(self, prompt: Prompt, reasoning: bool | None = None) -> str:
        """The prompt's text, ending where the answer begins."""
        messages = [Message(m.role, self._neutral(m.content)) for m in prompt]
        return self._template.render(messages, reasoning)

    def reply(self, request: Request, ids: Sequence[int], finish_reason: str | None) -> Reply:
        """Reads generated ids: reasoning split off, stop strings cut, outcome settled."""
        split = self._split(request, ids)
        answer = self._decode(split.answer)
        for stop in request.sampling.stop:
            answer = answer.split(stop, 1)[0]
        reasoning = None if split.reasoning is None else self._decode(split.reasoning)
        return settled_reply(
            answer,
            reasoning,
            finish_reason,
            reasoning_on=self._wanted(request),
            closed=split.closed,
        )

    def reasoning_end(self, request: Request) -> int | None:
        """The token that ends the reasoning of this request; None where none is to come."""
        no_reasoning = self._wanted(request) is False or self.family.always is False
        if self.family.tags is None or no_reasoning:
            return None
        return self.token(self.family.tags[1])

    def misfit(self, request: Request, prompt_tokens: int) -> str:
        """Why a prompt does not fit the window with its answer's budget; empty if it does."""
        need = prompt_tokens + request.sampling.max_tokens
        if need <= self.settings.max_model_len:
            return ""
        return (
            f"prompt_too_long: needs {need} tokens ({prompt_tokens} + "
            f"{request.sampling.max_tokens} for the answer), {self.settings.name} has "
            f"{self.settings.max_model_len}"
        )

    def token(self, text: str) -> int | None:
        """The id of an added token; None where the tokenizer has no such token."""
        found = self.tokenizer.convert_tokens_to_ids(text)
        return found if isinstance(found, int) and found != self.tokenizer.unk_token_id else None

    def _wanted(self, request: Request) -> bool | None:
        return request.reasoning if request.reasoning is not None else self.settings.reasoning

    def _split(self, request: Request, ids: Sequence[int]) -> Split:
        if self.family.channels:
            return split_channels(ids, self.token, self.tokenizer.decode)
        if self.family.tags is None:
            return Split(None, list(ids))
        start, end = map(self.token, self.family.tags)
        return split_tags(ids, start, end, opened=self._opens(request.reasoning))

    def _opens_reasoning(self, reasoning: bool | None) -> bool:
        """Whether the generation prompt ends inside an opened reasoning block."""
        start, end = self.family.tags or ("", "")
        text = self.render(Prompt.ask("x"), reasoning)
        return text.rfind(start) > text.rfind(end)

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _neutral(self, text: str) -> str:
        """Data cannot speak as a role: a space breaks every control token inside it."""
        changed, count = self._control.subn(lambda m: f"{m[0][0]} {m[0][1:]}", text)
        self._neutralised = self._neutralised or count > 0
        return changed


def _tokenizer(folder: Path, settings: ModelSettings) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            folder, trust_remote_code=settings.trust_remote_code, use_fast=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{settings.name}: no usable tokenizer in {folder} ({error})") from None
