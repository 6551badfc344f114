"""What the commands show of several tables."""

from __future__ import annotations

from schemas.errors.base import counted
from schemas.relational.manifest import TablesManifest
from tasks.relational.report import report_content
from tasks.relational.verified import VerifiedTables


def tables_summary(manifest: TablesManifest, place: str, *, new: bool) -> str:
    """Returns what is told of a release of several tables, in lines."""
    head = f"Published {place}" if new else f"Published already: {place}"
    loss = f"Mean certainty penalty {manifest.loss.gcp:.4f}."
    return "\n".join([head, *report_content(manifest)["sentences"], loss])


def verified_summary(verified: VerifiedTables) -> str:
    """Returns what is told of a verified release, in lines."""
    found = verified.recount
    if found is None:
        return "\n".join(["Every byte is as it was published.", *verified.notes])
    rows = ", ".join(f"{counted(many, 'row')} of '{name}'" for name, many in found.records.items())
    least = f"every history is shared by at least {counted(found.smallest, 'person')}; there are {found.histories:,} different ones"
    return "\n".join([f"Verified. {counted(found.persons, 'person')}, {rows}; {least}.", *verified.notes])
