"""Every way in gives the release of the same records from Parquet: to the byte, wherever they are and whatever they are written in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather, ipc

from schemas.errors.base import SourceError
from schemas.errors.storage import DatabaseError, ObjectStoreError
from schemas.job.job import load_job
from schemas.job.source import statement_text
from tasks.planning.plan import find_existing_release, make_plan
from tasks.store.store import Store
from tests.conftest import Anonymise
from tests.jobs import CSV_TYPES, digests, job_of, people, people_job, write_job, write_parquet
from tests.servers import forget, postgresql, s3

TABLE = people(400)
SETTINGS = ("privacy.k=4", "rows_per_file=150")


@pytest.fixture(scope="module")
def expected(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Digests of the release of Parquet files."""
    return digests(anonymise(people_job(tmp_path_factory.mktemp("parquet"), TABLE), *SETTINGS).folder)


def run(anonymise: Anonymise, folder: Path, source: dict[str, Any], *settings: str) -> list[str]:
    """Return the digests of the release of a source."""
    return digests(anonymise(write_job(folder, job_of(source=source)), *SETTINGS, *settings).folder)


def arrow_file(folder: Path, table: pa.Table) -> str:
    with ipc.new_file(folder / "people.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=37)
    return "people.arrow"


def arrow_stream(folder: Path, table: pa.Table) -> str:
    with ipc.new_stream(folder / "people.arrows", table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, max_chunksize=37)
    return "people.arrows"


def feather_file(folder: Path, table: pa.Table) -> str:
    feather.write_feather(table, str(folder / "people.feather"))
    return "people.feather"


def views_and_categories(folder: Path, table: pa.Table) -> str:
    """Text as Polars writes it: views, and dictionaries that differ from batch to batch."""
    note = table.schema.get_field_index("note")
    fields = [field.with_type(pa.string_view()) if pa.types.is_string(field.type) else field for field in table.schema]
    fields[note] = pa.field("note", pa.dictionary(pa.uint32(), pa.string()))
    with ipc.new_stream(folder / "people.ipc", pa.schema(fields)) as writer:
        for batch in table.to_batches(max_chunksize=90):
            columns = [column.cast(field.type) for column, field in zip(batch.columns, fields, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))
    return "people.ipc"


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("write", [arrow_file, arrow_stream, feather_file])
def test_arrow_gives_the_release_of_parquet(anonymise: Anonymise, expected: list[str], tmp_path: Path, write) -> None:
    assert run(anonymise, tmp_path, {"path": write(tmp_path, TABLE)}, "chunk_rows=130") == expected


@pytest.mark.ci
def test_arrow_as_polars_writes_it_gives_the_same_records(anonymise: Anonymise, expected: list[str], tmp_path: Path) -> None:
    made = anonymise(write_job(tmp_path, job_of(source={"path": views_and_categories(tmp_path, TABLE)})), *SETTINGS)
    schema = pq.read_schema(made.folder / made.manifest.files[0].path)
    assert schema.field("disease").type == pa.string_view()
    assert len(made.manifest.files) == len(expected)


def test_a_damaged_arrow_file_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    name = arrow_file(tmp_path, TABLE)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-500])
    with pytest.raises(SourceError, match="cannot be read as arrow"):
        run(anonymise, tmp_path, {"path": name})


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_csv_gives_the_release_of_parquet(anonymise: Anonymise, expected: list[str], tmp_path: Path, codec: str) -> None:
    name = f"people.csv.{'gz' if codec == 'gzip' else 'zst'}"
    with pa.CompressedOutputStream(str(tmp_path / name), codec) as out:
        csv.write_csv(TABLE, out)
    assert run(anonymise, tmp_path, {"path": name, "types": CSV_TYPES}) == expected


