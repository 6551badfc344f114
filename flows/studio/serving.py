"""Web server of the studio on the local address, which ends with its terminal."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import webbrowser
from html import escape
from pathlib import Path
from tempfile import mkstemp

import uvicorn

from flows.loading import restore_collector
from flows.studio.actions import open_named
from flows.studio.app import application
from flows.studio.security import HOST, SessionKeys
from flows.studio.state import Studio
from schemas.errors.base import StorageError

PARENT_CHECK_SECONDS = 1.0
"""Seconds between two looks at who started the process."""


def serve(source_or_job: tuple[str, ...], port: int | None, *, browser: bool) -> None:
    """Print the address of a studio, and serve it until it is interrupted or its terminal is closed.

    Args:
        source_or_job: A source or a job file; nothing to ask for one.
        port: Where it listens; a free one if left out.
        browser: Whether a browser is opened.

    Raises:
        StorageError: the port is taken, or there is no such job file.
    """
    studio = Studio()
    if source_or_job:
        open_named(studio, source_or_job, Path.cwd())
    listening = _bound(port)
    keys = SessionKeys(listening.getsockname()[1])
    # No log: an address would be in it, with its token.
    config = uvicorn.Config(application(studio, keys), loop="asyncio", http="h11", ws="none", lifespan="off", log_config=None)
    config.access_log, config.server_header, config.timeout_graceful_shutdown = False, False, 1
    server = uvicorn.Server(config)
    restore_collector()
    # A terminal that closes says so by this signal, which would end the process and leave a run without it.
    signal.signal(signal.SIGHUP, lambda *_: _terminate())
    if _has_terminal():
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sys.stdout.write(f"{keys.address}\n")
    sys.stdout.flush()
    opened = _open_browser(keys) if browser else None
    try:
        server.run(sockets=[listening])
    finally:
        studio.works.close()
        if opened:
            opened.unlink(missing_ok=True)


def _bound(port: int | None) -> socket.socket:
    """Return a listening socket on a port of the local address."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port or 0))
        # Whoever reads the address may ask at once, and waits until it is answered.
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "no such port"
        raise StorageError(f"Port {port} of {HOST} cannot be used: {reason}. Leave --port out for a free one.") from None
    return listening


def _terminate() -> None:
    """Send SIGTERM to this process."""
    os.kill(os.getpid(), signal.SIGTERM)


def _has_terminal() -> bool:
    """Return whether the process was started from a terminal.

    Its input and output may lead elsewhere.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _end_with_parent(parent: int) -> None:
    """End the process when its parent shell ends.

    A shell need not pass the signal on.
    """
    while os.getppid() == parent:
        threading.Event().wait(PARENT_CHECK_SECONDS)
    _terminate()


def _open_browser(keys: SessionKeys) -> Path:
    """Open the browser through a private file with the address; return the file.

    In a program's arguments every user of the machine could read the token.
    """
    handle, name = mkstemp(prefix="skald-studio-", suffix=".html")
    address = escape(keys.address)
    head = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}"><title>SKALD studio</title>'
    page = f'<!DOCTYPE html>{head}<a href="{address}">SKALD studio</a>\n'
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(page)
    webbrowser.open(Path(name).as_uri())
    return Path(name)
