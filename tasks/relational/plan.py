"""Plan of a run of several tables: rows, lattice, memory, rare histories and what it publishes."""

from __future__ import annotations

from core.relational.histories import failing_persons
from schemas.errors.base import PrivacyError, SkaldError
from schemas.errors.tables import LatticeSizeError
from schemas.job.identifiers import EXACT, treatment_sentence
from schemas.reading.model import FrozenModel
from schemas.relational.table_jobs import most_rows_of, unit_key_words
from schemas.relational.tables_job import TablesJob
from schemas.release.figures import PassedColumn
from tasks.counting.repeats import note_spellings_of_persons
from tasks.publication.target import job_target
from tasks.relational.making.chosen_classes import choose_release, penalties_of_rows
from tasks.relational.making.levels import history_numbers, lattice_of_tables, searched_lattice
from tasks.relational.making.linking import check_relations, link_rows
from tasks.relational.making.profiles import HistoryTables, align_rows
from tasks.relational.making.published_values import measure_untreated_tables
from tasks.relational.making.reading import TableSet, check_linking_columns, encode_rows, open_tables, read_tables
from tasks.relational.person_rows import PersonRows
from tasks.relational.publication import tables_release_id
from tasks.writing.pseudonyms import lacks_vault


class ExpectedTable(FrozenModel):
    """Rows that a run would publish, withhold or suppress of one table, with levels and loss.

    Attributes:
        released: Rows that would be published.
        withheld: Rows that would not, though their persons are.
        bounded: How many of these are beyond ``rows: {most: n}``, with what hangs from them.
        suppressed: Rows of persons who would be left out.
        levels: By quasi-identifier; null where rows have levels of their own.
        loss: Mean certainty penalty of a value, 1 for one that is not published; null without quasi-identifiers.
    """

    released: int
    withheld: int
    bounded: int
    suppressed: int
    levels: dict[str, int | None]
    loss: float | None


class ExpectedTables(FrozenModel):
    """Persons that a run would leave out, its loss, and the expected figures of each table.

    Attributes:
        left_out: Persons who would be left out.
        loss: Mean certainty penalty of a value, over all tables.
        tables: By name.
    """

    left_out: int
    loss: float
    tables: dict[str, ExpectedTable]


def expected_tables(given: HistoryTables, release: str) -> ExpectedTables:
    """Choose a release and return its expected figures by table; the choice is stored for the run."""
    released, lost, values = choose_release(given, release)[1], 0.0, 0
    people = PersonRows(released)
    published, gone, found = people.published, people.withheld(), {}
    for name in given.job.tables:
        whose = people.persons_of_rows(name)
        kept, rows, qids = published[whose], int((whose >= 0).sum()), len(given.tables[name].qids)
        out = kept & ~gone[name]
        here = float(penalties_of_rows(released, name)[out].sum()) + qids * (rows - int(out.sum()))
        found[name] = ExpectedTable(
            released=int(out.sum()),
            withheld=int((kept & ~out).sum()),
            bounded=people.count_beyond_bounds(name, kept),
            suppressed=rows - int(kept.sum()),
            levels=released.published_levels(name),
            loss=here / (rows * qids) if rows * qids else None,
        )
        lost, values = lost + here, values + rows * qids
    return ExpectedTables(left_out=given.persons - int(published.sum()), loss=lost / max(values, 1), tables=found)


class PlannedTable(FrozenModel):
    """Rows, files, parent, groups per level and column figures of one table in a plan.

    Attributes:
        rows: Of the source, in ``files``.
        hangs_from: The nearest table that it refers to; null for the unit.
        most_rows: Rows of a person at most, where the job bounds them.
        groups: Groups at each level, by quasi-identifier.
        published: How columns would be published that are no quasi-identifiers, in words, by column.
        passthrough: What was found of each column that would be published as it is.
    """

    rows: int
    files: int
    hangs_from: str | None
    most_rows: int | None
    groups: dict[str, tuple[int, ...]]
    published: dict[str, str]
    passthrough: dict[str, PassedColumn] = {}


