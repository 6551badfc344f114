"""Loops that were compiled once are found by every run after."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.compiling.compiled import report_compiling
from flows.compiling_notes import LONG_LOOPS, compiling_said
from tests.conftest import Anonymise, CommandLine
from tests.jobs import CSV_TYPES, JOB, digests, people, people_job
from tests.places import ROOT

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


PERSONS = {**JOB["columns"], "identifiers": [], "person": "person"}


@pytest.mark.ci
@pytest.mark.parametrize("method", ["skald", "mondrian"])
@pytest.mark.parametrize("parts", [{}, {"privacy": {"k": 4, "l": {"disease": {"distinct": 2}}}}, {"columns": PERSONS}])
def test_what_small_arrays_publish_is_what_loops_publish(
    anonymise: Anonymise, direct: CommandLine, method: str, parts: dict[str, Any]
) -> None:
    """In this process loops are compiled; a command begins with arrays."""
    job = people_job(direct.folder, people(300), files=2, **parts, method={"name": method})
    done = direct.process("run", "job.yaml", "--set", "target=other", "--set", "work=apart")
    assert done.returncode == 0, done.stderr
    assert digests(anonymise(job).folder) == digests(next((direct.folder / "other").glob("*/")))


@pytest.mark.ci
@pytest.mark.parametrize("source", [{}, {"path": "people.csv", "types": CSV_TYPES}])
def test_a_small_table_is_published_by_skald_without_numba(direct: CommandLine, tmp_path: Path, source: dict[str, Any]) -> None:
    job = people_job(direct.folder, people(300), **({"source": source} if source else {}))
    pl.read_parquet(direct.folder / "people" / "*.parquet").write_csv(job.parent / "people.csv")
    command = [sys.executable, "-X", "importtime", "-m", "flows.cli", "run", str(job), "--direct"]
    done = direct.ended(command, NUMBA_CACHE_DIR=str(tmp_path / "loops"))
    assert done.returncode == 0, done.stderr
    assert "Compiling" not in done.stderr
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "duckdb" in modules
    assert "numba" not in modules
    assert not list((tmp_path / "loops").rglob("*.nbi"))


@pytest.mark.slow
def test_a_first_run_says_once_that_it_compiles_and_a_later_one_does_not(direct: CommandLine, tmp_path: Path) -> None:
    people_job(direct.folder, people(300), method={"name": "canon"})
    kept = str(tmp_path / "loops")
    first, second = (direct.process("run", "job.yaml", "--set", f"target={name}", NUMBA_CACHE_DIR=kept) for name in ("one", "two"))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert [done.stderr.count("Compiling loops, once") for done in (first, second)] == [1, 0]
    assert [done.stderr.count("about") for done in (first, second)] == [0, 0]


def test_what_is_said_of_compiling_is_said_once_and_of_what_is_compiled() -> None:
    said: list[str] = []
    with compiling_said(said.append):
        assert said == []
        for module in ("core.columns.kernels", "core.mondrian.cuts", "core.histograms.kernels", "core.mondrian.cuts"):
            report_compiling(module)
    report_compiling("core.privacy.refusals")
    assert said == ["Compiling loops, once.", "Compiling the loop that cuts classes, once: about 10 s."]


@pytest.mark.parametrize("module", LONG_LOOPS)
def test_long_loops_are_of_modules_that_are_there(module: str) -> None:
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
