"""The steps that the program declares."""

from __future__ import annotations

from importlib import import_module

from tasks.records.recodings import RecordRewriting
from tasks.store.keys import StepCode
from tasks.store.step import Step
from tasks.writing.cells import CellRewriting
from tasks.writing.rewriting import FILES, MEMBERS, PEOPLE, RUNS
from tests.places import ROOT

_FILES = [path for path in sorted((ROOT / "tasks").rglob("*.py")) if "Step(" in path.read_text() or "StepCode(" in path.read_text()]
_MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in _FILES]
DECLARED = [(module, step) for module in _MODULES for step in vars(import_module(module)).values() if isinstance(step, Step)]
"""Every step, by each module that knows it."""
CODES = {
    *(code for module in _MODULES for code in vars(import_module(module)).values() if isinstance(code, StepCode)),
    *(step.keys for _, step in DECLARED if not step.under),
    # What is written is written by the kind of the recoding.
    *(StepCode(step.name, kind.__module__) for kind in (CellRewriting, RecordRewriting) for step in (RUNS, MEMBERS, PEOPLE, FILES)),
}
"""Name and code of every step that has a key of its own."""
