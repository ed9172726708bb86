from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.benchpres.data import write_data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The small data of test_golden.py."""
    return write_data(tmp_path / "data")
