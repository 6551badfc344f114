"""Memory: a million records stay below one gigabyte, Prefect and its API included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.demo import make_patients
from tests.patience import SECONDS
from tests.places import ROOT

CEILING = 1_000_000_000
CHILD = """
import sys
from flows import cli
from tasks.engine.peak_memory import peak_rss
try:
    cli.main()
except SystemExit as ended:
    assert not ended.code
finally:
    print("peak", peak_rss(), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_patients(tmp_path_factory.mktemp("million"), 1_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("options", [pytest.param([], marks=pytest.mark.slow), ["--direct"]], ids=["prefect", "direct"])
def test_a_million_records_need_at_most_one_gigabyte(job: Path, tmp_path: Path, options: list[str]) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "SKALD_DIRECT" and not name.startswith("PREFECT")}
    settings = ["--set", f"work={tmp_path / 'work'}", "--set", f"target={tmp_path / 'target'}"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "run", str(job), *settings, *options],
        env=inherited | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split("peak")[-1]) < CEILING
    assert (tmp_path / "target" / "CURRENT").exists()
