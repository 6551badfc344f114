"""SQL that joins the tables of a release and counts who shares a history or a choice of rows.

A history is written out as text. It has the labels of the person's row, then for each table the sorted numbers of the texts of the rows
below it, each with what is below that row in turn. Every value is preceded by its length, so that no two histories are written alike;
equal texts of a table have one number. Nothing here is used by the writer of a release.

A choice of at most m rows per table is written as the sorted numbers of its rows' texts. A text that occurs
several times is chosen from its first time on, so that a multiset is written in one way. Nothing here is used by the writer of a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.job.identifiers import ColumnPublication
from schemas.release.figures import Together


@dataclass(frozen=True)
class ReadTable:
    """A table of a release as a reader joins it; all names are quoted.

    Attributes:
        name: Of the table, plain.
        relation: What its files are read as.
        qids: Published quasi-identifiers.
        key: Columns of its key.
        references: The columns that refer to each table, nearest table last.
        sensitive: Columns of which something is promised.
    """

    name: str
    relation: str
    qids: tuple[str, ...]
    key: tuple[str, ...]
    references: Mapping[str, tuple[str, ...]]
    sensitive: tuple[str, ...] = ()

    @property
    def linking(self) -> list[str]:
        """The columns of the table's key and references, each once."""
        return list(dict.fromkeys([*self.key, *(column for columns in self.references.values() for column in columns)]))

    def at(self, column: str) -> str:
        """Return the internal name of a column of the key, references or sensitive values.

        No name of a job can be mistaken for it.
        """
        return f"c{[*self.linking, *self.sensitive].index(column)}"


@dataclass(frozen=True)
class TablesRecount:
    """Counts of persons, histories and rows in the written tables.

    Attributes:
        persons: Rows of the unit.
        histories: Different ones.
        smallest: Persons who share the one that fewest share.
        failing: Persons whose history fewer than k share.
        records: Rows of each table.
        most_rows: Most rows of a person in each table that hangs from one.
        penalties: Sum of the normalised certainty penalty over the rows, by table and quasi-identifier.
        published: What the publication of columns lost, by table and column.
        passed: Of each column that is published as it is, by table: distinct values, rows alone with theirs, rows that have one, and
            persons alone with one of theirs.
        together: Who stands out by the untreated columns of a table together, by table.
        persons_together: Who stands out by those of all tables together; None where there are none, or they were not counted.
        sensitive_together: The same of the sensitive columns of a table, and ``persons_sensitive_together`` of all tables.
        persons_sensitive_together: See ``sensitive_together``.
    """

    persons: int
    histories: int
    smallest: int
    failing: int
    records: Mapping[str, int]
    most_rows: Mapping[str, int] = field(default_factory=dict)
    penalties: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, ColumnPublication]] = field(default_factory=dict)
    passed: Mapping[str, Mapping[str, tuple[int, int, int, int]]] = field(default_factory=dict)
    together: Mapping[str, Together] = field(default_factory=dict)
    persons_together: Together | None = None
    sensitive_together: Mapping[str, Together] = field(default_factory=dict)
    persons_sensitive_together: Together | None = None


def row_text(table: ReadTable, alias: str) -> str:
    """Return the SQL expression for the labels of a row as one text; a null differs from every text."""
    values = [f"coalesce(length({alias}.{name}::VARCHAR)::VARCHAR || ':' || {alias}.{name}::VARCHAR, '-')" for name in table.qids]
    return f"concat_ws('', '{len(table.qids)};'{''.join(f', {value}' for value in values)})"


def reference_there_sql(columns: Sequence[str]) -> str:
    """Return the SQL condition that no column of a row ``m``'s reference, given as quoted names, is null."""
    return "(" + " AND ".join(f"m.{column} IS NOT NULL" for column in columns) + ")"


def row_text_table(table: ReadTable) -> str:
    """Return the quoted name of the temporary table with the text of each row and its descendants."""
    return f'"below {table.name}"'


