"""The independent recount of l-diversity and t-closeness: one SQL statement for each privacy model.

The models are those of `schemas.registry.privacy_kinds`. Each statement counts the classes that fail and all classes, and measures the
worst. The implementations of the models that algorithms use are not used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from schemas.registry.sensitive import ClosenessSpec, DistinctSpec, DiversitySpec, EntropySpec, RecursiveSpec

# As large as the models': what passed there by a rounding error must not fail here.
SLACK = 1e-9
UNIT = "any_value(unit)::DOUBLE"
"""What a distance is a multiple of: one in the records of the class times those of the whole."""


def distinct_sql(source: str, qids: Sequence[str], column: str, spec: DistinctSpec, _levels: int = 0) -> str:
    """Return SQL that counts failing and all classes, and finds the fewest distinct values of a class.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published QID columns.
        column: Quoted name of the sensitive column.
    """
    return _diversity_sql(source, qids, column, spec, f"len(falling) < {spec.distinct:d}", "min(len(falling))")


def entropy_sql(source: str, qids: Sequence[str], column: str, spec: EntropySpec, _levels: int = 0) -> str:
    """Return SQL that counts failing and all classes, and finds the least exp(entropy) of a class.

    The worst class has the least exp(entropy). Arguments as for ``distinct_sql``.
    """
    entropy = "ln(records) - list_sum(list_transform(falling, lambda r: r * ln(r))) / records"
    # repr is the shortest text that is read back as the same float.
    fails = f"records = 0 OR {entropy} < ln({float(spec.entropy)!r}) - {SLACK!r}"
    return _diversity_sql(source, qids, column, spec, fails, f"min(CASE WHEN records > 0 THEN exp({entropy}) ELSE 0 END)")


def recursive_sql(source: str, qids: Sequence[str], column: str, spec: RecursiveSpec, _levels: int = 0) -> str:
    """Return SQL that counts failing and all classes, and finds the greatest r1 / tail of a class.

    In the worst class the most frequent value is most times as frequent as its tail. Arguments as for ``distinct_sql``.
    """
    c, least = Fraction(spec.recursive.c), spec.recursive.l
    tail = f"coalesce(list_sum(falling[{least:d}:]), 0)"
    # 128 bits: a count times a denominator may pass 64, and DuckDB then raises an error instead of an answer.
    fails = f"len(falling) = 0 OR falling[1]::HUGEINT * {c.denominator:d} >= {tail}::HUGEINT * {c.numerator:d}"
    return _diversity_sql(source, qids, column, spec, fails, f"max(falling[1] / {tail})")


def _diversity_sql(source: str, qids: Sequence[str], column: str, spec: DiversitySpec, fails: str, worst: str) -> str:
    """Return SQL that counts classes that fail a condition on their value counts.

    The condition is on ``records`` of a class and the counts of its values in ``falling`` order. It is right because GROUP BY counts each
    sensitive value once per class, and the definitions need nothing but these counts. Nulls are counted as a value of their own or, if
    they are none, not at all; a class of nulls alone is then one of no records and no values.
    """
    keyed, classes = _keyed(qids)
    known = "TRUE" if spec.nulls == "value" else "s IS NOT NULL"
    return f"""
        WITH pairs AS (SELECT {keyed}, {column} AS s, count(*) AS r FROM {source} GROUP BY ALL),
        classes AS (
            SELECT coalesce(sum(r) FILTER ({known}), 0)::BIGINT AS records,
                coalesce(list(r ORDER BY r DESC) FILTER ({known}), []) AS falling
            FROM pairs GROUP BY {classes}
        )
        SELECT count(*) FILTER ({fails}), count(*), {worst}::DOUBLE FROM classes
    """


def _keyed(qids: Sequence[str]) -> tuple[str, str]:
    """Return SQL that selects the published QIDs as ``qid_0`` …, and these names.

    No column of a job can be mistaken for them.
    """
    names = [f"qid_{number}" for number in range(len(qids))]
    return ", ".join(f"{qid} AS {name}" for qid, name in zip(qids, names, strict=True)), ", ".join(names)


def equal_sql(source: str, qids: Sequence[str], column: str, spec: ClosenessSpec, hierarchy_levels: int = 0) -> str:
    """Return SQL that counts failing and all classes, and finds the greatest distance, values equally far.

    The worst class is the farthest from the complete table. Every class is written out over all values of the table ``whole`` (``value``,
    ``records``, ``place`` in ascending order and ``level_1`` … ``level_<levels>``, the value's group at each level). The three distances
    are sums over that, of whole numbers until the end: so they do not depend on the order in which threads, or tasks that count a share
    of the classes each, add them up.

    Args:
        qids: Quoted names of the published QID columns.
        column: Quoted name of the sensitive column.
        hierarchy_levels: Levels of the hierarchy above the values, for the hierarchical distance.
    """
    moved = f"SELECT class, sum(abs(extra)) / (2 * {UNIT}) AS distance FROM extras GROUP BY class"
    return _closeness_sql(source, qids, column, spec, hierarchy_levels, moved)


def ordered_sql(source: str, qids: Sequence[str], column: str, spec: ClosenessSpec, hierarchy_levels: int = 0) -> str:
    """Return SQL that counts failing and all classes, and finds the greatest distance by value order.

    Values are as far apart as their places in ascending order. Arguments as for ``equal_sql``.
    """
    moved = f"""
            SELECT class, sum(abs(carried)) / ({UNIT} * greatest(count(*) - 1, 1)) AS distance
            FROM (SELECT class, unit, sum(extra) OVER (PARTITION BY class ORDER BY place) AS carried FROM extras) GROUP BY class"""
    return _closeness_sql(source, qids, column, spec, hierarchy_levels, moved)


def hierarchical_sql(source: str, qids: Sequence[str], column: str, spec: ClosenessSpec, hierarchy_levels: int) -> str:
    """Return SQL that counts failing and all classes, and finds the greatest distance by hierarchy.

    Values are the closer, the finer the group that they share. Arguments as for ``equal_sql``.
    """
    steps = []
    for level in range(1, hierarchy_levels + 1):
        below = "place" if level == 1 else f"level_{level - 1}"
        steps.append(f"""
                SELECT class, any_value(unit) AS unit, least(sum(greatest(net, 0)), sum(greatest(-net, 0))) * {level} AS cost
                FROM (SELECT class, unit, level_{level}, {below}, sum(extra) AS net FROM extras GROUP BY ALL)
                GROUP BY class, level_{level}""")
    moved = f"SELECT class, sum(cost) / ({UNIT} * {hierarchy_levels}) AS distance FROM ({' UNION ALL '.join(steps)}) GROUP BY class"
    return _closeness_sql(source, qids, column, spec, hierarchy_levels, moved)


def _closeness_sql(source: str, qids: Sequence[str], column: str, spec: ClosenessSpec, levels: int, moved: str) -> str:
    """Return SQL that counts classes whose ``distance`` from the complete table exceeds t.

    ``moved`` selects the distance of each class from ``extras``: by how much a class has more of a value than the complete table.
    """
    keyed, classes = _keyed(qids)
    groups = "".join(f", level_{level}" for level in range(1, levels + 1))
    fails = f"distance > {float(spec.t)!r} + {SLACK!r}"
    return f"""
        WITH pairs AS (SELECT {keyed}, {column} AS value, count(*) AS r FROM {source} GROUP BY ALL),
        numbered AS (SELECT *, dense_rank() OVER (ORDER BY {classes}) AS class FROM pairs),
        sizes AS (SELECT class, sum(r) AS records FROM numbered GROUP BY class),
        extras AS (
            SELECT sizes.class, whole.place{groups}, sizes.records::HUGEINT * everything.records AS unit,
                coalesce(numbered.r, 0)::HUGEINT * everything.records - whole.records::HUGEINT * sizes.records AS extra
            FROM sizes CROSS JOIN whole CROSS JOIN (SELECT greatest(sum(records), 1)::BIGINT AS records FROM whole) AS everything
            LEFT JOIN numbered ON numbered.class = sizes.class AND numbered.value IS NOT DISTINCT FROM whole.value
        ) SELECT count(*) FILTER ({fails}), count(*), max(distance)::DOUBLE FROM ({moved})"""


def distinct_of_holders(spec: DistinctSpec) -> str:
    """Return the SQL condition that fewer than l − 1 persons do not hold a value."""
    return f"persons - held < {spec.distinct - 1:d}"


def entropy_of_holders(spec: EntropySpec) -> str:
    """Return the SQL condition that a value's share of persons makes entropy l-diversity impossible."""
    own, rest = "held / persons", "(persons - held) / persons"
    others = f"CASE WHEN held < persons THEN {rest} * ln({rest} / greatest(m - 1, 1)) ELSE 0 END"
    # Below one in m the share is smaller than the evenest.
    return f"held * m > persons AND -({own} * ln({own}) + {others}) < ln({float(spec.entropy)!r}) - {SLACK!r}"


def recursive_of_holders(spec: RecursiveSpec) -> str:
    """Return the SQL condition that n · c / (1 + c) of n persons or more hold a value."""
    c = Fraction(spec.recursive.c)
    # 128 bits: a count times a denominator may pass 64.
    return f"(persons - held)::HUGEINT * {c.numerator:d} <= held::HUGEINT * {c.denominator:d}"


def closeness_of_holders(spec: ClosenessSpec) -> str:
    """Return the SQL condition that a value's share of a class exceeds its overall share by more than t.

    Shares are of persons.
    """
    return f"held / persons - everywhere / everybody > {float(spec.t)!r} + {SLACK!r}"


def holder_classes_sql(relation: str, value: str, condition: str, source_values: str, *, counts_nulls: bool) -> str:
    """Return SQL that counts the classes in which too many persons hold one value.

    It is right because ``relation`` has each person and value of a class once: its rows of a class and a value are persons. In
    ``source_values`` the persons of all values are more than there are only where a person has several values.

    Args:
        relation: What is read as ``combination``, ``person`` and the value, with no person left out.
        value: The column of the value there.
        condition: One of the above.
        source_values: What is read as ``value``, ``records`` (persons of the source who hold it) and ``persons`` (of the whole source).
        counts_nulls: Whether a null is a value of the model.
    """
    known = "TRUE" if counts_nulls else "value IS NOT NULL"
    return f"""
        WITH pairs AS (SELECT combination, person, {value} AS value FROM {relation}),
        sizes AS (SELECT combination, count(DISTINCT person) AS persons FROM pairs GROUP BY combination),
        counted AS (SELECT combination, value, count(*) AS held FROM pairs GROUP BY ALL),
        total AS (
            SELECT count(*) FILTER ({known} AND records > 0) AS m, coalesce(max(persons), 1) AS everybody, sum(records) AS held
            FROM {source_values}
        ),
        asked AS (
            SELECT c.combination, c.value, c.held, s.persons, coalesce(w.records, 0) AS everywhere, t.everybody, t.m
            FROM counted AS c JOIN sizes AS s ON s.combination = c.combination
            LEFT JOIN {source_values} AS w ON w.value IS NOT DISTINCT FROM c.value CROSS JOIN total AS t
            WHERE t.held > t.everybody
        ) SELECT count(DISTINCT combination) FROM asked WHERE {known} AND {condition}
    """
