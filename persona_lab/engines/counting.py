"""Token counts that are the same for every model, so that all models see the same histories."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path

from persona_lab.core.errors import ConfigError

TEKKEN = "tekken"
_TEKKEN_FILE = "data/tekken_240911.json"

TokenCounter = Callable[[str], int]


def token_counter(name: str) -> TokenCounter:
    """A function that counts the tokens of a text, each distinct text once.

    Args:
        name: `tekken` (Apache-2.0, offline, in the mistral-common package), or a folder with a
            tokenizer.

    Raises:
        ConfigError: no such tokenizer, or its package is not installed.
    """
    count = _tekken() if name == TEKKEN else _from_folder(Path(name).expanduser())
    return cache(count)


def _tekken() -> TokenCounter:
    spec = importlib.util.find_spec("mistral_common")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "context.tokenizer=tekken needs the package mistral-common: pip install mistral-common"
        )
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    file = Path(next(iter(spec.submodule_search_locations))) / _TEKKEN_FILE
    tokenizer = Tekkenizer.from_file(file)
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


def _from_folder(folder: Path) -> TokenCounter:
    if not folder.is_dir():
        raise ConfigError(f"context.tokenizer={folder}: give tekken, or a folder with a tokenizer")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return lambda text: len(tokenizer(text, add_special_tokens=False)["input_ids"])
