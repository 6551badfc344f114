"""The reference of the documentation has every key of a job, of one table and of several, and every field of a manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from docs.reference_pages import write_pages
from schemas.relational.manifest import ReleasedPersons, ReleasedTable, TablesLoss, TablesManifest
from schemas.release.manifest import Manifest
from tests.conftest import CommandLine


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "reference"
    write_pages(folder)
    return folder


def test_every_model_of_a_job_has_a_part_with_all_its_keys(reference: Path) -> None:
    parts = {part.split(")=", 1)[0]: part for part in (reference / "job.md").read_text().split("\n(job-")[1:]}
    definitions = json.loads((reference / "job.schema.json").read_text())["$defs"]
    assert {"Job", "TablesJob", "TableSpec", "TablesPrivacy", "TablesSuppression", "KnownRows", "RowsBound"} <= definitions.keys()
    for name, model in definitions.items():
        assert [key for key in model.get("properties", {}) if f"\n| `{key}` | " not in parts[name.lower()]] == [], name


@pytest.mark.parametrize("model", [Manifest, TablesManifest, ReleasedTable, ReleasedPersons, TablesLoss])
def test_every_field_of_a_manifest_is_said(reference: Path, model: type[BaseModel]) -> None:
    part = (reference / "manifest.md").read_text().split(f"\n## {model.__name__}\n", 1)[1].split("\n## ", 1)[0]
    assert [name for name in model.model_fields if f"`{name}`" not in part] == []


def test_the_schema_to_download_is_the_one_that_the_command_prints(reference: Path, direct: CommandLine) -> None:
    assert (reference / "job.schema.json").read_text() == direct("schema").stdout
