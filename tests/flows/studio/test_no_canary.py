"""A value that one person has is in no answer, whatever is asked: pages, parts, forms, files that are edited, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from flows.studio.actions import ACTIONS
from flows.studio.pages import PARTS, SHOWN, columns_page, hierarchies_page
from flows.studio.security import SessionKeys
from flows.studio.state import Studio
from tasks.studio.listed_groups import digest_of_rows, rows_of_listed_hierarchy
from tests.flows.studio.conftest import CANARIES, Post

COLUMNS = ("who", "town", "born_in", "income", "born", "score", "note")
PLACES = [f"/{name}" for name in SHOWN] + ["/state"] + [f"/hierarchies?column={name}" for name in ("born_in", "income", "born")]
METHODS = ("skald", "mondrian", "kmember")


def free_of_canaries(text: str) -> str:
    assert not [canary for canary in CANARIES if canary in text]
    return text


@pytest.fixture(autouse=True)
def every_answer(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks at every answer of a test, with its headers."""
    sent = client.send

    def send(*arguments: object, **options: object) -> object:
        answer = sent(*arguments, **options)  # type: ignore[arg-type]
        free_of_canaries(answer.text + str(answer.headers))
        return answer

    monkeypatch.setattr(client, "send", send)
    yield


@pytest.mark.ci
@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("place", PLACES)
def test_no_page_shows_a_value_of_one_person(place: str, k: int, client: TestClient, job: Path) -> None:
    job.write_text(job.read_text().replace("k: 6", f"k: {k}"))
    page = client.get(place).text
    assert client.get(place).status_code == 200
    if place == "/hierarchies?column=born_in":
        assert "Alder" in page, "values that many share are shown"


@pytest.mark.ci
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", PARTS)
def test_no_part_shows_a_value_of_one_person(part: str, method: str, client: TestClient, job: Path) -> None:
    said = {"skald": "{name: skald, node: [0, 0, 0, 0]}"}.get(method, f"{{name: {method}, generalisation: {{town: set, born_in: set}}}}")
    job.write_text(job.read_text().replace("{name: skald}", said).replace("k: 6", "k: 2").replace("limit: 0.05", "limit: 1"))
    assert "This cannot be shown" not in client.get(f"/part/{part}").text


def forms_of(action: str, town: str, job: Path) -> list[dict[str, str]]:
    """Return what a page, or whoever writes one, may send to an action."""
    moves = [("0", "3", "new"), ("3", "0", "9"), ("3", "9", "x")]
    given: dict[str, list[dict[str, str]]] = {
        "role": [{"column": column, "role": "quasi_identifier"} for column in COLUMNS] + [{"column": "note", "role": "sensitive"}],
        "kind": [{"column": column, "kind": kind} for column in ("town", "born_in", "who") for kind in ("list", "first")],
        "steps": [
            {"column": column, "kind": kind, "steps": "1"} for column, kind in (("income", "widths"), ("town", "prefix"), ("x", "x"))
        ],
        "move": [{"column": "town", "list": town, "line": line, "rare": rare, "to": to} for line, rare, to in moves],
        "file": [{"column": column, "path": path} for column in ("town", "born") for path in ("town.csv", "job.yaml", "/etc/hosts")],
        "choices": [{"k": "0"}, {"limit": "2"}, {"l:score": "9"}, {"method": "x"}, {"person": "town"}],
        "node": [{"node": "0,0,0,0", "suppressed": "0.1"}, {"node": "9", "suppressed": "0"}, {"node": "x"}],
        "method": [{"method": "mondrian", "score": "ncp"}, {"method": "x"}],
        "open": [{"path": str(job)}, {"path": "nowhere.yaml"}, {"path": ""}],
        "text": [{"text": "tree: {", "view": "x"}],
    }
    return [*given.get(action, []), {}]


@pytest.mark.ci
@pytest.mark.parametrize("action", ACTIONS)
def test_no_form_brings_out_a_value_of_one_person(action: str, client: TestClient, studio: Studio, keys: SessionKeys, job: Path) -> None:
    opened = studio.job(studio.read_job_file())
    town = digest_of_rows(rows_of_listed_hierarchy(opened, "town", opened.columns.quasi_identifiers[0].hierarchy))
    before = job.read_text()
    for form in forms_of(action, town, job):
        given = {"stamp": studio.read_job_file().stamp, "page": "/run", **form}
        answer = client.post(f"/do/{action}", data=given, headers={"origin": keys.origin})
        client.get(answer.headers["location"])
        job.write_text(before)


