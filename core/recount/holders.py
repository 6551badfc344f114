"""The recount of who holds a value: in how many classes too many persons hold the same one, where somebody has several.

Nothing is asked where nobody in the source has several values: then the models say all there is to say.

Each condition is an expression of a row for a class and a value: ``held``, the persons of the class who hold the value, of ``persons`` in
it; ``everywhere``, those of the whole source who do, of ``everybody`` in it; ``m``, the values of the column in the source.
"""

from __future__ import annotations

from fractions import Fraction

from core.recount.spreads import SLACK
from schemas.privacy.sensitive import ClosenessSpec, DistinctSpec, EntropySpec, RecursiveSpec


def distinct_held(spec: DistinctSpec) -> str:
    """Returns that fewer than l − 1 persons do not hold the value."""
    return f"persons - held < {spec.distinct - 1:d}"


def entropy_held(spec: EntropySpec) -> str:
    """Returns that the share that hold the value leaves too little entropy, whatever the others hold."""
    own, rest = "held / persons", "(persons - held) / persons"
    others = f"CASE WHEN held < persons THEN {rest} * ln({rest} / greatest(m - 1, 1)) ELSE 0 END"
    # Below one in m the share is smaller than the evenest.
    return f"held * m > persons AND -({own} * ln({own}) + {others}) < ln({float(spec.entropy)!r}) - {SLACK!r}"


def recursive_held(spec: RecursiveSpec) -> str:
    """Returns that the value is held by n · c / (1 + c) of n persons or more."""
    c = Fraction(spec.recursive.c)
    # 128 bits: a count times a denominator may pass 64.
    return f"(persons - held)::HUGEINT * {c.numerator:d} <= held::HUGEINT * {c.denominator:d}"


def closeness_held(spec: ClosenessSpec) -> str:
    """Returns that the share that hold the value is more than t above that of all persons."""
    return f"held / persons - everywhere / everybody > {float(spec.t)!r} + {SLACK!r}"


def classes_held_sql(relation: str, value: str, condition: str, whole: str, *, nulls: bool) -> str:
    """Returns the statement that counts the classes in which too many persons hold a value.

    It is right because ``relation`` has each person and value of a class once: its rows of a class and a value are persons. In ``whole``
    the persons of all values are more than there are only where somebody has several values.

    Args:
        relation: What is read as ``combination``, ``person`` and the value, nobody left out.
        value: What the value is called there.
        condition: One of the above.
        whole: What is read as ``value``, ``records`` (persons of the source who hold it) and ``persons`` (of the whole source).
        nulls: Whether a null is a value of the model.
    """
    known = "TRUE" if nulls else "value IS NOT NULL"
    return f"""
        WITH pairs AS (SELECT combination, person, {value} AS value FROM {relation}),
        sizes AS (SELECT combination, count(DISTINCT person) AS persons FROM pairs GROUP BY combination),
        counted AS (SELECT combination, value, count(*) AS held FROM pairs GROUP BY ALL),
        total AS (
            SELECT count(*) FILTER ({known} AND records > 0) AS m, coalesce(max(persons), 1) AS everybody, sum(records) AS held FROM {whole}
        ),
        asked AS (
            SELECT c.combination, c.value, c.held, s.persons, coalesce(w.records, 0) AS everywhere, t.everybody, t.m
            FROM counted AS c JOIN sizes AS s ON s.combination IS NOT DISTINCT FROM c.combination
            LEFT JOIN {whole} AS w ON w.value IS NOT DISTINCT FROM c.value CROSS JOIN total AS t
            WHERE t.held > t.everybody
        ) SELECT count(DISTINCT combination) FROM asked WHERE {known} AND {condition}
    """


def one_value_sql(combinations: str, held: str, value: str) -> str:
    """Returns the statement that counts the classes in which all persons who have a value hold the same one, and the records in these.

    Args:
        combinations: The table of the published combinations.
        held: The table of who is in which combination.
        value: The sensitive column's name in that table.
    """
    return f"""
        WITH pairs AS (
            SELECT DISTINCT combination, person, {value} AS value FROM {held} WHERE person <> 0 AND {value} IS NOT NULL
        ),
        sizes AS (SELECT combination, count(DISTINCT person) AS persons FROM pairs GROUP BY combination),
        counted AS (SELECT combination, count(*) AS held FROM pairs GROUP BY combination, value),
        most AS (SELECT combination, max(held) AS held FROM counted GROUP BY combination)
        SELECT count(*), coalesce(sum(c.records), 0)::BIGINT
        FROM {combinations} AS c LEFT JOIN sizes AS s ON s.combination = c.combination LEFT JOIN most AS h ON h.combination = c.combination
        WHERE s.persons IS NULL OR h.held = s.persons
    """
