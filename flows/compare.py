"""Comparison of several methods on one job, each run in a process of its own and counted alike."""

from dataclasses import dataclass
from pathlib import Path

from schemas.job.job import Job, digest_of, job_digest
from schemas.relational.table_jobs import persons_job, tables_digest, tables_with_qids, unit_job
from schemas.relational.tables_job import TablesJob, load_any_job
from schemas.release.method_comparison import MethodComparison
from tasks.counting.repeats import find_repeating_identifiers, note_spellings_of_persons
from tasks.counting.source_domains import count_domains
from tasks.engine.flows import as_flow
from tasks.engine.runs import Run
from tasks.lattice.recodings import check_hierarchies
from tasks.relational.making.linking import check_relations, link_rows, orphans_by_table
from tasks.relational.making.reading import TableSet, check_linking_columns, encode_rows, open_tables, read_tables
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
    settings: tuple[str, ...],
    methods: tuple[str, ...],
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
    job = load_any_job(job_file, settings)
    one = unit_job(job) if isinstance(job, TablesJob) else job
    # Before hours of work: nothing of it could be shown.
    check_takes_files(folder := comparison_folder(one, to), one.target_path)
    asked_ks = tuple(sorted(set(ks))) or (job.privacy.k,)
    if isinstance(job, TablesJob):
        comparison = _compare_on_tables(job, job_file, settings, methods, asked_ks, folder)
    else:
        comparison = _compare_on_table(job, job_file, settings, methods, asked_ks, folder)
    return ComparedMethods(comparison, folder)


def _compare_on_table(
    job: Job, job_file: Path, settings: tuple[str, ...], methods: tuple[str, ...], ks: tuple[int, ...], folder: Path
) -> MethodComparison:
    check_hierarchies(job)
    asked = MethodRequest.of(job_file, settings, job)
    with open_run(job) as run:
        with run.phase("source"):
            source = read_source(run)
        with run.phase("domains"):
            domain = count_domains(run, source)
        with run.phase("methods"):
            runs = measure_methods(run, job_digest(job), source.digest, asked, methods, ks, [domain])
        repeats = find_repeating_identifiers(run, source)
        note_spellings_of_persons(run, source)
        check_unchanged(source)
        return _written(run, folder, make_method_comparison(job, source.digest, source.records, runs, repeats))


def _compare_on_tables(
    job: TablesJob, job_file: Path, settings: tuple[str, ...], methods: tuple[str, ...], ks: tuple[int, ...], folder: Path
) -> MethodComparison:
    with open_tables(job) as run:
        with run.phase("source"):
            tables = read_tables(run, job)
            check_linking_columns(job, tables)
        inputs = digest_of({name: table.source.digest for name, table in tables.items()})
        persons = tables[job.tree.unit].source.records
        with run.phase("domains"):
            domains = [count_domains(tables[name].run, tables[name].source) for name in tables_with_qids(job)]
        orphans = dict[str, int]()
        if job.orphans == "drop":
            with run.phase("rows"):
                orphans = _orphans(TableSet(run, job, {name: encode_rows(table) for name, table in tables.items()}))
        with run.phase("methods"):
            asked = MethodRequest.of_tables(job_file, settings, job, persons, orphans)
            runs = measure_methods(run, tables_digest(job), inputs, asked, methods, ks, domains)
        for table in tables.values():
            check_unchanged(table.source)
        return _written(run, folder, make_method_comparison(persons_job(job), inputs, persons, runs, tables=tuple(tables)))


def _orphans(carried: TableSet) -> dict[str, int]:
    """Return how many rows of each table are of nobody, which no manifest states of fewer than k."""
    check_relations(carried)
    return orphans_by_table(link_rows(carried))


def _written(run: Run, folder: Path, comparison: MethodComparison) -> MethodComparison:
    write_method_comparison(folder, comparison)
    # The next comparison measures anew.
    run.store.remove(MEASURED)
    return comparison
