"""The independent recount of equivalence classes and their risk, compared with the manifest.

Nothing of the search, the hierarchies or the recoding is used here. The equivalence classes are the combinations of published QID values
in the files (nulls included), counted by DuckDB.

A run computes them by ``core.units.losses``. This is a second reading of the same definitions (K. El Emam, Guide to the
De-Identification of Personal Health Information, CRC Press 2013, chapter 16), so that an error in one of the two is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isclose

from core.recount.groups import TogetherCount, combination_claims
from core.recount.labels.label_losses import ColumnLoss
from core.recount.linked import LinkCount, link_claims
from core.recount.people import PersonCount, share_at_most
from schemas.errors.base import counted, listed, verb_of
from schemas.job.identifiers import ColumnPublication
from schemas.job.job import Job
from schemas.reading.model import share_text
from schemas.release.figures import Kind
from schemas.release.manifest import RANGED, Manifest, endpoints_of, pseudonym_sentence, published_payload, published_qids

THRESHOLD = Fraction(9, 100)
"""The greatest risk of a record that is not counted as above it."""

Figures = dict[str, int | float]


def risk_of_files(classes: Mapping[int, int], fully_suppressed_records: int, suppressed_records: int, masked_records: int) -> Figures:
    """Return the re-identification risk of written files by figure (prosecutor, journalist, marketer).

    Whole classes are published, so that the three attackers see the same sizes.

    Args:
        classes: Number of classes by size, the class of the masked records among them.
        fully_suppressed_records: Records with ``*`` in every quasi-identifier.
        masked_records: How many of them are in the files. They are in no class; where other records publish ``*`` everywhere as well,
            the two cannot be distinguished.
    """
    table = unmasked_class_sizes(classes, fully_suppressed_records, masked_records)
    records, many = sum(size * number for size, number in table.items()), sum(table.values())
    counts: Figures = {"records": records, "classes": many, "suppressed": suppressed_records}
    if not records:
        return counts
    least, unique = min(table), table.get(1, 0)
    # As fractions, because a float may fall to either side of the limit.
    above = sum(size * number for size, number in table.items() if Fraction(1, size) > THRESHOLD)
    greatest, mean, share = 1 / least, many / records, above / records
    return counts | {
        "threshold": float(THRESHOLD),
        "prosecutor_max": greatest,
        "prosecutor_mean": mean,
        "records_above": above,
        "share_above": share,
        "journalist_max": greatest,
        "journalist_mean": mean,
        "journalist_share_above": share,
        "marketer": mean,
        "min_class": least,
        "unique": unique,
        "uniqueness": unique / records,
    }


def unmasked_class_sizes(classes: Mapping[int, int], fully_suppressed_records: int, masked_records: int) -> dict[int, int]:
    """Return how many classes have each size, less the class of masked records if it holds no others."""
    table = dict(classes)
    if masked_records and masked_records == fully_suppressed_records:
        table[fully_suppressed_records] -= 1
    return {size: number for size, number in table.items() if number}


def population_risk_of_files(population_rows: int, classes: Sequence[tuple[int, int, int]]) -> Figures:
    """Return the re-identification risk of the published classes in a population, by figure.

    Args:
        classes: Records of a class in the files, rows of the population that its labels fit, and how many classes have both numbers.
    """
    # Who is in the data is in the population, whether or not its table has them.
    sizes = [(held, max(held, fitting), number) for held, fitting, number in classes]
    records = sum(held * number for held, _, number in sizes)
    least = min(fitting for _, fitting, _ in sizes)
    drawn = Fraction(sum(number for *_, number in sizes), sum(fitting * number for _, fitting, number in sizes))
    matched = sum(Fraction(held, fitting) * number for held, fitting, number in sizes) / records
    above = sum(held * number for held, fitting, number in sizes if Fraction(1, fitting) > THRESHOLD)
    return {
        "records": population_rows,
        "k_map": least,
        "journalist_max": 1 / least,
        "journalist_mean": float(max(drawn, matched)),
        "journalist_share_above": above / records,
        "marketer": float(matched),
        "lacking": sum(number for held, fitting, number in classes if fitting < held),
    }


@dataclass(frozen=True)
class Recount:
    """Counts of records, classes and privacy models in the written files.

    Attributes:
        classes: Number of equivalence classes.
        min_class: Records in the smallest class; 0 if there is none.
        failing: Classes with fewer than k records.
        masked: Records with ``*`` in every QID.
        measured: By promise (``l``, ``t``) and sensitive column, the worst of all classes, in the unit of the promise.
        withheld: Records with ``*`` by QID; empty where that was not counted.
        source: Records of the source; None where it was not available.
        unproved: Checks that could not be made, in sentences.
        unverified: Promises of the job that were not counted, in sentences.
        sampled: Classes in which whole records were compared with the source, where labels overlap; None where all or no records were.
        persons: Counts of persons, or None; with them ``min_class``, ``failing`` and ``exposed`` count persons.
        linked: By linking columns of pseudonyms, counts of persons and of their sets of classes.
        one_value: By sensitive column, the classes in which all who have a value hold the same one, and the records in these.
        together: Counts of records or persons that several published columns single out, by kind of column; empty where not counted.
        losses: The information loss of each quasi-identifier's labels, by its name; empty where the types of the source are not known.
        passed: By column that is published untreated, its different values, the records that are alone with theirs, and those that have
            one; counted where records of the source are not published.
        published: The loss of each column that is not published as it is; empty where the source was not available.
        population: Rows of the population, and of its classes the records, the rows that their labels fit, and how many have both
            numbers; None without one.
    """

    records: int
    classes: int
    min_class: int
    failing: int
    exposed: int
    masked: int
    sizes: Mapping[int, int] = field(default_factory=dict)
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    withheld: Mapping[str, int] = field(default_factory=dict)
    source: int | None = None
    unproved: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    sampled: int | None = None
    persons: PersonCount | None = None
    linked: tuple[LinkCount, ...] = ()
    one_value: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    population: tuple[int, tuple[tuple[int, int, int], ...]] | None = None
    together: Mapping[Kind, TogetherCount] = field(default_factory=dict)
    losses: Mapping[str, ColumnLoss] = field(default_factory=dict)
    passed: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    published: Mapping[str, ColumnPublication] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The unit in which k was counted: ``person`` or ``record``."""
        return "person" if self.persons else "record"

    @property
    def unit_sizes(self) -> Mapping[int, int]:
        """Number of classes by size, in the unit of k."""
        return self.persons.sizes if self.persons else self.sizes

    @property
    def fully_suppressed_columns(self) -> frozenset[str]:
        """The quasi-identifiers in which every record has ``*``."""
        return frozenset(name for name, records in self.withheld.items() if records == self.records)

    @property
    def units(self) -> int:
        """The number of records or persons in the files, in the unit of k."""
        return self.persons.released if self.persons else self.records

    def in_persons(self, persons: PersonCount) -> Recount:
        """Return a copy whose class sizes and failures by k are those of persons."""
        return replace(self, persons=persons, min_class=persons.smallest, failing=persons.failing, exposed=persons.exposed)

    def fully_suppressed_units(self, masked_records: int) -> tuple[int, int]:
        """Return how many units have ``*`` in every quasi-identifier, and how many of them are masked.

        Units are those of k. The second number is 0 where persons count and other records have ``*`` everywhere as well.
        """
        if self.persons is None:
            return self.masked, masked_records
        return self.persons.masked, self.persons.masked if masked_records == self.masked else 0

    def unmasked_population(self, masked_records: int) -> tuple[int, Sequence[tuple[int, int, int]]]:
        """Return ``population`` without the class of masked records, unless it is the only one."""
        rows, classes = self.population or (0, ())
        starred, masked = self.fully_suppressed_units(masked_records)
        of_masked = (starred, rows) if masked and masked == starred else None
        left = [(held, fitting, number - ((held, fitting) == of_masked)) for held, fitting, number in classes]
        return rows, [one for one in left if one[2]] or classes


