"""Folder and files of a comparison's figures."""

from collections.abc import Callable
from pathlib import Path

from schemas.job.job import Job
from tasks.store.files import USER_UMASK, open_folder, write_atomically
from tasks.store.place import target_of


def comparison_folder(job: Job, to: Path | None) -> Path:
    """Return the folder of a comparison's figures: ``to``, or ``<target>-comparison`` by default.

    The default is next to the releases and never among them.
    """
    # An object store has no folder beside its releases: figures stay on this machine.
    beside = target_of(job).folder or job.resolve(Path(job.name))
    return to or beside.with_name(f"{beside.name}-comparison")


def write_figure(path: Path, write: Callable[[Path], int]) -> Path:
    """Write a file of figures atomically, with the permissions of the user's umask."""
    open_folder(path.parent)
    write_atomically(path, write, 0o666 & ~USER_UMASK)
    return path
