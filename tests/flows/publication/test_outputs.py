"""A release says the same in every format, is recounted from the files of that format, and is refused when they were changed."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from core.formats.spreadsheets import unescape_csv_text
from schemas.errors.base import JobError, SourceError, StorageError, VerificationError
from schemas.errors.storage import OutputError
from schemas.job.job import job_digest, load_job
from tasks.recount.recount import verify_release
from tasks.report.report import rebuild_report
from tasks.utility.utility import measure_utility
from tests.conftest import Anonymise, CommandLine
from tests.corpus.columns_of_types import FAMILIES, columns_of, table_of
from tests.house.replaced import OUTPUTS_MOST_FOLDERS
from tests.jobs import PAYLOAD, QIDS, job_of, people, people_job, released, write_job

TABLE = people(400)
COLUMNS = [*QIDS, *PAYLOAD]
SETTINGS = ("privacy.k=4", "rows_per_file=150")
MASKED = {"limit": 0.05, "treatment": "mask"}
BOTH = {"columns": job_of()["columns"] | {"sensitive": ["disease", "visits"], "insensitive": ["note", "score"]}}
L_AND_T = {"k": 4, "l": {"disease": {"distinct": 2}}, "t": {"visits": {"t": 0.9, "distance": "ordered"}}}


def counts(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(rows)


def expected(anonymise: Anonymise, folder: Path, **parts: Any) -> Counter[tuple[Any, ...]]:
    """Records of the release in Parquet."""
    return counts(released(anonymise(people_job(folder, TABLE, **parts), *SETTINGS).folder).select(COLUMNS).rows())


def made_as(anonymise: Anonymise, folder: Path, output: dict[str, Any], **parts: Any) -> Path:
    """The release in another format; it is verified again from its folder alone."""
    job = people_job(folder, TABLE, output=output, **parts)
    release = anonymise(job, *SETTINGS).folder
    again, manifest = verify_release(load_job(job, SETTINGS), release)
    assert manifest is not None
    assert again.records == manifest.released == sum(file.rows for file in manifest.files)
    assert rebuild_report(release).release == manifest.release
    return release


def rows_of_csv(release: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Read CSV files as Python does, and undoes the rule for text."""
    rows = []
    for path in sorted((release / "data").glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows += [{unescape_csv_text(name): text for name, text in row.items()} for row in csv.DictReader(file, delimiter=delimiter)]
    return rows


OTHERS = [{"format": "csv"}, {"format": "csv", "delimiter": ";", "bom": False}, {"format": "duckdb"}]


@pytest.fixture(scope="module", params=[{}, {"suppression": MASKED}, {"privacy": L_AND_T} | BOTH, {"intervals": "bounds"}])
def in_parquet(request: pytest.FixtureRequest, anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, pl.DataFrame]:
    """Parts of a job, and its release as Parquet."""
    job = people_job(tmp_path_factory.mktemp("parquet"), TABLE, **request.param)
    return request.param, released(anonymise(job, *SETTINGS).folder)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("output", OTHERS)
def test_every_format_is_recounted_and_holds_the_same(
    anonymise: Anonymise, tmp_path: Path, output: dict[str, Any], in_parquet: Any
) -> None:
    parts, parquet = in_parquet
    release = made_as(anonymise, tmp_path / "other", output, **parts)
    if output["format"] == "duckdb":
        with duckdb.connect(release / "data" / "release.duckdb", read_only=True) as connection:
            found = pl.DataFrame(connection.sql("SELECT * FROM release").to_arrow_table())
        assert counts(found.rows()) == counts(parquet.rows())
        assert found.columns == parquet.columns
        return
    rows = rows_of_csv(release, output.get("delimiter", ","))
    texts = parquet.select(pl.all().cast(pl.String).fill_null(""))
    exact = [name for name, dtype in parquet.schema.items() if dtype != pl.Float64]
    assert counts([tuple(row[name] for name in exact) for row in rows]) == counts(texts.select(exact).rows())
    assert Counter(float(row["score"] or "nan") for row in rows if row["score"]) == Counter(parquet["score"].drop_nulls())


RISKY = pa.table(
    {
        "q": pa.array(["=HYPERLINK(1)", "plain", None] * 8),
        "s": pa.array(["@SUM(A1)", "-1", "'", "", None, 'a,"b"\nc;=HYPERLINK(2)\t-1'] * 4),
        "=n;m": pa.array([-1, 2, None, 4] * 6),
    }
)


def test_a_spreadsheet_finds_no_formula_and_every_value_comes_back(anonymise: Anonymise, tmp_path: Path) -> None:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"], "insensitive": ["=n;m"]}
    job = people_job(tmp_path, RISKY, columns=columns, output={"format": "csv"}, suppression={"limit": 0})
    release = anonymise(job).folder
    [path] = (release / "data").iterdir()
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.reader(file))
    assert cells[0] == ["q", "s", "'=n;m"]
    numbers = {row[2] for row in cells[1:]}
    assert numbers == {"-1", "2", "", "4"}
    assert not any(cell.lstrip()[:1] in {"=", "+", "-", "@"} for row in cells for cell in row[:2])
    read = [tuple(map(unescape_csv_text, row)) for row in cells[1:]]
    assert Counter(read) == Counter(tuple("" if value is None else str(value) for value in row.values()) for row in RISKY.to_pylist())
    # Quotes that begin in the middle of a cell are letters to a spreadsheet that separates cells by another mark.
    assert path.read_text("utf-8-sig").count("c;'=HYPERLINK(2)\t'-1") == 4
    assert path.read_text("utf-8-sig").startswith('q,s,"\'=n;m"\n')
    # A null is nothing, an empty text is two quotes.
    assert path.read_text("utf-8-sig").count(',"",') == 4
    assert verify_release(load_job(job), release)[0].min_class == 8


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("output", "named"), [({"format": "csv"}, "part-00001.csv"), ({"format": "duckdb"}, "release.duckdb")])
def test_an_altered_file_of_any_format_fails(anonymise: Anonymise, tmp_path: Path, output: dict[str, Any], named: str) -> None:
    job = people_job(tmp_path, TABLE, output=output)
    release = anonymise(job, *SETTINGS).folder
    path = release / "data" / named
    if path.suffix == ".csv":
        lines = path.read_text("utf-8-sig").split("\n")
        path.write_text("\n".join([lines[0], '"m","[0 - 1]","x","[1 - 2)",true,"1999",,,,', *lines[1:]]))
    else:
        with duckdb.connect(path) as connection:
            connection.execute("DELETE FROM release WHERE rowid < 3; UPDATE release SET sex = 'unheard of' WHERE rowid = 10")
    with pytest.raises(VerificationError, match="altered since publication") as refused:
        verify_release(load_job(job, SETTINGS), release)
    assert len(refused.value.faults) > 1
    (release / "manifest.json").unlink()
    with pytest.raises(VerificationError):
        verify_release(load_job(job, SETTINGS), release)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("by", [["sex"], ["smoker", "sex"]])
