# `make run`, `make quick` and `make test` each do all of their own set-up in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
JOBS ?= 2

.PHONY: run quick test lower lint format types unit coverage smoke dist clean

run: .venv/.stamp-run
	$(BIN)/teo demo

# Both packages, without browser, Ray, processes, servers and training: under two minutes on two cores.
quick: .venv/.stamp-quick
	$(BIN)/pytest -q -n $(JOBS) -m "not (browser or process or ray or slow or train)"

# Everything of both packages; the tests that need data look for it in TEO_TEST_DATA (../shared).
test: .venv/.stamp-test lint types unit

# The server, the command line and the batch jobs with the lowest versions that pyproject.toml allows, in .venv-lower.
lower:
	$(PYTHON) -m venv .venv-lower
	$(PYTHON) benchmarks/lowest.py serve > .venv-lower/lowest.txt
	.venv-lower/bin/pip --disable-pip-version-check --quiet install --only-binary :all: \
		--constraint .venv-lower/lowest.txt --requirement .venv-lower/lowest.txt httpx hypothesis pytest pytest-xdist
	PYTHONPATH=src .venv-lower/bin/python -m pytest -q -n $(JOBS) -m "not (browser or ray or slow or train)" \
		tests/server/test_api.py tests/server/test_batching.py tests/server/test_faults.py tests/server/test_process.py \
		tests/server/test_watching.py tests/cli/test_serve.py tests/scale tests/test_loading.py tests/integrations/test_remote.py

lint: .venv/.stamp-quick
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.stamp-quick
	$(BIN)/mypy

unit: .venv/.stamp-test
	$(BIN)/pytest -n $(JOBS)

# The same tests, which take half as long again, with the share of lines that they run.
coverage: .venv/.stamp-test
	$(BIN)/pytest -n $(JOBS) --cov --cov-report=term:skip-covered

# The whole method once, on a CPU: a tiny model learns a generated task in both stages, then every variant is scored.
smoke: .venv/.stamp-quick
	$(BIN)/teo train configs/smoke.toml overwrite=true
	rm -rf runs/smoke-all
	$(BIN)/teo evaluate --data jsonl --path runs/smoke/training/data/synthetic --model runs/smoke --variant all --out runs/smoke-all

# What is uploaded: the wheel and the source distribution, in dist/.
dist: .venv/.stamp-test
	rm -rf dist
	$(BIN)/python -m hatchling build

format: .venv/.stamp-quick
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.stamp-run: .venv/bin/python pyproject.toml
	$(PIP) install --editable .
	touch $@

# torch comes from constraints.txt: an open range would pull several GB of GPU packages.
.venv/.stamp-quick: .venv/bin/python pyproject.toml lab/pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable '.[train,serve,dev]' --editable ./lab
	touch .venv/.stamp-run $@

.venv/.stamp-test: .venv/bin/python pyproject.toml lab/pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable '.[train,serve,langchain,llama-index,haystack,mcp,scale,dev-all]' --editable ./lab
	touch .venv/.stamp-run .venv/.stamp-quick $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
