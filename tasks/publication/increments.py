"""What a run has to do with the last one: which files are new, and what had been counted before it began."""

from __future__ import annotations

from schemas.job.job import Job
from schemas.release.figures import tellable
from schemas.release.increments import Increment, SourceDigest
from tasks.composition.release_history import Entry, last_entry
from tasks.counting.chunk_histograms import HISTOGRAMS
from tasks.counting.domains import DOMAINS, ChunkReading
from tasks.engine.runs import Run
from tasks.release.keyed import keyed_file
from tasks.source.chunks import ChunkedSource
from tasks.store.secret import FolderSecret


def increment_of(run: Run, source: ChunkedSource) -> Increment:
    """Compares the source with that of the last release, and looks up which of its chunks had been counted; counts nothing itself."""
    reading = ChunkReading.of(run, source)
    keys = [(DOMAINS.key(reading, chunk), chunk.rows) for chunk in source.chunks]
    # That there is a record is enough to tell: to see whether all is whole would be to read all that was ever counted.
    there = (run.store.recorded(step, [key for key, _ in keys]) for step in (DOMAINS.name, HISTOGRAMS.name))
    domains, histograms = ([rows for (_, rows), one in zip(keys, found, strict=True) if one] for found in there)
    last = last_entry(run.job, run.store)
    return Increment.model_validate(
        (_files(source, last) if last else {"since": None})
        | {
            "chunks": len(source.chunks),
            "domains_reused": len(domains),
            "histograms_reused": len(histograms),
        }
        | _reused(run.job, source.records, sum(domains), sum(histograms))
    )


def _reused(job: Job, records: int, domains: int, histograms: int) -> dict[str, int | None]:
    """Returns how many records were not counted again; None where what follows from it may be of fewer than k."""
    told = {"domains_records": domains if part_tellable(job, domains, records) else None}
    # What lies between both follows, too.
    between = told["domains_records"] is None or tellable(abs(domains - histograms), job.privacy.k)
    told["histograms_records"] = histograms if between and part_tellable(job, histograms, records) else None
    return told


def part_tellable(job: Job, records: int, *totals: int) -> bool:
    """Tells whether it may be told how many records a part of the source has.

    Whose they are nobody counted: where k counts people only none of the records, or all of them, are surely of none or of k.

    Args:
        job: The job.
        records: Of the part.
        *totals: That are told, too, and hold the part.
    """
    if job.columns.person:
        return records == 0 or all(records == total for total in totals)
    return tellable(records, job.privacy.k, *totals)


def _files(source: ChunkedSource, last: Entry) -> dict[str, str | int]:
    names, contents = {name for name, _, _ in last.files}, {digest for _, digest, _ in last.files}
    here, digests = {file.name for file in source.files}, {file.digest for file in source.files}
    unchanged = sum(file.digest in contents for file in source.files)
    # By content and not by name or time: a file that was moved or touched is not new.
    changed = sum(file.digest not in contents and file.name in names for file in source.files)
    gone = sum(name not in here and digest not in digests for name, digest, _ in last.files)
    new = len(source.files) - unchanged - changed
    return {"since": last.release, "unchanged": unchanged, "new": new, "changed": changed, "removed": gone}


def source_digests(job: Job, source: ChunkedSource, secret: FolderSecret) -> tuple[SourceDigest, ...]:
    """Returns the files of the source as a manifest tells them, in an order that says nothing."""
    told = all(part_tellable(job, file.rows, source.records) for file in source.files)
    digests = sorted((file.rows, keyed_file(file.digest, secret)) for file in source.files)
    return tuple(SourceDigest(digest=digest, records=rows if told else None) for rows, digest in digests)
