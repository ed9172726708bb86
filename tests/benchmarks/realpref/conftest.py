from __future__ import annotations

import pytest

from tests.conftest import ROOT

PAPER = ROOT.parent / "shared" / "seeds" / "realpref.txt"


@pytest.fixture(scope="session")
def paper() -> str:
    """The paper's text, where it lies beside the project."""
    if not PAPER.is_file():
        pytest.skip("the paper's text is not beside the project")
    return PAPER.read_text(encoding="utf-8")
