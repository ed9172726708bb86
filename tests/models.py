"""Small things that several tests build: settings, requests, tiny tokenizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from persona_lab.core.experiment import ModelSettings
from persona_lab.core.prompt import EMPTY, History, Prompt, Request, Sampling

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def ask(
    text: str,
    history: History = EMPTY,
    *,
    role: str = "target",
    max_tokens: int = 8,
    **more: Any,
) -> Request:
    """A request whose example is `ok`."""
    return Request(role, Prompt.ask(text, history), Sampling(max_tokens), example="ok", **more)


def packaged_settings(**changes: Any) -> ModelSettings:
    """Settings of the packaged model."""
    fields: dict[str, Any] = {
        "name": "smollm2_135m",
        "path": "package:smollm2_135m",
        "dtype": "float32",
        "max_model_len": 8192,
        "max_num_seqs": 32,
    }
    return ModelSettings(**(fields | changes))


def save_tokenizer(
    folder: Path,
    template: str | None = CHATML,
    special: tuple[str, ...] = ("<|im_start|>", "<|im_end|>"),
    plain: tuple[str, ...] = (),
    bos: str | None = None,
    adds_bos: bool = False,
    rstrip: bool = False,
) -> Path:
    """A byte-level tokenizer with a chat template and a few added tokens, saved with a config.

    Args:
        special: control tokens; plain: added tokens that are not marked as control tokens.
        bos: start token; adds_bos: whether the tokenizer writes it by itself.
        rstrip: whether control tokens swallow the space behind them.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [AddedToken(t, special=True, normalized=False, rstrip=rstrip) for t in special]
    )
    backend.add_tokens([AddedToken(t, special=False, normalized=False) for t in plain])
    if bos and adds_bos:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, backend.token_to_id(bos))]
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=bos)
    tokenizer.chat_template = template
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    return folder
