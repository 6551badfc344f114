"""Every entry of every registry is whole: its code is there, the reference has its part, and what it claims of its code is true."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.columns.domains import Domain
from core.privacy.kernels import demands_of, is_compiled
from core.privacy.promise import Promise
from docs.reference_pages import job_page
from schemas.job.formats import FORMATS
from schemas.job.method import METHODS, OBJECTIVES
from schemas.job.privacy import SUPPRESSIONS, Privacy
from schemas.reading.registry import Code, Registry
from schemas.registry.hierarchy_kinds import HIERARCHIES
from schemas.registry.privacy_kinds import DISTANCES, DIVERSITIES
from schemas.registry.treatment_kinds import TREATMENTS
from schemas.relational.tables_job import jobs_json_schema
from tests.places import ROOT, tree

REGISTRIES: Mapping[str, Registry[Any]] = {
    "hierarchies": HIERARCHIES,
    "treatments": TREATMENTS,
    "formats": FORMATS,
    "diversities": DIVERSITIES,
    "distances": DISTANCES,
    "suppressions": SUPPRESSIONS,
    "methods": METHODS,
    "objectives": OBJECTIVES,
}
ENTRIES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry]
TREE = {"tree": {"a": ["x"], "b": ["y"]}}
PRIVACY: dict[str, dict[str, Any]] = {
    "distinct": {"l": {"s": {"distinct": 2}}},
    "entropy": {"l": {"s": {"entropy": 1.5}}},
    "recursive": {"l": {"s": {"recursive": {"c": 2, "l": 2}}}},
    "equal": {"t": {"s": {"t": 0.2}}},
    "ordered": {"t": {"s": {"t": 0.2, "distance": "ordered"}}},
    "hierarchical": {"t": {"s": {"t": 0.2, "distance": "hierarchical", "hierarchy": TREE}}},
}


@pytest.mark.parametrize(("registry", "name"), ENTRIES)
def test_the_code_that_an_entry_names_is_there(registry: str, name: str) -> None:
    entry = REGISTRIES[registry][name]
    assert entry.name == name
    for code in (getattr(entry, one.name) for one in fields(entry)):
        if isinstance(code, Code):
            assert code.load() is not None


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("registry", "name"), ENTRIES)
def test_the_reference_has_a_part_for_every_entry(registry: str, name: str) -> None:
    page, schema = job_page(), getattr(REGISTRIES[registry][name], "schema", None)
    if schema is None:
        assert f"`{name}`" in page
    else:
        assert f"\n(job-{schema.__name__.lower()})=\n## " in page
        assert schema.__name__ in jobs_json_schema()["$defs"]


@pytest.mark.parametrize("name", [*DIVERSITIES, *DISTANCES])
def test_compiled_kernels_know_what_its_entry_says_they_know(name: str) -> None:
    [(kind, column, spec)] = Privacy.model_validate({"k": 2} | PRIVACY[name]).models
    domain = Domain("s", pa.array(["x", "y"]), np.array([3, 2]), 0)
    promise = Promise(2, (kind.model(column, spec, domain, Path()),))
    assert kind.name == name
    assert kind.compiled == is_compiled(promise)
    demands_of(promise, ["s"], [domain.counts])


@pytest.mark.parametrize("name", [*DIVERSITIES, *DISTANCES])
def test_the_recount_of_a_model_shares_no_code_with_the_model(name: str) -> None:
    entry = (DIVERSITIES if name in DIVERSITIES else DISTANCES)[name]
    module, _ = entry.statement.path.split(":")
    assert module.startswith("core.recount.")
    parsed = tree(ROOT.joinpath(*module.split(".")).with_suffix(".py"))
    assert not [node.module for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("core")]
