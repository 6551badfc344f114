"""What report and terminal say of pseudonyms that show which records belong together."""

from __future__ import annotations

from schemas.errors.base import counted, listed
from schemas.release.manifest import Linked, Manifest
from schemas.release.report import Limit

SEQUENCES = "Wang and Fung, Anonymizing Sequential Releases, KDD 2006"


def linked_limits(manifest: Manifest) -> tuple[Limit, ...]:
    """Returns what linked records tell, a limit for each column by which they are linked."""
    return tuple(Limit(text=sentence, source=SEQUENCES) for sentence in linked_sentences(manifest))


def linked_sentences(manifest: Manifest) -> list[str]:
    """Returns how many share the set of combinations that all records of one are in, a sentence for each linking column."""
    return [_sentence(one, manifest) for one in manifest.linked or ()]


def _sentence(one: Linked, manifest: Manifest) -> str:
    k, unit = manifest.privacy["k"], "person" if manifest.persons else "pseudonym"
    shown = f"Equal pseudonyms in {listed(one.columns)} show which records belong together."
    if not one.below_k and one.smallest >= k:
        least = counted(one.smallest, unit)
        return f"{shown} The set of combinations that all records of one are in is shared by {least} or more (k = {k:,})."
    accepted = " The job accepts that (columns.linkable)." if one.accepted else ""
    return (
        f"{shown} {counted(one.below_k, unit)} of {one.people:,} ({one.share:.2%}) share the set of combinations that their records are in "
        f"with fewer than k = {k:,}, the least {one.smallest:,}.{accepted}"
    )
