"""A prefix of a bucket: objects that are put only where there is none, or only over what they were made from.

A put may fail for whoever asked and have happened all the same: an answer is lost, or the library had already tried again and met its own
object. So a refusal is believed only after a look at what lies there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from schemas.errors.base import SkaldError
from schemas.errors.storage import ObjectStoreError
from tasks.store.files import file_digest


def file_system(address: str) -> tuple[Any, str]:
    """Return fsspec's file system of an address, and the address as a path of it."""
    import fsspec  # noqa: PLC0415 - where nothing is in an object store, nothing of it is loaded

    with sanitised_errors(address):
        try:
            # Listings of an earlier run, or of before a crash, would hide what is there now.
            system, path = fsspec.core.url_to_fs(address, use_listings_cache=False)
        except ImportError:
            raise ObjectStoreError.not_installed(address.split("://", 1)[0]) from None
    return system, str(path)


@contextmanager
def sanitised_errors(address: str) -> Iterator[None]:
    """Turn whatever a store's library raises into one sentence; its own words may hold parts of a credential."""
    try:
        yield
    except (SkaldError, FileExistsError):
        raise
    except FileNotFoundError:
        raise ObjectStoreError.failed(address, "there is nothing of that name") from None
    except PermissionError:
        raise ObjectStoreError.failed(address, "access is denied") from None
    except Exception as error:  # botocore, aiohttp, gcsfs and adlfs have no base class in common
        raise ObjectStoreError.failed(address, type(error).__name__) from None


def object_within(system: Any, remote: str, most: int) -> bytes | None:
    """Return what an object holds that others can write; None where it is more than it may be, and then it is not read.

    Args:
        system: Of fsspec.
        remote: Where it is.
        most: How many bytes it may have.
    """
    size = int(system.info(remote)["size"])
    if size > most:
        return None
    # Not as much as there is by now; and of nothing, stores give no part.
    return bytes(system.cat_file(remote, end=size)) if size else b""


BLOCK = 1 << 22
MOST_BYTES = 100_000_000
"""Bytes of a small object, which is read whole."""


class BucketEntry(NamedTuple):
    """An object as it was when it was looked at: its size in bytes, and the tag that changes with it."""

    size: int
    tag: str


class Bucket:
    """The objects below an address.

    Attributes:
        address: Of all of them.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._system, self._root = file_system(address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bucket) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __reduce__(self) -> tuple[type[Bucket], tuple[str]]:
        # Another process makes its own connection, by its own credentials.
        return Bucket, (self.address,)

    def object_address(self, name: str) -> str:
        """Return the address of an object."""
        return f"{self.address}/{name}"

    def _key(self, name: str) -> str:
        return f"{self._root}/{name}"

    def object_entry(self, name: str) -> BucketEntry | None:
        """Return what can be told of an object without reading it; None if there is none."""
        with sanitised_errors(self.object_address(name)):
            try:
                info = self._system.info(self._key(name))
            except FileNotFoundError:
                return None
        return BucketEntry(int(info["size"]), str(info.get("ETag", ""))) if info["type"] == "file" else None

    def read(self, name: str) -> bytes | None:
        """Return the content of a small object; None if there is none."""
        with sanitised_errors(self.object_address(name)):
            try:
                content: bytes = self._system.cat_file(self._key(name), end=MOST_BYTES)
            except FileNotFoundError:
                return None
        return content

    def create(self, name: str, content: bytes) -> str | None:
        """Put an object where there is none, and returns its tag; None where another lies there."""
        return self._put(name, content, {"mode": "create"})

    def replace(self, name: str, content: bytes, tag: str) -> str | None:
        """Put an object over the one that has a tag, and returns the new tag; None where that one is gone or another lies there."""
        return self._put(name, content, {"IfMatch": tag})

    def write(self, name: str, content: bytes) -> None:
        """Put a small object, whatever lies there."""
        if self._put(name, content, {}) is None:
            raise ObjectStoreError.failed(self.object_address(name), "what was put is not there")

    def _put(self, name: str, content: bytes, condition: dict[str, str]) -> str | None:
        failed: Exception | None = None
        try:
            self._system.pipe_file(self._key(name), content, **condition)
        except Exception as error:  # as for `told`
            failed = error
        # The tag first: what changes between the two is then not taken for ours, whose content nobody else has.
        there = self.object_entry(name)
        if there and (not (failed or condition) or self.read(name) == content):
            return there.tag
        if failed and not is_refusal(failed):
            with sanitised_errors(self.object_address(name)):
                raise failed
        # Refused, or put over by another meanwhile: its tag is not of what was put.
        return None

    def upload(self, path: Path, name: str, sha256: str) -> None:
        """Put a file where its content is to be, whole or not at all; an object of the same content stays.

        Args:
            path: The file.
            name: Told by its digest, so that no other content belongs there.
            sha256: The digest.
        """
        with sanitised_errors(self.object_address(name)):
            try:
                self._system.put_file(str(path), self._key(name), mode="create")
            except FileExistsError:
                if self._digest(name) != sha256:
                    self._system.put_file(str(path), self._key(name))
            except Exception:  # as for `told`; what is there may have come of this put
                if self.object_entry(name) is None or self._digest(name) != sha256:
                    raise

    def download(self, name: str, path: Path, sha256: str) -> bool:
        """Copy an object to a path; return whether it is there and has the digest that it ought to have."""
        with sanitised_errors(self.object_address(name)):
            try:
                self._system.get_file(self._key(name), str(path))
            except FileNotFoundError:
                return False
        return file_digest(path) == sha256

    def _digest(self, name: str) -> str:
        with self._system.open(self._key(name), "rb") as file:
            digest = hashlib.sha256()
            while block := file.read(BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the sizes of all objects whose names begin with a folder's, as a listing tells them, which may lag behind."""
        with sanitised_errors(self.object_address(below)):
            found = self._system.find(self._key(below).rstrip("/"), detail=True)
        return {name.removeprefix(f"{self._root}/"): int(info["size"]) for name, info in found.items()}

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; those that are not there are gone already."""
        for name in names:
            with sanitised_errors(self.object_address(name)), suppress(FileNotFoundError):
                self._system.rm_file(self._key(name))


def is_refusal(error: BaseException) -> bool:
    """Return whether a store refused a condition: fsspec's error for it is any OSError, and the answer lies beneath."""
    if isinstance(error, FileExistsError | FileNotFoundError):
        return True
    return _code(error) in {"PreconditionFailed", "ConditionalRequestConflict", "412", "409", "NoSuchKey"}


def knows_no_condition(error: BaseException) -> bool:
    """Return whether a store says that it knows no such condition, as some that speak S3's language do."""
    return _code(error) in {"NotImplemented", "501"}


def _code(error: BaseException) -> str | None:
    answer = getattr(error.__cause__, "response", None)
    return str(answer.get("Error", {}).get("Code")) if isinstance(answer, dict) else None
