"""Every value of a PostgreSQL server is read as itself or refused, whatever type the job gives and however the server writes texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from flows.tables import tables
from schemas.errors.storage import DatabaseError
from schemas.errors.values import ValuesError
from schemas.job.job import load_job
from tasks.source.batches import write_batches
from tasks.source.extracts import at_one_moment, extract_postgresql, forget_extract, rows_of
from tasks.store.postgresql import database_of
from tasks.store.store import Store
from tests.jobs import job_of, write_job
from tests.servers import postgresql

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as address:
        yield address


def said(address: str, *statements: str) -> None:
    from adbc_driver_postgresql.dbapi import connect

    with connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def values(address: str, query: str, types: Mapping[str, str]) -> list[Any]:
    with rows_of(address, query, types) as (_schema, batches):
        return [value for batch in batches for value in batch.column(0).to_pylist()]


@pytest.mark.parametrize(
    ("value", "dtype", "read"),
    [
        ("0.3::float8", "decimal(3,1)", Decimal("0.3")),
        ("0.3::float4", "decimal(3,1)", Decimal("0.3")),
        ("'2024-01-01'::timestamp", "date", date(2024, 1, 1)),
        ("date '2024-01-01'", "text", "2024-01-01"),
        ("'1'::jsonb", "integer", 1),
        ("7::int8", "decimal(2,1)", Decimal("7.0")),
    ],
)
def test_a_value_that_a_type_holds_is_read(server: str, value: str, dtype: str, read: object) -> None:
    assert values(server, f"SELECT {value} AS q", {"q": dtype}) == [read]


@pytest.mark.parametrize(
    ("value", "dtype", "sentence"),
    [
        ("0.30000000000000004::float8", "decimal(3,1)", "not of the type"),
        ("5", "date", "not of the type"),
        ("5::int8", "timestamp", "not of the type"),
        ("5::int8", "timestamptz", "not of the type"),
        ("timestamp '2024-01-01'", "integer", "not of the type"),
        ("time '12:00'", "integer", "not of the type"),
        ("date '2024-01-01'", "timestamptz", "not of the type"),
        ("date 'infinity'", "text", "which takes texts, and values that come back from theirs"),
        ("gen_random_uuid()", "text", "which takes texts"),
        ("time '24:00'", None, "1 value of 'q' infinite, 24:00"),
        ("inet '1.2.3.4'", "text", r"cannot be kept as they are: 'q' \(inet\)"),
        ("macaddr '08:00:2b:01:02:03'", "text", r"'q' \(macaddr\)"),
        ("int4range(1, 5)", "text", "cannot be kept as they are"),
        ("interval '1 day'", "text", "cannot be kept as they are"),
        ("4294967295::oid", None, r"'q' \(oid\)"),
        ("1::oid", "integer", r"'q' \(oid\)"),
        ("'\\200'::\"char\"", None, r"'q' \(char\)"),
        ("70::int8", "decimal(2,1)", "not of the type"),
    ],
)
def test_a_value_that_would_be_another_one_is_refused(server: str, value: str, dtype: str | None, sentence: str) -> None:
    with pytest.raises(DatabaseError, match=sentence):
        values(server, f"SELECT {value} AS q", {"q": dtype} if dtype else {})


def test_texts_of_a_server_that_writes_them_in_another_encoding_are_read(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said(server, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    latin = server.replace("/postgres?", "/latin?")
    # As bytes of Latin-1 the second is the first in UTF-8.
    query = r"SELECT U&'\00FC' AS q UNION ALL SELECT U&'\00C3\00BC'"
    assert values(latin, query, {}) == ["ü", "Ã¼"]
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    assert values(server, query, {}) == ["ü", "Ã¼"]


COPY = "COPY (SELECT 1) TO PROGRAM 'true'"
DO = "DO $$ BEGIN SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; COMMIT; DROP TABLE kept; END $$"


@pytest.mark.parametrize("query", [COPY, DO, "SELECT 1) TO PROGRAM 'true' --", "SELECT a FROM kept; DROP TABLE kept", "SHOW ALL"])
def test_nothing_but_a_query_runs(server: str, query: str) -> None:
    said(server, "DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT 7 AS a")
    with pytest.raises(DatabaseError, match="SQLSTATE 42601"):
        values(server, query, {})
    assert values(server, "TABLE kept -- all", {}) == [7]
    with pytest.raises(DatabaseError, match="that returns columns"):
        values(server, "SELECT", {})


def test_rows_of_a_run_that_was_cut_off_are_not_those_of_another_database(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(server, "CREATE DATABASE other")
    source = {"connection": {"env": "SHOP"}, "query": "SELECT current_database()::text AS q"}
    job = load_job(write_job(tmp_path, job_of(source=source)))
    store = Store.at(job.work_path)
    monkeypatch.setenv("SHOP", server)
    first = extract_postgresql(job, store)
    monkeypatch.setenv("SHOP", f"{server}&password=hunter2")
    assert extract_postgresql(job, store) == first
    monkeypatch.setenv("SHOP", server.replace("/postgres?", "/other?"))
    assert extract_postgresql(job, store).content != first.content
    monkeypatch.setenv("SHOP", server)
    assert extract_postgresql(job, store).content == first.content
    kept = [extract_postgresql(job, store).content]
    for password, database in (("a#b", "postgres"), ("a?c", "postgres"), ("a#b", "other")):
        monkeypatch.setenv("SHOP", server.replace("///postgres?", f"//reader:{password}@/{database}?"))
        kept.append(extract_postgresql(job, store).content)
    assert [one == first.content for one in kept] == [True, True, True, False]


def test_a_table_of_which_the_role_sees_a_part_is_refused_unless_somebody_says_so(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said(server, "CREATE TABLE parted AS SELECT generate_series(1, 9) AS a", "ALTER TABLE parted ENABLE ROW LEVEL SECURITY")
    said(server, "CREATE POLICY few ON parted USING (a < 3)", "CREATE ROLE clerk LOGIN", "GRANT SELECT ON parted TO clerk")
    clerk = server.replace("user=reader", "user=clerk")
    with pytest.raises(DatabaseError, match="SQLSTATE 42501: the role may not read it, or row-level security hides rows"):
        values(clerk, "TABLE parted", {})
    assert values(clerk, "SELECT 1", {}) == [1]
    assert values(server, "TABLE parted", {}) == list(range(1, 10))
    assert values(f"{clerk}&options=-c%20row_security%3Don", "TABLE parted", {}) == [1, 2]
    monkeypatch.setenv("PGOPTIONS", "-c row_security=on")
    assert values(clerk, "TABLE parted", {}) == [1, 2]


@contextmanager
def pooler(address: str, *left: str) -> Iterator[None]:
    """Have sessions come as from a pooler: without what the address asks for, and as statements of another client left them."""
    from adbc_driver_postgresql import dbapi

    connect = dbapi.connect

    def handed(_address: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("PGOPTIONS", raising=False)
            connection = connect(address, autocommit=True)
        with connection.cursor() as cursor:
            for statement in left:
                cursor.execute(statement)
        connection.adbc_connection.set_autocommit(False)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbapi, "connect", handed)
        yield


def test_a_pooler_that_leaves_out_options_changes_neither_table_nor_rows(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(server, "CREATE TABLE pooled AS SELECT 1 AS a", "CREATE SCHEMA other", "CREATE TABLE other.pooled AS SELECT 2 AS a")
    said(server, "CREATE TABLE hidden AS SELECT 1 AS a", "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY", "CREATE ROLE guest LOGIN")
    said(server, "GRANT SELECT ON hidden TO guest")
    with pooler(server):
        assert values(f"{server}&options=-c%20search_path%3Dother", "TABLE pooled", {}) == [2]
        assert values(f"{server}&options=-cwork_mem%3D8MB%20--search-path%3Dnone,%5C%20other", "TABLE pooled", {}) == [2]
        services = tmp_path / "services"
        services.write_text("[shop]\nhost=none\noptions=-c search_path=other\n")
        monkeypatch.setenv("PGSERVICEFILE", str(services))
        assert values("postgresql://?service=shop", "TABLE pooled", {}) == [2]
        monkeypatch.setenv("PGOPTIONS", "-c search_path=other -c TimeZone=Asia/Tokyo -c client_encoding=LATIN1")
        query = "SELECT current_setting('TimeZone') UNION ALL SELECT current_setting('client_encoding')"
        assert [values(server, one, {}) for one in ("TABLE pooled", query)] == [[2], ["UTC", "UTF8"]]
    with pooler(server.replace("user=reader", "user=guest")):
        for options in ("row_security=off", "search_path=row_security,public"):
            monkeypatch.setenv("PGOPTIONS", f"-c {options}")
            with pytest.raises(DatabaseError, match="row-level security hides rows"):
                values(server, "TABLE hidden", {})


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("SET search_path = elsewhere", "search_path"),
        ("SET ROLE heir", "role"),
        ("CREATE TEMP TABLE shadowed AS SELECT 2 AS a", "temporary tables"),
        ("CREATE TEMP TABLE pg_class AS SELECT 2 AS a", "temporary tables"),
    ],
)
def test_a_session_in_which_another_client_changed_what_names_mean_is_refused(server: str, statement: str, left: str) -> None:
    said(server, "CREATE TABLE IF NOT EXISTS shadowed AS SELECT 1 AS a", "DROP ROLE IF EXISTS heir", "CREATE ROLE heir")
    with pooler(server, statement), pytest.raises(DatabaseError, match=f"somebody left '{left}', so the query may read another table"):
        values(server, "TABLE shadowed", {})
    with pooler(server, "SET search_path = elsewhere", "SET TimeZone = 'Asia/Tokyo'", "SET row_security = on"):
        assert values(f"{server}&options=-c%20search_path%3Dpublic", "TABLE shadowed", {}) == [1]


def test_a_connection_that_is_lost_is_told_where_no_cancel_arrives() -> None:
    from adbc_driver_postgresql.dbapi import connect

    with postgresql() as address, connect(address, autocommit=True) as other:
        [socket] = Path(address.partition("host=")[2].partition("&")[0]).glob(".s.PGSQL.*[0-9]")
        rows = "SELECT repeat('x', 999) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"
        ended = pytest.raises(DatabaseError, match=r"SQLSTATE (57P01: the server ended|08006: the connection was lost)")
        with ended, rows_of(address, rows, {}) as (_schema, batches):
            next(batches)
            moved = socket.rename(socket.with_name("away"))
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall()
            for _batch in batches:
                pass
        moved.rename(socket)


def test_a_service_stands_for_the_database_that_its_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = tmp_path / "services"
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGSERVICE", "shop")
    places = []
    for database, password in (("one", "hunter2"), ("one", "hunter3"), ("two", "hunter3")):
        services.write_text(f"# of the shop\n[other]\ndbname=none\n[shop]\ndbname={database}\npassword={password}\n")
        places.append(database_of("postgresql://"))
    assert places[0] == places[1] != places[2]
    assert "hunter" not in str(places)


def test_a_value_that_does_not_fit_ends_a_query_that_goes_on(server: str) -> None:
    with pytest.raises(DatabaseError, match="not of the type"):
        values(server, "SELECT 5 AS q, repeat('x', 999) FROM generate_series(1, 100000) a, generate_series(1, 100000) b", {"q": "date"})


def test_rows_of_several_tables_are_kept_beside_each_other_until_each_is_asked_anew(server: str, tmp_path: Path) -> None:
    source = {"connection": {"uri": server}}
    jobs = [load_job(write_job(tmp_path, job_of(source=source | {"query": f"SELECT random() AS q{one}"}))) for one in range(2)]
    once = load_job(write_job(tmp_path, job_of(source=source | {"query": "SELECT random() AS q", "extract": "once"})))
    store = Store.at(once.work_path)
    first = [extract_postgresql(job, store.watching(nullcontext)) for job in (*jobs, once)]
    assert [extract_postgresql(job, Store.at(once.work_path)) for job in (*jobs, once)] == first
    forget_extract(once, store)
    forget_extract(jobs[0], store)
    store = Store.at(once.work_path)
    again = [extract_postgresql(job, store.watching(nullcontext)) for job in (*jobs, once)]
    assert [one == other for one, other in zip(first, again, strict=True)] == [False, False, True]
    there = {store.path(one.artifact) for one in again}
    assert set((store.folder / "queries").glob("*.parquet")) == there
    # As after a run that was cut off, when the job has another query.
    job = load_job(write_job(tmp_path, job_of(source=source | {"query": "SELECT random() AS other"})))
    store = Store.at(once.work_path)
    there = {store.path(one.artifact) for one in (extract_postgresql(job, store), again[-1])}
    assert set((store.folder / "queries").glob("*.parquet")) == there


def test_within_a_moment_no_later_row_is_seen_and_a_query_that_fails_ends_it(server: str) -> None:
    said(server, "CREATE TABLE growing AS SELECT 1 AS a")
    with at_one_moment():
        assert values(server, "TABLE growing", {}) == [1]
        said(server, "INSERT INTO growing VALUES (2)")
        assert values(server, "TABLE growing", {}) == [1]
        with pytest.raises(DatabaseError, match="22012"):
            values(server, "SELECT 1 / 0", {})
        assert values(server, "TABLE growing", {}) == [1, 2]
        said(server, "INSERT INTO growing VALUES (3)")
        with pytest.raises(DatabaseError, match="not of the type"):
            values(server, "SELECT 5 AS q", {"q": "date"})
        assert values(server, "TABLE growing", {}) == [1, 2, 3]
    said(server, "DROP TABLE growing")


def test_the_tables_of_a_job_are_of_one_moment(server: str, tmp_path: Path) -> None:
    """A statement knows when its transaction began."""
    rows = "SELECT n AS person_id, n % 2 AS a, now()::text AS moment FROM generate_series(1, 40) AS n"
    source, key = {"connection": {"uri": server}}, {"insensitive": ["moment"]}
    qids = {"quasi_identifiers": [{"name": "a", "hierarchy": {"widths": [1]}}]}
    of_tables = {
        "person": {"source": source | {"query": rows}, "key": "person_id", "columns": qids | key},
        "visit": {
            "source": source | {"query": f"{rows} WHERE n < 30"},
            "references": {"person_id": "person"},
            "columns": {"withheld": ["a"]} | key,
        },
    }
    of_tables["visit"]["columns"] = {"withheld": ["a"]} | key
    job = {"version": 2, "name": "shop", "tables": of_tables, "privacy": {"k": 2}, "suppression": {"limit": 0.5}, "memory": "200MB"}
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump(job | {"target": "releases"}, sort_keys=False))
    made = tables(tmp_path / "shop.yaml", ())
    moments = {value for path in made.folder.rglob("*.parquet") for value in pq.read_table(path)["moment"].to_pylist()}
    assert len(moments) == 1


def test_json_of_more_than_a_value_may_have_is_refused(server: str, tmp_path: Path) -> None:
    query = "SELECT to_json(repeat('x', 16000000)) AS q"
    with rows_of(server, query, {}) as (schema, batches), pytest.raises(ValuesError, match="'q' of 'PostgreSQL' holds values of more"):
        write_batches(tmp_path / "rows", schema, batches, "PostgreSQL")
