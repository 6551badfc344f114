"""Names are shown as they are: none is markup to Rich, and none a command to the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.terminal.screen import NameTable, Screen
from schemas.errors.base import SkaldError
from tests.conftest import CommandLine

STRANGE = ["a[/b]", "[red]age", ":smile:", "x\x1b[2Jy", "one\ntwo"]
SHOWN = ["a[/b]", "[red]age", ":smile:", "x\\x1b[2Jy", "one\\ntwo"]


@pytest.mark.ci
def test_plan_run_verify_and_utility_show_columns_by_their_names(direct: CommandLine, tmp_path: Path) -> None:
    table = pa.table({name: [number % 3 for number in range(60)] for name in STRANGE})
    pq.write_table(table, tmp_path / "table.parquet")
    job = {
        "version": 1, "name": "strange", "memory": "256MB", "source": {"path": "table.parquet"}, "target": "out",
        "columns": {"person": "none", "quasi_identifiers": [{"name": name, "hierarchy": {"widths": [2]}} for name in STRANGE]},
        "privacy": {"k": 5}, "method": {"name": "skald"},
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    planned = direct("plan", "job.yaml")
    ran = direct("run", "job.yaml")
    [release] = [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    for done in (planned, ran, direct("verify", str(release), "--job", "job.yaml"), direct("utility", str(release), "--job", "job.yaml")):
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
    for shown in SHOWN:
        assert shown in planned.stdout
        assert shown in ran.stdout


@pytest.mark.parametrize(("name", "shown"), list(zip(STRANGE, SHOWN, strict=True)))
def test_a_cell_is_the_name(name: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = NameTable("column", box=None)
    table.add_row(name)
    Screen().print(table)
    assert capsys.readouterr().out.split("\n")[1].strip() == shown


def test_a_message_shows_what_a_terminal_would_do() -> None:
    assert str(SkaldError("Column 'a\x1b[2J\u202eb' is missing:\n  - so")) == "Column 'a\\x1b[2J\\u202eb' is missing:\n  - so"
