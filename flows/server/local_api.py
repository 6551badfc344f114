"""Prefect within this process: quiet, cheap, and nothing written outside its home folder.

`prepare_prefect` runs before anything else imports Prefect; `prefect_api` surrounds the flow call.
With a configured server both only keep Prefect quiet. Without one, Prefect would start a server as a second process: two imports of the
server, a check of all migrations at each start, an orphan after SIGKILL and SIGTERM. Here the same application runs on a thread, on a
database in memory. Settings of the user (environment, `.env`, `prefect.toml`, `pyproject.toml`, active profile) win, one by one.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import secrets
import socket
import sqlite3
import sys
import threading
import time
import warnings
from contextlib import closing, contextmanager, redirect_stderr, suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from schemas.errors.base import SkaldError, StorageError
from schemas.errors.storage import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Paths in `prefect.settings.Settings`; the variable is PREFECT_ and the path in capitals.
QUIET = {
    "logging.level": "CRITICAL",  # Prefect logs every exception with its traceback; the command line says it once
    "internal.logging_level": "CRITICAL",  # its event queue prints whole events when it fails
    "logging.to_api.enabled": "false",  # log lines and tracebacks would become rows of the server's database
    "server.analytics_enabled": "false",  # the server's calls home
    "telemetry.enable_resource_metrics": "false",
    "client.max_retries": "2",  # ten seconds a request; with Prefect's five, each of those that follow a server's death waits over a minute
}
SERVICES = (
    "event_persister",  # would store every event
    "task_run_recorder",  # would store task states with exception texts; nobody asks this server for them
    "triggers",
    "foreman",
    "late_runs",
    "scheduler",
    "pause_expirations",
    "cancellation_cleanup",
    "repossessor",
    "cleanup_reconciler",
)
LOCAL = {
    **{f"server.services.{service}.enabled": "false" for service in SERVICES},
    "server.services.db_vacuum.enabled": "[]",
    "server.ui.enabled": "false",
    "server.register_blocks_on_start": "false",  # block types that nobody asks for
    "server.memoize_block_auto_registration": "false",  # would hash them and write a memo file
    "server.logging_level": "CRITICAL",
    "client.csrf_support_enabled": "false",  # a request less
    "client.server_version_check_enabled": "false",  # the server is this process
}
MEMORY = "file::memory:?cache=shared"
ANSWER_SECONDS = 10
START_SECONDS = 180  # the first start migrates: 4 s of CPU, far more wall time on a busy machine


def prepare_prefect(home: Path | None = None) -> bool:
    """Set Prefect's home folder and silence its messages; return whether a server is configured.

    Args:
        home: Prefect's home where the user has set none; made with mode 0700.

    Raises:
        ServerError: The home cannot be made, or Prefect cannot read its own settings.
    """
    os.environ.setdefault("DO_NOT_TRACK", "1")  # read on import
    if "PREFECT_HOME" not in os.environ:
        profiles = os.path.expanduser("~/.prefect/profiles.toml")  # noqa: PTH111 - a user in a container may have no home
        if os.path.isfile(profiles):  # noqa: PTH113 - false, too, for one that may not be seen; a server of `prefect config set` stays chosen
            os.environ.setdefault("PREFECT_PROFILES_PATH", profiles)
        try:
            home = home or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "skald" / "prefect"
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:
            raise ServerError.no_home(getattr(error, "strerror", None) or "there is no home folder") from None
        os.environ["PREFECT_HOME"] = str(home)
    with _imports():
        configured = _settings_read().api.url is not None
        if not configured:  # on in Prefect's default profile; a flow outside of `prefect_api` is to fail, not to start a second process
            os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_ENABLED", "false")
        _set(QUIET if configured else QUIET | LOCAL)
    logging.getLogger("EventsWorker").setLevel(logging.CRITICAL)  # "still processing items" at exit
    return configured


@contextmanager
def prefect_api(configured: bool) -> Iterator[None]:
    """Provide Prefect's API in the block: the configured server, or one on a thread of this process.

    Raises:
        ServerError: the configured server does not answer, before the block or when the block fails.
        StorageError: the thread's does not start.
    """
    if configured:
        with _answering(), _own_results():
            yield
        return
    schema = Path(os.environ["PREFECT_HOME"]) / f"schema-{version('prefect')}.db"
    # The protocol is named, else asyncio leaves Nagle's algorithm on: 40 ms for each request.
    with closing(sqlite3.connect(MEMORY, uri=True)) as memory, socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        migrated = _load(memory, schema)
        _point_to(listener.getsockname()[1], migrated)
        with _serving(listener):
            if not migrated:
                _save(memory, schema)
            from prefect.events.clients import NullEventsClient
            from prefect.events.worker import EventsWorker
            from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

            EventsWorker.set_client_override(NullEventsClient)  # nobody listens to events here
            with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}), _own_results():  # no variable can say None
                yield
            EventsWorker.drain_all(timeout=10)


@contextmanager
def _own_results() -> Iterator[None]:
    """Disable a profile's storage block for results during the block.

    Results are in the job's folder, and that block may be missing.
    """
    from prefect.settings import PREFECT_DEFAULT_RESULT_STORAGE_BLOCK, temporary_settings

    with temporary_settings(restore_defaults={PREFECT_DEFAULT_RESULT_STORAGE_BLOCK}):
        yield


@contextmanager
def _answering() -> Iterator[None]:
    """Raise a ServerError in place of Prefect's tracebacks when the configured server fails."""
    if fault := _server_fault():
        raise fault
    try:
        yield
    except SkaldError:
        raise
    except Exception as error:
        if fault := _server_fault() or _passing_fault(error):
            raise fault from None
        raise