def recount_sql(source: str, qids: Sequence[str], k: int, *, by_qid: bool = False, sensitive: Sequence[str] = ()) -> str:
    """Return SQL that counts ``Recount``'s fields up to ``sizes``, ``*`` by QID, and one-value classes.

    It is right because GROUP BY takes nulls as equal, so a class is exactly the records that share one published combination.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published QID columns.
        by_qid: Whether the records with ``*`` are counted for each QID too, in a list in their order; else it is empty.
        sensitive: Quoted names of the columns of which it also counts the classes in which nobody has another value than the others, and
            the records in these, in a list of two numbers for each. A null is no value: a class with one value and nulls is one of them,
            and a class of nulls alone.
    """
    columns = ", ".join(qids)
    # As text, because a number is never a star; a null is none either, and = would make the whole row unknown.
    stars = [f"{qid}::VARCHAR IS NOT DISTINCT FROM '*'" for qid in qids]
    starred = " AND ".join(stars)
    each = "".join(f", {star} AS star_{number}" for number, star in enumerate(stars)) if by_qid else ""
    sums = ", ".join(f"coalesce(sum(records) FILTER (star_{number}), 0)::BIGINT" for number in range(len(qids) if by_qid else 0))
    alike = "".join(f", min({name}) IS NOT DISTINCT FROM max({name}) AS one_{number}" for number, name in enumerate(sensitive))
    alone = ", ".join(
        f"count(*) FILTER (one_{number}), coalesce(sum(records) FILTER (one_{number}), 0)::BIGINT" for number in range(len(sensitive))
    )
    return f"""
        WITH classes AS (
            SELECT count(*) AS records, {starred} AS masked{each}{alike}
            FROM {source} GROUP BY {columns}
        )
        SELECT coalesce(sum(records), 0)::BIGINT, count(*), coalesce(min(records), 0), count(*) FILTER (records < {k:d}),
            coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT, coalesce(sum(records) FILTER (masked), 0)::BIGINT,
            coalesce(histogram(records), MAP {{}}), [{sums}], [{alone}]
        FROM classes
    """


