"""The command line: what it prints where, how it ends, what it touches, and what it leaves alone."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from flows import cli
from tasks.source.listing import file_stat
from tasks.store.keys import json_with_digest, values_with_digest
from tests.conftest import Anonymise, CommandLine, snapshot
from tests.jobs import data_files, digests, job_of, people, people_job, released, write_job
from tests.patience import SECONDS

TABLE = people(120)
HEAVY = {"prefect", "duckdb", "polars", "pandera", "pyarrow", "numpy", "numba", "faker"}
UNUSED = {"cryptography", "sklearn", "polars", "prefect", "fsspec", "openlineage", "distributed", "starlette", "faker"}
LOADED = """
import sys
from flows import cli
try:
    cli.main()
finally:
    print("IMPORTED", *sorted(sys.modules), file=sys.stderr)
"""

SERVED = """
import sys, threading, time
from typing import Annotated
from flows.loading import run_and_exit
def serve():
    from pydantic import AfterValidator, TypeAdapter
    waited = TypeAdapter(Annotated[int, AfterValidator(lambda value: time.sleep(0.0001) or value)])
    while True:
        waited.validate_python(1)
def main():
    import prefect
    for _ in range(2):
        threading.Thread(target=serve, daemon=True).start()
    time.sleep(0.2)
    print("published")
    sys.exit(3)
run_and_exit(main)
"""


def release(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


def loaded(skald: CommandLine, *arguments: object) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run a command and return which packages its process imported."""
    done = skald.ended([sys.executable, "-c", LOADED, *map(str, arguments)])
    return done, {name.split(".")[0] for name in done.stderr.split("IMPORTED")[-1].split()}


