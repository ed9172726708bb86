"""Encoders for tests: a tiny RoBERTa of random weights, and one that needs no model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from persona_lab.retrieval.encoders import Vectors


def save_roberta(folder: Path, *, pooler: bool = True, seed: int = 0) -> Path:
    """A byte-level RoBERTa with 2 layers, 16 dimensions and 64 positions."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE(vocab={c: i for i, c in enumerate([*special, *alphabet])}, merges=[])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=64,
    )
    torch.manual_seed(seed)
    config = RobertaConfig(
        vocab_size=len(special) + len(alphabet),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        type_vocab_size=1,
        initializer_range=0.5,
    )
    RobertaModel(config, add_pooling_layer=pooler).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class Hashed:
    """Unit vectors from the digest of a text, or those given; it notes what it was asked."""

    def __init__(self, given: Mapping[str, Sequence[float]] | None = None, name: str = "h") -> None:
        self.name, self.identity = name, f"{name}-0123456789abcdef"
        self.settings: Mapping[str, str | int] = {"pooling": "mean", "max_tokens": 9}
        self.dimension, self.truncated = 4, 0
        self.given = given or {}
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, 4)

    def cut(self, texts: Sequence[str]) -> list[bool]:
        return [len(text) > 9 for text in texts]

    def _vector(self, text: str) -> Sequence[float]:
        if text in self.given:
            return self.given[text]
        digest = hashlib.sha256(text.encode()).digest()
        raw = np.frombuffer(digest[:4], dtype=np.uint8).astype(np.float64) - 127.5
        unit: list[float] = (raw / np.linalg.norm(raw)).tolist()
        return unit