def column_faults(job: Job, columns: Sequence[str]) -> list[str]:
    """Return messages on columns of a data file that are missing or must not be published."""
    qids, payload = published_qids(job), published_payload(job)
    faults = []
    # DuckDB's names know no case: of two such columns it would count the first one twice.
    if len({name.lower() for name in columns}) < len(columns):
        return ["columns of the data files differ in nothing but upper and lower case"]
    if kept := [name for name in columns if name in job.columns.withheld]:
        faults.append(f"{listed(kept)} is withheld and must not be published")
    if raw := [name for name in columns if name in job.columns.dropped]:
        faults.append(f"{listed(raw)} is an identifier and must not be published")
    pseudonyms = [one.name for one in job.columns.pseudonyms]
    if lacking := [name for name in [*qids, *(payload or [*job.columns.sensitive, *pseudonyms])] if name not in columns]:
        faults.append(f"{listed(lacking)} is missing from the data files")
    if payload is not None and (more := [name for name in columns if name not in {*qids, *payload, *job.columns.columns_withheld}]):
        faults.append(f"{listed(more)} is published, but the job does not say so")
    # Bounds take the place of the column itself, so that the raw column beside them would be a leak.
    if raw := [qid.name for qid in job.columns.quasi_identifiers if qid.name not in qids and qid.name in columns]:
        faults.append(f"{listed(raw)} is published beside its bounds")
    return faults


def class_size_faults(job: Job, recount: Recount) -> list[str]:
    """Return a message if classes have fewer than k, somebody too many records, or nothing is published."""
    if not recount.records:
        return ["the data files hold no record"]
    if recount.persons and recount.persons.unexpected:
        return [
            f"of {recount.classes:,} classes, {recount.persons.unexpected:,} {verb_of(recount.persons.unexpected, 'are')} "
            "not those whose persons the run folder keeps"
        ]
    most = job.columns.most_records
    if recount.persons and most is not None and recount.persons.records_of_one > most:
        return [f"somebody has more than {counted(most, 'record')} in the data files"]
    if recount.failing:
        return [
            f"{recount.failing:,} of {recount.classes:,} classes {verb_of(recount.failing, 'have')} fewer than k = "
            f"{job.privacy.k:,} {recount.unit}s: "
            f"{counted(recount.exposed, 'record')} exposed, {recount.min_class:,} in the smallest class"
        ]
    return []


def suppression_faults(job: Job, suppressed_records: int, record_count: int) -> list[str]:
    """Return a message if more records were suppressed than the job's limit allows."""
    if suppressed_records > job.suppression.limit * record_count:
        return [
            f"{counted(suppressed_records, 'record')} of {record_count:,} {verb_of(suppressed_records, 'are')} suppressed, "
            f"more than the limit of {job.suppression.limit}"
        ]
    return []


def manifest_faults(job: Job, manifest: Manifest, recount: Recount) -> list[str]:
    """Return messages where manifest and counted files differ, or the suppression limit is not kept."""
    faults = contradicted_counts(manifest, recount, same_k=manifest.privacy.get("k") == job.privacy.k) + suppression_faults(
        job, manifest.failed, manifest.records
    )
    if job.suppression.is_local:
        faults += suppressed_record_faults(manifest, recount)
    if list(manifest.persons.columns if manifest.persons else ()) != job.columns.person:
        faults.append("the manifest does not say truly whose records k counts")
    if not one_value_counts_agree(manifest, recount):
        faults.append("the manifest does not say truly in how many classes everybody has one sensitive value")
    if recount.population and not _same_risk(manifest, population_risk_of_files(*recount.unmasked_population(manifest.masked))):
        faults.append("the manifest's risk in the population is not that of the classes in the files")
    # Numbers and dates are told by their hierarchy, or else by the manifest itself.
    ranged = {qid.name: qid.name in manifest.endpoints or qid.hierarchy.kind in RANGED for qid in job.columns.quasi_identifiers}
    if manifest.endpoints != endpoints_of(job, ranged, manifest.node, recount.fully_suppressed_columns):
        faults.append("the manifest does not say truly where ranges end")
    if recount.published and manifest.published != recount.published:
        faults.append("the manifest does not say truly what columns lost that are published otherwise than they are")
    if manifest.pseudonyms != pseudonym_sentence(job):
        faults.append("the manifest does not say truly which columns are pseudonyms")
    # Against another k other counts were made, which say nothing of the manifest's.
    if manifest.privacy.get("k") == job.privacy.k:
        faults += combination_claims(manifest, recount.together, recount.unit, recount.units)
    return faults + link_claims(job, manifest, recount.linked)


