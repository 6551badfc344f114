"""Two jobs have one digest exactly if they make the same release of the same data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import JobError
from schemas.job.job import Job, job_digest, load_job, quasi_identifiers_digest
from schemas.reading.job_files import parse
from tests.schemas.job.test_job import CONTRACT, write

_BLOOD = "A+;A\nA-;A\nB+;B\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the contract's hierarchy file."""
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / "hierarchies/blood_group.csv").write_text(_BLOOD)
    return tmp_path


def digest_of(folder: Path, text: str = CONTRACT, *overrides: str) -> str:
    """Return the digest of a job with this text."""
    return job_digest(load_job(write(folder, text), overrides))


_ZIP_TURNED = "{hierarchy: {prefix: [5, 4, 3, 2]}, name: zip}"
SAME = {
    "comments and blank lines": CONTRACT.replace("columns:", "\n# roles\n\ncolumns:"),
    "quotes and block style": CONTRACT.replace("privacy: {k: 50}", "'privacy':\n    \"k\": 50"),
    "key order": "target: releases/medical\n" + CONTRACT.replace("target: releases/medical\n", ""),
    "key order inside a section": CONTRACT.replace("{limit: 0.01, treatment: drop}", "{treatment: drop, limit: 0.01}"),
    "key order inside a list": CONTRACT.replace("{name: zip,         hierarchy: {prefix: [5, 4, 3, 2]}}", _ZIP_TURNED),
    "spelled-out mask": CONTRACT.replace("{prefix: [5, 4, 3, 2]}", "{prefix: [5, 4, 3, 2], mask: '*'}"),
    "spelled-out encode": CONTRACT.replace("2, 4, 8], origin: 0}", "2, 4, 8], origin: 0.0, encode: false}"),
    "no rounds said": CONTRACT.replace("treatment: drop}", "treatment: drop, rounds: 0}"),
    "left-out defaults": CONTRACT.replace("0.01, treatment: drop}", "0.01}").replace("intervals: text\n", ""),
    "decimals written differently": CONTRACT.replace("0.01", "0.0100").replace("[0.1, 1, 2, 4, 8]", "[1e-1, 1.0, 2, 4.00, 8]"),
    "memory written differently": CONTRACT.replace("1GB", "1000MB"),
    "source path": CONTRACT.replace("medical/*.parquet", "elsewhere/*.parquet"),
    "format said": CONTRACT.replace('{path: "medical/*.parquet"}', '{format: parquet, path: "medical/*.parquet"}'),
    "target": CONTRACT.replace("releases/medical", "elsewhere"),
    "artefacts and work": CONTRACT.replace("artifacts: keep", "artifacts: delete") + "work: fast\nchunk_rows: 10\nthreads: 3\n",
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_the_digest_does_not_see_how_or_where(folder: Path, case: str) -> None:
    assert SAME[case] != CONTRACT
    assert digest_of(folder, SAME[case]) == digest_of(folder)


DIFFERENT = {
    "name": CONTRACT.replace("name: medical", "name: other"),
    "k": CONTRACT.replace("k: 50", "k: 51"),
    "limit": CONTRACT.replace("0.01", "0.011"),
    "treatment": CONTRACT.replace("drop", "mask"),
    "stars": CONTRACT.replace("drop", "cell"),
    "rounds": CONTRACT.replace("treatment: drop}", "treatment: drop, rounds: 1}"),
    "objective": CONTRACT.replace("dm_star}", "dm_all}"),
    "root": CONTRACT.replace("occupied", "dense"),
    "memory": CONTRACT.replace("1GB", "1GiB"),
    "intervals": CONTRACT.replace("intervals: text", "intervals: bounds"),
    "role": CONTRACT.replace("insensitive: []", "insensitive: rest"),
    "column": CONTRACT.replace("health_condition", "condition"),
    "width": CONTRACT.replace("32, 64]", "32, 128]"),
    "origin": CONTRACT.replace("origin: 0", "origin: 0.5"),
    "encode": CONTRACT.replace("encode: true", "encode: false"),
    "mask": CONTRACT.replace("[5, 4, 3, 2]", "[5, 4, 3, 2], mask: '#'"),
    "date units": CONTRACT.replace("quarter, ", ""),
    "tree's leaf": CONTRACT.replace("Baking", "Brewing"),
    "tree's groups": CONTRACT.replace("Crafts: [Baking]", "Trades: [Baking]"),
    "order of leaves": CONTRACT.replace("[Nursing, Surgery]", "[Surgery, Nursing]"),
    "order of importance": CONTRACT.replace("name: age", "name: swap").replace("name: zip", "name: age").replace("name: swap", "name: zip"),
    "hierarchy's delimiter": CONTRACT.replace('delimiter: ";"', 'delimiter: ","'),
    "size of files": CONTRACT + "rows_per_file: 1000\n",
    "types": CONTRACT.replace('"medical/*.parquet"', "m.csv, types: {age: integer}"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_the_digest_sees_all_that_determines_the_release(folder: Path, case: str) -> None:
    assert digest_of(folder, DIFFERENT[case]) != digest_of(folder)


@pytest.mark.parametrize("override", ["source.types={age: integer}", "source.null_values=[NA]", "source.delimiter=;"])
def test_the_digest_sees_how_csv_is_typed(folder: Path, override: str) -> None:
    text = CONTRACT.replace("medical/*.parquet", "m.csv")
    assert digest_of(folder, text, override) != digest_of(folder, text)


def test_the_digest_covers_the_content_of_hierarchy_files_but_not_their_place(folder: Path) -> None:
    first = digest_of(folder)
    (folder / "blood.csv").write_text(_BLOOD)
    assert digest_of(folder, CONTRACT.replace("hierarchies/blood_group.csv", "blood.csv")) == first
    (folder / "hierarchies/blood_group.csv").write_text(_BLOOD + "B-;B\n")
    assert digest_of(folder) != first


def test_the_digest_of_the_quasi_identifiers_sees_nothing_else(folder: Path) -> None:
    first = quasi_identifiers_digest(load_job(write(folder, CONTRACT)))
    assert quasi_identifiers_digest(load_job(write(folder, CONTRACT), ["privacy.k=3", "name=other", "columns.sensitive=[x]"])) == first
    assert quasi_identifiers_digest(load_job(write(folder, CONTRACT), ["columns.quasi_identifiers.5.hierarchy.prefix=[2]"])) != first
    (folder / "hierarchies/blood_group.csv").write_text(_BLOOD + "B-;B\n")
    assert quasi_identifiers_digest(load_job(write(folder, CONTRACT))) != first


def test_the_digest_does_not_depend_on_the_folder(folder: Path) -> None:
    first = digest_of(folder)
    moved = folder.rename(folder.parent / "moved")
    assert digest_of(moved) == first


def test_a_hierarchy_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"quasi_identifiers\[0\] 'blood_group': hierarchy file 'hierarchies/blood_group.csv'"):
        digest_of(tmp_path)


def test_the_canonical_form_is_json_and_names_no_place(folder: Path) -> None:
    canonical = load_job(write(folder, CONTRACT)).canonical()
    assert json.loads(json.dumps(canonical)) == canonical
    for place in (str(folder), "releases/medical", "medical/*", "hierarchies/"):
        assert place not in json.dumps(canonical)


def shuffled(value: object, random: st.DataObject) -> object:
    """Return the same data with the keys of every mapping, trees apart, in another order."""
    if isinstance(value, dict):
        keys = random.draw(st.permutations(list(value)))
        return {key: value[key] if key == "tree" else shuffled(value[key], random) for key in keys}
    return [shuffled(entry, random) for entry in value] if isinstance(value, list) else value


@given(st.data())
def test_key_order_never_changes_the_canonical_form(random: st.DataObject) -> None:
    data, _ = parse(CONTRACT)
    assert Job.model_validate(shuffled(data, random)).canonical() == Job.model_validate(data).canonical()
