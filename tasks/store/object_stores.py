"""Object stores through fsspec: the one way in, for sources, releases and work; credentials come from the store's own chain.

Whatever fsspec is configured with (``FSSPEC_S3``, ``~/.config/fsspec``) holds for all of them: the end point, and the encryption at rest
that every put asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from schemas.errors.base import SkaldError
from schemas.errors.storage import ObjectStoreError


def file_system(address: str) -> tuple[Any, str]:
    """Returns fsspec's file system of an address, and the address as a path of it.

    Raises:
        ObjectStoreError: its package is not installed.
    """
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
    """Turns whatever a store's library raises into one sentence; its own words may hold parts of a credential.

    Raises:
        ObjectStoreError: something was raised inside the block.
    """
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
    """Returns what an object holds that others can write; None where it is more than it may be, and then it is not read.

    Args:
        system: Of fsspec.
        remote: Where it is.
        most: How many bytes it may have.

    Raises:
        FileNotFoundError: there is none.
    """
    size = int(system.info(remote)["size"])
    if size > most:
        return None
    # Not as much as there is by now; and of nothing, stores give no part.
    return bytes(system.cat_file(remote, end=size)) if size else b""