def test_a_value_that_was_shown_would_be_found(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the floor the pages have it, so that looking for it is no idle look."""
    monkeypatch.setattr(studio, "least", lambda _job: 1)
    page = columns_page(studio, {})
    assert "987654321" not in page, "the most frequent values come first"
    assert all(canary in hierarchies_page(studio, {"column": name}) for name, canary in (("town", "Canaryville"), ("born", "1901-02-03")))


def test_the_text_of_the_job_hides_values_and_gets_them_back(client: TestClient, studio: Studio, keys: SessionKeys, job: Path) -> None:
    before = job.read_text()
    shown = studio.shown_text(studio.read_job_file())
    assert "‹hidden 1›: [‹hidden 2›]" in free_of_canaries(shown) and "[Alder, Birch]" in shown
    edited = shown.replace("k: 6", "k: 9").replace("\n", "\r\n")
    client.post("/do/text", data={"text": edited, "view": studio.stamp_of(shown)}, headers={"origin": keys.origin})
    assert job.read_text() == before.replace("k: 6", "k: 9")
    # A sign that stands for nothing is no value.
    shown = studio.shown_text(studio.read_job_file())
    wrong = shown.replace("‹hidden 2›", "‹hidden 7›")
    client.post("/do/text", data={"text": wrong, "view": studio.stamp_of(shown)}, headers={"origin": keys.origin})
    assert job.read_text() == before.replace("k: 6", "k: 9")


def test_a_text_that_cannot_be_read_shows_nothing_of_a_tree(client: TestClient, job: Path) -> None:
    job.write_text(job.read_text().replace("Kanarienstadt: [Kanarienstadt]", "Kanarienstadt: [Kanarienstadt"))
    assert "It is no job yet" in client.get("/columns").text


def test_rare_values_move_without_being_seen(post: Post, studio: Studio, job: Path) -> None:
    opened = studio.job(studio.read_job_file())
    digest = digest_of_rows(rows_of_listed_hierarchy(opened, "town", opened.columns.quasi_identifiers[0].hierarchy))
    page = post("move", column="town", list=digest, rare="3", to="2")
    assert "The job file" in page
    moved = studio.job(studio.read_job_file()).columns.quasi_identifiers[0].hierarchy
    assert ("Canaryville", "South", "*") in rows_of_listed_hierarchy(opened, "town", moved)
    # The file was not one of the studio's own, and stays.
    assert (job.parent / "town.csv").read_text().endswith("Canaryville;Canaryville;*\n")
    assert (job.parent / "hierarchies" / "town.csv").stat().st_mode & 0o077 == 0


def test_a_group_of_many_that_is_called_as_a_value_of_one_is_not_named(client: TestClient, job: Path) -> None:
    (job.parent / "town.csv").write_text("Alder;Canaryville;*\nBirch;Canaryville;*\nCedar;South;*\nCanaryville;Canaryville;*\n")
    job.write_text(job.read_text().replace("{name: skald}", "{name: skald, node: [1, 1, 3, 4]}").replace("limit: 0.05", "limit: 1"))
    assert "South" in client.get("/hierarchies?column=town").text
    page = client.get("/part/preview").text
    assert "South" in page and "names a value of fewer" in page


def test_a_floor_of_the_policy_is_a_floor_of_what_is_shown(studio: Studio, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = job.parent / "policy.yaml"
    policy.write_text("version: 1\nprivacy: {k: 50}\n")
    monkeypatch.setenv("SKALD_POLICY", str(policy))
    assert studio.least(studio.read_job_file().job) == 50
    policy.write_text("version: 1\nprivacy: {k: fifty}\n")
    assert studio.least(studio.read_job_file().job) > 10**9


def test_no_change_of_the_page_passes_under_the_policy(post: Post, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = job.parent / "policy.yaml"
    policy.write_text("version: 1\nprivacy: {k: 6}\nnever_published: [note]\nmethods: [skald]\n")
    monkeypatch.setenv("SKALD_POLICY", str(policy))
    before = job.read_text()
    assert "the policy asks for 6 or more" in post("choices", k="5")
    assert "never to be published" in post("role", column="note", role="sensitive")
    assert "the policy allows" in post("method", method="mondrian")
    assert job.read_text() == before
    post("choices", k="7")
    assert job.read_text() == before.replace("k: 6", "k: 7")
