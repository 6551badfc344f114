"""Chunks on Dask: the release of a direct run, whatever becomes of workers, and one sentence where there is nobody to work."""

from __future__ import annotations

import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from tests.conftest import Anonymise, CommandLine
from tests.flows.privacy.test_no_canary import CANARY, canary_job
from tests.jobs import PUBLISHED, digests, people, people_job
from tests.patience import SECONDS, until

CHUNKS = 24
TABLE = people(3000)
CHANGES = (f"chunk_rows={len(TABLE) // CHUNKS}", "rows_per_file=200", "privacy.k=4")
SETTINGS = [part for change in CHANGES for part in ("--set", change)]
IMPATIENT = """
import sys
from flows.loading import run_and_exit
def impatient():
    from flows.server.local_api import prepare_prefect
    prepare_prefect()
    from tasks.engine import dask_runner
    dask_runner.CONNECT_SECONDS, dask_runner.WORKER_SECONDS, dask_runner.CHECK_SECONDS = int(sys.argv.pop(1)), 1, 0.2
    from flows.cli import main
    main()
run_and_exit(impatient)
"""
WITHOUT_DASK = "import sys; sys.modules['prefect_dask'] = None; from flows.cli import main; main()"


class Cluster:
    """A Dask scheduler and its workers, each a process as a user would start it."""

    def __init__(self, skald: CommandLine, environment: Mapping[str, str]) -> None:
        self.skald, self.folder, self.environment = skald, skald.folder / "dask", environment
        self.folder.mkdir()
        self.address, self.processes = "", list[subprocess.Popen[bytes]]()

    def start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a scheduler or a worker; what it says goes to a file."""
        environment = self.skald.options(TMPDIR=str(self.folder), **self.environment)
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *options, "--no-dashboard"]
            process = subprocess.Popen(command, **environment, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def logs(self) -> str:
        """What all of them have said so far."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))


@contextmanager
def cluster_of(
    skald: CommandLine, workers: int, protocol: str = "tcp", options: Sequence[str] = (), **environment: str
) -> Iterator[Cluster]:
    """Run a cluster, its workers with an environment of their own, until the end of the block."""
    cluster = Cluster(skald, environment)
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            cluster.address = f"{protocol}://127.0.0.1:{probe.getsockname()[1]}"
        cluster.start("scheduler", "--host", cluster.address, "--protocol", protocol, *options)
        for _ in range(workers):
            cluster.start("worker", cluster.address, "--nthreads", "1", "--no-nanny", "--protocol", protocol, *options)
        until(lambda: cluster.logs().count("Register worker") == workers and "Scheduler at" in cluster.logs())
        yield cluster
    finally:
        for process in cluster.processes:
            process.kill()
            process.wait()


def made(folder: Path, *steps: str) -> dict[Path, tuple[int, int]]:
    """Finished artefacts with inode and time: another inode means that one was made again."""
    records = [record for step in steps for record in (folder / ".skald" / "people" / "artifacts" / step).glob("*.record")]
    files = [path for record in records for path in record.parent.glob(f"{record.stem}.*")]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def killed_in(folder: Path, step: str, worker: subprocess.Popen[bytes]) -> dict[Path, tuple[int, int]]:
    """Freeze a worker in the middle of a phase, let the others finish all that it does not hold, and kills it."""
    until(lambda: bool(made(folder, step)))
    worker.send_signal(signal.SIGSTOP)
    before, now = {}, made(folder, step)
    while before.keys() != now.keys():
        time.sleep(0.7)
        before, now = now, made(folder, step)
    worker.kill()
    return before


def release(folder: Path) -> list[str]:
    target = folder / "releases"
    return digests(target / (target / "CURRENT").read_text().strip())


