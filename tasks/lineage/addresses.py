"""From which sources a release was made, as addresses of folders and files: never of records, and without a value of a cell."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath
from typing import NamedTuple

from schemas.job.job import Job
from schemas.release.manifest import Manifest

MOST_CHARACTERS = 500
QUERY = "postgresql://query"
_UNFIT = re.compile(r"[\s\0#?&%\"'<>\[\]{}|\\^`]")


class Lineage(NamedTuple):
    """What a release is made of.

    Attributes:
        release: Address of its folder.
        sources: Addresses of the folders or files that the job names, each once.
        facts: Figures of the manifest.
    """

    release: str
    sources: tuple[str, ...]
    facts: dict[str, str | int]


def lineage_of(job: Job, manifest: Manifest) -> Lineage:
    """Returns the lineage of a release; a pattern counts as the folder above its first wildcard, so that there are few sources."""
    facts: dict[str, str | int] = {
        "release": manifest.release,
        "method": manifest.method,
        "job": manifest.job,
        "inputs": manifest.inputs,
        "k": job.privacy.k,
        "records": manifest.records,
        "released": manifest.released,
        "suppressed": manifest.suppressed,
        "classes": manifest.classes,
        "min_class": manifest.min_class,
        "optimal": manifest.optimal,
    }
    return Lineage(asset_address(job.release_location(manifest.release)), sources_of(job), facts)


def sources_of(job: Job) -> tuple[str, ...]:
    """Returns the addresses of the folders or files that a job reads, each once."""
    # Of a database neither address nor statement: a statement may hold values.
    plain = [_plain_part(path, hive=job.source.hive) for path in job.source.path or [QUERY]]
    return tuple(dict.fromkeys(asset_address(path if "://" in path else str(job.folder / path)) for path in plain))


def asset_address(path: str) -> str:
    """Returns a path as an address of at most 500 characters: Prefect's keys of assets know no escapes, so that others become ``_``."""
    text = _UNFIT.sub("_", path if "://" in path else f"file://{PurePath(path).as_posix()}")
    # Paths that are long differ at the end most of all, which is cut off: the digest tells them apart.
    digest = hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()[:32]
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 33]}~{digest}"


def _plain_part(pattern: str, *, hive: bool) -> str:
    """Returns a path above its first wildcard and, of a partitioned source, above the first folder that is called by a value."""
    parts = pattern.split("/")
    ends = re.compile(r"[*?\[=]" if hive else r"[*?\[]")
    plain = next((number for number, part in enumerate(parts) if ends.search(part)), len(parts))
    return "/".join(parts[:plain])
