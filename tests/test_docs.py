"""The documentation builds without a warning, its links lead somewhere, its commands exist, and the tutorial is what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema
import pyarrow.parquet as pq
import pytest
import typer
import yaml

from data.medical import make_medical
from docs.reference_pages import commands_page
from flows.cli import app
from schemas.job.job import Job
from schemas.job.policy import Policy
from schemas.relational.tables_job import TablesJob, jobs_json_schema
from tests.conftest import CommandLine
from tests.jobs import job_of
from tests.patience import SECONDS
from tests.places import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "reference"} & set(path.relative_to(DOCS).parts))
COMMANDS = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
BLOCK = re.compile(r"^```(?:\{code-block\} )?(\w+)\n((?::\w+:[^\n]*\n)*)\n?(.*?)^```$", re.M | re.S)


class Links(HTMLParser):
    """Collects what a page links to and loads, and the places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif link := given.get("src") or (given.get("href") if tag == "link" else None):
            self.loaded.add(link)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(folder / "trees")]
    done = subprocess.run(
        [*command, str(DOCS), str(folder / "html")],
        env=os.environ | {"PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.mark.slow
def test_every_link_inside_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: Links(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > len(PAGES)
    for path, page in pages.items():
        assert not {link for link in page.loaded if urlsplit(link).netloc}, path
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme == "https", link
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].places, f"{path.name}: {link}"


@pytest.mark.slow
def test_every_key_of_a_job_is_in_the_reference_with_its_meaning(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "job.html").read_text("utf-8"))
    for model in jobs_json_schema()["$defs"].values():
        assert model["description"]
        for key, one in model["properties"].items():
            assert one.get("description"), key
            assert key in text


def test_the_reference_of_commands_has_all_exit_codes_and_a_meaning_for_all_that_it_lists() -> None:
    page = commands_page()
    [said] = re.findall(r"^Exit codes: (.*)$", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert re.findall(r"^\| (\d) \| [^|]+ \|$", page, re.M) == re.findall(r"\b\d\b", said)
    rows = re.findall(r"^\| `([^|]+)` \| [^|]*\| ([^|]*)\|$", page, re.M)
    assert len(rows) > 50
    assert [name for name, meaning in rows if not meaning.strip()] == []


@pytest.mark.slow
def test_every_command_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text("utf-8")
    assert all(f"skald {command}" in text for command in COMMANDS)


def assert_taken(snippet: str) -> None:
    """Check that a snippet is a job, a policy or a part of a job; a key that is repeated begins an alternative."""
    keys = re.findall(r"^(\w+):", snippet, re.M)
    if len(keys) > len(set(keys)):
        for alternative in re.split(r"^(?=\w)", snippet, flags=re.M)[1:]:
            assert_taken(alternative)
        return
    given = yaml.safe_load(snippet)
    if isinstance(given, list):
        given = {"quasi_identifiers": given}
    if given.keys() <= ROLES.keys():
        given = {"columns": given}
    if "tables" in given:
        TablesJob.model_validate(given)
    elif "never_published" in given:
        Policy.model_validate(given)
    elif "target" in given and "columns" in given:
        Job.model_validate(given)
    else:
        roles = {name: entries for name, entries in given.get("columns", {}).items() if entries != "…"}
        Job.model_validate(job_of() | given | {"columns": ROLES | roles})


ROLES: dict[str, Any] = {
    "quasi_identifiers": [{"name": name, "hierarchy": {"prefix": [3]}} for name in ("age", "pin_code", "region", "sex", "place")],
    "sensitive": ["diagnosis"],
    "insensitive": "rest",
}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_commands_that_a_page_shows_exist_and_its_jobs_are_taken(page: Path) -> None:
    for language, _, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "yaml":
            assert_taken(text)
        for line in text.splitlines():
            if found := re.match(r"\$ skald (\S+)", line):
                assert found[1] in COMMANDS


def test_the_job_of_the_readme_gives_each_column_of_the_made_patients_a_role(tmp_path: Path) -> None:
    [text] = [text for language, _, text in BLOCK.findall((ROOT / "README.md").read_text("utf-8")) if language == "yaml"]
    columns = Job.model_validate(yaml.safe_load(text)).columns
    [made] = make_medical(tmp_path, 1)
    assert set(columns.roles()) == set(pq.read_schema(made).names)


def jobs() -> Iterator[Any]:
    for path in sorted((ROOT / "data" / "jobs").glob("*.yaml")):
        yield yaml.safe_load(path.read_text())
    [tutorial] = [text for language, options, text in BLOCK.findall((DOCS / "tutorial.md").read_text()) if "job.yaml" in options]
    yield yaml.safe_load(tutorial)
    yield job_of()
    yield job_of(method={"name": "mondrian", "fragments": {"count": 4}, "generalisation": {"sex": "set"}}, source={"path": ["a", "b"]})
    yield job_of(privacy={"k": 5, "l": {"disease": {"recursive": {"c": 2.5, "l": 2}}}, "t": {"disease": {"t": 0.2}}}, memory=512_000_000)


@pytest.mark.ci
def test_the_schema_for_editors_takes_jobs_and_refuses_what_is_none(direct: CommandLine) -> None:
    done = direct("schema", "--to", "job.schema.json")
    assert done.returncode == 0, done.stderr
    schema = json.loads((direct.folder / "job.schema.json").read_text())
    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    for job in jobs():
        assert [error.message for error in check.iter_errors(job)] == []
    for wrong in ({"privcy": {}}, {"privacy": {"k": 0}}, {"method": {"name": "magic"}}, {"memory": "much"}, {"version": 2}):
        assert not check.is_valid(job_of() | wrong), wrong
    assert not check.is_valid({})


@pytest.mark.ci
def test_the_tutorial_typed_word_for_word_prints_what_it_shows(tmp_path: Path) -> None:
    skald, ran = CommandLine("direct", tmp_path), 0
    for language, options, text in BLOCK.findall((DOCS / "tutorial.md").read_text("utf-8")):
        if caption := re.search(r":caption: (\S+)", options):
            (tmp_path / caption[1]).write_text(text)
        if language == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
                words = skald.ended(["bash", "-c", f"printf '%s\\0' {command}"]).stdout.split("\0")[:-1]
                done = skald(*words[1:], COLUMNS="100") if words[0] == "skald" else skald.ended(words)
                assert done.returncode == 0, f"{command}: {done.stderr}"
                assert_shown(shown, done.stdout)
                ran += 1
    assert ran >= 8


def assert_shown(shown: str, printed: str) -> None:
    """Check that every line that was printed is shown, and none other; a line … stands for lines, and … within one for anything in it."""
    lines = [re.escape(line).replace("…", ".*") + "\n" if line != "…" else "(?:.*\n)*" for line in shown.rstrip("\n").splitlines()]
    left = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    assert re.fullmatch("".join(lines), left), f"shown:\n{shown}\nprinted:\n{left}"