def test_folders_hold_the_same_records(anonymise: Anonymise, tmp_path: Path, by: list[str]) -> None:
    one = expected(anonymise, tmp_path / "parquet", suppression=MASKED)
    release = made_as(anonymise, tmp_path / "folders", {"partition_by": by}, suppression=MASKED)
    files = sorted(path.relative_to(release / "data") for path in (release / "data").rglob("*.parquet"))
    assert all([part.split("=")[0] for part in path.parts[:-1]] == by for path in files)
    assert not any(name in pq.read_schema(release / "data" / path).names for path in files for name in by)
    read = ds.dataset(release / "data", partitioning=ds.HivePartitioning(pa.schema([(name, pa.string()) for name in by]))).to_table()
    found = pl.DataFrame(read.select(COLUMNS)).rows()
    assert counts(found) == one


def folders_of(folder: Path, values: list[str | None], **parts: Any) -> Path:
    """A job whose release has a folder for each value."""
    table = pa.table({"q": values * 8, "s": ["x"] * (8 * len(values))})
    columns = {"quasi_identifiers": [{"name": name, "hierarchy": {"prefix": [1]}} for name in ("q", "s")]}
    return people_job(folder, table, columns=columns, output={"partition_by": ["q"]}, suppression={"limit": 0}, **parts)


@pytest.mark.ci
def test_a_folder_that_was_moved_is_noticed(anonymise: Anonymise, tmp_path: Path) -> None:
    job = folders_of(tmp_path, ["a", "b"])
    release = anonymise(job).folder
    (release / "data" / "q=a").rename(release / "data" / "q=y")
    with pytest.raises(VerificationError, match="1 data file of the manifest missing"):
        verify_release(load_job(job), release)
    (release / "data" / "q=y").rename(release / "data" / "t=1")
    with pytest.raises(VerificationError, match=r"not in the folders that output\.partition_by asks for"):
        verify_release(load_job(job), release)


def test_csv_below_a_folder_that_ends_like_a_packed_file_is_plain(anonymise: Anonymise, tmp_path: Path) -> None:
    release = made_as(anonymise, tmp_path, {"format": "csv"}, target="a.gz?b", suppression={"limit": 0})
    assert len(rows_of_csv(release)) == 400


