"""What a run has to do with the last one: which files are new, and what had been counted before it began."""

from __future__ import annotations

from schemas.job.job import Job
from schemas.release.increments import Increment, SourceDigest
from tasks.composition.ledger import Entry, last_entry
from tasks.counting.chunk_histograms import OF_CHUNK
from tasks.counting.domains import chunk_key
from tasks.engine.runs import Run
from tasks.release.keyed import keyed_file
from tasks.source.chunks import Source
from tasks.store.secret import Secret


def increment_of(run: Run, source: Source) -> Increment:
    """Compares the source with that of the last release, and looks up which of its chunks had been counted; counts nothing itself."""
    keys = [(chunk_key(run.job, chunk.key), chunk.rows) for chunk in source.chunks]
    # That there is a record is enough to tell: to see whether all is whole would be to read all that was ever counted.
    there = (run.store.recorded(step, [key for key, _ in keys]) for step in ("domains", OF_CHUNK))
    domains, histograms = ([rows for (_, rows), one in zip(keys, found, strict=True) if one] for found in there)
    last = last_entry(run.job, run.store)
    return Increment.model_validate(
        (_files(source, last) if last else {"since": None})
        | {
            "chunks": len(source.chunks),
            "domains_reused": len(domains),
            "domains_records": sum(domains),
            "histograms_reused": len(histograms),
            "histograms_records": sum(histograms),
        }
    )


def _files(source: Source, last: Entry) -> dict[str, str | int]:
    names, contents = {name for name, _, _ in last.files}, {digest for _, digest, _ in last.files}
    here, digests = {file.name for file in source.files}, {file.digest for file in source.files}
    unchanged = sum(file.digest in contents for file in source.files)
    # By content and not by name or time: a file that was moved or touched is not new.
    changed = sum(file.digest not in contents and file.name in names for file in source.files)
    gone = sum(name not in here and digest not in digests for name, digest, _ in last.files)
    new = len(source.files) - unchanged - changed
    return {"since": last.release, "unchanged": unchanged, "new": new, "changed": changed, "removed": gone}


def source_digests(job: Job, source: Source, secret: Secret) -> tuple[SourceDigest, ...]:
    """Returns the files of the source as a manifest tells them, in an order that says nothing."""
    told = all(file.rows >= job.privacy.k for file in source.files)
    digests = sorted((keyed_file(file.digest, secret), file.rows) for file in source.files)
    return tuple(SourceDigest(digest=digest, records=rows if told else None) for digest, rows in digests)
