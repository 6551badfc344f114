"""Flow of several tables: one lattice over all, k over histories of persons (DESIGN.md, section 13)."""

from pathlib import Path

from schemas.reading.given_jobs import GivenJob
from schemas.relational.tables_job import load_tables_job
from tasks.engine.flows import as_tables_flow
from tasks.relational.making.checks import TableSet, check_relations, check_types
from tasks.relational.making.linking import link_rows
from tasks.relational.making.profiles import align_rows
from tasks.relational.making.reading import carry_rows, open_tables, read_tables
from tasks.relational.making.releasing import choose_release
from tasks.relational.making.writing import write_tables
from tasks.relational.publication import PublishedTables, publish_tables, recall_tables, tables_release_id


@as_tables_flow
def tables(job_file: Path | GivenJob, settings: tuple[str, ...] = ()) -> PublishedTables:
    """Run a job of several tables, from the job file to a verified release.

    Args:
        job_file: The YAML file, or what a program gives in its place.
        settings: Overrides such as ``privacy.k=10``.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    job = load_tables_job(job_file, settings)
    with open_tables(job) as run:
        with run.phase("source"):
            sources = read_tables(run, job)
            check_types(job, sources)
            release = tables_release_id(run, job, sources)
            known = recall_tables(run, release)
        if known:
            return known
        with run.phase("phase 1: rows"):
            carried = TableSet(run, job, {name: carry_rows(source) for name, source in sources.items()})
            check_relations(carried)
        with run.phase("phase 2: histories"):
            outcome, released = choose_release(align_rows(link_rows(carried)), release)
        with run.phase("phase 3: tables"):
            written = write_tables(released)
        return publish_tables(released, outcome, written)