@pytest.mark.parametrize("folder", ["a\\b", "a?b"])
def test_duckdb_below_a_folder_that_duckdb_takes_for_another_is_refused(anonymise: Anonymise, tmp_path: Path, folder: str) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(SourceError, match="cannot be opened as a DuckDB file"):
        made_as(anonymise, tmp_path, {"format": "duckdb"}, target=folder)
    assert not list(tmp_path.rglob("*.duckdb"))


@pytest.mark.ci
def test_names_of_folders_are_escaped(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(folders_of(tmp_path, ["a/../b", "c=d e", None]))
    assert sorted(path.name for path in (made.folder / "data").iterdir()) == ["q=__HIVE_DEFAULT_PARTITION__", "q=a%2F..%2Fb", "q=c%3Dd%20e"]
    assert pl.read_parquet(made.folder / "data" / "**" / "*.parquet", hive_partitioning=True)["q"].n_unique() == 3
    assert made.manifest.classes == 3


def test_text_that_cannot_be_a_folder_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    job = folders_of(tmp_path, ["", "c"])
    with pytest.raises(StorageError, match="8 records with text that cannot be a folder's name"):
        anonymise(job)
    assert not any(load_job(job).target_path.iterdir())


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"output": {"partition_by": ["disease"]}}, "column 'disease' is no quasi-identifier; its values would stand in folder names"),
        ({"output": {"partition_by": ["note"]}}, "column 'note' is no quasi-identifier"),
        ({"output": {"partition_by": ["sx"]}}, r"'sx' is not published \(did you mean 'sex'\?\)"),
        ({"output": {"partition_by": ["age"]}, "intervals": "bounds"}, "'age' is not published"),
        ({"output": {"partition_by": QIDS}}, "at least one quasi-identifier must stay"),
        ({"output": {"partition_by": ["sex"], "format": "csv"}}, "partition_by only fits Parquet"),
        ({"output": {"format": "xlsx"}}, "output.format: must be 'parquet', 'csv' or 'duckdb'"),
        ({"output": {"format": "csv", "delimiter": "="}}, "delimiter must not be a quote"),
        ({"output": {"delimiter": ";"}}, "'delimiter' only fit CSV"),
    ],
)
def test_an_output_that_makes_no_sense_is_told_before_anything_is_read(tmp_path: Path, parts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(JobError, match=sentence):
        load_job(people_job(tmp_path, TABLE, **parts))


def test_the_format_is_part_of_the_digest_and_its_default_is_not(tmp_path: Path) -> None:
    def digest(**parts: Any) -> str:
        return job_digest(load_job(people_job(tmp_path, TABLE, **parts)))

    plain = digest()
    assert digest(output={}) == digest(output={"format": "parquet"}) == plain
    assert (
        len({plain, digest(output={"format": "csv"}), digest(output={"format": "duckdb"}), digest(output={"partition_by": ["sex"]})}) == 4
    )


def test_bytes_are_refused_for_csv_before_anything_is_counted(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": ["a"] * 8, "s": [b"x"] * 8})
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    with pytest.raises(SourceError, match="Column 's' is of type binary, which cannot be written as CSV"):
        anonymise(people_job(tmp_path, table, columns=columns, output={"format": "csv"}))


@pytest.mark.parametrize(("output", "kind"), [("csv", "CSV"), ("duckdb", "a table of DuckDB")])
def test_lengths_of_time_are_not_written_as_numbers_of_an_unknown_unit(
    anonymise: Anonymise, tmp_path: Path, output: str, kind: str
) -> None:
    table = pa.table({"q": ["a"] * 8, "s": pa.array([515] * 8, pa.duration("s"))})
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    with pytest.raises(SourceError, match=rf"Column 's' is of type duration\[s\], which cannot be written as {kind}"):
        anonymise(people_job(tmp_path, table, columns=columns, output={"format": output}))


@pytest.mark.ci
def test_folders_of_moments_with_a_zone_are_read_back(direct: CommandLine) -> None:
    moments = [datetime(2020, month, 1, 23, 30, tzinfo=UTC) for month in (1, 7)]
    table = pa.table({"q": [1] * 8, "utc": pa.array(moments * 4, pa.timestamp("us", "UTC"))})
    table = table.append_column("berlin", table["utc"].cast(pa.timestamp("us", "Europe/Berlin")))
    days = [{"name": name, "hierarchy": {"date": ["day"]}} for name in ("utc", "berlin")]
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [1]}}, *days], "sensitive": [], "identifiers": []}
    parts = {"columns": columns, "privacy": {"k": 2}, "output": {"partition_by": ["utc", "berlin"]}, "method": {"name": "skald"}}
    job = people_job(direct.folder, table, **parts)
    done = direct("run", job)
    assert done.returncode == 0, done.stderr
    [release] = direct.folder.glob("releases/*/manifest.json")
    folders = {unquote(path.parent.name) + " " + unquote(path.parent.parent.name) for path in release.parent.rglob("part-*")}
    assert folders == {
        "berlin=2020-01-02 00:30:00+01:00 utc=2020-01-01 23:30:00+00:00",
        "berlin=2020-07-02 01:30:00+02:00 utc=2020-07-01 23:30:00+00:00",
    }
    assert direct("verify", str(release.parent), "--job", job).returncode == 0


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("family", ["numbers", "fractions", "times", "texts"])
@pytest.mark.parametrize("output", ["csv", "duckdb"])
def test_values_and_nulls_of_every_type_are_kept_in_every_format(anonymise: Anonymise, tmp_path: Path, family: str, output: str) -> None:
    source = table_of(FAMILIES[family])
    pq.write_table(source, tmp_path / "source.parquet")
    parts = job_of(source={"path": "source.parquet"}, columns=columns_of(FAMILIES[family]), suppression={"limit": 0}, privacy={"k": 5})
    made = anonymise(write_job(tmp_path, parts | {"output": {"format": output}}))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        given = pl.DataFrame(connection.sql(f"SELECT * FROM '{tmp_path}/source.parquet'").to_arrow_table())
        if output == "csv":
            types = json.loads((made.folder / "manifest.json").read_text())["columns"]
            options = f"nullstr = '', allow_quoted_nulls = false, header = true, auto_detect = false, delim = ',', columns = {types!r}"
            found = pl.DataFrame(connection.sql(f"SELECT * FROM read_csv('{made.folder}/data/*.csv', {options})").to_arrow_table())
            found = found.with_columns(pl.col(pl.String).str.replace("^'", ""))
        else:
            connection.execute(f"ATTACH '{made.folder}/data/release.duckdb' AS made (READ_ONLY)")
            found = pl.DataFrame(connection.sql("SELECT * FROM made.release").to_arrow_table())
    assert found.select(given.columns).schema == given.schema
    assert counts([tuple(map(repr, row)) for row in found.select(given.columns).rows()]) == counts(
        [tuple(map(repr, row)) for row in given.rows()]
    )


