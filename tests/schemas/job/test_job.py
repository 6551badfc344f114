"""What a good job file says is what the job holds."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import JobError
from schemas.job.columns import hidden_qids
from schemas.job.job import Job, job_digest, load_job
from schemas.job.method import METHODS, SkaldMethod
from schemas.job.source import holds_secret, suffix
from schemas.reading.job_files import parse
from schemas.reading.model import LEAST_MEMORY, memory_bytes
from schemas.registry.hierarchies import DATE_UNITS, CsvHierarchy, DateHierarchy, PrefixHierarchy, WidthsHierarchy
from schemas.registry.hierarchy_kinds import TreeHierarchy
from schemas.relational.tables_job import jobs_json_schema

CONTRACT = """\
version: 1
name: medical
source: {path: "medical/*.parquet"}            # relative to the job file
columns:
  identifiers: [patient_id]
  quasi_identifiers:
    - {name: blood_group, hierarchy: {csv: hierarchies/blood_group.csv, delimiter: ";"}}
    - name: profession
      hierarchy: {tree: {Service: {Healthcare: [Nursing, Surgery], Education: [Teaching]}, Non-Service: {Crafts: [Baking]}}}
    - {name: age,         hierarchy: {widths: [1, 2, 4, 8, 16, 32, 64]}}
    - {name: bmi,         hierarchy: {widths: [0.1, 1, 2, 4, 8], origin: 0}}
    - {name: pin_code,    hierarchy: {widths: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], encode: true}}
    - {name: zip,         hierarchy: {prefix: [5, 4, 3, 2]}}
    - {name: admitted,    hierarchy: {date: [day, month, quarter, year, decade]}}
  sensitive: [health_condition]
  insensitive: []
privacy: {k: 50}
suppression: {limit: 0.01, treatment: drop}
method: {name: skald, root: occupied, objective: dm_star}
memory: 1GB
target: releases/medical
artifacts: keep
intervals: text
"""

SHORT = """\
version: 1
name: short
source: {path: people.csv}
columns:
  quasi_identifiers:
    - {name: age, hierarchy: {widths: [5, 10]}}
