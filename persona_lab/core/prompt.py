"""What is asked of a model, and what comes back: History, Prompt, Request, Reply.

A history is shared: a thousand questions on one dialogue hold its messages once, and keys, order
and nesting come from digests that were computed when each message was added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

RoleName = Literal["system", "user", "assistant"]
Outcome = Literal["ok", "truncated", "failed"]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: RoleName
    content: str


class History:
    """An immutable chain of messages; `then` makes a longer one that shares this one."""

    __slots__ = ("_path", "digest", "length", "message", "parent")

    def __init__(self, parent: History | None = None, message: Message | None = None) -> None:
        self.parent, self.message = parent, message
        self.length: int = parent.length + 1 if parent else 0
        self.digest: bytes = _digest(parent.digest, message) if parent and message else b""
        self._path: tuple[bytes, ...] | None = None

    def then(self, messages: Iterable[Message]) -> History:
        """Returns the history that goes on with `messages`."""
        history = self
        for message in messages:
            history = History(history, message)
        return history

    @property
    def path(self) -> tuple[bytes, ...]:
        """Digests from the first message to the last: sorting by it walks the prefix tree."""
        if self._path is None:
            self._path = tuple(node.digest for node in self._nodes())
        return self._path

    @property
    def messages(self) -> list[Message]:
        """The messages, oldest first."""
        return [node.message for node in self._nodes() if node.message]

    def _nodes(self) -> list[History]:
        nodes, node = [], self
        while node.parent:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


EMPTY = History()


def _digest(parent: bytes, message: Message) -> bytes:
    head = f"{message.role}\0{len(message.content)}\0".encode()
    return hashlib.blake2b(
        parent + head + message.content.encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


@dataclass(frozen=True)
class Prompt:
    """A history and the messages asked on top of it."""

    history: History
    tail: tuple[Message, ...]

    @classmethod
    def ask(cls, text: str, history: History = EMPTY) -> Prompt:
        """A prompt whose last user message is `text`."""
        return cls(history, (Message("user", text),))

    @cached_property
    def digest(self) -> str:
        """Hex digest of all messages, the same however they are split into history and tail."""
        return self.history.then(self.tail).digest.hex()

    @property
    def order(self) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
        """Sort key: neighbours share the longest prefixes."""
        return self.history.path, tuple(m.content for m in self.tail)

    def __iter__(self) -> Iterator[Message]:
        yield from self.history.messages
        yield from self.tail


@dataclass(frozen=True, slots=True)
class Sampling:
    """Every value that decides a sample; none is ever left to the model's own defaults.

    Attributes:
        max_tokens: budget of the answer, reasoning included (>= 1).
        temperature: 0 is greedy.
        top_p, top_k, min_p: 1, 0 and 0 switch them off.
        logprobs: number of log-probabilities per generated token, or None.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")


@dataclass(frozen=True, eq=False)
class Request:
    """One question to the model that plays `role`.

    Attributes:
        role: `target`, `judge`, `memory`, `writer`; the recipe binds it to a model.
        example: a reply that the caller's own parser accepts; dry runs and the scripted engine
            answer with it.
        reasoning: True, False, or None for the setting of the model's configuration.
        schema: JSON schema as text; never given for the model under test.
        sample: index among repeated samples of one prompt.
        seed: the run's seed; the engine's own seed derives from the key.
    """

    role: str
    prompt: Prompt
    sampling: Sampling
    example: str
    reasoning: bool | None = None
    schema: str | None = None
    sample: int = 0
    seed: int = 0

    @cached_property
    def key(self) -> str:
        """Digest of all that could change the reply of one given model."""
        covered = {
            "prompt": self.prompt.digest,
            "sampling": asdict(self.sampling),
            "reasoning": self.reasoning,
            "schema": self.schema,
            "sample": self.sample,
            "seed": self.seed,
        }
        text = json.dumps(covered, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def sampling_seed(self) -> int:
        """The engine's seed for this request, in [0, 2**31)."""
        return int(self.key[:8], 16) & 0x7FFF_FFFF

    @cached_property
    def order(self) -> tuple[Any, ...]:
        """Prefix order; what changes the rendered head comes first."""
        return (str(self.reasoning), *self.prompt.order, self.sample, self.key)


@dataclass(frozen=True, slots=True)
class Counts:
    """Token counts of one served request.

    Attributes:
        prompt: prompt tokens. cached: those read from the prefix cache.
        completion: generated tokens, reasoning included.
        unique: prompt tokens that no earlier request of this engine had (in whole cache blocks).
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    unique: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        text: the answer, without its reasoning.
        reasoning: the reasoning, if the model gave one.
        finish_reason: `stop` or `length` from the engine; None where it failed.
        outcome: `ok`, `truncated` (by `max_tokens`) or `failed` (engine or transport).
        reason: why it is not ok, such as `truncated_reasoning`.
        flags: notes that do not change the outcome, such as `answer_from=reasoning_field`.
        logprobs: per token (text, log-probability) pairs of the most likely tokens, if asked for.
    """

    text: str
    finish_reason: str | None = "stop"
    outcome: Outcome = "ok"
    reason: str = ""
    reasoning: str | None = None
    flags: tuple[str, ...] = ()
    logprobs: tuple[tuple[tuple[str, float], ...], ...] | None = None
    counts: Counts = field(default_factory=Counts)

    @classmethod
    def failed(cls, reason: str) -> Reply:
        """A request that got no answer."""
        return cls("", finish_reason=None, outcome="failed", reason=reason)
