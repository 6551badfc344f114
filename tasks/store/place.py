"""Places that keep files by name: a folder of this machine, or a prefix of a bucket.

A job names two of them, one for its work and one for its releases. Whether each is a folder or a prefix is decided here and nowhere else.

A put into a bucket may fail for the caller and have happened all the same: an answer is lost, or the library had already tried again and
met its own object. So a refusal is believed only after a look at the object.
"""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from schemas.errors.base import SkaldError
from schemas.errors.storage import ObjectStoreError
from schemas.job.job import Job
from schemas.job.source import is_address
from schemas.reading.regular_files import content_of
from tasks.store.files import file_digest, private_folder, real_path, write_atomically

BLOCK = 1 << 22
MOST_BYTES = 100_000_000
"""Bytes of a small file, which is read whole."""


@dataclass(unsafe_hash=True)
class Place(ABC):
    """Interface of a folder or bucket prefix that keeps files by name, with ``/`` between folders.

    Attributes:
        location: Its path or address.
    """

    location: str

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        # Another process makes its own connection, by its own credentials.
        return type(self), (self.location,)

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that the place is; None for a prefix of a bucket."""
        return None

    def below(self, name: str) -> Self:
        """Return the place of a folder within this place, without creating it."""
        return type(self)(self.location_of(name))

    def location_of(self, name: str) -> str:
        """Return the path or address of a file of this name, which need not exist."""
        return f"{self.location}/{name}"

    @abstractmethod
    def contains(self, location: str) -> bool:
        """Return whether a path or address lies in this place."""

    @abstractmethod
    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes | None:
        """Return the content of a small file; None if there is none, empty bytes if it cannot be read.

        Args:
            name: The file, which others may have written.
            most_bytes: How many bytes it may have.
        """

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Write a small file atomically, over any other of that name."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Return whether a file of this name exists."""

    @abstractmethod
    def names(self, below: str = "") -> list[str]:
        """Return the names of all files, or of those within a folder of the place."""

    @abstractmethod
    def matching(self, pattern: str) -> list[str]:
        """Return the names of the files that match a pattern, as ``glob`` reads it."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files in the given order; missing ones are skipped."""


class FolderPlace(Place):
    """A folder of this machine as a place; its files are private to their owner."""

    @property
    def folder(self) -> Path:
        """The folder as a path."""
        return Path(self.location)

    def contains(self, location: str) -> bool:
        """Return whether a path lies in the folder, as written or with links followed."""
        if is_address(location):
            return False
        path, folder = Path(location), self.folder
        return any(one.is_relative_to(above) for one in (path, real_path(path)) for above in (folder, real_path(folder)))

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes | None:
        """Return a regular file's content; None if missing, empty bytes for a link or an unreadable file."""
        try:
            return content_of(self.folder / name, most_bytes, may_be_link=False)
        except FileNotFoundError:
            return None
        except OSError:
            return b""

    def write(self, name: str, content: bytes) -> None:
        """Write a small private file atomically, with missing folders, over any other of that name."""
        path = self.folder / name
        private_folder(path.parent)
        write_atomically(path, lambda part: part.write_bytes(content))

    def exists(self, name: str) -> bool:
        """Return whether a file of this name exists."""
        return (self.folder / name).is_file()

    def names(self, below: str = "") -> list[str]:
        """Return the sorted names of all files, without those that begin with a dot."""
        found = os.walk(self.folder / below)
        paths = (Path(folder, name).relative_to(self.folder).as_posix() for folder, _, names in found for name in names if name[0] != ".")
        return sorted(paths)

    def matching(self, pattern: str) -> list[str]:
        """Return the names of the files that match a pattern."""
        return [path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern)]

    def remove(self, names: Iterable[str]) -> None:
        """Remove files in the given order; missing ones are skipped."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)


def file_system(address: str) -> tuple[Any, str]:
    """Return fsspec's file system of an address, and the address as a path in it."""
    import fsspec  # noqa: PLC0415 - where nothing is in an object store, nothing of it is loaded

    with sanitised_errors(address):
        try:
            # Not by `url_to_fs`, which takes `::` in a name for a file system within another.
            scheme = address.split("://", 1)[0]
            said = fsspec.get_filesystem_class(scheme)._get_kwargs_from_urls(address)
            # Listings of an earlier run, or of before a crash, would hide what is there now.
            system = fsspec.filesystem(scheme, **said, use_listings_cache=False)
            path = system._strip_protocol(address)
        except ImportError:
            raise ObjectStoreError.not_installed(address.split("://", 1)[0]) from None
    return system, str(path)


