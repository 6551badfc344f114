"""Whose the pseudonyms of records are is known where the files of persons say so, each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.linked import LinkCount
from core.recount.people import combinations_sql
from schemas.job.job import Job
from tasks.recount.people import count_linked
from tests.jobs import job_of

SSN: dict[str, Any] = {"name": "ssn", "treatment": {"hash": {"key": {"env": "KEY"}}}}
LABELS, LINKS = ["[0 - 1]", "[0 - 1]", "[2 - 3]"], ["x", "y", "z"]
KNOWN, ALONE = LinkCount(("ssn",), True, 2, 2, 1, 2, 2, 0, 0), LinkCount(("ssn",), False, 3, 2, 1, 1, 1, 0, 0)
"""Two persons who are alone with their sets, as one of them has two pseudonyms; and three pseudonyms, of which two share theirs."""


@pytest.mark.parametrize(
    ("said", "person", "expected"),
    [
        ([True], ["who"], KNOWN), ([True, True], ["who"], KNOWN), ([True, False], ["who"], ALONE), ([False, True], ["who"], ALONE),
        ([False], ["who"], ALONE), (None, ["who"], ALONE), (None, [], LinkCount(("ssn",), True, 3, 2, 1, 1, 1, 0, 0)),
        ([True], [], LinkCount(("ssn",), True, 3, 2, 1, 1, 1, 0, 0)),
    ],
)  # fmt: skip
def test_linked_records_are_counted_by_persons_where_every_file_of_these_says_their_pseudonyms(
    tmp_path: Path, said: list[bool] | None, person: list[str], expected: LinkCount
) -> None:
    """Without these every pseudonym counts as a person, and it is known that each is where no job names another."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "identifiers": [SSN], "person": person}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}))
    held = pa.table({"class": [0, 0, 1], "person": [1, 1, 2], "records": [1, 1, 1], "link_0": LINKS})
    kept, classes = [tmp_path / f"people_{number}.parquet" for number in range(len(said or []))], tmp_path / "classes.parquet"
    for number, (path, with_links) in enumerate(zip(kept, said or [], strict=True)):
        part = held if len(kept) == 1 else held.slice(2 * number, 2 - number)
        pq.write_table(part if with_links else part.drop_columns("link_0"), path)
    pq.write_table(pa.table({"label_0": ["[0 - 1]", "[2 - 3]"]}), classes)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE release AS SELECT unnest({LABELS}) AS q, unnest({LINKS}) AS ssn")
        plain = job.model_copy(update={"columns": job.columns.model_copy(update={"identifiers": []})})
        assert count_linked(plain, connection, "release", ['"q"'], (kept, [classes]) if kept else None) == ()
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("release",)], "nothing is asked of no links"
        if expected == KNOWN:
            # As who counts the persons leaves it.
            connection.execute(combinations_sql("release", ['"q"']))
        assert count_linked(job, connection, "release", ['"q"'], (kept, [classes]) if kept else None) == (expected,)


@pytest.mark.parametrize(("person", "smallest", "failing"), [([], 2, 0), (["who"], 1, 1)])
def test_a_record_without_a_pseudonym_is_a_person_only_where_no_job_names_others(person: list[str], smallest: int, failing: int) -> None:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "identifiers": [SSN], "person": person}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE release AS SELECT '[0 - 1]' AS q, unnest(['x', NULL]) AS ssn")
        [counted] = count_linked(job, connection, "release", ['"q"'], None)
    assert (counted.people, counted.smallest, counted.failing) == (1, smallest, failing)
