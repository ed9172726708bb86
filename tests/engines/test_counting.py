from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.core.errors import ConfigError
from persona_lab.engines.counting import token_counter
from tests.models import save_tokenizer


def test_tekken_counts() -> None:
    pytest.importorskip("mistral_common")
    count = token_counter("tekken")
    assert count("") == 0
    # Tekken splits off words with their space: Hello| world|.
    assert count("Hello world.") == 3
    assert count("word " * 50) >= 50


def test_a_folder_with_a_tokenizer_counts(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    assert token_counter(str(save_tokenizer(tmp_path)))("abc") == 3  # one token a byte


def test_an_unknown_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give tekken, or a folder"):
        token_counter(str(tmp_path / "none"))
