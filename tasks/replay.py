"""Replays: the classes of an earlier release, applied to other data instead of a search, as long as they mean the same and are safe."""

from __future__ import annotations

from core.histogram import Histogram
from core.lattice import Lattice, Node
from core.losses import loss_of
from core.search import Found
from core.sensitive import classes_of
from schemas.errors import PrivacyError, SkaldError, StorageError, listed
from schemas.job import Job
from schemas.job_digest import hierarchies_of, job_digest
from schemas.release import Manifest
from tasks.coding import Coding
from tasks.examination import Sought, most_suppressed
from tasks.verification import read_manifest


class ReplayError(SkaldError):
    """An earlier release cannot be applied to this job."""

    @classmethod
    def other_method(cls, release: str, theirs: str, mine: str) -> ReplayError:
        """The release was made by another algorithm."""
        return cls(f"Release '{release}' was made by method '{theirs}' and cannot be replayed by '{mine}'. Set method.name: {theirs}.")

    @classmethod
    def hierarchies_differ(cls, release: str, qids: list[str]) -> ReplayError:
        """Levels of one and of the other do not mean the same."""
        return cls(
            f"The quasi-identifiers or hierarchies of release '{release}' are not those of this job ({listed(qids)}), so its levels do not "
            "mean the same here. Replay it with the job that made it, or leave replay out."
        )

    @classmethod
    def levels_differ(cls, release: str, qids: list[str]) -> ReplayError:
        """The same hierarchy has another number of levels over these data."""
        return cls(
            f"The hierarchies of {listed(qids)} have another number of levels over this source than in release '{release}', because the "
            "columns are of another type, so its levels do not mean the same here. Leave replay out."
        )

    @classmethod
    def other_cuts(cls, release: str) -> ReplayError:
        """The cuts of a partition are found again by the settings that made them."""
        return cls(
            f"Release '{release}' was cut under other promises or settings of the method. Its cuts are replayed by a job of the same "
            "privacy and method; leave replay out."
        )

    @classmethod
    def not_kept(cls, release: str) -> ReplayError:
        """The cuts of a partition are found again from its counts, and these are gone."""
        return cls(
            f"The counts of release '{release}', from which its cuts are found again, are not in this run folder any more. Leave replay "
            "out, and keep the artefacts (artifacts: keep)."
        )

    @classmethod
    def in_fragments(cls, release: str) -> ReplayError:
        """Fragments, and relaxed cuts, are not replayed."""
        return cls(
            f"Release '{release}' cannot be replayed, because it or this source is cut in fragments or by relaxed cuts. Raise memory, or "
            "leave replay out."
        )

    @classmethod
    def not_recorded(cls, release: str) -> ReplayError:
        """The release is older than the record of its hierarchies, and another job's."""
        return cls(f"Release '{release}' does not say which hierarchies it was made with. Run its job again and replay that release.")


def replayed(job: Job) -> Manifest:
    """Returns the manifest of the release that the job replays, if its classes mean the same in this job; of a replay, what it replayed.

    Raises:
        StorageError: it is not a release.
        ReplayError: another algorithm made it, or with other hierarchies.
    """
    assert job.replay is not None
    folder = job.replay_path
    manifest = read_manifest(folder) if folder.is_dir() else None
    if manifest is None:
        raise StorageError.not_a_release(str(job.replay), "replay names a release of the target, or its folder relative to the job file")
    if manifest.method != job.method.name:
        raise ReplayError.other_method(manifest.release, manifest.method, job.method.name)
    if manifest.replay_of is not None:
        # What it replayed was replayed unchanged.
        return replayed(job.model_copy(update={"replay": folder.parent / manifest.replay_of}))
    mine = hierarchies_of(job)
    if not manifest.hierarchies:
        if manifest.job != job_digest(job.model_copy(update={"replay": None})):
            raise ReplayError.not_recorded(manifest.release)
    elif list(manifest.hierarchies.items()) != list(mine.items()):
        names = [*mine, *(name for name in manifest.hierarchies if name not in mine)]
        differing = [name for name in names if mine.get(name) != manifest.hierarchies.get(name)]
        raise ReplayError.hierarchies_differ(manifest.release, differing or names)
    return manifest


def replayed_root(job: Job, coding: Coding) -> Node:
    """Returns the node of the release that the job replays, with the axes of sensitive columns.

    Raises:
        ReplayError: its levels do not mean the same over these data.
    """
    manifest = replayed(job)
    assert manifest.node is not None
    tops = {hierarchy.qid: hierarchy.top for hierarchy in coding.hierarchies}
    if differing := [qid for qid, top in manifest.tops.items() if tops.get(qid) != top]:
        raise ReplayError.levels_differ(manifest.release, differing)
    return manifest.node + (0,) * len(coding.sensitive)


def applied(job: Job, coding: Coding, sought: Sought, counted: Histogram) -> Found:
    """Returns what the replayed node does to these data.

    Args:
        job: The job.
        coding: Domains and hierarchies.
        sought: The privacy model.
        counted: The cells of the node.

    Raises:
        PrivacyError: more records than the limit allows are in classes that fail.
    """
    assert job.replay is not None
    classes = classes_of(counted, coding.sensitive)
    loss = loss_of(classes.counts, sought.model.fails(classes.counts, classes.spreads))
    most = most_suppressed(job, sought.records)
    if loss.suppressed > most:
        raise PrivacyError.replay_fails(job.replay.name, loss.suppressed, sought.records, most)
    nodes = Lattice.allowed(coding.hierarchies).nodes
    return Found(counted.node, loss, None, nodes, 1, nodes - 1, (counted.node,))
