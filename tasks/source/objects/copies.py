"""Whole objects as files of this machine, for who looks at a source before there is a run."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tasks.source.locations import Located
from tasks.source.objects.pinned import copy_object
from tasks.store.keys import StepCode
from tasks.store.store import Store

FETCHED = StepCode("fetched", __name__)


def on_this_machine(one: Located, store: Store) -> Located:
    """Returns a file of a source as it lies here; of an object, a copy among the artefacts, as the object was listed.

    Raises:
        SourceError: the object is another one by now, or gone.
        ObjectStoreError: it cannot be read.
        StorageError: the disk is full or the folder cannot be written.
    """
    if one.path is not None or one.stat is None:
        return one
    name, stat = one.name, one.stat

    def write(part: Path) -> int:
        copy_object(name, stat, part)
        return 1

    made = store.make(FETCHED.name, FETCHED.key(name, stat), "".join(PurePosixPath(name).suffixes[-2:]), write)
    return one._replace(path=store.path(made), digest=made.sha256, stat=None)


def forget_copies(store: Store) -> None:
    """Removes all copies of objects; a run reads these where they are, and would never ask for them."""
    store.remove(FETCHED.name)
