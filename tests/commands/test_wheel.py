"""The wheel carries its recipes, configurations and data, and needs no more than it declares."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import ROOT


def closure(requirements: list[str]) -> set[str]:
    """Names of the installed distributions that unconditional requirements lead to."""
    names: set[str] = set()
    left = list(requirements)
    while left:
        line = left.pop()
        if "extra ==" in line:
            continue
        name = re.split(r"[\s;\[<>=!~(]", line, maxsplit=1)[0].lower()
        if name in names:
            continue
        try:
            left += importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or an older Python
        names.add(name)
    return names


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel and links to its declared requirements, nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True)
    [wheel] = folder.glob("persona_lab-*.whl")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    [site] = (folder / "env" / "lib").glob("python*/site-packages")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True)
    own = importlib.metadata.requires("persona-lab") or []
    for name in closure(own) - {"persona-lab"}:
        distribution = importlib.metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return python


def command(python: Path, folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [str(python), "-I", "-m", "persona_lab.run", *arguments],
        cwd=folder, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_the_wheel_works_in_an_empty_folder(python: Path, tmp_path: Path) -> None:
    assert "quickstart" in command(python, tmp_path, "--list")
    assert "experience_feedback" in command(python, tmp_path, "recipe=quickstart", "--print-config")
    assert list(tmp_path.iterdir()) == []


def test_the_wheel_runs_a_recipe_on_the_scripted_engine(python: Path, tmp_path: Path) -> None:
    out = command(python, tmp_path, "recipe=quickstart", "engine=scripted", "limit=3")
    assert "complete: runs/quickstart-" in out


def test_the_core_alone_has_no_model_library(python: Path, tmp_path: Path) -> None:
    probe = "import importlib.util as u; print([n for n in ('torch', 'vllm') if u.find_spec(n)])"
    done = subprocess.run(
        [str(python), "-I", "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