privacy: {k: 2}
method: {name: skald}
memory: 64MB
target: out
"""


def write(folder: Path, text: str) -> Path:
    """Return a job file with this text."""
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def hierarchy_of(job: Job, name: str) -> Any:
    """Return the hierarchy of one quasi-identifier."""
    return next(qid.hierarchy for qid in job.columns.quasi_identifiers if qid.name == name)


def test_the_example_of_the_contract_loads_and_says_what_it_says(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, CONTRACT))
    assert (job.version, job.name, job.memory, job.privacy.k) == (1, "medical", 10**9, 50)
    assert (job.suppression.limit, job.suppression.treatment) == (Decimal("0.01"), "drop")
    assert job.method == SkaldMethod(name="skald", root="occupied", objective="dm_star")
    assert [type(qid.hierarchy) for qid in job.columns.quasi_identifiers] == [
        CsvHierarchy, TreeHierarchy, WidthsHierarchy, WidthsHierarchy, WidthsHierarchy, PrefixHierarchy, DateHierarchy,
    ]  # fmt: skip
    assert hierarchy_of(job, "pin_code").encode is True
    assert hierarchy_of(job, "zip").prefix == [5, 4, 3, 2]
    assert tuple(hierarchy_of(job, "admitted").date) == DATE_UNITS
    assert job.columns.roles()["bmi"] == "quasi_identifiers"
    assert job.columns.roles()["patient_id"] == "identifiers"


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, SHORT))
    assert (job.suppression.limit, job.suppression.treatment) == (Decimal(0), "drop")
    assert (job.artifacts, job.intervals, job.chunk_rows, job.threads, job.work) == ("keep", "text", 250_000, None, None)
    assert (job.columns.identifiers, job.columns.sensitive, job.columns.insensitive) == ([], [], [])
    assert (job.source.format, job.source.delimiter, job.source.null_values, job.source.types) == ("csv", ",", [""], {})


def test_relative_paths_start_at_the_job_file_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    write(folder, CONTRACT)
    monkeypatch.chdir(tmp_path)
    job = load_job(Path("jobs/job.yaml"))
    monkeypatch.chdir("/")
    assert job.folder == folder
    assert job.target_path == folder / "releases/medical"
    assert job.work_path == folder / ".skald/medical"
    assert job.source_pattern == [str(folder / "medical/*.parquet")]
    assert job.resolve(hierarchy_of(job, "blood_group").csv) == folder / "hierarchies/blood_group.csv"


def test_absolute_paths_and_addresses_stay_as_they_are(tmp_path: Path) -> None:
    overrides = ["source.path=[/data/a.parquet, 's3://bucket/*.parquet']", "source.format=parquet", "target=/releases", "work=/fast"]
    job = load_job(write(tmp_path, SHORT), overrides)
    assert job.source_pattern == ["/data/a.parquet", "s3://bucket/*.parquet"]
    assert (job.target_path, job.work_path) == (Path("/releases"), Path("/fast"))


def test_the_job_files_own_folder_is_never_read_as_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "study[1]"
    folder.mkdir()
    (folder / "people.csv").touch()
    [pattern] = load_job(write(folder, SHORT)).source_pattern
    assert list(Path("/").glob(pattern.lstrip("/"))) == [folder / "people.csv"]


def test_the_folder_is_not_part_of_the_jobs_data(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, SHORT))
    assert str(tmp_path) not in job.model_dump_json()
    assert Job.model_validate(job.model_dump(), context={"folder": tmp_path}) == job


@pytest.mark.parametrize(
    ("path", "format_", "delimiter"),
    [
        ("a.csv", "csv", ","), ("a.csv.gz", "csv", ","), ("b/*.CSV.zst", "csv", ","), ("a.tsv", "csv", "\t"), ("a.tsv.gz", "csv", "\t"),
        ("a.parquet", "parquet", ","), ("folder.csv/*", "parquet", ","), ("folder", "parquet", ","), ("a.gz", "parquet", ","),
    ],
)  # fmt: skip
def test_the_suffix_tells_the_format(tmp_path: Path, path: str, format_: str, delimiter: str) -> None:
    job = load_job(write(tmp_path, SHORT), [f"source.path='{path}'"])
    assert (job.source.format, job.source.delimiter) == (format_, delimiter)


def test_a_format_that_is_said_overrules_the_suffix(tmp_path: Path) -> None:
    overrides = ["source.path=[a.txt, b.parquet]", "source.format=csv", "source.delimiter='|'"]
    source = load_job(write(tmp_path, SHORT), overrides).source
    assert (source.format, source.delimiter, suffix(source.path[0])) == ("csv", "|", ".txt")


def test_column_types_and_null_texts_are_read_as_they_are_written(tmp_path: Path) -> None:
    block = "\n  path: people.csv\n  null_values: [NULL, no, -9, 007]\n  types:\n    age: decimal(10, 2)"
    text = SHORT.replace("{path: people.csv}", block)
    source = load_job(write(tmp_path, text)).source
    assert source.null_values == ["NULL", "no", "-9", "007"]
    assert source.types == {"age": "decimal(10,2)"}


@given(st.decimals(min_value=Decimal("0.001"), max_value=1000, places=3), st.lists(st.integers(2, 5), max_size=4))
def test_widths_are_the_decimals_that_were_written(first: Decimal, factors: list[int]) -> None:
    widths = [first]
    for factor in factors:
        widths.append(widths[-1] * factor)
    data, faults = parse(f"widths: [{', '.join(format(width, 'f') for width in widths)}]")
    assert not faults
    assert WidthsHierarchy.model_validate(data).widths == widths


def test_tenths_are_tenths(tmp_path: Path) -> None:
    assert hierarchy_of(load_job(write(tmp_path, CONTRACT)), "bmi").widths[0] * 10 == 1
    assert WidthsHierarchy(widths=[0.1, 0.3]).widths == [Decimal("0.1"), Decimal("0.3")]  # type: ignore[list-item]


def test_a_tree_gives_one_route_per_leaf_in_the_files_order_as_it_is_written(tmp_path: Path) -> None:
    tree = "{South: {B: [no, 007]}, North: {A: [1.50, 'null', 2020-01-01], C: ['', True, 1_000, +5, 1e3]}}"
    text = SHORT.replace("{widths: [5, 10]}", f"{{tree: {tree}}}")
    assert hierarchy_of(load_job(write(tmp_path, text)), "age").routes == [
        ["no", "B", "South"], ["007", "B", "South"], ["1.50", "A", "North"], ["null", "A", "North"], ["2020-01-01", "A", "North"],
        ["", "C", "North"], ["True", "C", "North"], ["1_000", "C", "North"], ["+5", "C", "North"], ["1e3", "C", "North"],
    ]  # fmt: skip


def test_jobs_are_equal_though_one_has_listed_the_leaves_of_its_tree(tmp_path: Path) -> None:
    path = write(tmp_path, SHORT.replace("{widths: [5, 10]}", "{tree: {North: {A: [1]}, South: {B: [2]}}}"))
    used, other = load_job(path), load_job(path, ["columns.quasi_identifiers.0.hierarchy={tree: {North: {A: [2]}, South: {B: [1]}}}"])
    assert hierarchy_of(used, "age").routes[0] == ["1", "A", "North"]
    assert used == load_job(path) == pickle.loads(pickle.dumps(used))
    assert used != other


def test_one_name_may_be_repeated_along_a_route(tmp_path: Path) -> None:
    text = SHORT.replace("{widths: [5, 10]}", "{tree: {Mali: {Mali: [Mali]}, Asia: {India: [Goa]}}}")
    assert hierarchy_of(load_job(write(tmp_path, text)), "age").routes[0] == ["Mali", "Mali", "Mali"]


def test_an_alias_repeats_what_it_names(tmp_path: Path) -> None:
    text = SHORT.replace("{widths: [5, 10]}}", "&ages {widths: [5, 10]}}\n    - {name: years, hierarchy: *ages}")
    job = load_job(write(tmp_path, text))
    assert hierarchy_of(job, "years") == hierarchy_of(job, "age")


def test_words_that_other_yaml_readers_change_stay_words(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, SHORT.replace("name: short", "name: no").replace("{name: age,", "{name: on,")))
    assert (job.name, job.columns.quasi_identifiers[0].name) == ("no", "on")


@pytest.mark.parametrize(
    ("written", "size"),
    [("1GB", 10**9), ("512MB", 512 * 10**6), ("2GiB", 2**31), ("1.5 GB", 1_500_000_000), ("64mb", LEAST_MEMORY), ("0.5GiB", 2**29),
     ("1TB", 10**12), ("1TiB", 2**40), ("64000kB", LEAST_MEMORY), ("64000000B", LEAST_MEMORY), (LEAST_MEMORY, LEAST_MEMORY)],
)  # fmt: skip
def test_memory_is_read_as_people_write_it(written: object, size: int) -> None:
    assert memory_bytes(written) == size


@given(st.integers(64, 10**6), st.sampled_from(["MB", "MiB"]))
def test_memory_counts_thousands_in_mb_and_1024s_in_mib(amount: int, unit: str) -> None:
    assert memory_bytes(f"{amount}{unit}") == amount * (1000**2 if unit == "MB" else 1024**2)


def test_a_task_takes_the_memory_of_a_worker_where_that_is_less(tmp_path: Path) -> None:
    path = write(tmp_path, SHORT)
    plain, less, more = (load_job(path, ("memory=1GB", *given)) for given in ((), ("worker_memory=64MB",), ("worker_memory=1TB",)))
    assert [job.task_memory for job in (plain, less, more)] == [plain.memory, 64_000_000, plain.memory]
    assert (less.with_task_memory().memory, less.with_task_memory().folder, less.memory) == (64_000_000, tmp_path, plain.memory)
    assert job_digest(plain) != job_digest(less)
    assert "worker_memory" not in plain.canonical()


def test_a_job_cannot_be_changed_once_it_is_read(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, SHORT))
    with pytest.raises(ValueError, match="frozen"):
        job.privacy.k = 1


def test_the_json_schema_knows_every_key_method_and_hierarchy() -> None:
    definitions = jobs_json_schema()["$defs"]
    schema = definitions["Job"]
    assert set(schema["properties"]) == set(Job.model_fields)
    assert {"version", "name", "source", "columns", "privacy", "method", "memory", "target"} == set(schema["required"])
    assert set(schema["properties"]["method"]["discriminator"]["mapping"]) == set(METHODS)
    kinds = {"CsvHierarchy", "TreeHierarchy", "WidthsHierarchy", "PrefixHierarchy", "DateHierarchy"}
    assert kinds <= set(definitions)


def test_a_missing_file_is_a_job_error_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="there is no such file"):
        load_job(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    "secret", ["u:p@h/d", "u:a#b@h/d", "u:a?b@h/d", "u:a/b@h/d", ":p@h", "h/d?sslpassword=p", "h/d?oauth_client_secret=p"]
)
def test_an_address_with_a_password_is_known_whatever_signs_it_has(secret: str) -> None:
    assert holds_secret(f"postgresql://{secret}")


@pytest.mark.parametrize("address", ["u@h:5432/d?user=a@b", "h1:1,h2:2/d?user=a@b", "/d?host=/a:b", "u@[::1]:5432/d", "h/d?passfile=p"])
def test_an_address_without_a_password_is_none(address: str) -> None:
    assert not holds_secret(f"postgresql://{address}")


def test_a_quasi_identifier_without_a_name_does_not_lend_its_hierarchy_to_the_next_one() -> None:
    assert list(hidden_qids([{"hierarchy": {"widths": [5], "top": 90}}, {"name": "zip", "hierarchy": {"prefix": [5]}}])) == []
