"""Sessions on PostgreSQL: where the server is, and one read-only transaction, behind a pooler too."""

from __future__ import annotations

import os
import re
from configparser import ConfigParser
from configparser import Error as Damaged
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from schemas.errors.storage import DatabaseError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from tasks.store.database import interruptible, literal

MOST_BYTES_OF_ADDRESS = 1_000_000
PLACES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGSERVICEFILE", "PGOPTIONS")
SCHEMES = ("postgresql://", "postgres://")
# As libpq takes it apart: a password may have any character but '/' and '@'.
ADDRESS = re.compile(r"[^:]*://(?:([^:@/]*)(?::[^@/]*)?@)?([^?]*)\??(.*)", re.DOTALL)
OPTION = re.compile(r"(?<!\S)(?:-c\s*|--)((?:\\.|[^\s=])+)=((?:\\.|\S)*)", re.DOTALL)
"""A setting in ``options``, as the server takes it apart."""
SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL row_security = off",
)
"""The last has the server refuse what row-level security would leave out, unless the address or PGOPTIONS sets it."""
FIXED = ("client_encoding", "timezone", "transaction_")
LEFT = ("search_path", "role")
"""Settings by which the same name is another table or row, and which a pooler hands on from one client to the next."""
STATE = (
    "SELECT current_setting('search_path'), current_setting('role'), "
    "EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace = pg_my_temp_schema())"
)


def postgres_address(job: Job) -> str:
    """Return the PostgreSQL address by uri, variable or file; raise ``DatabaseError`` if it is none."""
    connection = job.source.connection
    if connection is None:
        return SCHEMES[0]
    if connection.uri:
        return connection.uri
    text, where = "", f"the environment variable '{connection.env}'"
    if connection.env:
        text = os.environ.get(connection.env, "").strip()
    elif connection.file:
        where = f"the file '{connection.file}'"
        try:
            text = (content_of(job.resolve(connection.file), MOST_BYTES_OF_ADDRESS).decode().splitlines() or [""])[0].strip()
        except (OSError, ValueError):
            text = ""
    if not text.startswith(SCHEMES):
        raise DatabaseError.no_address(where)
    return text


def database_of(address: str) -> list[object]:
    """Return what identifies the database at an address, without a password, whatever names it."""
    user, where, settings = _parts(address)
    return [user, where, sorted(pair for pair in settings.items() if "pass" not in pair[0]), [os.environ.get(name) for name in PLACES]]


def _parts(address: str) -> tuple[str, str, dict[str, str]]:
    """Return user, place and settings of an address, the settings with those of libpq's service file."""
    found = ADDRESS.fullmatch(address)
    assert found is not None
    settings = dict(parse_qsl(found[3].replace("+", "%2B")))
    return found[1], found[2], _service(settings) | settings


def _service(settings: dict[str, str]) -> dict[str, str]:
    """Return the settings of the service that an address or PGSERVICE names; none where no file has it."""
    name = settings.get("service", os.environ.get("PGSERVICE", ""))
    own = settings.get("servicefile", os.environ.get("PGSERVICEFILE", "~/.pg_service.conf"))
    for file in (Path(own).expanduser(), Path(os.environ.get("PGSYSCONFDIR", "/etc/postgresql-common"), "pg_service.conf")):
        services = ConfigParser(interpolation=None, strict=False, delimiters="=", comment_prefixes="#", default_section="")
        with suppress(OSError, ValueError, Damaged):
            services.read_string(content_of(file, MOST_BYTES_OF_ADDRESS).decode())
        if services.has_section(name):
            return dict(services[name])
    return {}


def _options(address: str) -> dict[str, str]:
    """Return the server's settings that ``options`` or PGOPTIONS ask for, without those of ours."""
    said = _parts(address)[2].get("options", os.environ.get("PGOPTIONS", ""))
    plain = [[re.sub(r"\\(.)", r"\1", part) for part in pair] for pair in OPTION.findall(said)]
    asked = {name.replace("-", "_").lower(): value for name, value in plain}
    return {name: value for name, value in asked.items() if not name.startswith(FIXED)}


def open_session(address: str, closing: ExitStack) -> Any:
    """Return a connection within a read-only transaction that sees the database at one moment.

    Poolers may leave out the options of a session, or hand over one that others changed; all is said again in the transaction, or refused.

    Args:
        address: Of the server.
        closing: What closes the connection.
    """
    from adbc_driver_manager.dbapi import Error
    from adbc_driver_postgresql.dbapi import connect

    options = _options(address)
    try:
        connection = closing.enter_context(interruptible(lambda: connect(address), lambda: None, closing))
        with connection.cursor() as cursor:

            def said(statement: str) -> Any:
                return interruptible(lambda: cursor.execute(statement).fetchall(), lambda: cancel_query(cursor), closing)

            for setting in SETTINGS:
                said(setting)
            [(*before, temporary)] = said(STATE)
            for name in LEFT:
                said(f"SET LOCAL {name} TO DEFAULT")
            [(*after, _)] = said(STATE)
            changed = [name for name, one, other in zip(LEFT, before, after, strict=True) if one != other and name not in options]
            if changed or temporary:
                raise DatabaseError.used_session([*changed, *["temporary tables"] * temporary])
            if options:
                said(f"SELECT {', '.join(f'set_config({literal(name)}, {literal(value)}, true)' for name, value in options.items())}")
    except Error:
        raise DatabaseError.unreachable() from None
    return connection


def cancel_query(cursor: Any) -> None:
    """Cancel what the server works on for a cursor, unless it cannot be reached any more."""
    from adbc_driver_manager.dbapi import Error

    with suppress(Error):
        cursor.adbc_cancel()
