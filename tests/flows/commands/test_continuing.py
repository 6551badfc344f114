"""Only commands that go on where they were cut off say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import cli
from schemas.errors.base import without_continuation
from tasks.utility.method_runs import Ended, _sentence
from tests.conftest import CommandLine
from tests.jobs import people, people_job
from tests.places import ROOT

PHRASE = "the same command"


def sentences() -> Iterator[str]:
    """All messages of the errors that are built in one expression, with names and counts as ``x``."""
    constants = {"CONTINUES": ""}
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "schemas" / "errors").glob("*.py"))]
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in constants:
                constants["CONTINUES"] = ast.literal_eval(node.value)
    for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 1):
        [text] = node.args
        if ast.unparse(node.func) == "re.compile":
            continue
        if isinstance(text, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else ast.unparse(getattr(part, "value", part)) for part in text.values]
            yield "".join(constants["CONTINUES"] if part == "CONTINUES" else str(part) for part in parts)
        elif isinstance(text, ast.Constant):
            yield str(text.value)


def test_of_every_message_the_promise_to_continue_can_be_left_out() -> None:
    promising = [one for one in sentences() if "finished stays" in one and "continues" in one]
    assert len(promising) > 10
    for sentence in promising:
        left = without_continuation(sentence)
        assert PHRASE not in left
        assert "finished" not in left
        assert left.endswith((".", "show data."))
        assert len(left) > 20, sentence


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


def test_a_comparison_looks_at_its_folder_before_it_counts(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, people(40))
    (tmp_path / "taken").write_text("in the way")
    done = direct("compare", "job.yaml", "--to", "taken/figures")
    assert "The figures cannot go to 'taken/figures'" in done.stderr
    assert not (tmp_path / ".skald").exists()


def test_a_comparison_that_cannot_begin_leaves_no_folder(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, people(40), privacy={"k": 41})
    assert direct("compare", "job.yaml", "--methods", "canon", "--to", "new/figures", "--set", "source.path=none").returncode == 2
    assert not (tmp_path / "new").exists()


def test_a_compared_method_does_not_say_that_its_command_continues(tmp_path: Path) -> None:
    said = "The memory does not suffice. Nothing was published; what is finished stays, and the same command continues from there.\n"
    assert _sentence(Ended(2, "", said, 1.0, 1.0), tmp_path) == "The memory does not suffice."
