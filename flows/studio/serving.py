"""Web server and application of the studio on the local address, which ends with its terminal."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from tempfile import mkstemp
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from core.charts.chart import DARK_STYLE
from flows.loading import restore_collector
from flows.studio.actions import ACTIONS, Form, open_named, page_of_form
from flows.studio.pages import PARTS, SHOWN, environment, rendered_page, work_state
from flows.studio.security import HOST, Gate, SessionKeys, report_policy
from flows.studio.state import PageMessage, Studio
from schemas.errors.base import SkaldError, StorageError
from tasks.engine.guard import guarded
from tasks.studio.releases import report_page

STATIC = Path(__file__).parent / "static"
MOST_FIELDS = 20_000
CHARTS = f"@media screen and (prefers-color-scheme: dark) {{ {DARK_STYLE} }}\n"
"""Colours of pictures on dark paper, which are one for all pictures."""


def application(studio: Studio, keys: SessionKeys) -> Gate:
    """Return the studio's web application behind its access gate.

    Args:
        studio: What it shows.
        keys: What lets somebody in.
    """
    routes = [Route(f"/{name}", _shown(studio, name)) for name in SHOWN]
    routes += [Route(f"/part/{name}", _part(studio, name)) for name in PARTS]
    routes += [Route(f"/do/{name}", _done(studio, name), methods=["POST"]) for name in ACTIONS]
    routes += [Route("/state", _state(studio)), Route("/report/{release}", _report(studio))]
    routes.append(Route("/static/charts.css", lambda _request: Response(CHARTS, media_type="text/css")))
    made = Starlette(routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))])
    return Gate(made, keys)


def _shown(studio: Studio, name: str) -> Callable[[Request], Response]:
    """Return the handler of a page."""

    def shown(request: Request) -> Response:
        try:
            return HTMLResponse(guarded(SHOWN[name])(studio, dict(request.query_params)))
        except SkaldError as error:
            # Its text can still be mended, or another source named.
            page = "start.html" if studio.path is None else "job.html"
            return HTMLResponse(rendered_page(studio, page, name, fault=str(error)))

    return shown


def _part(studio: Studio, name: str) -> Callable[[Request], Response]:
    """Return the handler of a part of a page."""

    def part(request: Request) -> Response:
        try:
            return HTMLResponse(guarded(PARTS[name])(studio, dict(request.query_params)))
        except SkaldError as error:
            return HTMLResponse(environment().get_template("fault.html").render(fault=str(error)))

    return part


def _done(studio: Studio, name: str) -> Callable[[Request], object]:
    """Return the handler of a form."""

    async def done(request: Request) -> Response:
        body = (await request.body()).decode("utf-8", "replace")
        try:
            form = parse_qs(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            return PlainTextResponse("The page sent more than a form holds.", 413)
        return RedirectResponse(await run_in_threadpool(_act, studio, name, form), 303)

    return done


def _act(studio: Studio, name: str, form: Form) -> str:
    """Run an action, and return the address of the next page."""
    try:
        return guarded(ACTIONS[name])(studio, form)
    except SkaldError as error:
        studio.messages.append(PageMessage("bad", str(error)))
        return page_of_form(form)


def _state(studio: Studio) -> Callable[[Request], Response]:
    """Return the handler of the state that the page's script polls."""
    return lambda _request: JSONResponse(work_state(studio))


def _report(studio: Studio) -> Callable[[Request], Response]:
    """Return the handler of a release's report page."""

    def report(request: Request) -> Response:
        try:
            page = report_page(studio.job(studio.read_job_file()), request.path_params["release"])
        except SkaldError as error:
            return PlainTextResponse(str(error), 404)
        if page is None:
            return PlainTextResponse("There is no such release.", 404)
        return HTMLResponse(page, headers={"content-security-policy": report_policy(page)})

    return report


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