def row_texts_sql(table: ReadTable, children: Sequence[ReadTable]) -> str:
    """Return SQL that makes the table of each row's text, descendants included; run the children's first.

    It is right because each child row is counted with the one row that its nearest reference finds, and a sorted list is a multiset.

    Args:
        children: Tables of which rows may hang from its rows, whose texts are made already.
    """
    gathered = "array_to_string(list_sort(list(c.text)), '|') AS texts"
    joins = [rows_below_sql(table, child, row_text_table(child), gathered) for child in children]
    texts = [f"coalesce({alias_of(child)}.many::VARCHAR || '=' || {alias_of(child)}.texts, '0')" for child in children]
    whole = f"concat_ws('/', {', '.join([row_text(table, 'm'), *texts])})"
    selected = ", ".join([*linking_columns(table), f'{whole} AS "its text"'])
    made = f"SELECT {selected} FROM {table.relation} AS m {' '.join(joins)}"
    return f"""
        CREATE TEMP TABLE {row_text_table(table)} AS
        WITH made AS MATERIALIZED ({made}),
        numbered AS (SELECT "its text", row_number() OVER () AS text FROM (SELECT DISTINCT "its text" FROM made))
        SELECT made.* EXCLUDE "its text", numbered.text FROM made JOIN numbered USING ("its text")
    """


def linking_columns(table: ReadTable) -> list[str]:
    """Return SQL of a row's key and references, and of the number of the nearest that is not null."""
    columns = [f"m.{column} AS {table.at(column)}" for column in table.linking]
    numbered = list(enumerate(table.references.values()))
    nearest = (f"WHEN {reference_there_sql(referring)} THEN {number}" for number, referring in reversed(numbered))
    return [*columns, f"CASE {' '.join(nearest)} END AS nearest"] if table.references else columns


def rows_below_sql(table: ReadTable, child: ReadTable, rows: str, gathered: str) -> str:
    """Return the SQL join of a table's rows ``m`` with aggregates of the child rows right below each.

    Args:
        child: A table of which rows may hang from its rows.
        rows: Name of a table of the child's rows with ``linking_columns(child)``.
        gathered: Aggregates of the child's rows ``c``; beside them, ``many`` counts these rows.
    """
    number = list(child.references).index(table.name)
    own = [f"c.{child.at(column)}" for column in child.references[table.name]]
    keys = ", ".join(f"{column} AS k{place}" for place, column in enumerate(own))
    same = " AND ".join(f"{alias_of(child)}.k{place} = m.{mine}" for place, mine in enumerate(table.key))
    return (
        f"LEFT JOIN (SELECT {keys}, count(*) AS many, {gathered} FROM {rows} AS c "
        f"WHERE c.nearest = {number} GROUP BY {', '.join(own)}) AS {alias_of(child)} ON {same}"
    )


def alias_of(table: ReadTable) -> str:
    """Return the quoted SQL alias of a joined table."""
    return f'"of {table.name}"'


def histories_sql(unit: ReadTable, k: int) -> str:
    """Return SQL that counts persons, histories, persons of the rarest history, persons of those below k."""
    return f"""
        WITH histories AS (SELECT count(*) AS persons FROM {row_text_table(unit)} GROUP BY text)
        SELECT coalesce(sum(persons), 0)::BIGINT, count(*), coalesce(min(persons), 0),
               coalesce(sum(persons) FILTER (persons < {k}), 0)::BIGINT
        FROM histories
    """


def persons_of_histories_sql(unit: ReadTable) -> str:
    """Return SQL of each person's key (``k0`` …) and the number of the history (``text``)."""
    keys = "".join(f"{unit.at(column)} AS k{place}, " for place, column in enumerate(unit.key))
    return f"SELECT {keys}text FROM {row_text_table(unit)}"


def key_faults_sql(table: ReadTable) -> str:
    """Return SQL that counts rows with an incomplete key, and keys of more than one row."""
    keys = ", ".join(f"m.{column}" for column in table.key)
    return f"""
        SELECT (SELECT count(*) FROM {table.relation} AS m WHERE NOT {reference_there_sql(table.key)}),
               (SELECT count(*) FROM (SELECT 1 FROM {table.relation} AS m GROUP BY {keys} HAVING count(*) > 1))
    """


