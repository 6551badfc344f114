"""Join attacks: persons found by all their rows in the joined tables of a release.

The attacker knows a person's rows in the source.
"""

from __future__ import annotations

from core.attacks.attacked_tables import Guesses
from core.composition.pseudonym_sets import ShownTable, digest_table

BY_JOIN = "all rows of the joined tables"
BY_TABLE = "all rows of this table, joined"


def shared_rows_sql(unit: ShownTable, k: int) -> str:
    """Return SQL that counts all persons, and those whose whole history fewer than k persons share.

    Reads the digests of labels that ``row_digests_sql`` makes of the unit.
    """
    shared = f"SELECT count(*) AS persons FROM {digest_table(unit)} GROUP BY labels"
    return f"SELECT coalesce(sum(persons), 0), coalesce(sum(persons) FILTER (persons < {k:d}), 0) FROM ({shared})"


def joined_guesses(table: str | None, person_count: int, persons_below_k: int, *, promised: bool) -> Guesses:
    """Return the guesses of a join attack; a guess is right if fewer than k persons share the rows.

    Args:
        table: The table that is joined to the persons; None for all of them.
        person_count: Persons of the release.
        persons_below_k: Those who share their rows with fewer than k.
        promised: Whether the job promises k against attackers who know all rows.
    """
    return Guesses("joins", table, BY_TABLE if table else BY_JOIN, person_count, persons_below_k, 0, 0, promised=promised)