def one_value_counts_agree(manifest: Manifest, recount: Recount) -> bool:
    """Return whether a manifest's counts of classes with one sensitive value agree with the recount.

    Where the release was counted by persons and the persons are not available, there may be more such classes than the records show.
    """
    said = {name: (one.classes, one.records) for name, one in manifest.one_value.items()}
    if manifest.persons is None or recount.persons:
        return said == recount.one_value
    found = recount.one_value
    return said.keys() == found.keys() and all(said[name][0] >= found[name][0] and said[name][1] >= found[name][1] for name in said)


def _same_risk(manifest: Manifest, found: Mapping[str, int | float]) -> bool:
    """Return whether a manifest's risk in the population equals the given figures, up to float rounding."""
    said = dict(manifest.population) if manifest.population else {}
    return said.keys() == found.keys() and all(isclose(said[name], value, rel_tol=1e-9) for name, value in found.items())


def suppressed_record_faults(manifest: Manifest, recount: Recount) -> list[str]:
    """Return messages on a manifest's counts of suppressed records that contradict the files."""
    remainder = manifest.remainder
    if remainder is None:
        return ["the manifest does not say what became of the records that fail at its levels"]
    faults = [
        f"the manifest says that {counted(said, 'record')} {verb_of(said, 'publish')} * in '{qid}', the files hold "
        f"{recount.withheld.get(qid, 0):,}"
        for qid, said in remainder.withheld.items()
        if said != recount.withheld.get(qid, 0)
    ]
    if sum(one.records for one in remainder.rounds) + remainder.starred + manifest.suppressed > remainder.records:
        faults.append("the manifest's records of rounds, starred and suppressed are more than fail at its levels")
    return faults


def follows_from_labels(manifest: Manifest) -> bool:
    """Return whether a release's figures follow from its labels alone, without the source.

    Earlier versions publish figures of their search, which follow from the source.
    """
    return set(manifest.search) <= {"nodes", "orders_learnt"}


def contradicted_counts(manifest: Manifest, recount: Recount, *, same_k: bool = True) -> list[str]:
    """Return messages on counts of records, classes and persons that manifest and files state differently.

    Args:
        same_k: Whether persons were counted by the manifest's k.
    """
    claims = {
        "released": (manifest.released, recount.records),
        "classes": (manifest.classes, recount.classes),
        # Others may publish * everywhere as well, by their level; fewer than the masked ones cannot be.
        "masked": (manifest.masked, min(manifest.masked, recount.masked)),
    }
    # In another unit, a size says nothing about the manifest's.
    if manifest.persons is None or recount.persons:
        claims["min_class"] = (manifest.min_class, recount.min_class)
    if manifest.persons and (found := recount.persons):
        claims["persons.released"] = (manifest.persons.released, found.released)
        claims["persons.smallest_class"] = (manifest.persons.smallest_class, found.smallest)
        if same_k and follows_from_labels(manifest):
            claims["persons.most_records"] = (manifest.persons.most_records, found.most_records)
    faults = _share_faults(manifest, recount)
    faults += [f"the manifest says {name} = {said:,}, the files hold {held:,}" for name, (said, held) in claims.items() if said != held]
    if recount.source is not None and manifest.records != recount.source:
        faults.append(f"the manifest says records = {manifest.records:,}, the source holds {recount.source:,}")
    if manifest.records - recount.records != manifest.suppressed - manifest.masked:
        faults.append("the manifest's records, released, suppressed and masked do not add up")
    return faults + _band_faults(manifest, recount)


def _share_faults(manifest: Manifest, recount: Recount) -> list[str]:
    """Return a message if the manifest's largest share of one person in a class differs from the recount."""
    said = manifest.persons.largest_share if manifest.persons else None
    if said is None or recount.persons is None or said == share_at_most(recount.persons.largest_share):
        return []
    share = share_text(said, 0)
    return [f"the manifest says that one person holds at most {share} of the records of a class, which is not what was counted"]


def _band_faults(manifest: Manifest, recount: Recount) -> list[str]:
    """Return a message if the manifest's class sizes by persons differ from the recount."""
    if recount.persons is None:
        return []
    sizes = unmasked_class_sizes(recount.persons.sizes, *recount.fully_suppressed_units(manifest.masked))
    for band in manifest.person_sizes:
        mine = {size: classes for size, classes in sizes.items() if band.least <= size <= (band.most or size)}
        if (band.classes, band.records) != (sum(mine.values()), sum(size * classes for size, classes in mine.items())):
            return ["the manifest's classes by persons are not those of the files"]
    return []