def persons_of_rows_sql(table: ReadTable, others: Mapping[str, ReadTable]) -> str:
    """Return SQL that makes the table of each row's person; reads the tables of referenced rows.

    The person is a number of the unit's row. A row has no person where one of its references is there and finds no row: such orphans are
    refused, or left out.

    Args:
        others: The tables that it refers to, of which the unit's numbers are made already, or those of the tables above.
    """
    joins, persons, lost = [], [], []
    for number, (name, columns) in enumerate(table.references.items()):
        theirs = map(others[name].at, others[name].key)
        same = " AND ".join(f"m.{mine} = o{number}.{their}" for mine, their in zip(columns, theirs, strict=True))
        joins.append(f"LEFT JOIN {row_person_table(others[name])} AS o{number} ON {same}")
        persons.append(f"o{number}.person")
        lost.append(f"({reference_there_sql(columns)} AND o{number}.{others[name].at(others[name].key[0])} IS NULL)")
    wanted = list(dict.fromkeys([*table.key, *table.sensitive]))
    nearest = [f"WHEN {reference_there_sql(columns)} THEN {one}" for columns, one in zip(table.references.values(), persons, strict=True)]
    whose = f"CASE WHEN {' OR '.join(lost)} THEN NULL {' '.join(reversed(nearest))} END"
    selected = ", ".join(
        [
            *(f"m.{column} AS {table.at(column)}" for column in wanted),
            f"{whose} AS person",
            *(f"{one} AS p{place}" for place, one in enumerate(persons)),
            *(f"{one} AS l{place}" for place, one in enumerate(lost)),
        ]
    )
    losing = [f"o.l{place}" for place in range(len(lost))]
    differ = " OR ".join(f"coalesce(o.p{place}, o.person) IS DISTINCT FROM o.person" for place in range(len(persons)))
    outer = ", ".join([*(f"o.{table.at(column)}" for column in wanted), "o.person", f"({differ}) AS differs", *losing])
    inner = f"SELECT {selected} FROM {table.relation} AS m {' '.join(joins)}"
    return f"CREATE TEMP TABLE {row_person_table(table)} AS SELECT {outer} FROM ({inner}) AS o"


def row_person_table(table: ReadTable) -> str:
    """Return the quoted name of the temporary table with the person of each row."""
    return f'"owners {table.name}"'


def unit_persons_sql(unit: ReadTable) -> str:
    """Return SQL that makes ``row_person_table(unit)``, which numbers the persons of the unit's table."""
    keys = "".join(f"m.{column} AS {unit.at(column)}, " for column in dict.fromkeys([*unit.key, *unit.sensitive]))
    return f"CREATE TEMP TABLE {row_person_table(unit)} AS SELECT {keys}row_number() OVER () AS person FROM {unit.relation} AS m"


def row_person_faults_sql(table: ReadTable) -> str:
    """Return SQL that counts the rows of no person or of contradicting references.

    Its columns are the rows of no person, the rows whose references find different persons, the most rows of a person, and for each
    reference the rows in which it is there and finds no row.
    """
    lost = "".join(f", count(*) FILTER (l{place})" for place in range(len(table.references)))
    each = f"SELECT count(*) AS many FROM {row_person_table(table)} WHERE person IS NOT NULL GROUP BY person"
    return f"""
        SELECT count(*) FILTER (person IS NULL), count(*) FILTER (differs), (SELECT coalesce(max(many), 0) FROM ({each})){lost}
        FROM {row_person_table(table)}
    """


def references_left_out_sql(table: ReadTable) -> str:
    """Return SQL that counts rows that lack a reference beside a nearer one, which tells them apart."""
    there = list(map(reference_there_sql, table.references.values()))
    cases = [f"({nearer} AND NOT {further})" for number, nearer in enumerate(there) for further in there[:number]]
    return f"SELECT count(*) FILTER ({' OR '.join(cases) or 'false'}) FROM {table.relation} AS m"


def history_values_sql(table: ReadTable, unit: ReadTable, column: str) -> str:
    """Return SQL that yields each person's distinct values of a sensitive column, with the history.

    Its columns are ``combination``, ``person`` and ``value``. It is right because the unit's keys are unique, so that each person has one
    history.
    """
    same = " AND ".join(f"o.{key} = h.{key}" for key in map(unit.at, unit.key))
    whose = f"SELECT o.person, h.text AS combination FROM {row_person_table(unit)} AS o JOIN {row_text_table(unit)} AS h ON {same}"
    value = f"r.{table.at(column)} AS value"
    return f"SELECT DISTINCT w.combination, r.person, {value} FROM {row_person_table(table)} AS r JOIN ({whose}) AS w USING (person)"


def source_value_persons_sql(table: ReadTable, column: str) -> str:
    """Return SQL that counts by value its persons, as ``records``, and all persons, as ``persons``.

    It reads ``row_person_table(table)``. Its columns are ``value``, ``records`` (persons who hold it) and ``persons`` (who have a row of
    the table), as in ``source_counts_sql`` of single tables.
    """
    rows = f"(SELECT person, {table.at(column)} AS value FROM {row_person_table(table)} WHERE person IS NOT NULL)"
    persons = f"(SELECT count(DISTINCT person) FROM {rows}) AS persons"
    return f"SELECT value, count(DISTINCT person) AS records, {persons} FROM {rows} GROUP BY value"


