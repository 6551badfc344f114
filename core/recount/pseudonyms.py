"""The independent recount of pseudonyms: their form, what masked records may not publish, and that no identifier is among them.

Nothing is known here of keys or of how pseudonyms are made: the job says which form they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.recount.groups import Groups
from schemas.errors.base import counted
from schemas.pseudonyms.identifiers import Identifier
from schemas.pseudonyms.kinds import treatment_kind
from schemas.release.manifest import MASK

SPARSE = 500_000
"""An encryption may give one person another one's number. With fewer numbers than this in the source, half of the smallest domain, it
does not happen to all, so that all of at least ``SAMPLE`` published ones being in the source means that they were not encrypted."""
SAMPLE = 20


def form_groups(source: str, qids: Sequence[str], column: str, one: Identifier) -> Groups:
    """Returns how the records whose pseudonym has another form than the job says are counted, and the masked ones with any.

    It is right because the whole value is matched, and because who is published with ``*`` in every QID is known from the files alone.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published QID columns.
        column: Quoted name of the pseudonyms.
        one: How they are made.
    """
    entry = treatment_kind(one.treatment)
    form = entry.form(one.treatment).replace("'", "''")
    wrong = f"NOT regexp_full_match({column}::VARCHAR, '{form}')"
    # A form is one of text: a number of another type could be written alike and still not be what the job says.
    if types := " OR ".join(f"typeof({column}) LIKE '{dtype}'" for dtype in entry.types):
        wrong += f" OR NOT ({types})"
    starred = " AND ".join(f"{qid}::VARCHAR IS NOT DISTINCT FROM '{MASK}'" for qid in qids)
    counts = {"malformed": f"({wrong})", "revealed": f"({starred})"}
    return Groups(source, counts=tuple((f"count(*) FILTER ({column} IS NOT NULL AND {what})", name) for name, what in counts.items()))


def shared_sql(source: str, reference: str, column: str) -> str:
    """Returns the statement that counts the different pseudonyms, those that are values of the source's column too, and these values.

    It is right because values are compared as text, whatever the types before and after.

    Args:
        source: The release.
        reference: The source.
        column: Quoted name, the same in both.
    """
    return f"""
        WITH published AS (SELECT DISTINCT {column}::VARCHAR AS value FROM {source} WHERE {column} IS NOT NULL),
        originals AS (SELECT DISTINCT {column}::VARCHAR AS value FROM {reference} WHERE {column} IS NOT NULL)
        SELECT (SELECT count(*) FROM published), (SELECT count(*) FROM published SEMI JOIN originals USING (value)),
            (SELECT count(*) FROM originals)
    """


def is_compared(one: Identifier) -> bool:
    """Tells whether the treatment promises that no value of the source is published, so that the two are to be compared."""
    return treatment_kind(one.treatment).meets != "often"


def pseudonym_faults(one: Identifier, masks: bool, counts: tuple[int, int], shared: tuple[int, int, int] | None) -> list[str]:
    """Returns what is wrong with a column of pseudonyms.

    Args:
        one: How they are made.
        masks: Whether the job masks suppressed records.
        counts: From ``form_groups``.
        shared: From ``shared_sql``, where the source is at hand.
    """
    (malformed, revealed), entry = counts, treatment_kind(one.treatment)
    faults = []
    if malformed:
        faults.append(f"{counted(malformed, 'record')} in '{one.name}' without the form of its treatment ({entry.words})")
    if masks and revealed:
        faults.append(f"{counted(revealed, 'masked record')} with a pseudonym in '{one.name}', which links them")
    if shared is not None:
        published, same, originals = shared
        unchanged = entry.meets == "by chance" and SAMPLE <= published == same and originals < SPARSE
        if unchanged or (entry.meets == "never" and same):
            faults.append(f"{counted(same, 'value')} of the source's '{one.name}' published as pseudonyms")
    return faults
