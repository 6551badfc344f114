"""A signal ends the wait for a database, and the query with it."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import pytest

from tasks.source.extracts import rows_of
from tests.command_line import CommandLine
from tests.jobs import job_of, write_job
from tests.patience import SECONDS, until
from tests.servers import postgresql

pytestmark = [pytest.mark.ci, pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])]
SAID = "Interrupted. What is finished stays, and the same command continues from there.\n"


def active(address: str) -> int:
    """Count the queries of jobs that a server works on."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
    with rows_of(address, query, {}) as (_schema, batches):
        return sum(batch.column(0)[0].as_py() for batch in batches)


def test_a_query_of_a_server(direct: CommandLine, tmp_path: Path, number: int, code: int) -> None:
    with postgresql() as address:
        write_job(tmp_path, job_of(source={"connection": {"uri": address}, "query": "SELECT pg_sleep(100000)::text AS sex"}))
        asking = direct.start("run", "job.yaml")
        until(lambda: active(address))
        asking.send_signal(number)
        assert asking.communicate(timeout=SECONDS) == ("", SAID)
        assert asking.returncode == code
        until(lambda: not active(address))


def test_a_query_of_a_duckdb_file(direct: CommandLine, tmp_path: Path, number: int, code: int) -> None:
    duckdb.connect(tmp_path / "people.duckdb").close()
    query = "SELECT sum(hash(a + b + c)) AS sex FROM range(100000) x(a), range(100000) y(b), range(100000) z(c)"
    write_job(tmp_path, job_of(source={"path": "people.duckdb", "query": query}))
    asking = direct.start("run", "job.yaml")
    until((tmp_path / ".skald" / "people" / "spill").exists)
    asking.send_signal(number)
    assert asking.communicate(timeout=SECONDS) == ("", SAID)
    assert asking.returncode == code
