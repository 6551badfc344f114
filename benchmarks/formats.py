"""The cost of every format of sources and releases, compared with a plain conversion by DuckDB.

    python -m benchmarks.formats [--rows 1000000]

A way in is ``read_source``: digest, conversion to Parquet in the run's folder, footers; a way out is ``stage_output`` of a release's
Parquet files. Start-up (imports) is measured by itself and taken off both sides. DuckDB has no reader for PostgreSQL without a download, so
its row is compared with DuckDB's conversion of the same rows from CSV; an S3 server on this machine is compared with a copy of the file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyarrow import ipc

from benchmarks.measure import Cost, measure
from data.medical import make_medical
from tests.servers import postgresql, s3

ROOT = Path(__file__).parent.parent
TYPES = {"age": "integer", "bmi": "double", "pin_code": "integer"}
ROLES = {
    "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 8]}}, {"name": "blood_group", "hierarchy": {"prefix": [1]}}],
    "insensitive": "rest",
}
IN = """
from pathlib import Path
import flows.skald
from schemas.job.job import load_job
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
with open_run(load_job(Path("job.yaml"))) as run:
    if RUN: read_source(run)
"""
OUT = """
from pathlib import Path
import flows.skald
from schemas.job.job import load_job
from tasks.store.store import Artifact, Store
from tasks.publication.outputs import stage_output
job = load_job(Path("job.yaml"))
store, staging = Store(Path(".")), Path("staging")
(staging / "data").mkdir(parents=True)
files = [Artifact(step="", key="", file="release.parquet", rows=1, size=0, sha256="")]
if RUN: stage_output(job, list(enumerate(files, 1)), store, staging, Path("spill"))
"""
LEAST = 0.1
DUCKDB = "import duckdb\nduckdb.sql('SELECT 1').fetchall()\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        [source] = make_medical(folder / "made", rows, 1, 0)
        database, bucket = stack.enter_context(postgresql()), stack.enter_context(s3())
        os.environ.update(bucket)
        _write(folder, source, database)
        print(f"medical, {rows:,} records, all columns; CPU s and MB without start-up\n")
        print(f"{'':<28}{'CPU s':>8}{'peak MB':>9}{'DuckDB CPU s':>14}{'ratio':>7}")
        for name, given, plain in _ways_in(database):
            _report(folder, name, IN, {"source": given}, plain)
        for name, output, plain in _ways_out():
            _report(folder, name, OUT, {"source": {"path": "release.parquet"}, "output": output}, plain)


def _write(folder: Path, source: Path, database: str) -> None:
    """Write the same records in every format."""
    import fsspec
    from adbc_driver_postgresql.dbapi import connect

    source.rename(folder / "a.parquet")
    table = pq.read_table(folder / "a.parquet")
    with duckdb.connect() as connection:
        for ending, options in (("csv", ""), ("csv.gz", ", COMPRESSION gzip"), ("csv.zst", ", COMPRESSION zstd")):
            connection.execute(f"COPY (SELECT * FROM '{folder}/a.parquet') TO '{folder}/a.{ending}' (FORMAT csv{options})")
        connection.execute(f"COPY (SELECT * FROM '{folder}/a.parquet') TO '{folder}/hive' (FORMAT parquet, PARTITION_BY (blood_group))")
        connection.execute(f"ATTACH '{folder}/a.duckdb' AS d; CREATE TABLE d.medical AS SELECT * FROM '{folder}/a.parquet'")
        connection.execute(f"COPY (SELECT * FROM '{folder}/a.parquet' ORDER BY blood_group) TO '{folder}/release.parquet' (FORMAT parquet)")
    with ipc.new_file(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100_000)
    with connect(database) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("medical", pa.table({name: table[name] for name in table.column_names}), mode="create")
        connection.commit()
    system = fsspec.filesystem("s3")
    system.mkdir("bucket")
    system.put_file(str(folder / "a.parquet"), "bucket/a.parquet")


def _ways_in(database: str) -> Iterator[tuple[str, Mapping[str, object], str]]:
    def copy(source: str) -> str:
        return f"duckdb.sql(\"COPY (SELECT * FROM {source}) TO 'copy.parquet' (FORMAT parquet, COMPRESSION zstd)\")"

    typed = copy("read_csv('a.{}', types = {{'age': 'BIGINT', 'bmi': 'DOUBLE', 'pin_code': 'BIGINT'}})")
    for ending in ("csv", "csv.gz", "csv.zst"):
        yield f"in: {ending}", {"path": f"a.{ending}", "types": TYPES}, typed.format(ending)
    yield "in: parquet", {"path": "a.parquet"}, copy("'a.parquet'")
    yield (
        "in: parquet, hive",
        {"path": "hive/*/*.parquet", "hive": True},
        copy("read_parquet('hive/*/*.parquet', hive_partitioning = true)"),
    )
    arrow = "import pyarrow.dataset as ds\nt = ds.dataset('a.arrow', format='ipc')\n"
    yield "in: arrow", {"path": "a.arrow"}, arrow + copy("t")
    yield "in: duckdb", {"path": "a.duckdb", "table": "medical"}, "duckdb.sql(\"ATTACH 'a.duckdb' AS d (READ_ONLY)\")\n" + copy("d.medical")
    yield "in: postgresql", {"connection": {"uri": database}, "table": "medical"}, typed.format("csv")
    yield "in: s3, parquet", {"path": "s3://bucket/a.parquet"}, "import shutil\nshutil.copyfile('a.parquet', 'copy.parquet')"


def _ways_out() -> Iterator[tuple[str, Mapping[str, object], str]]:
    def copy(options: str) -> str:
        return f"duckdb.sql(\"COPY (SELECT * FROM 'release.parquet') TO 'copy' ({options})\")"

    yield "out: parquet", {}, copy("FORMAT parquet, COMPRESSION zstd")
    yield "out: parquet in folders", {"partition_by": ["blood_group"]}, copy("FORMAT parquet, COMPRESSION zstd, PARTITION_BY (blood_group)")
    yield "out: csv", {"format": "csv"}, copy("FORMAT csv")
    attach = "duckdb.sql(\"ATTACH 'copy.duckdb' AS d; CREATE TABLE d.release AS SELECT * FROM 'release.parquet'\")"
    yield "out: duckdb", {"format": "duckdb"}, attach


def _report(folder: Path, name: str, script: str, parts: Mapping[str, object], plain: str) -> None:
    job = {"version": 1, "name": "formats", "columns": ROLES, "privacy": {"k": 5}, "method": {"name": "skald"}}
    (folder / "job.yaml").write_text(yaml.safe_dump(job | {"memory": "1GB", "target": "out"} | dict(parts)))
    ours = _cost(folder, script.replace("if RUN: ", ""), script.replace("if RUN: ", "if False: "))
    floor = _cost(folder, DUCKDB + plain, DUCKDB)
    ratio = f"{max(ours.cpu, 0) / floor.cpu:.1f}" if floor.cpu > LEAST else "-"
    print(f"{name:<28}{max(ours.cpu, 0):>8.2f}{ours.peak / 1e6:>9.0f}{floor.cpu:>14.2f}{ratio:>7}")


def _cost(folder: Path, script: str, start: str) -> Cost:
    costs = []
    for text in (start, script):
        for left in ("copy", "copy.parquet", "copy.duckdb", "staging", ".skald"):
            measure(["rm", "-rf", left], folder)
        costs.append(measure([sys.executable, "-c", text], folder, PYTHONPATH=str(ROOT), SKALD_DIRECT="1"))
    nothing, whole = costs
    return Cost(whole.cpu - nothing.cpu, whole.wall - nothing.wall, whole.peak - nothing.peak)


if __name__ == "__main__":
    main()