def _passing_fault(error: Exception) -> ServerError | None:
    """Return the error of a busy server, which failed and answers again; None for any other error."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError) and error.response.is_server_error:
        return _unusable(f"it answers with status {error.response.status_code}")
    return _unusable("nothing answers there") if isinstance(error, httpx.TransportError) else None


def _server_fault() -> ServerError | None:
    """Return the error of the configured server, or None if it answers."""
    with _imports():
        import httpx
        from prefect.client.orchestration import get_client
        from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}), get_client({"timeout": ANSWER_SECONDS}, sync_client=True) as client:
            client.read_flows(limit=1)
            client.raise_for_api_version_mismatch_once()
    except httpx.HTTPStatusError as error:
        reason = f"it answers with status {error.response.status_code}"
    except httpx.TransportError:
        reason = "nothing answers there"
    except Exception:
        reason = "what answers there is not the API of this version of Prefect"
    else:
        return None
    return _unusable(reason)


def _unusable(reason: str) -> ServerError:
    # Without user and password, which the URL may hold.
    host = urlsplit(_current().api.url).netloc.rpartition("@")[2] or "PREFECT_API_URL"
    return ServerError.unusable(host, reason)


def _current() -> Any:
    """Return Prefect's current settings."""
    return import_module("prefect.settings").get_current_settings()


def _settings_read() -> Any:
    """Load Prefect's settings, and raise one error if they are damaged.

    Prefect itself would print several messages.
    """
    with redirect_stderr(io.StringIO()) as said, warnings.catch_warnings(record=True):
        try:
            settings = _current()
        except Exception as error:
            found: list[Any] = error.errors() if hasattr(error, "errors") else []
            named = {str(one["loc"][0]) for one in found if one["type"] != "default_factory_not_called"}
            raise ServerError.bad_settings(sorted(name.upper() if name.startswith("prefect_") else name for name in named)) from None
    sys.stderr.write(said.getvalue())
    return settings


def _refresh() -> None:
    """Make Prefect read its settings again."""
    import_module("prefect.context").refresh_global_settings_context()


def _set(wanted: dict[str, str]) -> None:
    """Set Prefect settings by environment variables, unless the user has set them."""
    settings = _current()
    for path, value in wanted.items():
        *groups, leaf = path.split(".")
        group = settings
        for name in groups:
            group = getattr(group, name)
        if leaf not in group.model_fields_set:  # set nowhere by the user
            os.environ["PREFECT_" + path.upper().replace(".", "_")] = value
    _refresh()


def _point_to(port: int, migrated: bool) -> None:
    """Direct Prefect's client and server to a port of this process."""
    secret = f"skald:{secrets.token_urlsafe(24)}"  # other users of the machine can reach the port
    os.environ.update(
        PREFECT_API_URL=f"http://127.0.0.1:{port}/api",
        PREFECT_API_AUTH_STRING=secret,
        PREFECT_SERVER_API_AUTH_STRING=secret,
        PREFECT_SERVER_DATABASE_CONNECTION_URL=f"sqlite+aiosqlite:///{MEMORY}&uri=true&check_same_thread=false",
        PREFECT_SERVER_DATABASE_MIGRATE_ON_START=str(not migrated).lower(),
    )
    _refresh()


def _load(memory: sqlite3.Connection, schema: Path) -> bool:
    """Copy the saved empty database of this Prefect version into memory.

    Returns False if there is none.
    """
    if not schema.is_file():
        return False
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(f"{schema.absolute().as_uri()}?mode=ro", uri=True)) as source:
        source.execute("SELECT version_num FROM alembic_version").fetchone()
        source.backup(memory)
        return True
    return False


def _save(memory: sqlite3.Connection, schema: Path) -> None:
    """Save the migrated empty database for later processes."""
    draft = schema.with_name(f"{schema.name}.{os.getpid()}")
    with suppress(OSError, sqlite3.DatabaseError):  # a home that cannot be written costs the migrations each time
        try:
            with closing(sqlite3.connect(draft)) as target:
                memory.backup(target)
            draft.chmod(0o600)
            draft.replace(schema)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _imports() -> Iterator[None]:
    """Disable the garbage collector during imports.

    The imported objects stay, and repeated searches of them take a fifth of the import time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _serving(listener: socket.socket) -> Iterator[None]:
    """Run Prefect's API on a thread during the block."""
    with _imports():
        import uvicorn
        from prefect.server.api.server import create_app

        # SQLAlchemy on Prefect's UUID type; under `-W error` it would be an internal error of the API.
        warnings.filterwarnings("ignore", "Type object <class 'prefect", DeprecationWarning)
        config = uvicorn.Config(create_app(ephemeral=True), log_config=None, access_log=False, lifespan="on")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="prefect-api", daemon=True)
        thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                home = os.environ["PREFECT_HOME"]
                raise StorageError(
                    f"Prefect's API did not start on a thread of this process. Remove '{home}', set PREFECT_API_URL to a server that runs, "
                    "or run with --direct."
                )
            time.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=10)
