PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Every process of a test would compile all modules anew where the environment forbids to keep them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test ci slow check docs format clean

# What is installed, and in which versions, is said by pyproject.toml and constraints.txt. uv takes seconds where pip takes minutes.
PINNED := --constraint constraints.txt
define install
	$(PYTHON) -m venv $(VENV)
	@if $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PINNED) uv && \
	    $(BIN)/uv pip install --quiet --python $(BIN)/python $(PINNED) --editable $(1); then :; \
	else \
	    echo "uv cannot install from this package index. pip does it: this takes some minutes."; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PINNED) --editable $(1); \
	fi
	$(BIN)/python -m compileall -q core schemas tasks flows data skald.py
endef

# What running needs, and what developing needs besides; the first is there wherever the second is.
$(VENV)/running: pyproject.toml constraints.txt
	@echo "Installing what SKALD needs into $(VENV): about a gigabyte from the package index."
	$(call install,.)
	@touch $@

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "Installing what SKALD and its tests need into $(VENV): about two gigabytes from the package index."
	$(call install,'.[dev]')
	@# Tests measure the memory of runs, what they load and what they print: in these runs nothing must be compiled.
	$(BIN)/python -m flows.compilation
	@touch $(VENV)/running $@

demo: $(VENV)/running
	@echo "Running it: a million synthetic patients, made, anonymised, verified and published."
	$(BIN)/python -m flows.demo

# Laws about the text of the project run in `make check`. Beside them there are three circles of tests: those that take seconds together,
# what every change runs besides, and what both leave out, with laws tried thoroughly.
test: $(VENV)/installed
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not ci and not house"

ci: $(VENV)/installed
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "(ci and not slow) or (promise and slow)"

slow: $(VENV)/installed
	SKALD_LAWS=thoroughly $(BIN)/python -m pytest -q -n 3 --dist worksteal -m "slow or ci or hypothesis"

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 -m "house and not slow" tests/test_*.py tests/house tests/tasks/store

docs: $(VENV)/installed
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache docs/_build docs/reference