def hive(folder: Path) -> None:
    """Write the records apart by sex and smoker, nulls too."""
    for number, values in enumerate(TABLE.group_by(["sex", "smoker"]).aggregate([]).to_pylist()):
        rows = [row for row in TABLE.to_pylist() if (row["sex"], row["smoker"]) == (values["sex"], values["smoker"])]
        names = [name for name in TABLE.column_names if name not in values]
        part = pa.Table.from_pylist(rows, TABLE.schema).select(names)
        spelled = {name: "__HIVE_DEFAULT_PARTITION__" if value is None else str(value).lower() for name, value in values.items()}
        target = folder.joinpath("people", *(f"{name}={value}" for name, value in spelled.items()))
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, target / f"{number}.parquet")


@pytest.mark.ci
def test_hive_partitions_are_columns(anonymise: Anonymise, expected: list[str], tmp_path: Path) -> None:
    hive(tmp_path)
    source = {"path": "people/**/*.parquet", "hive": True, "types": {"smoker": "boolean"}}
    assert run(anonymise, tmp_path, source) == expected
    closeness = {"k": 4, "t": {"sex": {"t": 1}}}
    roles = job_of()["columns"]
    roles |= {
        "quasi_identifiers": roles["quasi_identifiers"][1:3],
        "sensitive": ["disease", "sex"],
        "identifiers": ["person", "born"],
        "insensitive": "rest",
    }
    made = anonymise(write_job(tmp_path, job_of(source=source, columns=roles, privacy=closeness)))
    assert made.manifest.min_class >= 4


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("people/age=5", "the file and a folder of it name a column 'age'"),
        ("people/AGE=5", "the file and a folder of it name a column 'AGE'"),
        ("people/year=1/year=2", "two of its folders name a column 'year'"),
        ("people/year=1/Year=2", "two of its folders name a column 'Year' or 'year'"),
    ],
)
def test_a_column_that_a_folder_names_too_is_refused(anonymise: Anonymise, tmp_path: Path, folder: str, said: str) -> None:
    write_parquet(tmp_path / folder, people(60))
    with pytest.raises(SourceError, match=said) as told:
        run(anonymise, tmp_path, {"path": "people/**/*.parquet", "hive": True})
    assert told.value.exit_code == 2
    assert "=5" not in str(told.value)


def test_folders_above_the_job_name_no_column(anonymise: Anonymise, expected: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "age=5" / "tenant=7"
    hive(folder)
    source = {"path": "people/**/*.parquet", "hive": True, "types": {"smoker": "boolean"}}
    assert run(anonymise, folder, source) == expected


def test_types_of_hive_partitions_are_those_of_the_job_or_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    hive(tmp_path)
    with pytest.raises(SourceError, match=r"folders whose 'sex' is not of the type"):
        run(anonymise, tmp_path, {"path": "people/**/*.parquet", "hive": True, "types": {"sex": "integer"}})


@pytest.mark.ci
def test_equal_files_in_different_partitions_are_different_data(anonymise: Anonymise, tmp_path: Path) -> None:
    releases = []
    for year in (2025, 2026):
        folder = tmp_path / str(year) / "data" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(TABLE, folder / "a.parquet")
        roles = job_of()["columns"] | {"insensitive": "rest"}
        job = write_job(tmp_path / str(year), job_of(source={"path": "data/*/*.parquet", "hive": True}, columns=roles))
        releases.append(anonymise(job).manifest)
    assert releases[0].inputs != releases[1].inputs


def duckdb_file(path: Path, table: pa.Table) -> None:
    with duckdb.connect(path) as connection:
        connection.register("given", table)
        connection.execute("CREATE SCHEMA clinic")
        connection.execute("CREATE TABLE clinic.people AS SELECT * FROM given")


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("asked", [{"table": "clinic.people"}, {"query": "SELECT * FROM clinic.people ORDER BY note -- all\n;"}])
def test_a_duckdb_file_gives_the_release_of_parquet(
    anonymise: Anonymise, expected: list[str], tmp_path: Path, asked: dict[str, str]
) -> None:
    duckdb_file(tmp_path / "people.duckdb", TABLE)
    assert run(anonymise, tmp_path, {"path": "people.duckdb", **asked}) == expected


@pytest.mark.ci
def test_the_order_of_rows_in_a_database_is_not_a_difference(anonymise: Anonymise, tmp_path: Path) -> None:
    duckdb_file(tmp_path / "people.duckdb", TABLE)
    one = anonymise(write_job(tmp_path, job_of(source={"path": "people.duckdb", "table": "clinic.people"})))
    (tmp_path / "people.duckdb").unlink()
    duckdb_file(tmp_path / "people.duckdb", TABLE.take(list(reversed(range(len(TABLE))))))
    again = anonymise(tmp_path / "job.yaml")
    assert not again.new
    assert again.manifest == one.manifest
    (tmp_path / "people.duckdb").unlink()
    duckdb_file(tmp_path / "people.duckdb", TABLE.slice(1))
    assert anonymise(tmp_path / "job.yaml").new


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1;", "SELECT 1"),
        ("SELECT 1 ; -- it's; all\n", "SELECT 1"),
        ("SELECT 1; /* one\n; */ -- two", "SELECT 1"),
        ("SELECT ';--' -- ;", "SELECT ';--' -- ;"),
        ("SELECT 1 /* ; */", "SELECT 1 /* ; */"),
        ('SELECT "a;--b"', 'SELECT "a;--b"'),
        ("SELECT $x$;--$x$", "SELECT $x$;--$x$"),
        ("SELECT 1; SELECT 2", "SELECT 1; SELECT 2"),
    ],
)
def test_the_last_semicolon_goes_with_the_comments_behind_it(text: str, said: str) -> None:
    assert statement_text(text) == said


