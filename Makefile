PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Every process of a test would compile all modules anew where the environment forbids to keep them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow check docs format clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/python -m flows.demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

slow: $(VENV)/installed
	SKALD_LAWS=thoroughly $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "slow or hypothesis"

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
