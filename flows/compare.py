"""Comparison of several methods on one job, each run in a process of its own and counted alike."""

from dataclasses import dataclass
from pathlib import Path

from schemas.job.job import load_job
from schemas.release.method_comparison import MethodComparison
from tasks.counting.repeats import find_repeating_identifiers, note_spellings_of_persons
from tasks.counting.source_domains import count_domains
from tasks.engine.flows import as_flow
from tasks.lattice.recodings import check_hierarchies
from tasks.source.extracts import open_run
from tasks.source.sources import check_unchanged, read_source
from tasks.store.files import check_takes_files
from tasks.utility.method_runs import MEASURED, MethodRequest, measure_methods
from tasks.utility.methods import comparison_folder, make_method_comparison, write_method_comparison


@dataclass(frozen=True)
class ComparedMethods:
    """A comparison of methods, and the folder to which its figures were written."""

    comparison: MethodComparison
    folder: Path


@as_flow
def compare_methods(
    job_file: Path,
    settings: tuple[str, ...] = (),
    methods: tuple[str, ...] = (),
    ks: tuple[int, ...] = (),
    to: Path | None = None,
) -> ComparedMethods:
    """Run methods on a job's own data without a release; write and return their comparison.

    Args:
        job_file: The YAML file; its own method keeps its options, others have their defaults.
        settings: Overrides such as ``suppression.limit=0``.
        methods: Their names; the order decides where all figures are the same.
        ks: Values of k; the job's own if left out.
        to: Folder for the figures; ``<target>-comparison`` if left out.

    Raises:
        SkaldError: with one sentence and the exit code of the command line. A method that cannot be run does not end the others.
    """
    job = load_job(job_file, settings)
    # Before hours of work: nothing of it could be shown.
    check_takes_files(folder := comparison_folder(job, to), job.target_path)
    check_hierarchies(job)
    asked = MethodRequest.of(job_file, settings, job)
    with open_run(job) as run:
        with run.phase("source"):
            source = read_source(run)
        with run.phase("domains"):
            domain = count_domains(run, source)
        with run.phase("methods"):
            runs = measure_methods(run, source, asked, methods, tuple(sorted(set(ks))) or (job.privacy.k,), domain)
        repeats = find_repeating_identifiers(run, source)
        note_spellings_of_persons(run, source)
        check_unchanged(source)
        comparison = make_method_comparison(job, source, runs, repeats)
        write_method_comparison(folder, comparison)
        # The next comparison measures anew.
        run.store.remove(MEASURED)
    return ComparedMethods(comparison, folder)
