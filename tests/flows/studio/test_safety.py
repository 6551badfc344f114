"""What the studio promises of who may ask: a test for each promise."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from flows.studio.actions import ACTIONS
from flows.studio.pages import PARTS, SHOWN
from flows.studio.security import SessionKeys, report_policy
from flows.studio.state import Studio
from schemas.errors.base import StorageError

PLACES = [f"/{name}" for name in SHOWN] + [f"/part/{name}" for name in PARTS] + ["/state", "/report/any", "/static/studio.js", "/nowhere"]
FORMS = [f"/do/{name}" for name in ACTIONS]


@pytest.mark.parametrize("place", PLACES)
def test_nobody_is_let_in_without_the_token(place: str, stranger: TestClient, keys: SessionKeys) -> None:
    assert stranger.get(place).status_code == 403
    assert stranger.get(f"{place}?token={keys.token[:-1]}x").status_code == 403
    assert stranger.get(f"{place}?token={keys.token}&token={keys.token}").status_code == 403
    assert stranger.get(place, headers={"cookie": f"{keys.cookie_name}=wrong; other={keys.cookie}"}).status_code == 403


@pytest.mark.ci
@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_changed_without_the_token_or_from_elsewhere(form: str, client: TestClient, studio: Studio, keys: SessionKeys) -> None:
    before = studio.read_job_file().text
    refused = [
        {},
        {"origin": "http://example.org"},
        {"origin": "null"},
        {"origin": f"http://localhost:{keys.port}"},
        {"origin": f"http://127.0.0.1:{keys.port + 1}"},
        {"origin": keys.origin, "sec-fetch-site": "cross-site"},
        # Another port of this machine is the same site.
        {"origin": keys.origin, "sec-fetch-site": "same-site"},
        {"origin": keys.origin, "host": "example.org"},
    ]
    for headers in refused:
        assert client.post(form, data={"text": "x", "path": "/etc", "role": "sensitive"}, headers=headers).status_code == 403
    client.cookies.clear()
    assert client.post(form, headers={"origin": keys.origin}).status_code == 403
    assert client.get(form).status_code == 403
    assert studio.read_job_file().text == before and studio.works.current is None


def test_a_name_that_was_bound_to_this_machine_is_not_ours(client: TestClient, keys: SessionKeys) -> None:
    for host in ("example.org", f"example.org:{keys.port}", "127.0.0.1", f"localhost:{keys.port}", f"127.0.0.1:{keys.port + 1}", ""):
        assert client.get("/state", headers={"host": host}).status_code == 403
        assert client.get(f"/?token={keys.token}", headers={"host": host}).status_code == 403
    assert client.get("/state").status_code == 200


def test_another_page_cannot_read_with_the_cookie(client: TestClient, keys: SessionKeys) -> None:
    for headers in ({"origin": "http://example.org"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
        assert client.get("/state", headers=headers).status_code == 403
    # Whoever follows the address from a mail or the terminal has the token, and is let in.
    assert client.get(f"/?token={keys.token}", headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_has(stranger: TestClient, keys: SessionKeys) -> None:
    answer = stranger.get(f"/state?token={keys.token}")
    said = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(said.split("; "))
    assert keys.token not in said and keys.cookie in said
    assert stranger.get("/state").status_code == 200
    assert "set-cookie" not in stranger.get("/state").headers


def test_two_studios_have_other_secrets_and_cookies(keys: SessionKeys) -> None:
    other = SessionKeys(keys.port + 1)
    assert len({keys.token, keys.cookie, other.token, other.cookie}) == 4
    assert keys.cookie_name != other.cookie_name
    assert keys.token not in repr(keys) and keys.cookie not in repr(keys)


@pytest.mark.ci
@pytest.mark.parametrize("place", [place for place in PLACES if not place.startswith("/part/")])
def test_every_answer_forbids_what_is_not_ours_and_is_kept_nowhere(place: str, client: TestClient) -> None:
    for _ in range(2):
        answer = client.get(place)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in policy
        # Refused answers say so too.
        client.cookies.clear()


@pytest.mark.ci
@pytest.mark.parametrize("place", ["/", "/columns", "/hierarchies", "/choices", "/run", "/compare", "/job"])
def test_no_page_holds_a_script_or_a_style_of_its_own(place: str, client: TestClient, keys: SessionKeys) -> None:
    page = client.get(place).text
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script(?! src=\"/static/)|https?://", page)
    # Nothing that leads in is on a page.
    assert keys.token not in page and keys.cookie not in page


def test_a_report_has_no_script_and_the_styles_that_it_came_with() -> None:
    policy = report_policy("<style>a{}</style><script>alert(1)</script>")
    assert "script-src" not in policy and "default-src 'none'" in policy
    assert policy.count("'sha256-") == 1
    assert "style-src 'none'" in report_policy("<p>")


def test_only_what_pages_need_is_answered(client: TestClient, keys: SessionKeys) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/state").status_code == 405
    assert client.post("/do/text", content=b"x" * 2_000_001, headers={"origin": keys.origin}).status_code == 413
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404
    assert client.get("/static/../app.py").status_code == client.get("/static/%2e%2e/app.py").status_code == 404
    assert client.get("/report/%2e%2e%2fjob.yaml").status_code == client.get("/report/job.yaml").status_code == 404


def test_a_change_of_a_file_that_changed_elsewhere_is_refused(studio: Studio, client: TestClient, keys: SessionKeys) -> None:
    old = studio.read_job_file().stamp
    text = studio.read_job_file().text.replace("k: 6", "k: 7")
    assert studio.path is not None
    studio.path.write_text(text)
    client.post("/do/role", data={"stamp": old, "column": "note", "role": "sensitive"}, headers={"origin": keys.origin})
    assert studio.read_job_file().text == text
    assert "changed elsewhere" in client.get("/columns").text
    # A change that is on its way when the file changes is refused too.
    opened = studio.read_job_file()
    studio.path.write_text(text + "\n")
    with pytest.raises(StorageError):
        studio.save(opened, text)