@pytest.fixture(scope="module")
def undisturbed(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The data files of a direct run."""
    return digests(anonymise(people_job(tmp_path_factory.mktemp("direct"), TABLE), *CHANGES).folder)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [["histograms"], ["domains", "runs"]], ids=["one of two", "all of three but one"])
def test_a_worker_killed_in_the_middle_of_a_phase_costs_its_chunks_only(
    prefect: CommandLine, undisturbed: list[str], steps: Sequence[str]
) -> None:
    people_job(prefect.folder, TABLE)
    with cluster_of(prefect, len(steps) + 1) as cluster:
        process = prefect.start("run", "job.yaml", *SETTINGS, "--scheduler", cluster.address)
        kept = {}
        for step, worker in zip(steps, cluster.processes[1:], strict=False):
            finished = killed_in(prefect.folder, step, worker)
            assert 0 < CHUNKS - len(finished) / 2 <= CHUNKS / 3, "the worker was not killed in the middle, or held too much"
            kept |= finished
        _, said = process.communicate(timeout=SECONDS)
        assert (process.returncode, said) == (0, "")
        assert [worker.poll() for worker in cluster.processes[1:]] == [-signal.SIGKILL] * len(steps) + [None]
    assert release(prefect.folder) == undisturbed
    lasting = {path: state for path, state in kept.items() if path.parent.name != "runs"}
    assert lasting
    assert made(prefect.folder, "domains", "histograms").items() >= lasting.items()
    assert not (prefect.folder / ".skald" / "people" / "spill").exists()


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["dask", "processes"])
def test_workers_of_its_own_end_with_a_killed_run_and_the_same_command_continues(
    prefect: CommandLine, undisturbed: list[str], runner: str
) -> None:
    people_job(prefect.folder, TABLE)
    process = prefect.start("run", "job.yaml", *SETTINGS, "--runner", runner)
    until(lambda: bool(made(prefect.folder, "domains")))
    workers = [child for child in psutil.Process(process.pid).children(recursive=True) if "spawn_main" in " ".join(child.cmdline())]
    assert len(workers) == 2
    process.kill()
    process.communicate()
    assert not psutil.wait_procs(workers, timeout=SECONDS)[1]
    assert not (prefect.folder / "releases").exists()
    kept = made(prefect.folder, "domains")
    done = prefect("run", "job.yaml", *SETTINGS, SKALD_RUNNER=runner)
    assert (done.returncode, done.stderr) == (0, "")
    assert release(prefect.folder) == undisturbed
    assert made(prefect.folder, "domains").items() >= kept.items()


@pytest.mark.slow
@pytest.mark.promise
def test_a_process_that_dies_ends_the_run_in_one_sentence_and_the_same_command_continues(
    prefect: CommandLine, undisturbed: list[str]
) -> None:
    people_job(prefect.folder, TABLE)
    process = prefect.start("run", "job.yaml", *SETTINGS, "--runner", "processes")
    until(lambda: bool(made(prefect.folder, "domains")))
    for child in psutil.Process(process.pid).children(recursive=True):
        if "spawn_main" in " ".join(child.cmdline()):
            child.kill()
    _, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, said.count("\n")) == (2, 1)
    assert said.startswith("A process that worked at '")
    assert prefect("run", "job.yaml", *SETTINGS, "--runner", "processes").returncode == 0
    assert release(prefect.folder) == undisturbed


CERTIFICATES = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 2 -subj "/CN=authority" -keyout ca-key.pem -out ca.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=machine" -keyout key.pem -out request.pem
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -out cert.pem
"""


def certificates(folder: Path) -> None:
    """Make an authority and a certificate of it, as the documentation asks for."""
    subprocess.run(["sh", "-e"], input=CERTIFICATES, cwd=folder, check=True, capture_output=True, text=True)


@pytest.mark.slow
def test_over_tls_the_release_is_the_same_and_who_has_no_certificate_is_told(prefect: CommandLine, undisturbed: list[str]) -> None:
    people_job(prefect.folder, TABLE)
    certificates(prefect.folder)
    mine = {
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(prefect.folder / "ca.pem"),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": str(prefect.folder / "cert.pem"),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": str(prefect.folder / "key.pem"),
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
    }
    files = [f"--tls-{name}={prefect.folder / file}" for name, file in (("ca-file", "ca.pem"), ("cert", "cert.pem"), ("key", "key.pem"))]
    with cluster_of(prefect, 2, "tls", files) as cluster:
        refused = alone(prefect, IMPATIENT, "1", "run", "job.yaml", *SETTINGS, "--scheduler", cluster.address)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "wants a certificate, and Dask is configured with none" in refused.stderr
        plain = prefect("run", "job.yaml", *SETTINGS, "--scheduler", cluster.address.replace("tls", "tcp"), **mine)
        assert (plain.returncode, plain.stderr.count("\n")) == (2, 1)
        assert "is not encrypted, and Dask is configured to require that" in plain.stderr
        done = prefect("run", "job.yaml", *SETTINGS, "--scheduler", cluster.address, **mine)
        assert (done.returncode, done.stderr) == (0, "")
    assert release(prefect.folder) == undisturbed


@pytest.mark.slow
def test_workers_publish_the_values_that_the_flow_decided_on(prefect: CommandLine, anonymise: Anonymise, tmp_path: Path) -> None:
    alone = anonymise(people_job(tmp_path, TABLE, columns=PUBLISHED), *CHANGES)
    people_job(prefect.folder, TABLE, columns=PUBLISHED)
    done = prefect("run", "job.yaml", *SETTINGS, "--runner", "dask")
    assert (done.returncode, done.stderr) == (0, "")
    assert release(prefect.folder) == digests(alone.folder)


@pytest.mark.slow
def test_no_cell_value_is_sent_to_or_logged_by_a_cluster(prefect: CommandLine) -> None:
    """A run that fails on a worker; every byte to and from the scheduler is recorded."""
    canary_job(prefect.folder)
    damaged = prefect.folder / "people" / "001.parquet"
    column = pq.read_metadata(damaged).row_group(0).column(3)
    assert column.path_in_schema == "disease"
    with damaged.open("r+b") as file:
        # The end of the last page: a page whose header is damaged is refused before any worker is asked.
        file.seek(column.dictionary_page_offset + column.total_compressed_size - 40)
        file.write(b"?" * 40)
    with cluster_of(prefect, 1) as cluster, recorded(cluster.address) as (address, sent):
        done = prefect("run", "job.yaml", "--scheduler", address)
        said = cluster.logs() + done.stdout + done.stderr
    assert done.returncode == 2
    assert done.stderr.startswith(f"'{damaged}' cannot be read as parquet")
    assert b"canaries" in b"".join(sent)
    assert CANARY not in said
    assert CANARY.encode() not in b"".join(sent)


@contextmanager
def recorded(address: str) -> Iterator[tuple[str, list[bytes]]]:
    """Relay connections to an address, and keeps what passes."""
    host, port = address.removeprefix("tcp://").split(":")
    passed: list[bytes] = []

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(port))) as beyond:
                back = threading.Thread(target=self.copy, args=(beyond, self.request))
                back.start()
                self.copy(self.request, beyond)
                back.join()

        def copy(self, source: socket.socket, target: socket.socket) -> None:
            with suppress(OSError):
                while content := source.recv(65536):
                    passed.append(content)
                    target.sendall(content)
                target.shutdown(socket.SHUT_WR)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.server_address[1]}", passed
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("there", [[], ["scheduler"]], ids=["no scheduler", "no worker"])
def test_a_cluster_that_cannot_work_is_told_in_one_sentence(prefect: CommandLine, there: Sequence[str]) -> None:
    people_job(prefect.folder, TABLE)
    with cluster_of(prefect, 0) as cluster:
        if not there:
            cluster.processes[0].kill()
            cluster.processes[0].wait()
        done = alone(prefect, IMPATIENT, str(SECONDS if there else 1), "run", "job.yaml", "--scheduler", cluster.address)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    start = f"The Dask scheduler at '{cluster.address}' has had no worker for" if there else "No Dask scheduler answers at"
    assert done.stderr.startswith(start)
    assert not (prefect.folder / "releases").exists()


@pytest.mark.slow
def test_the_extra_that_is_missing_is_named_before_anything_begins(direct: CommandLine) -> None:
    people_job(direct.folder)
    done = alone(direct, WITHOUT_DASK, "run", "job.yaml", "--runner", "dask")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'skald[dask]'" in done.stderr
    assert not (direct.folder / ".skald").exists()


def alone(skald: CommandLine, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line after a few lines of the test's own."""
    return skald.ended([sys.executable, "-c", script, *arguments], **environment)
