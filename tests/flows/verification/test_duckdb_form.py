"""A DuckDB file of a release is one plain table: a view under its name, and anything beside it, is refused, with a manifest or without."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from schemas.errors.base import VerificationError
from schemas.job.job import Job, load_job
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise
from tests.jobs import people, people_job

SETTINGS = ("privacy.k=4", "output.format=duckdb")


@pytest.fixture(scope="module")
def made(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path]:
    job = people_job(tmp_path_factory.mktemp("made"), people(120))
    return load_job(job, SETTINGS), anonymise(job, *SETTINGS).folder / "data" / "release.duckdb"


def foreign(made: tuple[Job, Path], folder: Path, *statements: str) -> None:
    """Verify the same records as another tool would hand them on, after some statements."""
    job, path = made
    (folder / "theirs" / "data").mkdir(parents=True)
    with duckdb.connect(folder / "theirs" / "data" / "release.duckdb") as connection:
        connection.execute(f"ATTACH '{path}' AS made (READ_ONLY)")
        connection.execute("CREATE TABLE release AS SELECT * FROM made.release")
        connection.execute("DETACH made")
        for statement in statements:
            connection.execute(statement)
    verify_published(job, folder / "theirs", VerificationContext(str(folder / "theirs")))


@pytest.mark.ci
def test_the_plain_table_of_another_tool_is_recounted(made: tuple[Job, Path], tmp_path: Path) -> None:
    foreign(made, tmp_path)


@pytest.mark.ci
@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE release RENAME TO held", "CREATE VIEW release AS SELECT * FROM held"],
        ["DROP TABLE release", "CREATE VIEW release AS SELECT * FROM read_parquet('elsewhere.parquet')"],
        ["ALTER TABLE release ALTER COLUMN sex TYPE VARCHAR COLLATE NOCASE"],
        ["ALTER TABLE release ALTER COLUMN sex SET DEFAULT 'm'"],
    ],
    ids=["a view of a table", "a view of files", "a collation", "a default"],
)
def test_what_is_no_plain_table_is_not_even_read(made: tuple[Job, Path], tmp_path: Path, statements: list[str]) -> None:
    if "elsewhere" in statements[-1]:
        statements[-1] = statements[-1].replace("elsewhere", str(tmp_path / "elsewhere"))
        duckdb.sql(f"ATTACH '{made[1]}' AS seen (READ_ONLY)")
        duckdb.sql("FROM seen.release").write_parquet(str(tmp_path / "elsewhere.parquet"))
        duckdb.sql("DETACH seen")
    with pytest.raises(VerificationError, match="holds no plain table 'release'"):
        foreign(made, tmp_path, *statements)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("tables", "CREATE TABLE more (name VARCHAR)"),
        ("views", "CREATE VIEW more AS SELECT 1"),
        ("schemas", "CREATE SCHEMA more"),
        ("sequences", "CREATE SEQUENCE more"),
        ("macros", "CREATE MACRO more() AS 1"),
        ("types", "CREATE TYPE more AS ENUM ('a')"),
        ("indexes", "CREATE INDEX more ON release (disease)"),
        ("comments", "COMMENT ON COLUMN release.sex IS 'more'"),
    ],
)
def test_what_lies_beside_the_table_of_another_tool_is_refused(made: tuple[Job, Path], tmp_path: Path, kind: str, statement: str) -> None:
    with pytest.raises(VerificationError, match=f"holds {kind} beside the table 'release'"):
        foreign(made, tmp_path, statement)
