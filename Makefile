# `make run` and `make test` each do all of their own set-up in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test lint format types unit coverage smoke clean

run: .venv/.stamp-run
	$(BIN)/teo demo

test: lint types unit

lint: .venv/.stamp-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.stamp-test
	$(BIN)/mypy

unit: .venv/.stamp-test
	$(BIN)/pytest -n 2

# The same tests, which take half as long again, with the share of lines that they run.
coverage: .venv/.stamp-test
	$(BIN)/pytest -n 2 --cov --cov-report=term:skip-covered

# The whole method once, on a CPU: a tiny model learns a generated task in both stages, then every variant is scored.
smoke: .venv/.stamp-test
	$(BIN)/teo train configs/smoke.toml overwrite=true
	rm -rf runs/smoke-all
	$(BIN)/teo evaluate --data jsonl --path runs/smoke/training/data/synthetic --model runs/smoke --variant all --out runs/smoke-all

format: .venv/.stamp-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.stamp-run: .venv/bin/python pyproject.toml
	$(PIP) install --editable .
	touch $@

# torch comes from constraints.txt: an open range would pull several GB of GPU packages.
.venv/.stamp-test: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable '.[train,serve,langchain,llama-index,haystack,mcp,openai,retrieval,report,scale,dev]'
	touch .venv/.stamp-run $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
