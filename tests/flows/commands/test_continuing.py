"""Only commands that go on where they were cut off say so."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import skald
from flows import cli
from schemas.errors.base import CONTINUES, InternalError, SkaldError, StorageError
from schemas.errors.folders import WorkError
from schemas.errors.runners import RunnerError
from schemas.errors.storage import MachineError, ServerError
from tasks.engine.remote.calls import Failure
from tests.conftest import CommandLine
from tests.jobs import people, people_job
from tests.places import ROOT

PHRASE = "the same command"


def texts() -> Iterator[tuple[str, bool]]:
    """All texts of the errors' modules, and whether each is a continuation."""
    for path in sorted((ROOT / "schemas" / "errors").glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        apart = [node.value for node in tree.body if isinstance(node, ast.Assign)]
        apart += [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("continuing")]
        continuing = {id(text) for node in apart for argument in getattr(node, "args", [node]) for text in ast.walk(argument)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, id(node) in continuing


def test_no_message_promises_to_continue_but_what_commands_may_add() -> None:
    promising = [continuing for text, continuing in texts() if PHRASE in text and "continues" in text]
    assert len(promising) >= 3
    assert all(promising)


@pytest.mark.parametrize("error", [
    StorageError.out_of_memory(10**9), StorageError.timed_out("recode", 7200.0), ServerError.server_stopped(), MachineError.no_memory(),
    InternalError("KeyError", "tasks/x.py:1"), RunnerError.scheduler_lost("tcp://host:1"), WorkError.damaged("s3://bucket/a"),
], ids=lambda error: type(error).__name__)  # fmt: skip
def test_a_command_that_keeps_its_steps_adds_that_it_continues_and_no_other(error: SkaldError) -> None:
    assert PHRASE not in str(error)
    assert error.message(continues=False) == str(error)
    assert error.message(continues=True) == f"{error} {error.continuation}"
    assert PHRASE in error.continuation.casefold()
    sent = Failure(type(error), str(error), error.transient, error.continuation).error()
    assert sent.message(continues=True) == error.message(continues=True)
    assert pickle.loads(pickle.dumps(StorageError.out_of_memory(1))).continuation == CONTINUES


def test_an_error_after_which_nothing_would_continue_adds_nothing() -> None:
    error = StorageError.altered("people-1", 2)
    assert error.message(continues=True) == error.message(continues=False) == str(error)


@pytest.mark.parametrize("arguments", [
    ("make-data", "medical", "--rows", "3", "--out", "taken"),
    ("hierarchy", "show", "job.yaml", "--column", "sex", "--to", "taken/sex.svg"), ("compare", "job.yaml", "--to", "taken"),
], ids=lambda arguments: arguments[0])  # fmt: skip
def test_commands_that_begin_anew_do_not_say_that_they_continue(direct: CommandLine, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    people_job(tmp_path, people(40))
    (tmp_path / "taken").write_text("in the way")
    done = direct(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "taken" in done.stderr
    assert PHRASE not in done.stderr
    assert (tmp_path / "taken").read_text() == "in the way"


@pytest.mark.parametrize(("command", "continues"), [("run", True), ("compare", True), ("init", False), ("verify", False)])
def test_an_interrupt_is_said_as_the_command_can_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, continues: bool
) -> None:
    monkeypatch.setattr(cli, "app", lambda **_: cli.INTERRUPTED)
    monkeypatch.setattr("sys.argv", ["skald", command])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().err
    assert said.startswith("Interrupted.")
    assert (PHRASE in said) == continues


@pytest.mark.parametrize("command", ["compare", "lattice", "lattice --front", "hierarchy show --column sex"])
def test_a_command_looks_at_its_place_before_it_counts(direct: CommandLine, tmp_path: Path, command: str) -> None:
    name, *options = command.split()
    people_job(tmp_path, people(40))
    (tmp_path / "taken").write_text("in the way")
    suffix = "" if name == "compare" else ".html" if "--front" in options else ".svg"
    (tmp_path / f"folder{suffix}").mkdir()
    # What a command tells its user alone is not put where releases are handed on.
    for place in (f"taken/figures{suffix}", f"releases/figures{suffix}", *([f"folder{suffix}"] if suffix else [])):
        done = direct(name, *(options[:1] if name == "hierarchy" else []), "job.yaml", *options[name == "hierarchy" :], "--to", place)
        assert done.returncode == 2
        assert f"Nothing can be written at '{place.partition('/')[0]}" in done.stderr
    assert not (tmp_path / ".skald").exists()


@pytest.mark.parametrize("command", ["lattice", "lattice --front", "hierarchy show --column sex"])
def test_a_picture_goes_into_no_file_that_is_called_another_kind(direct: CommandLine, tmp_path: Path, command: str) -> None:
    name, *options = command.split()
    suffix = ".html" if "--front" in options else ".svg"
    # There is no job: what a file is called is looked at before anything is read.
    done = direct(name, *(options[:1] if name == "hierarchy" else []), "none.yaml", *options[name == "hierarchy" :], "--to", "x.png")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"ends with {suffix}" in done.stderr
    assert not (tmp_path / "x.png").exists()


def test_a_report_looks_at_its_place_before_it_is_made(direct: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("in the way")
    assert "Nothing can be written at 'taken'" in direct("report", "releases/none", "--to", "taken").stderr


def test_a_picture_makes_the_folder_that_it_goes_to(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, people(40))
    assert direct("hierarchy", "show", "job.yaml", "--column", "sex", "--to", "new/sex.svg").returncode == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["sex.svg"]


def test_a_comparison_that_cannot_begin_leaves_no_folder(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, people(40), privacy={"k": 41})
    assert direct("compare", "job.yaml", "--methods", "canon", "--to", "new/figures", "--set", "source.path=none").returncode == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("options", "continues"), [((), True), (("--scratch",), False)])
def test_a_run_says_that_it_continues_unless_its_folder_goes_with_it(
    direct: CommandLine, tmp_path: Path, options: tuple[str, ...], continues: bool
) -> None:
    people_job(tmp_path, people(40))
    (tmp_path / "releases").write_text("in the way")
    done = direct("run", "job.yaml", *options)
    assert done.returncode == 2
    assert "releases' cannot be written" in done.stderr
    assert (CONTINUES in done.stderr) == continues


def test_python_does_not_promise_what_only_commands_keep(tmp_path: Path) -> None:
    job = people_job(tmp_path, people(40))
    (tmp_path / "releases").write_text("in the way")
    with pytest.raises(StorageError) as told:
        skald.run(job)
    assert PHRASE not in str(told.value)