class TablesPlan(FrozenModel):
    """What a run of several tables would publish or why it would be refused, with sizes and memory.

    Attributes:
        release: The id that the release would have; null where a run makes the vault that the id follows from.
        exists: Whether the release is published already.
        unit: The table with a row for each person, and how many ``persons`` it has.
        most_suppressed: Persons who may be left out.
        tables: By name.
        method: The algorithm.
        nodes: Nodes of the lattice of all tables; null where rows have levels of their own.
        below_k: Persons whose history as it is fewer than k share; null where it was not counted.
        expected: What the run would publish; null where that was not counted, or where it would be refused.
        refusal: Why the run would publish nothing, in its own words; null where it would.
        exit_code: With which the run would end for that; 0 where there is no refusal.
        memory: Bytes.
        pseudonyms: What the unit's key would be published as, in words, where its pseudonyms are those of other releases too.
        known_rows: Rows of a table that intruders know at most; null for all.
    """

    release: str | None
    exists: bool
    unit: str
    persons: int
    most_suppressed: int
    tables: dict[str, PlannedTable]
    method: str
    nodes: int | None
    below_k: int | None
    expected: ExpectedTables | None
    refusal: str | None
    exit_code: int
    memory: int
    pseudonyms: dict[str, str] = {}
    known_rows: int | None = None


def plan_tables(job: TablesJob, *, quick: bool = False) -> TablesPlan:
    """Return the plan of a job of several tables, counting its sources; nothing is published.

    Args:
        quick: Leaves out what the run would publish and how many histories are rare, for which histories are counted. Of refusals it
            knows that of a lattice too large to be searched.
    """
    tree = job.tree
    with open_tables(job) as run:
        sources = read_tables(run, job)
        check_linking_columns(job, sources)
        carried = TableSet(run, job, {name: encode_rows(source) for name, source in sources.items()})
        check_relations(carried)
        linked = link_rows(carried)
        passthrough = measure_untreated_tables(linked)
        if not quick:
            note_spellings_of_persons(run, sources[tree.unit].source, job.tables[tree.unit].key)
        histories = align_rows(linked)
        nodes = None if job.is_local else lattice_of_tables(histories).nodes
        finest = tuple(histories.hierarchy(axis).least for axis in histories.lattice_axes)
        below = None if quick else failing_persons(history_numbers(histories, finest), job.privacy.k)
        release = tables_release_id(run, job, sources)
        expected, refusal = _expected(histories, release, quick=quick)
        planned = {
            name: PlannedTable(
                rows=table.rows,
                files=len(table.table.source.files),
                hangs_from=tree.chains[name][-1] if tree.chains[name] else None,
                most_rows=most_rows_of(job)[name],
                groups={
                    axis.qid: tuple(map(len, axis.labels))
                    for axis in (histories.codings[name].hierarchies if name in histories.codings else ())
                },
                published={
                    column: treatment_sentence(table.table.job.columns.ways.get(column, EXACT), job.privacy.k)
                    for column in table.table.source.payload
                },
                passthrough=passthrough[name],
            )
            for name, table in histories.tables.items()
        }
        return TablesPlan(
            release=None if lacks_vault(sources[tree.unit].source) else release,
            exists=job_target(run.job).is_published(release),
            unit=tree.unit,
            persons=histories.persons,
            most_suppressed=int(job.suppression.limit * histories.persons),
            tables=planned,
            method=job.method.name,
            nodes=nodes,
            below_k=below,
            expected=expected,
            refusal=str(refusal) if refusal else None,
            exit_code=refusal.exit_code if refusal else 0,
            memory=job.memory,
            pseudonyms=unit_key_words(job),
            known_rows=job.privacy.known_rows,
        )


def _expected(histories: HistoryTables, release: str, *, quick: bool) -> tuple[ExpectedTables | None, SkaldError | None]:
    """Return what a run would publish, or the error with which it would be refused.

    Of a quick plan only the size of the lattice is looked at.
    """
    try:
        if not histories.job.is_local:
            searched_lattice(histories)
        return None if quick else expected_tables(histories, release), None
    except (PrivacyError, LatticeSizeError) as error:
        return None, error
