PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Every process of a test would compile all modules anew where the environment forbids to keep them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow check docs format clean

INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable

# Once for all runs: our modules, also for those whose environment forbids Python to keep what it compiles, and the loops of all methods.
COMPILE := $(BIN)/python -m compileall -q core schemas tasks flows data skald.py && $(BIN)/python -m flows.compilation

# What running needs, and what developing needs besides; the first is there wherever the second is.
$(VENV)/running: pyproject.toml constraints.txt
	@echo "Making $(VENV) with what running needs, about a gigabyte from the package index; a minute or two, pip says how far it is."
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	$(COMPILE)
	@touch $@

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "Making $(VENV) with what developing needs, about two gigabytes from the package index; some minutes, without a word."
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[dev]' --quiet
	$(COMPILE)
	@touch $(VENV)/running $@

demo: $(VENV)/running
	@echo "Running it: a million synthetic patients, made, anonymised, verified and published."
	$(BIN)/python -m flows.demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

slow: $(VENV)/installed
	SKALD_LAWS=thoroughly $(BIN)/python -m pytest -q -n 3 --dist worksteal -m "slow or hypothesis"

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_house.py tests/test_recount_stands_alone.py tests/test_architecture.py

docs: $(VENV)/installed
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache docs/_build docs/reference
