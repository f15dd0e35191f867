# Two commands matter to a newcomer: `make demo` and `make test`. Both set up what they need.
.PHONY: help demo test lint types layers unit test-slow test-ray test-gpu test-statistical golden bench format clean

# The first of these that is 3.11 or 3.12 builds the virtual environment; override with PYTHON=...
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' >/dev/null 2>&1 \
	&& echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help:
	@echo "make demo              set up, run the whole job on embedded data, write demo/report.html"
	@echo "make test              set up, then lint, types, layers, tests"
	@echo "make test-slow         the tests that take longer (marker slow), with new examples each time"
	@echo "make test-ray          installs ray (80 MB to fetch, 260 MB on disk), then its tests"
	@echo "make test-gpu          the tests that need a GPU; torch, scikit-learn, safetensors, pytest, hypothesis are enough"
	@echo "make test-statistical  the tests that repeat simulations (marker statistical)"
	@echo "make golden            the golden record made anew and held against the one kept (five minutes)"
	@echo "make bench             speed and memory, as ratios measured side by side"
	@echo "make format            rewrite the code in the house format"

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "etips needs Python 3.11 or 3.12 on the PATH, or PYTHON=/path/to/it"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	@touch $@

demo: $(READY)
	$(BIN)/etips demo --out demo

test: lint types layers unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow --hypothesis-profile=wander

test-ray: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest -m ray

# Where little can be installed: make test-gpu PYTHON=/path/to/python
test-gpu: $(if $(filter command environment,$(origin PYTHON)),,$(READY))
	$(if $(filter command environment,$(origin PYTHON)),$(PYTHON),$(BIN)/python) -m pytest -m gpu \
		tests/unit/models tests/unit/learn/training tests/unit/runs/test_tasks.py

test-statistical: $(READY)
	$(BIN)/python -m pytest -m statistical

golden: $(READY)
	$(BIN)/python tests/golden/record.py .golden
	$(BIN)/python tests/golden/compare.py tests/golden/record .golden

bench: $(READY)
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/evaluate.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
