"""What a release publishes, column by column, and when and for whom it was made: the first things that whoever signs for it asks."""

from __future__ import annotations

from datetime import UTC, datetime

from schemas.privacy.publish import treatment_sentence
from schemas.release.manifest import Manifest
from schemas.release.report import PublishedColumn
from schemas.release.terms import Terms

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
AS_IT_IS = "as in the source"


def published_columns_of(manifest: Manifest, terms: Terms) -> tuple[PublishedColumn, ...]:
    """Returns every column of the data files: quasi-identifiers in job order, then sensitive ones, all others, and pseudonyms.

    Args:
        manifest: Of the release.
        terms: What was asked.
    """
    qids = [
        PublishedColumn(name=name, role="quasi-identifier", published=_published(qid.published, name, qid.columns))
        for qid in terms.quasi_identifiers
        for name in qid.columns
    ]
    # What the word rest stands for was measured column by column.
    rest = (
        [name for name in manifest.passthrough if name not in terms.sensitive] if terms.insensitive == "rest" else list(terms.insensitive)
    )
    untreated = [
        PublishedColumn(
            name=name,
            role="sensitive" if name in terms.sensitive else "insensitive",
            published=_otherwise(manifest, name),
            distinct=_distinct(manifest, name),
        )
        for name in (*terms.sensitive, *rest)
    ]
    pseudonyms = [PublishedColumn(name=name, role="pseudonym", published=words) for name, words in manifest.pseudonyms.items()]
    return (*qids, *untreated, *pseudonyms)


def _published(words: str, name: str, columns: tuple[str, ...]) -> str:
    if len(columns) == 1:
        return words
    return f"{words}: {'lower' if name == columns[0] else 'upper'} bound"


def _otherwise(manifest: Manifest, name: str) -> str:
    found = manifest.published.get(name)
    return AS_IT_IS if found is None else treatment_sentence(found.publish, int(manifest.privacy["k"]))


def _distinct(manifest: Manifest, name: str) -> int | None:
    found = manifest.passthrough.get(name)
    return found.distinct if found else None


def date_text(created: str | None) -> str:
    """Returns a moment as people write it, in UTC; as it is where it cannot be read, empty where there is none."""
    try:
        moment = datetime.fromisoformat(created).astimezone(UTC) if created else None
    except ValueError:
        return created or ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC" if moment else ""
