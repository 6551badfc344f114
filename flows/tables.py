"""Flow of several tables: one lattice over all, k over histories of persons (DESIGN.md, section 13)."""

from schemas.relational.tables_job import TablesJob
from tasks.counting.repeats import note_spellings_of_persons
from tasks.engine.flows import as_tables_flow
from tasks.relational.making.chosen_classes import choose_release
from tasks.relational.making.linking import check_relations, link_rows
from tasks.relational.making.profiles import align_rows
from tasks.relational.making.published_values import measure_untreated_tables
from tasks.relational.making.reading import TableSet, check_linking_columns, encode_rows, open_tables, read_tables
from tasks.relational.making.writing import write_tables
from tasks.relational.publication import PublishedTables, publish_tables, recall_tables, tables_release_id


@as_tables_flow
def tables(job: TablesJob) -> PublishedTables:
    """Run a job of several tables, and return its verified and published release.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    with open_tables(job) as run:
        with run.phase("source"):
            sources = read_tables(run, job)
            check_linking_columns(job, sources)
            release = tables_release_id(run, job, sources)
            known = recall_tables(run, release, sources)
        if known:
            return known
        with run.phase("phase 1: rows"):
            carried = TableSet(run, job, {name: encode_rows(source) for name, source in sources.items()})
            check_relations(carried)
            linked = link_rows(carried)
            note_spellings_of_persons(run, sources[job.tree.unit].source, job.tables[job.tree.unit].key)
        with run.phase("columns"):
            measure_untreated_tables(linked)
        # Not before data and job are found to fit: a token that is given stays given.
        linked = linked.with_tokens()
        release = tables_release_id(run, job, linked.sources)
        with run.phase("phase 2: histories"):
            outcome, released = choose_release(align_rows(linked), release)
        with run.phase("phase 3: tables"):
            written = write_tables(released)
        return publish_tables(released, outcome, written)
