"""A source that changes while it is read is refused, and nothing of it is left behind under the name of what was not read."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from tests.command_line import CommandLine
from tests.jobs import CSV_TYPES, digests, people, people_job, write_csv
from tests.places import ROOT

pytestmark = pytest.mark.slow

TABLE, OTHER = people(900), people(900, seed=3)
SETTINGS = ("--set", "chunk_rows=200", "--set", "privacy.k=4")


def write_plain_parquet(path: Path, table: pa.Table) -> None:
    """Write numbers as they are, so that files of as many rows are of one size."""
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)


def write_arrow(path: Path, table: pa.Table) -> None:
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


KINDS: dict[str, tuple[dict[str, object], Callable[[Path, pa.Table], None]]] = {
    "parquet": ({"path": "source/a.parquet"}, lambda path, table: pq.write_table(table, path, row_group_size=100)),
    "csv": ({"path": "source/a.csv", "types": CSV_TYPES}, write_csv),
    "arrow": ({"path": "source/a.arrow"}, write_arrow),
}


@contextmanager
def stopped(line: CommandLine, pattern: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a command until a file like the pattern has its final name, and let it go on at the end of the block."""
    command = line.command_signalled(signal.SIGSTOP, pattern, *arguments)
    process = subprocess.Popen(command, **line.options(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), process.communicate()
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)


def released(folder: Path) -> list[str]:
    return digests(folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip())


def rewritten(path: Path, write: Callable[[Path, pa.Table], None]) -> None:
    write(path, OTHER.slice(0, 700))


def put_in_its_place(path: Path, write: Callable[[Path, pa.Table], None]) -> None:
    write(path.with_name("b" + path.suffix), OTHER)
    path.with_name("b" + path.suffix).replace(path)


def cut_short(path: Path, write: Callable[[Path, pa.Table], None]) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("change", "kind", "moment"),
    [
        (rewritten, "parquet", "digests.json"),
        (rewritten, "csv", "digests.json"),
        (put_in_its_place, "parquet", "domains/*.record"),
        (put_in_its_place, "csv", "digests.json"),
        (cut_short, "parquet", "domains/*.record"),
        (cut_short, "csv", "digests.json"),
    ],
)
def test_the_same_bytes_again_give_the_release_of_an_undisturbed_run(
    direct: CommandLine, tmp_path: Path, kind: str, moment: str, change: Callable[..., None]
) -> None:
    source, write = KINDS[kind]
    path = tmp_path / str(source["path"])
    people_job(tmp_path, source=source)
    path.parent.mkdir()
    write(path, TABLE)
    undisturbed = direct("run", "job.yaml", *SETTINGS, "--set", "work=other", "--set", "target=elsewhere")
    assert undisturbed.returncode == 0, undisturbed.stderr
    (tmp_path / "elsewhere").rename(tmp_path / "kept")
    with stopped(direct, moment, "run", "job.yaml", *SETTINGS) as process:
        change(path, write)
    said = process.communicate()[1]
    assert (process.returncode, "changed while it was being read" in said) == (2, True), said
    assert not list((tmp_path / "releases").glob("*"))
    other = direct("run", "job.yaml", *SETTINGS)
    if change is not cut_short:
        assert other.returncode == 0, other.stderr
        assert released(tmp_path) != digests(next((tmp_path / "kept").glob("people-*")))
    write(path, TABLE)
    again = direct("run", "job.yaml", *SETTINGS)
    assert again.returncode == 0, again.stderr
    assert released(tmp_path) == digests(next((tmp_path / "kept").glob("people-*")))


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_what_a_conversion_read_of_another_file_is_not_kept(direct: CommandLine, tmp_path: Path, kind: str) -> None:
    source, write = KINDS[kind]
    path = tmp_path / str(source["path"])
    people_job(tmp_path, source=source)
    path.parent.mkdir()
    write(path, TABLE)
    with stopped(direct, "digests.json", "run", "job.yaml") as process:
        write(path, OTHER)
    process.communicate()
    assert process.returncode == 2
    assert not [path for path in (tmp_path / ".skald" / "people" / "artifacts" / "converted").glob("*") if path.is_file()]


def test_a_rewrite_of_the_same_size_with_the_time_put_back_is_noticed_in_a_run_and_after_it(direct: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "people" / "000.parquet"
    numbers = [name for name in TABLE.column_names if name in {"age", "visits"}]
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 5, 10]}}], "insensitive": ["visits"]}
    people_job(tmp_path, columns=columns, suppression={"limit": 1})
    tables = [table.select(numbers).drop_null().slice(0, 700) for table in (TABLE, OTHER)]
    write_plain_parquet(path, tables[0])
    before = path.stat()

    def rewrite(table: pa.Table) -> None:
        write_plain_parquet(path, table)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)

    with stopped(direct, "histograms/*.record", "run", "job.yaml") as process:
        rewrite(tables[1])
    process.communicate()
    assert process.returncode == 2
    known = {}
    for number in (1, 0, 1):
        rewrite(tables[number])
        done = direct("run", "job.yaml")
        assert done.returncode == 0, done.stderr
        assert known.setdefault(number, released(tmp_path)) == released(tmp_path)
    assert known[0] != known[1]


CUT = """
import os, sys
from tasks.source import listing
from flows import cli
whole = listing.blake3
def cutting():
    digest = whole()
    class Cutting:
        digest_size, block_size = 32, 64
        def update(self, block):
            os.truncate("people/000.parquet", 1000)
            digest.update(block)
        hexdigest = digest.hexdigest
    return Cutting()
listing.blake3 = cutting
sys.argv[1:] = ["run", "job.yaml"]
cli.main()
"""


def test_a_file_that_is_cut_short_while_it_is_digested_is_refused_in_one_sentence(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path)
    path = tmp_path / "people" / "000.parquet"
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.truncate(50_000_000)
    died = direct.ended([sys.executable, "-c", CUT])
    assert (died.returncode, "changed while it was being read" in died.stderr) == (2, True), died.stderr
    path.write_bytes(whole)
    assert direct("run", "job.yaml").returncode == 0


def test_no_file_of_a_source_is_mapped_into_memory() -> None:
    """A file that is cut short while it is mapped ends the process with SIGBUS, and no sentence is said."""
    for path in (ROOT / "tasks" / "source").glob("*.py"):
        named = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not named & {"memory_map", "mmap", "update_mmap"}, path


@pytest.mark.promise
def test_one_changed_digit_among_the_digests_that_are_kept_is_noticed(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, files=2)
    assert direct("run", "job.yaml").returncode == 0
    memo = tmp_path / ".skald" / "people" / "artifacts" / "digests.json"
    text = memo.read_text()
    place = text.index('000.parquet": ["') + len('000.parquet": ["')
    memo.write_text(text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :])
    again = direct("run", "job.yaml")
    assert again.returncode == 0, again.stderr
    assert len(list((tmp_path / "releases").glob("people-*"))) == 1
