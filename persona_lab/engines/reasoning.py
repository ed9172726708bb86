"""Reasoning: how a family's chat template switches it, and where it ends in the output.

Reasoning is split off by token ids, so that a model that merely writes about `</think>` in other
tokens is not cut. A reply is never graded from its reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from persona_lab.core.errors import ConfigError
from persona_lab.core.prompt import Reply


@dataclass(frozen=True)
class Family:
    """How the models of one family reason.

    Attributes:
        switch: names of the template's arguments that turn reasoning on and off; empty if none.
        always: True if it cannot be turned off, False if the model has no reasoning, None if
            `switch` decides.
        effort: whether the template takes a reasoning effort.
        parser: vLLM's name of a parser that sees the reasoning end, so that a grammar starts
            after it. Splitting is done here, so one parser serves all that end in `</think>`.
        tags: opening and closing tokens; None where the model has no reasoning.
        channels: gpt-oss's harmony channels instead of tags.
        chat: whether prompts go through a chat template.
    """

    switch: tuple[str, ...] = ()
    always: bool | None = None
    effort: bool = False
    parser: str = "deepseek_r1"
    tags: tuple[str, str] | None = ("<think>", "</think>")
    channels: bool = False
    chat: bool = True


FAMILIES = {
    "base": Family(always=False, parser="", tags=None, chat=False),
    "none": Family(always=False, parser="", tags=None),
    "instruct": Family(always=False, parser="", tags=None),
    "thinking": Family(always=True),
    "qwen3": Family(switch=("enable_thinking",)),
    "deepseek": Family(switch=("thinking", "enable_thinking"), effort=True),
    "exaone": Family(switch=("enable_thinking",)),
    "kimi": Family(switch=("thinking",)),
    "glm": Family(switch=("enable_thinking",)),
    "gpt_oss": Family(always=True, effort=True, parser="openai_gptoss", tags=None, channels=True),
}


def family_of(name: str) -> Family:
    """The family of a configuration's `reasoning_family`.

    Raises:
        ConfigError: no such family.
    """
    if name not in FAMILIES:
        raise ConfigError(f"reasoning_family={name}: there are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def template_arguments(
    model: str, family: Family, reasoning: bool | None, effort: str | None
) -> dict[str, Any]:
    """What to hand to the chat template so that reasoning is as wanted.

    Raises:
        ConfigError: the family cannot do what is asked; nothing is compared that is not there.
    """
    arguments: dict[str, Any] = {}
    if family.switch and reasoning is not None:
        arguments = dict.fromkeys(family.switch, reasoning)
    elif reasoning is not None and reasoning is not family.always:
        raise ConfigError(
            f"{model}: reasoning={str(reasoning).lower()}, but this model has no switch: it "
            f"{'always' if family.always else 'never'} reasons. Compare it with the other half of "
            "its Instruct/Thinking pair, or leave reasoning out."
        )
    if effort is not None:
        if not family.effort:
            able = ", ".join(name for name, f in FAMILIES.items() if f.effort)
            raise ConfigError(f"{model}: only these families take a reasoning_effort: {able}")
        arguments["reasoning_effort"] = effort
    return arguments


@dataclass(frozen=True)
class Split:
    """Output ids, divided. `reasoning` is None where there was none; `closed` if it ended."""

    reasoning: list[int] | None
    answer: list[int]
    closed: bool = True


def split_tags(ids: Sequence[int], start: int | None, end: int | None, *, opened: bool) -> Split:
    """Divides at the first closing tag.

    Args:
        ids: generated token ids.
        start, end: ids of the tags; None where the tokenizer has no such token.
        opened: the template's generation prompt has opened the block already.
    """
    out = list(ids)
    if end is not None and end in out:
        at = out.index(end)
        return Split([i for i in out[:at] if i != start], out[at + 1 :])
    if opened or (start is not None and start in out):
        at = out.index(start) + 1 if start is not None and start in out else 0
        return Split(out[at:], [], closed=False)
    return Split(None, out)


def split_channels(ids: Sequence[int], token: Callable[[str], int | None], names: Any) -> Split:
    """Divides harmony output: the last `final` channel is the answer, `analysis` the reasoning.

    Args:
        ids: generated token ids, starting inside or before the first channel header.
        token: id of a control token. names: decodes header ids to text.
    """
    channel, message = token("<|channel|>"), token("<|message|>")
    ends = {token(t) for t in ("<|end|>", "<|return|>", "<|call|>", "<|start|>")}
    parts: list[tuple[str, list[int]]] = []
    header: list[int] | None = None
    body: list[int] | None = None
    for i in ids:
        if i == channel:
            header, body = [], None
        elif i == message and header is not None:
            body = []
            parts.append((str(names(header)).strip().split(" ")[0], body))
            header = None
        elif i in ends:
            header = body = None
        elif body is not None:
            body.append(i)
        elif header is not None:
            header.append(i)
    if not parts:
        return Split(None, list(ids))
    reasoning = [i for name, part in parts if name != "final" for i in part]
    finals = [part for name, part in parts if name == "final"]
    return Split(reasoning or None, finals[-1] if finals else [], closed=bool(finals))


def settled_reply(
    answer: str | None,
    reasoning: str | None,
    finish_reason: str | None,
    *,
    reasoning_on: bool | None,
    closed: bool = True,
) -> Reply:
    """The reply that a split output makes.

    An answer that landed in the reasoning field although reasoning is off is recovered and
    flagged. Reasoning that was cut off leaves no answer: `truncated_reasoning`.
    """
    text, flags = answer or "", tuple[str, ...]()
    if finish_reason not in ("stop", "length"):
        return Reply.failed(f"finish_reason={finish_reason}")
    if not text.strip() and reasoning and reasoning_on is False:
        text, reasoning, flags = reasoning, None, ("answer_from=reasoning_field",)
    if finish_reason == "length":
        cut = bool(reasoning) and (not closed or not text.strip())
        reason = "truncated_reasoning" if cut else "truncated"
        return Reply(
            "" if cut else text, "length", "truncated", reason, reasoning=reasoning, flags=flags
        )
    return Reply(text, "stop", "ok", reasoning=reasoning, flags=flags)