@contextmanager
def sanitised_errors(address: str) -> Iterator[None]:
    """Replace errors of a store's library in the block by ``ObjectStoreError`` without their texts."""
    try:
        yield
    except (SkaldError, FileExistsError):
        raise
    except FileNotFoundError:
        raise ObjectStoreError.failed(address, "there is nothing of that name") from None
    except PermissionError:
        raise ObjectStoreError.failed(address, "access is denied") from None
    except Exception as error:  # botocore, aiohttp, gcsfs and adlfs have no base class in common
        raise ObjectStoreError.failed(address, REASONS.get(type(error).__name__, type(error).__name__)) from None


REASONS = {
    "NoCredentialsError": "no credentials were found",
    "PartialCredentialsError": "the credentials are incomplete",
    "EndpointConnectionError": "nothing answers at the end point",
    "ConnectionClosedError": "the end point ended the connection",
    "ConnectTimeoutError": "no answer in time",
    "ReadTimeoutError": "no answer in time",
    "FlexibleChecksumError": "what came is not what the store has a checksum of",
}
"""What errors of S3's library mean, by their names; of others the name is told."""


class BucketEntry(NamedTuple):
    """Size in bytes and tag of an object; the tag changes with the content."""

    size: int
    tag: str


class Bucket(Place):
    """A prefix of a bucket as a place; writes can be conditional on an object's absence or tag."""

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        return file_system(self.location)

    @property
    def _system(self) -> Any:
        return self._opened[0]

    def _key(self, name: str) -> str:
        return f"{self._opened[1]}/{name}"

    def contains(self, location: str) -> bool:
        """Return whether an address begins with the prefix."""
        return is_address(location) and _spelled(location).startswith(_spelled(self.location))

    def entry(self, name: str) -> BucketEntry | None:
        """Return size and tag of an object without reading it; None if there is none."""
        with sanitised_errors(self.location_of(name)):
            try:
                info = self._system.info(self._key(name))
            except FileNotFoundError:
                return None
        return BucketEntry(int(info["size"]), str(info.get("ETag", ""))) if info["type"] == "file" else None

    def exists(self, name: str) -> bool:
        """Return whether an object of this name exists."""
        return self.entry(name) is not None

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes | None:
        """Return the content of a small object; None if there is none, empty bytes if it is too large."""
        with sanitised_errors(self.location_of(name)):
            try:
                content: bytes = self._system.cat_file(self._key(name), end=most_bytes + 1)
            except FileNotFoundError:
                return None
            except Exception:  # as for `sanitised_errors`; of nothing, stores give no part
                there = self.entry(name)
                if there is None or there.size:
                    raise
                return b""
        return content if len(content) <= most_bytes else b""

    def create(self, name: str, content: bytes) -> str | None:
        """Write an object where there is none and return its tag; None if there is one already."""
        return self._put(name, content, {"mode": "create"})

    def replace(self, name: str, content: bytes, tag: str) -> str | None:
        """Write an object over the version with a tag and return the new tag; None if that is gone."""
        return self._put(name, content, {"IfMatch": tag})

    def write(self, name: str, content: bytes) -> None:
        """Write a small object over any other of that name."""
        if self._put(name, content, {}) is None:
            raise ObjectStoreError.failed(self.location_of(name), "what was put is not there")

    def _put(self, name: str, content: bytes, condition: dict[str, str]) -> str | None:
        failed: Exception | None = None
        try:
            self._system.pipe_file(self._key(name), content, **condition)
        except Exception as error:  # as for `sanitised_errors`
            failed = error
        # The tag first: what changes between the two is then not taken for ours, whose content nobody else has.
        there = self.entry(name)
        if there and (not (failed or condition) or self.read(name) == content):
            return there.tag
        if failed and not _is_refusal(failed):
            with sanitised_errors(self.location_of(name)):
                raise failed
        # Refused, or put over by another meanwhile: its tag is not of what was put.
        return None

    def update(self, name: str, content: bytes) -> bool:
        """Write a small object over the version there now; return whether it then has this content.

        Where the store knows conditions, as S3's do, another version that was put meanwhile stays.
        """
        there = self.entry(name)
        if there and there.size == len(content) and self.read(name) == content:
            return True
        condition: dict[str, str] = {}
        if "s3" in self._system.protocol:
            condition = {"IfMatch": there.tag} if there else {"mode": "create"}
        with sanitised_errors(self.location_of(name)):
            try:
                self._system.pipe_file(self._key(name), content, **condition)
            except OSError as error:
                if condition and _code(error) in UNKNOWN_CONDITION:
                    self._system.pipe_file(self._key(name), content)
                    return True
                if not (condition and _is_refusal(error)):
                    raise
                # The library may have tried again, and met its own object.
                return self.read(name) == content
        return True

    def create_from(self, path: Path, name: str) -> None:
        """Upload a file as a new object; raise ``FileExistsError`` if the object exists."""
        with sanitised_errors(self.location_of(name)):
            # Stores that pass over the condition are asked first.
            if self.exists(name):
                raise FileExistsError
            self._create_from(path, name)

    def _create_from(self, path: Path, name: str) -> None:
        try:
            self._system.put_file(str(path), self._key(name), mode="create")
        except NotImplementedError:
            if self.exists(name):
                raise FileExistsError from None
            self._system.put_file(str(path), self._key(name))

    def upload(self, path: Path, name: str, sha256: str) -> None:
        """Upload a file as an object, over other content, unless the same content is there.

        Args:
            name: Of the object; no other content belongs there.
            sha256: The file's digest, in hex.
        """
        with sanitised_errors(self.location_of(name)):
            try:
                self._create_from(path, name)
            except FileExistsError:
                if self.digest(name) != sha256:
                    self._system.put_file(str(path), self._key(name))
            except Exception:  # as for `sanitised_errors`; what is there may have come of this put
                if self.entry(name) is None or self.digest(name) != sha256:
                    raise

    def download(self, name: str, path: Path, sha256: str | None = None) -> bool:
        """Copy an object to a path; return whether it was there and has the given digest, if any."""
        with sanitised_errors(self.location_of(name)):
            try:
                self._system.get_file(self._key(name), str(path))
            except FileNotFoundError:
                return False
        return sha256 is None or file_digest(path) == sha256

    def digest(self, name: str) -> str:
        """Read an object whole; return its SHA-256 in hex."""
        with sanitised_errors(self.location_of(name)), self._system.open(self._key(name), "rb", block_size=BLOCK) as file:
            digest = hashlib.sha256()
            while block := file.read(BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the bytes of all objects, or of those within a folder, by name.

        They come from a listing, which may lag behind.
        """
        with sanitised_errors(self.location_of(below)):
            found = self._system.find(self._key(below).rstrip("/"), detail=True)
        return {key.removeprefix(self._key("")): int(info["size"]) for key, info in found.items()}

    def names(self, below: str = "") -> list[str]:
        """Return the names of all objects, or of those within a folder of the prefix."""
        return list(self.sizes(below))

    def matching(self, pattern: str) -> list[str]:
        """Return the names of the objects that match a pattern."""
        with sanitised_errors(self.location):
            return [key.removeprefix(self._key("")) for key in self._system.glob(self._key(pattern))]

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects in the given order; missing ones are skipped."""
        for name in names:
            with sanitised_errors(self.location_of(name)), suppress(FileNotFoundError):
                self._system.rm_file(self._key(name))


def _spelled(address: str) -> str:
    return re.sub(r"^s3a://", "s3://", address).rstrip("/") + "/"


REFUSED = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409", "NoSuchKey"}
UNKNOWN_CONDITION = {"NotImplemented", "501"}
"""Answers of stores to a put on condition; some that speak S3's language know no conditions."""


def _is_refusal(error: BaseException) -> bool:
    # fsspec's error for it is any OSError, and the answer lies beneath.
    return isinstance(error, FileExistsError | FileNotFoundError) or _code(error) in REFUSED


def _code(error: BaseException) -> str | None:
    answer = getattr(error.__cause__, "response", None)
    return str(answer.get("Error", {}).get("Code")) if isinstance(answer, dict) else None


def place_of(location: str) -> Place:
    """Return a place object for a path or address, without opening it."""
    return Bucket(location) if is_address(location) else FolderPlace(location)


def target_of(job: Job) -> Place:
    """Return the place where a job publishes its releases."""
    return Bucket(job.target_address) if job.target_address else FolderPlace(str(job.target_path))


def work_of(job: Job) -> Place:
    """Return the place where a job keeps its artefacts."""
    return Bucket(job.work_address) if job.work_address else FolderPlace(str(job.work_path))
