"""Settings of Prefect that Prefect cannot read end a run in one sentence, without their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.jobs import people, people_job

DAMAGED = {
    "no TOML": ('active = "ghost', ""),
    "no level of logging": ('active = "x"\n[profiles.x]\nPREFECT_LOGGING_LEVEL = "LOUD"\n', "'level'"),
    "no number": ('active = "x"\n[profiles.x]\nPREFECT_TASKS_DEFAULT_RETRIES = "LOUD"\n', "'PREFECT_TASK_DEFAULT_RETRIES'"),
}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", DAMAGED)
def test_settings_that_prefect_cannot_read_end_a_run_in_a_sentence(kind: str, tmp_path: Path) -> None:
    text, named = DAMAGED[kind]
    line = CommandLine("prefect", tmp_path)
    profiles = line.home / ".prefect" / "profiles.toml"
    profiles.parent.mkdir(parents=True)
    profiles.write_text(text)
    people_job(tmp_path, people(40))
    done = line("run", "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Prefect cannot read its settings")
    assert named in done.stderr
    assert "LOUD" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