@pytest.mark.parametrize("text", ["", ";", "-- all", "/* all */ ;"])
def test_a_statement_of_comments_alone_is_empty(text: str) -> None:
    with pytest.raises(ValueError, match="is empty"):
        statement_text(text)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT * FROM nowhere", "could not read the table or run the query"),
        ("DROP TABLE clinic.people", "must be a single SELECT"),
        ("SELECT 1; SELECT 2", "must be a single SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "could not read the table or run the query"),
        ("SELECT 'a secret value'::INTEGER AS q", "could not read the table or run the query"),
        ("SELECT INTERVAL 1 DAY AS q", r"1 column cannot be kept as they are: 'q' \(INTERVAL\)"),
    ],
)
def test_queries_that_make_no_source_are_refused_without_a_value(anonymise: Anonymise, tmp_path: Path, query: str, sentence: str) -> None:
    duckdb_file(tmp_path / "people.duckdb", TABLE)
    with pytest.raises(DatabaseError, match=sentence) as refused:
        run(anonymise, tmp_path, {"path": "people.duckdb", "query": query})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("table", "meant"), [("clinic.poeple", True), ("people", True), ("visits", False)])
def test_a_table_that_is_not_in_a_duckdb_file_is_named(anonymise: Anonymise, tmp_path: Path, table: str, meant: bool) -> None:
    duckdb_file(tmp_path / "people.duckdb", TABLE)
    with pytest.raises(DatabaseError, match=rf"people\.duckdb' has no table '{table}'.*; it has 'clinic\.people'\.") as refused:
        run(anonymise, tmp_path, {"path": "people.duckdb", "table": table})
    assert ("(did you mean 'clinic.people'?)" in str(refused.value)) == meant


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL server with the records, in one table."""
    with postgresql() as address:
        fill(address, TABLE)
        yield address


def fill(address: str, table: pa.Table) -> None:
    """Make the table ``people`` of the server anew; decimals go in as text, because the driver takes no others."""
    from adbc_driver_postgresql.dbapi import connect

    exact = [name for name in table.column_names if pa.types.is_decimal(table[name].type)]
    texts = pa.table({name: table[name].cast(pa.string()) if name in exact else table[name] for name in table.column_names})
    columns = ", ".join(f"{name}::numeric AS {name}" if name in exact else name for name in table.column_names)
    with connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS people, loaded")
        cursor.adbc_ingest("loaded", texts, mode="create")
        cursor.execute(f"CREATE TABLE people AS SELECT {columns} FROM loaded")
        connection.commit()


def postgres_source(address: str, **more: Any) -> dict[str, Any]:
    return {"connection": {"uri": address}, "table": "people", "types": {"height": "decimal(4,1)"}} | more


@pytest.mark.slow
def test_a_query_of_postgresql_gives_the_release_of_parquet(
    anonymise: Anonymise, expected: list[str], server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(anonymise, tmp_path / "uri", postgres_source(server)) == expected
    monkeypatch.setenv("SHOP", server.replace("user=reader", "user=reader&password=hunter2"))
    assert run(anonymise, tmp_path / "env", postgres_source(server, connection={"env": "SHOP"})) == expected
    (tmp_path / "shop.uri").write_text(f"{server}\n")
    assert run(anonymise, tmp_path / "file", postgres_source(server, connection={"file": str(tmp_path / "shop.uri")})) == expected
    for path in (tmp_path / "env").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
    host = server.split("host=")[1].split("&", maxsplit=1)[0]
    for name, value in (("PGHOST", host), ("PGUSER", "reader"), ("PGDATABASE", "postgres")):
        monkeypatch.setenv(name, value)
    bare = {"format": "postgresql", "query": "SELECT * FROM people ORDER BY random()", "types": {"height": "decimal(4,1)"}}
    assert run(anonymise, tmp_path / "variables", bare) == expected


@pytest.mark.slow
def test_a_query_is_asked_anew_at_every_run_and_the_same_rows_are_the_same_release(
    anonymise: Anonymise, server: str, tmp_path: Path
) -> None:
    fill(server, TABLE)
    job = write_job(tmp_path, job_of(source=postgres_source(server)))
    once = write_job(tmp_path / "once", job_of(source=postgres_source(server, extract="once")))
    first, kept = anonymise(job), anonymise(once)
    fill(server, TABLE.take(list(reversed(range(len(TABLE))))))
    assert find_existing_release(load_job(job)) == first.manifest
    assert not anonymise(job).new
    fill(server, TABLE.slice(10))
    second = anonymise(job)
    assert second.new
    assert second.manifest.records == len(TABLE) - 10
    assert not anonymise(once).new
    assert anonymise(once).manifest == kept.manifest
    assert len(list((tmp_path / ".skald" / "people" / "artifacts" / "queries").iterdir())) == 2
    fill(server, TABLE)


@pytest.mark.slow
def test_a_run_that_was_cut_off_goes_on_with_the_rows_it_began_with(direct, anonymise: Anonymise, server: str, tmp_path: Path) -> None:
    fill(server, TABLE)
    job = write_job(tmp_path / "job", job_of(source=postgres_source(server)))
    direct.killed("extract.json", "run", job)
    kept = tmp_path / "job" / ".skald" / "people" / "artifacts" / "extract.json"
    assert kept.exists()
    fill(server, TABLE.slice(100))
    assert anonymise(job).manifest.records == len(TABLE)
    assert not kept.exists()
    assert anonymise(job).manifest.records == len(TABLE) - 100
    make_plan(load_job(job))
    assert not kept.exists()
    fill(server, TABLE)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"types": {}}, r"'height' is numeric in PostgreSQL, and only a type says its digits"),
        ({"types": {"height": "decimal(3,1)"}}, "a 'height' is not of the type"),
        ({"table": None, "query": "SELECT person FROM people"}, "source.types names 'height', which the query does not return"),
        ({"table": "nowhere"}, "SQLSTATE 42P01: there is no such table"),
        ({"table": None, "query": "DELETE FROM people RETURNING *"}, "SQLSTATE"),
        (
            {"table": None, "query": "SELECT 1 / (90000 - i) AS q FROM generate_series(1, 100000) i", "types": {}},
            r"could not read the table or run the query \(SQLSTATE 22012\)",
        ),
        ({"table": None, "query": "SELECT 'infinity'::date AS q", "types": {}}, "1 value of 'q' infinite, 24:00 or outside the years"),
        ({"table": None, "query": "SELECT '1.2.3.4'::inet AS q, 1::money AS m", "types": {}}, r"money"),
        ({"table": None, "query": "SELECT interval '1 day' AS q, '1.2.3.4'::inet AS i", "types": {}}, r"2 columns cannot be kept"),
        ({"connection": {"env": "NOT_SET"}}, "the environment variable 'NOT_SET', which holds no address"),
        ({"connection": {"file": "nowhere.uri"}}, "the file 'nowhere.uri', which holds no address"),
        ({"connection": {"uri": "postgresql://reader@127.0.0.1:1/x"}}, "cannot be reached"),
    ],
)
def test_what_goes_wrong_with_postgresql_is_one_sentence(
    anonymise: Anonymise, server: str, tmp_path: Path, source: dict[str, Any], sentence: str
) -> None:
    given = {key: value for key, value in postgres_source(server, **source).items() if value is not None}
    roles = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [1]}}], "insensitive": "rest"}
    with pytest.raises(DatabaseError, match=sentence):
        anonymise(
            write_job(tmp_path, job_of(source=given, columns=roles if "types" in source and not source["types"] else job_of()["columns"]))
        )


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket on an S3 server, with the environment that leads there."""
    import fsspec

    with s3() as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        fsspec.filesystem("s3", use_listings_cache=False).mkdir("source")
        yield "s3://source"