def same_keys_sql(table: ReadTable, source: str) -> str:
    """Return SQL that counts the published keys that are also keys of the source."""
    same = " AND ".join(f"m.{column}::VARCHAR = s.{column}::VARCHAR" for column in table.key)
    return f"SELECT count(*) FROM {table.relation} AS m SEMI JOIN {source} AS s ON {same}"


def items_sql(unit: ReadTable, children: Sequence[ReadTable]) -> str:
    """Return SQL that makes the table ``items`` of the rows directly below persons.

    Its columns are ``person``, ``place`` of the table, ``item``, ``time``, ``rank``.

    Args:
        children: Tables of which rows may hang from the unit's, with their texts.
    """
    parts = []
    for place, child in enumerate(children):
        number = list(child.references).index(unit.name)
        columns = child.references[unit.name]
        same = " AND ".join(f"o.{unit.at(key)} = c.{child.at(column)}" for key, column in zip(unit.key, columns, strict=True))
        parts.append(
            f"SELECT o.person, {place} AS place, c.text FROM {row_text_table(child)} AS c JOIN {row_person_table(unit)} AS o ON {same} "
            f"WHERE c.nearest = {number}"
        )
    texts = " UNION ALL ".join(parts)
    return f"""
        CREATE OR REPLACE TEMP TABLE items AS
        SELECT *, row_number() OVER (PARTITION BY person, place ORDER BY item, time) AS rank
        FROM (
            SELECT *, row_number() OVER (PARTITION BY person, place, item) AS time
            FROM (SELECT person, place, dense_rank() OVER (ORDER BY text) AS item FROM ({texts}))
        )
    """


def choices_of_persons(unit: ReadTable, table_count: int, known_rows: int) -> tuple[str, str]:
    """Return the WITH clause of ``everything``, the sets of rows known of persons, and a set's columns.

    A set, called a choice, has up to ``known_rows`` rows of each table. Arguments as for ``choices_sql``.
    """
    same = " AND ".join(f"o.{unit.at(key)} = h.{key}" for key in unit.key)
    steps = [
        f"units AS (SELECT o.person, {row_text(unit, 'h')} AS unit FROM {row_person_table(unit)} AS o JOIN {unit.relation} AS h ON {same})"
    ]
    for place in range(table_count):
        steps.append(f"c{place}_0 AS (SELECT person, 0::BIGINT AS last, '' AS chosen FROM units)")
        for chosen in range(1, known_rows + 1):
            steps.append(
                f"c{place}_{chosen} AS (SELECT c.person, i.rank AS last, c.chosen || ',' || i.item AS chosen "
                f"FROM c{place}_{chosen - 1} AS c JOIN (FROM items WHERE place = {place}) AS i "
                "ON i.person = c.person AND i.rank > c.last AND (i.time = 1 OR i.rank = c.last + 1))"
            )
        every = " UNION ALL ".join(f"SELECT person, chosen FROM c{place}_{chosen}" for chosen in range(known_rows + 1))
        steps.append(f"t{place} AS ({every})")
    joins = "".join(f" JOIN t{place} ON t{place}.person = u.person" for place in range(table_count))
    names = "".join(f", t{place}.chosen AS t{place}" for place in range(table_count))
    group = ", ".join(["unit", *(f"t{place}" for place in range(table_count))])
    return f"WITH {', '.join(steps)}, everything AS (SELECT u.person, u.unit{names} FROM units AS u{joins})", group


def choices_sql(unit: ReadTable, table_count: int, known_rows: int) -> str:
    """Return SQL that counts choices of rows below ``$k`` persons, all choices, and least persons of one.

    It is right because every multiset of at most ``known_rows`` rows of a table is written once for each person who has it, and GROUP BY
    counts these persons.

    Args:
        unit: The unit's table, with the persons numbered already and the text of each.
        table_count: How many tables have rows right below persons.
    """
    every, group = choices_of_persons(unit, table_count, known_rows)
    return f"""
        {every}, shared AS (SELECT count(*) AS persons FROM everything GROUP BY {group})
        SELECT count(*) FILTER (persons < $k), count(*), coalesce(min(persons), 0) FROM shared
    """
