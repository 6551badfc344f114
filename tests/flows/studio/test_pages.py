"""What the pages do to a job: one press, one change, and the file stays the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from flows.studio.security import SessionKeys
from flows.studio.state import Studio
from tasks.studio.listed_groups import digest_of_rows, rows_of_listed_hierarchy
from tests.conftest import CommandLine
from tests.flows.studio.conftest import Post
from tests.patience import until


def test_one_press_gives_a_column_another_role(post: Post, job: Path) -> None:
    before = job.read_text()
    page = post("role", column="note", role="insensitive")
    assert 'aria-pressed="true" title="published">Insensitive' in page
    after = job.read_text()
    assert "  insensitive:\n    - {name: note, publish: shared}\n" in after and "withheld: []" in after
    kept = [line for line in before.splitlines() if "withheld" not in line and "insensitive" not in line]
    assert [line for line in after.splitlines() if line in kept] == kept
    post("role", column="note", role="withheld")
    post("role", column="note", role="nonsense")
    assert "  withheld:\n    - note\n" in job.read_text()


@pytest.mark.ci
def test_the_last_quasi_identifier_stays_one(post: Post, job: Path) -> None:
    for name in ("town", "born_in", "income"):
        post("role", column=name, role="withheld")
    before = job.read_text()
    assert "Not done" in post("role", column="born", role="withheld")
    assert job.read_text() == before


def test_the_page_follows_the_file_and_the_file_the_page(client: TestClient, studio: Studio, post: Post, job: Path) -> None:
    stamp = client.get("/state").json()["stamp"]
    job.write_text(job.read_text().replace("k: 6", "k: 9"))
    assert client.get("/state").json()["stamp"] != stamp
    assert 'name="k" type="number" min="1" step="1" value="9"' in client.get("/choices").text
    post("choices", k="10", limit="0.05")
    assert "privacy: {k: 10}" in job.read_text()
    shown = studio.shown_text(studio.read_job_file())
    post("text", text="version: 1\nname: [", view=studio.stamp_of(shown))
    assert "k: 10" in job.read_text()


def test_choices_change_what_they_say_and_nothing_else(post: Post, job: Path) -> None:
    before = job.read_text()
    post(
        "choices", k="6", limit="0.050", treatment="drop", person="none", method="skald", objective="gcp", **{"l:score": "", "t:score": ""}
    )
    assert job.read_text() == before
    post("choices", **{"l:score": "2"}, limit="0.1", treatment="mask", person="")
    after = job.read_text()
    assert "privacy: {k: 6, l: {score: {distinct: 2}}}" in after
    assert "suppression: {limit: 0.1, treatment: mask}" in after and "person" not in after
    post("choices", **{"l:score": ""})
    assert "privacy: {k: 6}" in job.read_text()
    post("choices", method="mondrian")
    assert "method: {name: mondrian}" in job.read_text()


def test_a_point_of_the_front_is_taken(client: TestClient, post: Post, job: Path) -> None:
    page = client.get("/part/front").text
    assert "href='#take-1'" in page and 'id="take-1"' in page
    node = page.partition('name="node" value="')[2].partition('"')[0]
    said = post("node", node=node, suppressed="0.08")
    assert "The job now names these levels and may leave out 10" in said
    assert f"node: [{node.replace(',', ', ')}]" in job.read_text() and "limit: 0.1" in job.read_text()


def test_steps_of_a_hierarchy_are_edited(post: Post, job: Path) -> None:
    post("steps", column="income", kind="widths", steps="500, 5000")
    post("steps", column="born", kind="date", steps=["year", "month"])
    text = job.read_text()
    assert "{widths: [500, 5000]}" in text and "{date: [month, year]}" in text
    assert "multiple of the one before" in post("steps", column="income", kind="widths", steps="2, 3")
    assert "a number was expected" in post("steps", column="income", kind="widths", steps="x")
    assert job.read_text() == text


def test_a_list_of_the_job_moves_into_a_private_file(post: Post, studio: Studio, job: Path) -> None:
    spec = studio.job(studio.read_job_file()).columns.quasi_identifiers[1].hierarchy
    rows = rows_of_listed_hierarchy(studio.job(studio.read_job_file()), "born_in", spec)
    lines = {row[0]: line for line, row in enumerate(rows)}
    post("move", column="born_in", list=digest_of_rows(rows), line=str(lines["Birch"]), to="new", label="Trees")
    assert 'hierarchy: {csv: "hierarchies/born_in.csv"}' in job.read_text()
    written = (job.parent / "hierarchies" / "born_in.csv").read_text()
    assert "Birch;Trees\n" in written and "Alder;North\n" in written
    rows = rows_of_listed_hierarchy(
        studio.job(studio.read_job_file()), "born_in", studio.job(studio.read_job_file()).columns.quasi_identifiers[1].hierarchy
    )
    again = {"list": digest_of_rows(rows), "line": str(lines["Alder"]), "to": "new"}
    assert "no other group has" in post("move", column="born_in", label="Trees", **again)
    assert (job.parent / "hierarchies" / "born_in.csv").read_text() == written


def test_a_file_of_groups_is_taken_with_its_delimiter(post: Post, job: Path) -> None:
    (job.parent / "arx.csv").write_text("Alder,A,*\nBirch,B,*\nCedar,B,*\nCanaryville,A,*\n")
    post("file", column="town", path="arx.csv")
    assert 'csv: "arx.csv", delimiter: ","' in job.read_text()
    (job.parent / "few.csv").write_text("Alder;A;*\n")
    before = job.read_text()
    assert "Not done" in post("file", column="town", path="few.csv")
    assert job.read_text() == before


def test_a_source_or_a_job_is_asked_for_where_none_was_named(studio: Studio, client: TestClient, keys: SessionKeys, job: Path) -> None:
    studio.path = None
    assert "What do you want to anonymise?" in client.get("/").text
    client.post("/do/open", data={"path": "nothing.yaml"}, headers={"origin": keys.origin})
    assert "There is no job file of that name" in client.get("/").text
    for nothing in ("nothing.csv", "nowhere/*.parquet"):
        client.post("/do/open", data={"path": nothing}, headers={"origin": keys.origin})
        assert "There is nothing at" in client.get("/").text
        assert not studio.works.busy
    answer = client.post("/do/open", data={"path": str(job)}, headers={"origin": keys.origin})
    assert answer.headers["location"] == "/columns"


@pytest.mark.ci
@pytest.mark.slow
def test_a_run_of_the_page_is_that_of_the_command(post: Post, client: TestClient, studio: Studio, job: Path, direct: CommandLine) -> None:
    post("work", kind="run", page="/run")
    until(lambda: not studio.works.busy)
    assert studio.works.current is not None and studio.works.current.result, studio.works.current
    steps = [one.words for one in studio.works.current.steps.values()]
    assert steps[0].startswith("phase 1") and steps[-1] == "phase 4: publish release"
    release = studio.works.current.result["release"]
    assert "Published and verified" in client.get("/run").text
    report = client.get(f"/report/{release}")
    assert report.status_code == 200 and "'sha256-" in report.headers["content-security-policy"]
    assert direct("verify", job.parent / "releases" / release, "--job", job).returncode == 0
    # Another promise, another release, side by side.
    post("choices", k="12")
    post("work", kind="run", page="/run")
    until(lambda: not studio.works.busy)
    page = client.get("/compare").text
    assert "Loss by column" in page and "k-anonymity" in page and ">second<" in page
    post("work", kind="utility", release=release, page="/compare")
    until(lambda: not studio.works.busy)
    assert release in studio.utilities


@pytest.mark.slow
def test_what_takes_long_is_cancelled_and_one_at_a_time(post: Post, studio: Studio) -> None:
    post("work", kind="plan")
    assert "worked on already" in post("work", kind="plan")
    post("cancel")
    until(lambda: not studio.works.busy)
    assert studio.works.current is not None and studio.works.current.cancelled