def put(address: str, content: bytes) -> None:
    import fsspec

    fsspec.filesystem("s3", use_listings_cache=False).pipe_file(address, content)


@pytest.mark.ci
def test_objects_give_the_release_of_files_and_are_read_whole_once(
    anonymise: Anonymise, expected: list[str], bucket: str, tmp_path: Path
) -> None:
    people_job(tmp_path, TABLE, files=2)
    for path in (tmp_path / "people").iterdir():
        put(f"{bucket}/people/{path.name}", path.read_bytes())
    job = write_job(tmp_path, job_of(source={"path": f"{bucket}/people/*.parquet"}))
    made = anonymise(job, *SETTINGS)
    assert digests(made.folder) == expected
    store = Store.at(load_job(job).work_path)
    read = {path: path.stat().st_mtime_ns for path in (store.folder / "digested").iterdir()}
    assert not anonymise(job, *SETTINGS).new
    assert {path: path.stat().st_mtime_ns for path in (store.folder / "digested").iterdir()} == read
    assert "a-secret-key" not in made.manifest.model_dump_json()
    put(f"{bucket}/people/001.parquet", (tmp_path / "people" / "000.parquet").read_bytes())
    assert anonymise(job, *SETTINGS).new


@pytest.mark.ci
def test_compressed_csv_in_a_bucket_gives_the_release_of_parquet(
    anonymise: Anonymise, expected: list[str], bucket: str, tmp_path: Path
) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "p.csv.gz"), "gzip") as out:
        csv.write_csv(TABLE, out)
    put(f"{bucket}/csv/people.csv.gz", (tmp_path / "p.csv.gz").read_bytes())
    assert run(anonymise, tmp_path, {"path": f"{bucket}/csv/people.csv.gz", "types": CSV_TYPES}) == expected


def test_what_is_not_in_the_bucket_is_told(anonymise: Anonymise, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="No object matches 's3://source/none/"):
        run(anonymise, tmp_path, {"path": f"{bucket}/none/*.parquet"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    forget()
    with pytest.raises(ObjectStoreError, match="cannot be read or written"):
        run(anonymise, tmp_path, {"path": f"{bucket}/people/000.parquet"})
    forget()


@pytest.mark.ci
@pytest.mark.parametrize(
    "source",
    [
        {"path": "s3://key:secret7@bucket/a.parquet"},
        {"path": "s3://bucket/a.parquet?X-Amz-Signature=secret7"},
        {"format": "postgresql", "table": "t", "connection": {"uri": "postgresql://u:secret7@h/d"}},
        {"format": "postgresql", "table": "t", "connection": {"uri": "postgresql://h/d?user=u&password=secret7"}},
    ],
)
def test_a_job_that_holds_a_password_is_refused_with_what_to_use(direct, tmp_path: Path, source: dict[str, Any]) -> None:
    told: subprocess.CompletedProcess[str] = direct("run", write_job(tmp_path / "job", job_of(source=source)))
    assert told.returncode == 2
    assert "which a job file must not" in told.stderr
    assert "secret7" not in told.stderr + told.stdout
