"""Texts to vectors, as the encoder's authors do it: tokens, model, pooling, L2.

SimCSE (Gao et al. 2021) is the first token through the model's own dense layer and tanh, which is
transformers' `pooler_output`. sentence-transformers takes the mean of such a folder without a
word, so the model is run directly, and a pooler that the weights do not hold stops the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from persona_lab.core.errors import ConfigError
from persona_lab.retrieval.encoder_files import EncoderFiles, find_encoder

Vectors = NDArray[np.float32]
_BATCH = 32


class Encoder(Protocol):
    """Turns texts into unit vectors.

    Attributes:
        identity: name and digest of weights, tokenizer, pooling, token limit and normalisation.
        settings: what of these is decided beside the weights; kept with the vectors.
        dimension: D.
        truncated: texts so far that were cut at the token limit.
    """

    name: str
    identity: str
    settings: Mapping[str, str | int]
    dimension: int
    truncated: int

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit rows [N, D], in the order of the texts.

        Raises:
            ValueError: a text is blank or no valid Unicode; it names its index.
        """

    def cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are longer than the token limit."""


def load_encoder(
    name: str,
    *,
    path: str | None = None,
    pooling: str | None = None,
    max_tokens: int | None = None,
    revision: str | None = None,
    device: str = "auto",
) -> Encoder:
    """Loads an encoder in float32; see `find_encoder` for the arguments.

    Args:
        device: `cpu`, `cuda`, or `auto`: cuda where there is one.

    Raises:
        ConfigError: no such weights (ModelAbsent for a hub model), a setting that is missing or
            contradicted, or weights without a part that is needed.
    """
    files = find_encoder(name, path=path, pooling=pooling, max_tokens=max_tokens, revision=revision)
    return SentenceEncoder(files, device)


def check_texts(texts: Sequence[str]) -> None:
    """Refuses what has no meaning to encode.

    Raises:
        ValueError: a text is blank or no valid Unicode; it names its index.
    """
    for index, text in enumerate(texts):
        if not text.strip():
            raise ValueError(f"text {index} of {len(texts)} is blank and has no vector")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"text {index} of {len(texts)} holds half of a surrogate pair"
            ) from None


class SentenceEncoder:
    """A transformers model with a stated pooling; see `Encoder`."""

    def __init__(self, files: EncoderFiles, device: str = "auto") -> None:
        import torch
        from transformers import AutoTokenizer

        self.name, self.identity = files.name, files.identity
        self.settings: Mapping[str, str | int] = files.settings
        self.pooling, self.max_tokens = files.pooling, files.max_tokens
        self.device = device
        if device == "auto":
            self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(files.folder, padding_side="right")
        self._model: Any = _model(files).to(self.device).eval()
        self.dimension = int(self._model.config.hidden_size)
        self.truncated = 0
        self._check_limit()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit rows [N, D]; batches are of like length, whatever the order of the texts."""
        check_texts(texts)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        lengths = self._lengths(texts)
        order = sorted(range(len(texts)), key=lambda i: (lengths[i], texts[i]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            vectors[batch] = self._encode([texts[i] for i in batch])
        self.truncated += sum(length > self.max_tokens for length in lengths)
        return vectors

    def cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are longer than the token limit."""
        return [length > self.max_tokens for length in self._lengths(texts)]

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text, start and end tokens included."""
        if not texts:
            return []
        ids = self._tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        return [len(one) for one in ids]

    def _encode(self, texts: list[str]) -> Vectors:
        import torch

        tokens = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self.max_tokens, return_tensors="pt"
        ).to(self.device)
        with torch.inference_mode():
            pooled = self._pool(self._model(**tokens), tokens["attention_mask"])
            unit = torch.nn.functional.normalize(pooled, dim=1)
        rows: Vectors = unit.cpu().numpy()
        return rows

    def _pool(self, output: Any, mask: Any) -> Any:
        """[N, D] of a batch; mask [N, T] is 1 where there is a token."""
        if self.pooling == "pooler":
            return output.pooler_output
        states = output.last_hidden_state
        if self.pooling == "cls":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)

    def _check_limit(self) -> None:
        positions = getattr(self._model.config, "max_position_embeddings", self.max_tokens)
        most = min(int(self._tokenizer.model_max_length), int(positions))
        if self.max_tokens > most:
            raise ConfigError(
                f"{self.name}: max_tokens={self.max_tokens}, but the model reads at most {most}"
            )
        if self._tokenizer.pad_token is None:
            raise ConfigError(f"{self.name}: its tokenizer has no padding token")


def _model(files: EncoderFiles) -> Any:
    """The model in float32, every weight that its vectors need taken from the files."""
    import torch
    import transformers
    from transformers import AutoModel

    transformers.utils.logging.disable_progress_bar()
    try:
        model, found = AutoModel.from_pretrained(
            files.folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{files.name}: transformers cannot load it: {error}") from error
    if files.pooling == "pooler" and getattr(model, "pooler", None) is None:
        raise ConfigError(f"{files.name}: pooling=pooler, but the model has no pooler")
    unused = () if files.pooling == "pooler" else ("pooler.",)
    missing = sorted(key for key in found["missing_keys"] if not key.startswith(unused))
    if missing:
        raise ConfigError(
            f"{files.name}: {files.folder} lacks the weights {', '.join(missing[:4])}, which would "
            f"be random. Take weights that hold them{_or_other_pooling(missing)}."
        )
    return model


def _or_other_pooling(missing: list[str]) -> str:
    if all(key.startswith("pooler.") for key in missing):
        return ", or state the pooling that the model was trained with"
    return ""