@pytest.mark.slow
def test_utility_is_measured_of_every_format(anonymise: Anonymise, tmp_path: Path) -> None:
    found = []
    for name, output in {"parquet": {}, "csv": {"format": "csv"}, "duckdb": {"format": "duckdb"}}.items():
        job = people_job(tmp_path / name, TABLE, output=output)
        release = anonymise(job, *SETTINGS).folder
        found.append(measure_utility(load_job(job, SETTINGS), release, 20, 0, None).model_copy(update={"release": ""}))
    assert found[0] == found[1] == found[2]


@pytest.mark.ci
def test_as_many_folders_as_are_allowed_are_made_and_no_more(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OUTPUTS_MOST_FOLDERS, 2)
    assert len(list((anonymise(folders_of(tmp_path / "two", ["a", "b"])).folder / "data").iterdir())) == 2
    with pytest.raises(OutputError, match="more than 2"):
        anonymise(folders_of(tmp_path / "three", ["a", "b", "c"]))


@pytest.mark.ci
def test_a_folder_may_be_named_by_as_many_bytes_as_file_systems_take(anonymise: Anonymise, tmp_path: Path) -> None:
    longest = "a" * (255 - len("q="))
    [folder] = (anonymise(folders_of(tmp_path / "fits", [longest])).folder / "data").iterdir()
    assert folder.name == f"q={longest}"
    with pytest.raises(OutputError):
        anonymise(folders_of(tmp_path / "not", [f"{longest}a"]))


@pytest.mark.slow
def test_moments_are_written_alike_in_every_time_zone(direct: CommandLine) -> None:
    moments = pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 8, pa.timestamp("us", "Europe/Zurich"))
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "insensitive": ["moment"]}
    table = pa.table({"q": ["a"] * 8, "moment": moments})
    job = people_job(direct.folder, table, columns=columns, output={"format": "csv"}, suppression={"limit": 0})
    done = direct.process("run", job, TZ="Asia/Tokyo")
    assert done.returncode == 0, done.stderr
    [path] = (direct.folder / "releases").glob("people-*/data/*.csv")
    assert path.read_text("utf-8-sig").splitlines()[1].endswith("2020-01-01 00:00:00+00")
