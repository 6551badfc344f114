"""``skald verify``: a release that keeps the job's promise passes, anything else is told apart from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import StorageError, VerificationError
from schemas.job.job import load_job
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise, CommandLine
from tests.jobs import QIDS, class_sizes, data_files, people, people_job, released

SETTINGS = ("privacy.k=5", "rows_per_file=150")


@pytest.fixture(scope="module")
def original(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job and its release."""
    folder = tmp_path_factory.mktemp("original")
    anonymise(people_job(folder, people(400)), *SETTINGS)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to be tampered with."""
    return Path(shutil.copytree(original, tmp_path / "copy"))


def release_of(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


def faults(folder: Path, release: Path | None = None) -> str:
    with pytest.raises(VerificationError) as refused:
        verify_release(load_job(folder / "job.yaml", SETTINGS), release or release_of(folder))
    assert refused.value.exit_code == 4
    return str(refused.value)


def rewritten(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    pq.write_table(pa.table(change(pl.read_parquet(path)).to_arrow(compat_level=pl.CompatLevel.oldest())), path)


@pytest.mark.ci
def test_a_good_release_is_recounted(folder: Path) -> None:
    recount, manifest = verify_release(load_job(folder / "job.yaml", SETTINGS), release_of(folder))
    sizes = class_sizes(released(release_of(folder)), QIDS)
    assert manifest is not None
    assert (recount.records, recount.classes, recount.min_class, recount.failing) == (
        sum(sizes.values()),
        len(sizes),
        min(sizes.values()),
        0,
    )
    assert not list((folder / ".skald").glob("*/verify-*"))


def test_one_altered_byte_is_noticed(folder: Path) -> None:
    path = data_files(release_of(folder))[0]
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    assert "1 data file altered since publication" in faults(folder)


def test_a_truncated_file_is_noticed(folder: Path) -> None:
    path = data_files(release_of(folder))[1]
    path.write_bytes(path.read_bytes()[:-100])
    found = faults(folder)
    assert "1 data file altered since publication" in found
    assert "cannot be read as Parquet" in found


def test_a_missing_file_is_noticed(folder: Path) -> None:
    data_files(release_of(folder))[0].unlink()
    found = faults(folder)
    assert "1 data file of the manifest missing" in found
    assert "the manifest says released" in found


def test_a_file_too_many_is_noticed(folder: Path) -> None:
    path = data_files(release_of(folder))[0]
    shutil.copy(path, path.with_name("part-99999.parquet"))
    assert "1 data file not in the manifest" in faults(folder)


def test_a_class_below_k_is_noticed_though_the_manifest_agrees_with_the_files(folder: Path) -> None:
    release = release_of(folder)
    path, manifest = data_files(release)[-1], json.loads((release / "manifest.json").read_text())

    def without_most_of_a_class(frame: pl.DataFrame) -> pl.DataFrame:
        last = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(frame[name][-1])) for name in QIDS)
        return frame.filter(~last).vstack(frame.filter(last)[:2])

    rewritten(path, without_most_of_a_class)
    found = faults(folder)
    assert "1 of " in found
    assert "has fewer than k = 5 records: 2 records exposed, 2 in the smallest class" in found
    assert manifest["min_class"] >= 5
    (release / "manifest.json").unlink()
    assert "2 records exposed" in faults(folder)


def test_a_unique_record_with_a_null_is_noticed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs" / "data").mkdir(parents=True)
    frame = released(release_of(folder)).filter(pl.col("zip").is_not_null())
    one = frame[:1].with_columns(pl.lit(None, pl.String).alias("zip"))
    frame.filter(pl.struct(QIDS) == pl.struct(QIDS).first()).vstack(one).write_parquet(tmp_path / "theirs" / "data" / "all.parquet")
    assert "1 of 2 classes has fewer than k = 5 records: 1 record exposed" in faults(folder, tmp_path / "theirs")


def test_a_larger_k_than_that_of_the_release_is_not_kept(folder: Path) -> None:
    with pytest.raises(VerificationError, match="fewer than k = 50 records"):
        verify_release(load_job(folder / "job.yaml", ["privacy.k=50"]), release_of(folder))


@pytest.mark.parametrize(
    ("number", "change", "fault"),
    [
        ("released", 1, "the manifest says released"),
        ("classes", -1, "the manifest says classes"),
        ("min_class", 1, "the manifest says min_class"),
        ("records", 1, "do not add up"),
        ("suppressed", 1, "do not add up"),
        ("masked", 1, "the manifest says masked"),
    ],
)
def test_altered_numbers_of_the_manifest_are_noticed(folder: Path, number: str, change: int, fault: str) -> None:
    path = release_of(folder) / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest[number] += change
    path.write_text(json.dumps(manifest))
    assert fault in faults(folder)


def test_more_suppression_than_the_limit_is_noticed(folder: Path) -> None:
    job = load_job(folder / "job.yaml", [*SETTINGS, "suppression.limit=0.0001"])
    with pytest.raises(VerificationError, match=r"of 400 are suppressed, more than the limit of 0\.0001"):
        verify_release(job, release_of(folder))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda frame: frame.with_columns(pl.lit(1, pl.Int64).alias("person")), "'person' is an identifier and must not be published"),
        (lambda frame: frame.with_row_index("index"), "'index' is published, but the job does not say so"),
        (lambda frame: frame.drop("age"), "'age' is missing from the data files"),
        (lambda frame: frame.drop("disease"), "'disease' is missing from the data files"),
        (lambda frame: frame.select(reversed(frame.columns)), "a data file's columns are not those of the job"),
    ],
)
def test_columns_that_the_job_does_not_publish_are_noticed(
    folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame], fault: str
) -> None:
    for path in data_files(release_of(folder)):
        rewritten(path, change)
    assert fault in faults(folder)


def test_one_file_with_another_column_is_noticed(folder: Path) -> None:
    rewritten(data_files(release_of(folder))[-1], lambda frame: frame.with_columns(pl.lit(1, pl.Int64).alias("person")))
    assert "'person' is an identifier" in faults(folder)


def test_another_tools_release_without_a_manifest_is_recounted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs" / "data").mkdir(parents=True)
    frame = released(release_of(folder))
    frame.write_parquet(tmp_path / "theirs" / "data" / "all.parquet")
    recount, manifest = verify_release(load_job(folder / "job.yaml", SETTINGS), tmp_path / "theirs")
    assert manifest is None
    assert (recount.records, recount.classes) == (len(frame), len(class_sizes(frame, QIDS)))
    frame.vstack(people_like(frame)).write_parquet(tmp_path / "theirs" / "data" / "all.parquet")
    assert "1 of " in faults(folder, tmp_path / "theirs")


def people_like(frame: pl.DataFrame) -> pl.DataFrame:
    """One record that nobody is like."""
    return frame[:1].with_columns(pl.lit("q").alias("zip"))


def test_a_release_without_any_data_file_is_one_that_was_changed(folder: Path) -> None:
    shutil.rmtree(release_of(folder) / "data")
    assert "all data files" in faults(folder, release_of(folder))


@pytest.mark.parametrize("broken", ["nothing there", "manifest garbled"])
def test_a_folder_that_is_no_release_is_told_apart(folder: Path, broken: str) -> None:
    release = folder / "nowhere" if broken == "nothing there" else release_of(folder)
    if broken == "manifest garbled":
        (release / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match="is not a release") as refused:
        verify_release(load_job(folder / "job.yaml", SETTINGS), release)
    assert refused.value.exit_code == 2


@pytest.mark.ci
def test_exit_codes_of_the_command(original: Path, direct: CommandLine) -> None:
    folder = Path(shutil.copytree(original, direct.folder / "copy"))
    release = release_of(folder)
    good = direct("verify", release, "--job", folder / "job.yaml")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("Verified.")
    as_json = direct("verify", release, "--job", folder / "job.yaml", "--json")
    assert json.loads(as_json.stdout)["failing"] == 0
    strict = direct("verify", release, "--job", folder / "job.yaml", "--set", "privacy.k=100")
    assert (strict.returncode, strict.stdout) == (4, "")
    assert "does not keep the job's promise" in strict.stderr
    unexpected = direct("verify", folder, "--job", folder / "job.yaml")
    assert (unexpected.returncode, unexpected.stdout) == (2, "")
    assert "is not a release" in unexpected.stderr


@pytest.mark.ci
def test_numbers_where_a_star_may_stand_are_noticed(anonymise: Anonymise, tmp_path: Path) -> None:
    """Where records may be masked every quasi-identifier is text: a reader that finds numbers would fail at the first star."""
    job = people_job(tmp_path, people(100))
    release = anonymise(job, "privacy.k=1").folder
    assert released(release).schema["age"] == pl.Int64
    verify_release(load_job(job, ("privacy.k=1",)), release)
    with pytest.raises(VerificationError, match="columns are not those of the job, in its order and types"):
        verify_release(load_job(job, ("privacy.k=1", "suppression.treatment=mask")), release)
