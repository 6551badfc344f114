"""Loops that were compiled once are found by every run after."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.jobs import people, people_job

COMPILED = "from flows.compilation import compile_loops\nif __name__ == '__main__':\n    compile_loops(['{method}'])\n"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["clustering", "skald"])
def test_a_first_run_compiles_next_to_nothing_after_all_was_compiled(direct: CommandLine, tmp_path: Path, method: str) -> None:
    people_job(direct.folder, people(300))
    loops, program = tmp_path / "loops", tmp_path / "compile.py"
    program.write_text(COMPILED.format(method=method))
    assert direct.ended([sys.executable, str(program)], NUMBA_CACHE_DIR=str(loops)).returncode == 0
    made = {path.name for path in loops.rglob("*.nbc")}
    assert made
    done = direct.process("run", "job.yaml", "--set", f"method={{name: {method}}}", NUMBA_CACHE_DIR=str(loops))
    assert done.returncode == 0, done.stderr
    # Loops are of types: another table may need one of another.
    assert len({path.name for path in loops.rglob("*.nbc")} - made) <= 1


@pytest.mark.slow
def test_a_first_run_says_once_that_it_compiles_and_a_later_one_does_not(direct: CommandLine, tmp_path: Path) -> None:
    people_job(direct.folder, people(300))
    kept = str(tmp_path / "loops")
    first, second = (direct.process("run", "job.yaml", "--set", f"target={name}", NUMBA_CACHE_DIR=kept) for name in ("one", "two"))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert [done.stderr.count("Compiling the loops of method skald, once") for done in (first, second)] == [1, 0]