def with_terminal(skald: CommandLine, *arguments: object) -> tuple[int, str, str]:
    """Run a command whose standard error is a terminal; return exit code, standard output and what the terminal got."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 4096):
                seen.append(part)
        except OSError:  # Linux says so when the other end closes
            return

    process = subprocess.Popen(skald.command(*arguments), **skald.options(TERM="xterm"), stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=SECONDS)
    reader.join()
    os.close(ours)
    return process.returncode, out, b"".join(seen).decode()


@pytest.mark.slow
@pytest.mark.promise
def test_json_is_all_of_standard_output_and_progress_goes_to_the_terminal_on_standard_error(skald: CommandLine) -> None:
    people_job(skald.folder, TABLE)
    code, out, terminal = with_terminal(skald, "run", "job.yaml", "--json")
    assert code == 0, terminal
    manifest = json.loads(out)
    assert manifest == json.loads((release(skald.folder) / "manifest.json").read_text())
    assert manifest["release"] == release(skald.folder).name
    for phase in ("phase 1  count domains", "phase 2  count cells", "phase 2  search lattice", "phase 3  write release"):
        assert phase in terminal
    assert (skald.folder / ".skald" / "people" / "results").is_dir() == (skald.mode == "prefect")
    again = skald.process("run", "job.yaml")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("Already published: the same job on the same data. No new release was made.")


@pytest.mark.ci
def test_a_run_says_what_it_made_and_nothing_on_standard_error_where_that_is_no_terminal(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE, columns=job_of()["columns"] | {"insensitive": [], "withheld": ["note", "score", "visits"]})
    done = direct.process("run", "job.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert str(release(direct.folder)) in done.stdout.replace("\n", "")
    assert "Already published" not in done.stdout
    again = direct("run", "job.yaml", "--json")
    assert (again.returncode, again.stderr) == (0, "")
    assert json.loads(again.stdout) == json.loads((release(direct.folder) / "manifest.json").read_text())


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.slow
@pytest.mark.promise
def test_nothing_is_written_outside_the_work_folder_the_target_and_prefects_home(skald: CommandLine) -> None:
    folder = skald.folder
    people_job(folder, TABLE)
    (folder / "temporary").mkdir()
    assert skald.home.is_dir()
    before = everything(folder)
    state = snapshot(folder / "people")
    allowed = (".skald", "releases", *(["home/.cache/skald/prefect"] if skald.mode == "prefect" else []))
    made = [["run", "job.yaml"], ["run", "job.yaml", "--set", "privacy.k=200"]]
    if skald.mode == "direct":
        made += [["plan", "job.yaml"], ["verify", "RELEASE", "--job", "job.yaml"], ["clean", "job.yaml"]]
    for command, code in zip(made, [0, 3, 0, 0, 0], strict=False):
        arguments = [release(folder) if part == "RELEASE" else part for part in command]
        run = skald.process if command[0] == "run" else skald
        assert run(*arguments, TMPDIR=str(folder / "temporary")).returncode == code
        new = everything(folder) - before
        assert not [path for path in new if not path.startswith(allowed)]
        assert [path for path in new if path.startswith(".skald")] or "clean" in command
    assert snapshot(folder / "people") == state


@pytest.mark.ci
def test_output_that_cannot_be_written_is_an_error_with_its_reason(direct: CommandLine) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(direct.command("schema"), **direct.options(), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "'a file or standard output' cannot be written (No space left on device).\n")
    closed = subprocess.run(
        ["sh", "-c", f"{shlex.join(direct.command('schema'))} >&-"], **direct.options(), capture_output=True, check=False
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.promise
def test_a_release_that_cannot_be_told_of_is_said_to_be_published(direct: CommandLine) -> None:
    command = direct.command("run", people_job(direct.folder))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, **direct.options(), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "is published, verified and whole" in done.stderr
    assert (direct.folder / "releases" / "CURRENT").read_text().strip() in done.stderr
    assert direct.process("run", direct.folder / "job.yaml").returncode == 0


@pytest.mark.ci
def test_help_imports_nothing_heavy(direct: CommandLine) -> None:
    done, modules = loaded(direct, "--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("run", "plan", "verify", "clean", "make-data"))
    assert not modules & HEAVY
    for command in ("run", "plan", "verify", "clean", "make-data"):
        done, modules = loaded(direct, command, "--help")
        assert done.returncode == 0
        assert not modules & HEAVY


@pytest.mark.ci
def test_a_run_loads_nothing_that_it_makes_no_use_of(direct: CommandLine, tmp_path: Path) -> None:
    # pandas and hypothesis are taken along by others wherever they are installed. SciPy comes with the compiler, which tests at work beside
    # this one may leave something to do.
    job = people_job(tmp_path, TABLE)
    assert direct("run", job).returncode == 0
    done = direct.ended([sys.executable, "-X", "importtime", "-m", "flows.cli", "run", str(job), "--set", "privacy.k=4", "--direct"])
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert done.returncode == 0
    assert "duckdb" in modules
    assert not modules & {"pandas.core", "hypothesis.core", "polars", "pandera", "prefect", "faker", "fsspec"}


@pytest.mark.slow
@pytest.mark.promise
def test_a_run_whose_loops_are_compiled_does_not_load_what_only_the_compiler_needs(direct: CommandLine, tmp_path: Path) -> None:
    """With a cache of its own: what others compile meanwhile leaves nothing to do here."""
    # The same job twice, each in a folder of its own: the second does whatever the first one did.
    first, second = (people_job(tmp_path / name, TABLE, method={"name": "canon"}) for name in ("first", "second"))
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "loops")}
    compiled = direct.process("run", first, **cache)
    assert compiled.returncode == 0, compiled.stderr
    command = [sys.executable, "-X", "importtime", "-m", "flows.cli", "run", str(second), "--direct"]
    done = direct.ended(command, **cache)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert done.returncode == 0
    assert list((tmp_path / "loops").rglob("*.nbi"))
    assert "numba" in modules
    assert "scipy.linalg" not in modules


@pytest.mark.parametrize(
    "arguments", [["rum", "job.yaml"], ["run"], ["run", "job.yaml", "--jsn"], ["run", "job.yaml", "--set"], []], ids=str
)
def test_a_wrong_command_ends_with_two(direct: CommandLine, arguments: list[str]) -> None:
    done = direct(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not done.stdout or not arguments


FAULTS = {
    "job": (["--set", "privacy.kk=3"], "privacy.kk"),
    "hierarchy": (["--set", "columns.quasi_identifiers.4.hierarchy.csv=nowhere.csv"], "nowhere.csv"),
    "source": (["--set", "source.path=peple/*.parquet"], "No file matches 'peple/*.parquet'."),
}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_job_and_a_missing_source_are_found_before_prefect_is_imported(prefect: CommandLine, fault: str) -> None:
    people_job(prefect.folder, TABLE)
    settings, sentence = FAULTS[fault]
    done, modules = loaded(prefect, "run", "job.yaml", *settings)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "prefect" not in modules
    assert not (prefect.folder / ".skald").exists()


@pytest.mark.ci
def test_a_small_run_loads_nothing_that_it_does_not_use(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    done, modules = loaded(direct, "run", "job.yaml", "--direct")
    assert done.returncode == 0, done.stderr
    assert modules & UNUSED == set()


@pytest.mark.slow
@pytest.mark.promise
def test_a_release_that_is_published_is_recognised_before_prefect_is_imported(prefect: CommandLine, anonymise: Anonymise) -> None:
    anonymise(people_job(prefect.folder, TABLE))
    made = snapshot(prefect.folder / "releases" / release(prefect.folder).name)
    done, modules = loaded(prefect, "run", "job.yaml", "--json")
    assert done.returncode == 0
    assert "prefect" not in modules
    assert json.loads(done.stdout)["release"] == release(prefect.folder).name
    assert snapshot(release(prefect.folder)) == made
    data_files(release(prefect.folder))[0].unlink()
    damaged, modules = loaded(prefect, "run", "job.yaml")
    assert damaged.returncode == 2
    assert "missing or altered" in damaged.stderr
    assert "prefect" not in modules


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("url", ["http://user:secret@127.0.0.1:9/api", "nonsense"])
def test_a_configured_server_that_does_not_answer_is_named_in_one_sentence(prefect: CommandLine, url: str) -> None:
    people_job(prefect.folder, TABLE)
    done = prefect("run", "job.yaml", PREFECT_API_URL=url)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    host = "127.0.0.1:9" if "http" in url else "PREFECT_API_URL"
    assert f"Prefect's server at '{host}' cannot be used (nothing answers there)" in done.stderr
    assert "Start it, or unset PREFECT_API_URL" in done.stderr
    assert "--direct" in done.stderr
    assert "secret" not in done.stderr
    assert not (prefect.folder / "releases").exists()
    if "http" in url:
        assert prefect.here("run", "job.yaml", "--direct", PREFECT_API_URL=url).returncode == 0


@pytest.mark.ci
@pytest.mark.slow_under_prefect
def test_an_interrupt_says_so_and_the_same_command_continues(skald: CommandLine) -> None:
    people_job(skald.folder, people(1200))
    settings = ("--set", "chunk_rows=20")
    stopped = skald.signalled(signal.SIGINT, "domains/*.record", "run", "job.yaml", *settings)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr == "Interrupted. What is finished stays, and the same command continues from there.\n"
    assert not (skald.folder / "releases").exists()
    assert skald("run", "job.yaml", *settings).returncode == 0


class Panic(BaseException):
    """As Polars raises it: no Exception, and its text may hold a cell value."""


@pytest.mark.parametrize("error", [Panic("a cell value"), ValueError("a cell value")], ids=lambda error: type(error).__name__)
def test_a_fault_of_ours_ends_in_one_sentence_without_its_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    def app(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (1, "")
    assert err.startswith(f"Internal error ({type(error).__name__} at test_command_line.py:")
    assert len(err.splitlines()) == 1
    assert "a cell value" not in err


@pytest.mark.ci
def test_exit_codes_of_a_run_and_of_a_verification(direct: CommandLine) -> None:
    folder = direct.folder
    people_job(folder, TABLE)
    assert direct("run", "job.yaml").returncode == 0
    assert direct.process("run", "nowhere.yaml").returncode == 2
    assert direct.process("run", "job.yaml", "--set", "privacy.k=121").returncode == 3
    path = data_files(release(folder))[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    tampered = direct("verify", release(folder), "--job", "job.yaml")
    assert (tampered.returncode, tampered.stdout) == (4, "")
    assert "1 data file altered since publication" in tampered.stderr


def test_plan_touches_no_target_and_once_counted_reads_only_metadata_and_writes_nothing(direct: CommandLine) -> None:
    folder = direct.folder
    people_job(folder, TABLE)
    first = direct("plan", "job.yaml", "--json")
    # A first run on a machine says that it compiles.
    assert (first.returncode, [line for line in first.stderr.splitlines() if not line.startswith("Compiling ")]) == (0, [])
    assert everything(folder) - {"home"} <= {"job.yaml", "smoker.csv", "people", "people/000.parquet"} | {
        path for path in everything(folder) if path.startswith(".skald")
    }
    source = folder / "people" / "000.parquet"
    state, metadata = source.stat(), pq.read_metadata(source)
    with source.open("r+b") as file:  # all that is not the footer
        file.seek(4)
        file.write(bytes(state.st_size - metadata.serialized_size - 12))
    # As if it were at rest: its digest is believed as long as its size, times and inode are those that are kept with it.
    memo = folder / ".skald" / "people" / "artifacts" / "digests.json"
    [[name, [digest, _]]] = values_with_digest(memo).items()
    memo.write_text(json_with_digest({name: [digest, file_stat(source)]}))
    work = snapshot(folder / ".skald" / "people" / "artifacts")
    second = direct("plan", "job.yaml", "--json")
    assert second.returncode == 0, second.stderr
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    for scanned in ("domains_to_scan", "histograms_to_scan"):
        assert (one.pop(scanned), two.pop(scanned)) == (1, 0)
    assert one == two
    after = snapshot(folder / ".skald" / "people" / "artifacts")
    assert {path: state for path, state in after.items() if path != "digests.json"} == {
        path: state for path, state in work.items() if path != "digests.json"
    }
    assert not (folder / "releases").exists()


@pytest.mark.ci
def test_plan_tells_what_the_run_then_does(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    plan = json.loads(direct("plan", "job.yaml", "--json").stdout)
    assert (plan["records"], plan["files"], plan["chunks"], plan["exists"]) == (120, 1, 1, False)
    values = {name: len(TABLE[name].drop_null().unique()) for name in ("sex", "age", "zip")}
    assert {qid["name"]: qid["values"] for qid in plan["qids"][:3]} == values
    manifest = json.loads(direct("run", "job.yaml", "--json").stdout)
    found = json.loads((direct.folder / ".skald/people/untold.json").read_text())["search"]
    assert (plan["release"], plan["root"], plan["nodes"]) == (manifest["release"], found["root"], manifest["search"]["nodes"])
    assert plan["cells"] >= found["root_cells"]
    again = direct("plan", "job.yaml").stdout
    assert "published already: a run would do nothing" in again
    assert "120 in 1 file, 1 chunk" in " ".join(again.split())
    assert "when it was published; skald verify recounts it" in direct("run", "job.yaml").stdout


@pytest.mark.ci
def test_clean_removes_the_artefacts_and_no_release(direct: CommandLine) -> None:
    folder = direct.folder
    people_job(folder, TABLE)
    assert direct("run", "job.yaml").returncode == 0
    published, source = snapshot(folder / "releases"), snapshot(folder / "people")
    cleaned = direct("clean", "job.yaml")
    assert (cleaned.returncode, cleaned.stderr) == (0, "")
    assert cleaned.stdout.startswith("Removed ")
    assert not (folder / ".skald" / "people").exists()
    assert (snapshot(folder / "releases"), snapshot(folder / "people")) == (published, source)
    assert direct("clean", "job.yaml").stdout == "There are no artefacts.\n"


def test_make_data_writes_the_records_that_it_says(direct: CommandLine) -> None:
    made = direct("make-data", "medical", "--rows", "1000", "--out", "some", "--files", "3", "--seed", "5")
    assert (made.returncode, made.stdout) == (0, "1,000 records in 3 files in some\n")
    files = sorted((direct.folder / "some").iterdir())
    assert sum(len(pl.read_parquet(path)) for path in files) == 1000
    assert len(files) == 3
    assert direct("make-data", "medical", "--rows", "1", "--out", "one").stdout == "1 record in 1 file in one\n"
    direct("make-data", "medical", "--rows", "1000", "--out", "again", "--files", "3", "--seed", "5")
    assert [path.read_bytes() for path in files] == [path.read_bytes() for path in sorted((direct.folder / "again").iterdir())]


@pytest.mark.parametrize(("name", "there"), [("medical", "medical-00001.parquet"), ("hospital", "condition/part-00001.parquet")])
def test_make_data_writes_over_nothing(direct: CommandLine, name: str, there: str) -> None:
    for file in (there, "notes.txt"):
        (direct.folder / "some" / file).parent.mkdir(parents=True, exist_ok=True)
        (direct.folder / "some" / file).write_text("mine")
    before = snapshot(direct.folder / "some")
    refused = direct("make-data", name, "--rows", "30", "--out", "some")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"'{there}' in 'some' exists and stays as it is" in refused.stderr
    assert snapshot(direct.folder / "some") == before
    (direct.folder / "some" / there).unlink()
    assert direct("make-data", name, "--rows", "30", "--out", "some").returncode == 0
    again = direct("make-data", name, "--rows", "30", "--out", "some")
    assert (again.returncode, there in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["medicall", "--rows", "10"], "(did you mean 'medical'?)"),
        (["medical", "--rows", "0"], "1 to 999,999,999"),
        (["medical", "--rows", "2", "--files", "3"], "give 1 to 2 files"),
    ],
)
def test_make_data_refuses_what_it_cannot_make(direct: CommandLine, arguments: list[str], sentence: str) -> None:
    refused = direct("make-data", *arguments, "--out", "some")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert sentence in refused.stderr
    assert not (direct.folder / "some").exists()


@pytest.mark.ci
def test_settings_of_the_command_line_replace_those_of_the_job_file(direct: CommandLine) -> None:
    write_job(direct.folder, job_of(source={"path": "nowhere.parquet"}, privacy={"k": 2}))
    people_job(direct.folder / "data", TABLE)
    settings = ["source.path=data/people/*.parquet", "privacy.k=9", "suppression.treatment=mask", "target=elsewhere"]
    done = direct("run", "job.yaml", "--json", *(part for setting in settings for part in ("--set", setting)))
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    folder = direct.folder / "elsewhere" / manifest["release"]
    assert manifest["privacy"]["k"] == 9
    assert manifest["min_class"] >= 9
    assert len(released(folder)) == manifest["released"]
    assert [file["sha256"] for file in manifest["files"]] == digests(folder)


CLOSED = [("2>&-", "schema", 0), (">&-", "--help", 0), ("2>&-", "run nothing-here.yaml", 2)]


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(("closed", "arguments", "code"), CLOSED)
def test_a_stream_that_is_closed_changes_no_exit_code(tmp_path: Path, closed: str, arguments: str, code: int) -> None:
    line, here = f"exec {sys.executable} -m flows.process {arguments} {closed}", os.environ | {"PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(["sh", "-c", line], check=False, env=here, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.ci
def test_threads_that_serve_until_the_end_change_no_exit_code(direct: CommandLine) -> None:
    """Prefect and Dask have such threads; in the middle of foreign code they end a process with a signal when Python takes itself apart."""
    for _ in range(2):
        done = direct.ended([sys.executable, "-c", SERVED])
        assert (done.returncode, done.stdout, done.stderr) == (3, "published\n", "")
