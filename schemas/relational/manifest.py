"""Manifest of a release of several tables.

It holds counts, names and digests, never a cell value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from schemas.job.identifiers import ColumnPublication
from schemas.job.privacy import AttackBasis, AttackFigures
from schemas.reading.model import FrozenModel
from schemas.release.evidence import Document, PublishedFile
from schemas.release.figures import PassedColumnOfPersons, Together
from schemas.release.increments import Joined, PersonsOverlap

FORMAT = 3
"""The format of manifests of several tables."""


class ReleasedPersons(FrozenModel):
    """Counts of the persons in a release of several tables.

    Attributes:
        source: How many there are in the source; null where fewer than k of them are not released.
        released: How many are in the data files.
        smallest_class: How many share the history that fewest share.
    """

    source: int | None
    released: int
    smallest_class: int


class ReleasedTable(FrozenModel):
    """Row counts and levels of one table of a release.

    Attributes:
        records: Rows of the source: those that are released, withheld, suppressed and orphans together; null of every table where fewer
            than k persons are left out, where fewer than k of those left out have rows of it, and where ``withheld`` or ``orphans`` is
            null.
        released: Rows in the data files.
        withheld: Rows of persons who are published that are not, because the job bounds them or to bring histories to k; null where
            fewer than k persons lost any.
        suppressed: Rows of persons who are left out; null where ``records`` is, unless that is for ``orphans`` alone.
        orphans: Rows whose reference finds nobody; null where these are fewer than k.
        levels: Level by quasi-identifier; null where rows have labels of several levels.
        passthrough: What was found of each column that is published as it is.
        passthrough_together: Who stands out by the untreated columns of the table together; null where it has none.
        sensitive_together: The same of its sensitive columns.
    """

    records: int | None
    released: int
    withheld: int | None
    suppressed: int | None
    orphans: int | None
    levels: dict[str, int | None]
    passthrough: dict[str, PassedColumnOfPersons]
    passthrough_together: Together | None = None
    sensitive_together: Together | None = None

    @property
    def stated_records(self) -> int:
        """Number of rows in the source, as far as it is stated.

        Else it is that of rows that are released, and of those that are withheld, suppressed and orphans as far as these are stated.
        """
        if self.records is not None:
            return self.records
        return self.released + (self.withheld or 0) + (self.suppressed or 0) + (self.orphans or 0)


class TablesLoss(FrozenModel):
    """Losses of a release of several tables.

    Attributes:
        gcp: Mean normalised certainty penalty of a value over all tables, 1 for one that is not published.
        by_table: The same of each table that has quasi-identifiers.
    """

    gcp: float
    by_table: dict[str, float]


class TablesManifest(FrozenModel):
    """Description and measurements of a release of several tables.

    Attributes:
        format: Of the manifest.
        release: The release id, made of keyed digests of job and inputs.
        name: The job's name.
        job: Keyed digest of the job, and ``inputs`` of the sources.
        method: The algorithm, and ``privacy`` what was promised.
        unit: The table with a row for each person.
        key_columns: Key of each table that has one, and ``references`` of each that has any.
        persons: Who is published.
        histories: Different ones, as recounted.
        min_class: Persons who share the history that fewest share, as recounted.
        tables: What became of each table.
        loss: Losses, figures of the published labels.
        optimal: How far the search came.
        search: Nodes of the lattice; nothing of classes of persons, of which labels tell fewer.
        pseudonyms: What the unit's key is published as, by column, where its pseudonyms are those of other releases too.
        overlaps: Earlier releases of some of the same persons, and what both reveal together; None where none was looked for.
        unmeasured_overlaps: How many more of them there are, which were not compared.
        joined: What releases with the same pseudonyms reveal together; None where none was looked for.
        published: How columns are published that say so and what that lost, by table and column.
        passthrough_together: Who stands out by the untreated columns of all tables together; null where there are none.
        sensitive_together: The same of the sensitive columns.
        attacks: What attacks by joins came to, and ``attacked`` what they were played with; empty and null where the job
            turned them off.
        files: The data files.
        versions: Of what made it.
        seconds: Wall time per phase, and ``peak_rss`` the largest resident size of the process, bytes.
        policy: SHA-256 of the policy that the job was held against; null where the run had none.
        created: When it was made, UTC, and ``run_by`` who ran it, if the job says so.
        documents: The other files of the release.
        signed_by: The key of the signature; null where there is none.
        seal: SHA-256 of the manifest's own file without these digits.
    """

    format: int = FORMAT
    release: str
    name: str
    job: str
    inputs: str
    method: str
    privacy: dict[str, Any]
    unit: str
    key_columns: dict[str, list[str]]
    references: dict[str, dict[str, str]]
    persons: ReleasedPersons
    histories: int
    min_class: int
    tables: dict[str, ReleasedTable]
    loss: TablesLoss
    optimal: str
    search: dict[str, int]
    files: tuple[PublishedFile, ...]
    versions: dict[str, str]
    seconds: dict[str, float]
    peak_rss: int
    pseudonyms: dict[str, str] = Field(default_factory=dict)
    overlaps: tuple[PersonsOverlap, ...] | None = None
    unmeasured_overlaps: int = 0
    joined: tuple[Joined, ...] | None = None
    published: dict[str, dict[str, ColumnPublication]] = Field(default_factory=dict)
    passthrough_together: Together | None = None
    sensitive_together: Together | None = None
    attacks: tuple[AttackFigures, ...] = ()
    attacked: AttackBasis | None = None
    policy: str | None = None
    created: str | None = None
    run_by: str | None = None
    # These stay last: what is before them is known when they are made.
    documents: tuple[Document, ...] = ()
    signed_by: str | None = None
    seal: str = ""

    @property
    def compositions(self) -> list[PersonsOverlap | Joined]:
        """Comparisons with earlier releases: first by shared persons, then by shared pseudonyms."""
        return [*(self.overlaps or ()), *(self.joined or ())]

    @property
    def source_name(self) -> None:
        """Name of the source: always None, because each table has a source of its own."""

    @property
    def records(self) -> int | None:
        """Number of persons in the source, for the signed description; None where it is not stated."""
        return self.persons.source

    @property
    def released(self) -> int:
        """Number of persons in the data files, for the signed description."""
        return self.persons.released

    @property
    def listed(self) -> dict[str, str]:
        """SHA-256 of each other file of the release, by path."""
        return {one.path: one.sha256 for one in self.documents} | {one.path: one.sha256 for one in self.files}


def files_by_table(files: Sequence[PublishedFile], folder: Path, tables: Iterable[str]) -> dict[str, list[Path]]:
    """Return the paths of each table's data files below a folder, in their order."""
    return {table: [folder / one.path for one in files if one.path.split("/")[1:2] == [table]] for table in tables}
