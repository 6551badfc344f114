"""Commands that are printed to be typed are one word for each path, whatever the path's name."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from flows.demo import next_commands
from tests.conftest import CommandLine
from tests.jobs import write_parquet

FOLDER, JOB = "my data", "it's mine; $HOME.yaml"


def words_after(text: str, command: str) -> list[str]:
    """Return the words of the first line that holds a command, as a shell reads them from there on."""
    [line, *_] = [line for line in text.splitlines() if command in line]
    return shlex.split(line[line.index(command) :].replace(", skald", " ; skald").replace(". Then", " ; Then"), comments=True)


@pytest.fixture
def tables(direct: CommandLine) -> CommandLine:
    """Two folders of tables, and one that has a blank in its name."""
    ages = {"age": [20 + row % 4 for row in range(40)]}
    for name, columns in {
        FOLDER: ages,
        "person": {"person_id": range(40), **ages},
        "visit": {"visit_id": range(40), "person_id": range(40)},
    }.items():
        write_parquet(direct.folder / name, pa.table(columns))
    return direct


@pytest.mark.parametrize("source", [[FOLDER], ["person", "visit"]], ids=["one table", "several tables"])
def test_a_draft_and_what_it_prints_name_the_job_as_one_word(tables: CommandLine, source: list[str]) -> None:
    done = tables("init", *source, "--out", JOB)
    assert done.returncode == 0, done.stderr
    text = (tables.folder / JOB).read_text()
    assert yaml.safe_load(text)["version"] in {1, 2}
    for said in (done.stdout, text):
        assert words_after(said, "skald plan ")[:3] == ["skald", "plan", JOB]
        assert words_after(said, "skald run ")[:3] == ["skald", "run", JOB]


def test_a_drafted_hierarchy_is_named_as_yaml_reads_it(tables: CommandLine) -> None:
    out = "my, [ages]: #1.csv"
    done = tables("hierarchy", "draft", FOLDER, "--column", "age", "--out", out)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if "hierarchy: {" in line]
    assert yaml.safe_load(line[line.index("hierarchy: {") :]) == {"hierarchy": {"csv": out}}


def test_the_next_commands_of_the_demo_name_release_and_job_as_one_word_each(tmp_path: Path) -> None:
    releases = tmp_path / FOLDER / "releases" / "medical"
    releases.mkdir(parents=True)
    (releases / "CURRENT").write_text("one\n")
    job = tmp_path / FOLDER / JOB
    said = "\n".join(next_commands(job))
    assert shlex.split(said[said.index(" verify ") :].splitlines()[0], comments=True) == [
        "verify",
        str(releases / "one"),
        "--job",
        str(job),
    ]
