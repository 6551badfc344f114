"""Runs of a comparison of methods, each in its own process; releases are counted and removed.

The process is the command line itself, so that its CPU time and memory are those of ``skald run``, and its message is the one that a
user would read. Source files are shared. Everything that the run makes is in a scratch folder that is removed.

They run one after the other: concurrent runs would take each other's processors and memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any, Self

from pydantic import ValidationError

from core.compiling.compiled import compiled_kernels
from core.recount.labels.label_losses import DIGITS
from core.units.losses import c_avg, release_risk, without_masked
from schemas.errors.base import SkaldError
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.relational.manifest import TablesManifest, files_by_table
from schemas.relational.table_jobs import lasting_key, table_job, tables_with_qids, unit_job
from schemas.relational.tables_job import TablesJob, load_any_job
from schemas.release.manifest import Manifest
from schemas.release.method_comparison import Figures, MethodRun
from tasks.attacks.joined_tables import history_sizes
from tasks.composition.release_history import people_of_release
from tasks.counting.coding import Coding, load_coding
from tasks.engine.calls import Call
from tasks.engine.flows import SWITCH
from tasks.engine.progress import advance
from tasks.engine.runs import Run, versions
from tasks.engine.steps import run_step
from tasks.recount.recount import verify_release
from tasks.release.files import data_files
from tasks.store.files import private_folder
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store
from tasks.utility.side_by_side import published_penalties

ROOT = Path(str(sys.modules[__name__.partition(".")[0]].__file__)).resolve().parents[1]
"""The folder that holds this package: the checkout, or where packages are installed."""
MOST_REPEATED = 100.0
"""CPU seconds of a run above which it is not repeated for the few that its kernels took to compile."""


@dataclass(frozen=True)
class MethodRequest:
    """Job file and overrides of a method comparison, and what other methods need changed.

    Attributes:
        settings: The user's overrides of job keys.
        own: Name of the job's own method, whose options it keeps; others have their defaults.
        untreated: Overrides that publish no identifier as pseudonyms: those change no figure, and a comparison draws no tokens.
        treatment: Of suppressed records by methods that choose no levels, where the job's own needs levels.
        persons: How many a job of several tables has; None for a job of one.
        orphans: Rows of nobody, by table of such a job. A manifest states them from k on only.
    """

    job_file: Path
    settings: tuple[str, ...]
    own: str
    untreated: tuple[str, ...] = ()
    treatment: str | None = None
    persons: int | None = None
    orphans: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, job_file: Path, settings: tuple[str, ...], job: Job) -> Self:
        """Return the request to compare methods by a job file and the user's overrides."""
        plain_treatment = ("mask" if job.suppression.masks else "drop") if job.suppression.is_local else None
        columns = job.columns
        names = json.dumps([*columns.dropped, *(one.name for one in columns.pseudonyms)], ensure_ascii=False)
        untreated = (f"columns.identifiers={names}", "columns.linkable=[]") if columns.pseudonyms else ()
        return cls(job_file.absolute(), settings, job.method.name, untreated, plain_treatment)

    @classmethod
    def of_tables(cls, job_file: Path, settings: tuple[str, ...], job: TablesJob, persons: int, orphans: Mapping[str, int]) -> Self:
        """Return the request to compare methods by a job of several tables, of so many persons."""
        # A key without a treatment is no identifier of the job.
        names = json.dumps(job.tables[job.tree.unit].columns.dropped, ensure_ascii=False)
        untreated = (f"tables.{job.tree.unit}.columns.identifiers={names}",) if lasting_key(job) else ()
        return cls(job_file.absolute(), settings, job.method.name, untreated, persons=persons, orphans=orphans)

    def settings_of(self, method: str, k: int, scratch: Path) -> tuple[str, ...]:
        """Return the job overrides of one run, with work and target in the scratch folder."""
        other = () if method == self.own else (f"method={json.dumps({'name': method})}",)
        if self.treatment and not METHODS[method].one_level:
            other = (*other, f"suppression.treatment={self.treatment}", "suppression.rounds=0")
        # Settings are read as YAML, of which JSON is a part: a folder with a colon or a quote in its name stays one text.
        folders = (f"{key}={json.dumps(str(scratch / key), ensure_ascii=False)}" for key in ("work", "target"))
        # Ours come last, because of two settings of one key the later one stays.
        # What is counted and removed is held against no earlier release, which a job may insist on.
        return (*self.settings, *other, *self.untreated, f"privacy.k={k}", "artifacts=keep", "overlaps=warn", *folders)


