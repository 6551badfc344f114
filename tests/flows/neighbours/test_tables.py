"""Releases are registered with Delta Lake and Iceberg by the programs of the how-to, and no byte of them changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import CommandLine
from tests.flows.neighbours.pages import programs
from tests.jobs import people, people_job, released
from tests.patience import SECONDS

TABLE = people(300)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def registered(folder: Path, *command: object) -> str:
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def two_releases(direct: CommandLine) -> list[Path]:
    """Publish a release, and then another of more suppression to the same target."""
    people_job(direct.folder, TABLE)
    made = []
    for limit in (0.2, 0.4):
        assert direct("run", "job.yaml", "--set", f"suppression.limit={limit}").returncode == 0
        target = direct.folder / "releases"
        made.append(target / (target / "CURRENT").read_text().strip())
    return made


def same(found: pl.DataFrame, release: Path) -> bool:
    """Return whether a table holds just the records of a release, in whatever order."""
    texts = [frame.select(pl.all().cast(pl.String)) for frame in (found, released(release))]
    ordered = [frame.select(sorted(frame.columns)).sort(pl.all()) for frame in texts]
    return ordered[0].equals(ordered[1])


@pytest.mark.slow
def test_delta_lake_reads_the_newest_release_and_earlier_ones_by_version(direct: CommandLine) -> None:
    from deltalake import DeltaTable

    assert "register_delta.py" in programs("tables.md", direct.folder)
    first, second = two_releases(direct)
    before = [contents(release) for release in (first, second)]
    pointer = direct.folder / "releases" / "CURRENT"
    for release in (first, second, second):
        pointer.write_text(release.name + "\n")
        assert release.name in registered(direct.folder, "register_delta.py", "releases", "tables/people")
    tables = {version: DeltaTable(str(direct.folder / "tables" / "people"), version=version) for version in (1, 2)}
    assert DeltaTable(str(direct.folder / "tables" / "people")).version() == 2
    assert same(pl.from_arrow(tables[1].to_pyarrow_table()), first)
    assert same(pl.from_arrow(tables[2].to_pyarrow_table()), second)
    assert [contents(release) for release in (first, second)] == before
    links = [path for path in (direct.folder / "tables").rglob("*.parquet")]
    assert {path.stat().st_ino for path in links} == {path.stat().st_ino for one in (first, second) for path in one.rglob("*.parquet")}


@pytest.mark.slow
def test_iceberg_reads_the_newest_release_and_earlier_ones_by_snapshot(direct: CommandLine) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    assert "register_iceberg.py" in programs("tables.md", direct.folder)
    first, second = two_releases(direct)
    before = [contents(release) for release in (first, second)]
    pointer, warehouse = direct.folder / "releases" / "CURRENT", direct.folder / "warehouse"
    for release in (first, second, second):
        pointer.write_text(release.name + "\n")
        assert release.name in registered(direct.folder, "register_iceberg.py", "releases", "warehouse", "people")
    catalogue = SqlCatalog("skald", uri=f"sqlite:///{warehouse}/catalogue.db", warehouse=f"file://{warehouse}")
    table = catalogue.load_table("published.people")
    assert same(pl.from_arrow(table.scan().to_arrow()), second)
    old = [one for one in table.snapshots() if one.summary and one.summary["skald.release"] == first.name]
    assert same(pl.from_arrow(table.scan(snapshot_id=old[-1].snapshot_id).to_arrow()), first)
    assert {one["file_path"] for one in table.inspect.files().to_pylist()} == {str(path) for path in second.rglob("*.parquet")}
    assert [contents(release) for release in (first, second)] == before
    assert direct("verify", second, "--job", "job.yaml", "--set", "suppression.limit=0.4").returncode == 0
    catalogue.close()
