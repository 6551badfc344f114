"""Web application of the studio: routes, forms, static files and error pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from core.charts.chart import DARK_STYLE
from flows.studio.actions import ACTIONS, Form, page_of_form
from flows.studio.pages import PARTS, SHOWN, Query, environment, rendered, work_state
from flows.studio.security import Gate, SessionKeys, report_policy
from flows.studio.state import PageMessage, Studio
from schemas.errors.base import SkaldError
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
            return HTMLResponse(_sure(SHOWN[name], studio, dict(request.query_params)))
        except SkaldError as error:
            # Its text can still be mended, or another source named.
            page = "start.html" if studio.path is None else "job.html"
            return HTMLResponse(rendered(studio, page, name, fault=str(error)))

    return shown


def _part(studio: Studio, name: str) -> Callable[[Request], Response]:
    """Return the handler of a part of a page."""

    def part(request: Request) -> Response:
        try:
            return HTMLResponse(_sure(PARTS[name], studio, dict(request.query_params)))
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


def _sure(page: Callable[[Studio, Query], str], studio: Studio, query: Query) -> str:
    """Render a page, with foreign errors reduced to their kind.

    The text of such an error may quote a value.
    """
    return guarded(page)(studio, query)


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