@dataclass(frozen=True)
class Ended:
    """A process that ended: exit code, output, message, CPU and wall seconds."""

    code: int
    printed: str
    message: str
    cpu: float
    wall: float


def run_method(request: MethodRequest, method: str, k: int, domains: Sequence[Artifact], scratch: Path, store: Store) -> MethodRun:
    """Run a method in a new process; return its figures or failure, never raise; clear ``scratch``.

    Args:
        k: Least size of a class.
        domains: The domain table of the source; of several tables, that of each with quasi-identifiers.
        scratch: Folder of the run; removed before and after.
        store: Holds the domain.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    settings = request.settings_of(method, k, scratch)
    try:
        job = load_any_job(request.job_file, settings)
        private_folder(scratch)
        ended = _warm(request.job_file, settings, scratch)
        if ended.code:
            return MethodRun(method=method, k=k, failed=_sentence(ended, scratch), code=ended.code)
        if isinstance(job, TablesJob):
            figures = _figures_of_tables(job, request, ended, domains, store, scratch)
        else:
            figures = _figures(job, ended, load_coding(job, domains[0], store), scratch)
        return MethodRun(method=method, k=k, figures=figures)
    except SkaldError as error:
        return MethodRun(method=method, k=k, failed=_one_line(str(error), scratch), code=error.exit_code)
    except ValidationError:
        return MethodRun(method=method, k=k, failed="It printed no manifest.")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _warm(job_file: Path, settings: Sequence[str], scratch: Path) -> Ended:
    """Run a job, and again if kernels were compiled, so that neither its cost nor its message is of that."""
    before = compiled_kernels()
    ended = _run(job_file, settings, scratch)
    if ended.cpu > MOST_REPEATED or compiled_kernels() == before:
        return ended
    shutil.rmtree(scratch, ignore_errors=True)
    private_folder(scratch)
    return _run(job_file, settings, scratch)


def _run(job_file: Path, settings: Sequence[str], scratch: Path) -> Ended:
    options = [option for setting in settings for option in ("--set", setting)]
    # -P: a folder of the user's that is called flows would be taken for ours.
    command = [sys.executable, "-P", "-m", "flows.process", "run", str(job_file), "--scratch", "--direct", "--json", *options]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    # Into files: a pipe that nobody empties while its process is waited for would stop the process once it is full.
    printed, said = scratch / "printed", scratch / "said"
    start = time.perf_counter()
    with printed.open("wb") as output, said.open("wb") as errors:
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path, SWITCH: "1"}, stdout=output, stderr=errors)
        try:
            # The usage of this one process; RUSAGE_CHILDREN would add up all that this process ever started.
            _, status, usage = os.wait4(process.pid, 0)
            # Popen did not do the waiting; without the code it would wait again for a process that is gone.
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            # Ctrl+C too: a run that outlives its comparison would go on writing into a folder that is being removed.
            process.kill()
            process.wait()
            raise
    wall = time.perf_counter() - start
    texts = [file.read_text("utf-8", "replace") for file in (printed, said)]
    return Ended(process.returncode, texts[0], texts[1], usage.ru_utime + usage.ru_stime, wall)


def _sentence(ended: Ended, scratch: Path) -> str:
    if ended.code == -SIGKILL:
        return "The system ended its process, most likely for lack of memory."
    if ended.code < 0:
        return f"Its process was ended by signal {-ended.code}."
    return _one_line(ended.message, scratch) or f"It ended with exit code {ended.code}."


def _one_line(text: str, scratch: Path) -> str:
    # The folder is removed by the time that anybody reads the sentence.
    return " ".join(text.replace(str(scratch), "its folder").split())


def _figures(job: Job, ended: Ended, coding: Coding, scratch: Path) -> Figures:
    """Verify and count a release, by the same code for every method."""
    manifest = Manifest.model_validate_json(ended.printed)
    release = job.target_path / manifest.release
    recount, _ = verify_release(job, release, people_of_release(manifest.release, Store(job.work_path / "artifacts")))
    starred, masked = recount.fully_suppressed_units(manifest.masked)
    risk = release_risk(recount.unit_sizes, starred, manifest.suppressed, masked)
    sizes = without_masked(recount.sizes, recount.masked, manifest.masked)
    lost = published_penalties(job, coding, data_files(release), manifest.columns, manifest.levels_of_all, scratch / "spill")
    # Masked records are in the files, so that they are priced already.
    gcp = (lost / len(coding.domains) + manifest.suppressed - manifest.masked) / manifest.records
    return _figures_by_sizes(sizes, manifest.suppressed, risk, gcp, job.privacy.k, manifest.peak_rss, ended)


def _figures_of_tables(
    job: TablesJob, request: MethodRequest, ended: Ended, domains: Sequence[Artifact], store: Store, scratch: Path
) -> Figures:
    """Count the histories of a release of several tables, by the same code for every method.

    The GCP is that of all values of all tables, 1 for one that is not published; rows of nobody are no loss.
    """
    manifest = TablesManifest.model_validate_json(ended.printed)
    release = unit_job(job).target_path / manifest.release
    files = files_by_table(manifest.files, release, job.tables)
    sizes = history_sizes(job, files, spill := private_folder(scratch / "spill"), manifest.release)
    lost, values = 0.0, 0
    for name, domain in zip(tables_with_qids(job), domains, strict=True):
        one, of_table = manifest.tables[name], table_job(job, name)
        coding = load_coding(of_table, domain, store)
        levels = {qid: level for qid, level in one.levels.items() if level is not None}
        rows = coding.records - request.orphans.get(name, 0)
        lost += published_penalties(of_table, coding, files[name], {}, levels or None, spill) + (rows - one.released) * len(coding.domains)
        values += rows * len(coding.domains)
    suppressed = (request.persons or 0) - manifest.persons.released
    risk = release_risk(sizes, 0, suppressed, 0)
    return _figures_by_sizes(sizes, suppressed, risk, lost / values if values else 0.0, job.privacy.k, manifest.peak_rss, ended)


def _figures_by_sizes(
    sizes: Mapping[int, int], suppressed: int, risk: Mapping[str, Any], gcp: float, k: int, peak: int, ended: Ended
) -> Figures:
    """Return the figures of a release with so many classes of each size."""
    released = sum(size * classes for size, classes in sizes.items())
    return Figures(
        released=released,
        suppressed=suppressed,
        classes=int(risk["classes"]),
        min_class=int(risk["min_class"]),
        gcp=round(gcp, DIGITS),
        # What is suppressed could be any of the N, which is what DM charges for it.
        dm=sum(size * size * classes for size, classes in sizes.items()) + suppressed * (released + suppressed),
        # Of records or persons, whichever k counts.
        c_avg=c_avg(int(risk["records"]), int(risk["classes"]), k),
        prosecutor_max=risk["prosecutor_max"],
        prosecutor_mean=risk["prosecutor_mean"],
        share_above=risk["share_above"],
        cpu=ended.cpu,
        peak=peak,
        wall=ended.wall,
    )


MEASURED = "measured"
STEP = StepCode(MEASURED, __name__)
TABLES = "flows.tables"
"""The module of the flow of several tables, which imports what their methods are made of."""


def measure_methods(
    run: Run,
    of_job: str,
    inputs: str,
    request: MethodRequest,
    methods: Sequence[str],
    ks: Sequence[int],
    domains: Sequence[Artifact],
) -> list[MethodRun]:
    """Run every method at every k, unless measured before; return figures by k, then by method.

    Args:
        of_job: Digest of the job.
        inputs: Digest of its source.
        domains: As for ``run_method``.

    Returns:
        The runs by k, then in the order of the methods.
    """
    scratch, found = run.job.work_path / "comparison", []
    wanted = [(k, method) for k in ks for method in methods]
    advance("methods", 0, len(wanted))
    try:
        for done, (k, method) in enumerate(wanted, start=1):
            # A method is its flow, which runs in a process of its own; what counts its release is here.
            # Versions too: CPU time and memory are theirs, even where the release stays the same.
            module = METHODS[method].flow.module if request.persons is None else TABLES
            of_method = StepCode(method, module).key(of_job, inputs, versions(), k)
            key = STEP.key(of_method)
            call = Call(key, f"{method}, k = {k}", (request, method, k, domains, scratch, key, run.store))
            artifact = run_step(run, MEASURED, measure_method, call)
            found.append(run.store.read_model(artifact, MethodRun))
            advance("methods", done, len(wanted))
    finally:
        # It held raw values, so that not even Ctrl+C may leave it behind.
        shutil.rmtree(scratch, ignore_errors=True)
    return found


def measure_method(
    request: MethodRequest, method: str, k: int, domains: Sequence[Artifact], scratch: Path, key: Key, store: Store
) -> Artifact:
    """Return the artefact of one method's figures at one k, measured if missing."""

    def write(path: Path) -> int:
        path.write_text(run_method(request, method, k, domains, scratch, store).model_dump_json(), "utf-8")
        return 1

    return store.make(MEASURED, key, ".json", write)
