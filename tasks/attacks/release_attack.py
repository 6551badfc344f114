"""A release attacked: its files are read as anybody reads them, its source as only whoever has it can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from core.attacks.attacked_tables import Guesses
from core.attacks.record_attacks import digests_of_files
from schemas.attacks.figures import AttackBasis, AttackFigures, AttackSettings, broken_attacks
from schemas.job.job import Job
from schemas.release.increments import Joined, Overlap
from tasks.attacks.played_attacks import AttackPlan, hexadecimal_texts, label_attacks, source_attacks
from tasks.attacks.source_people import read_release, read_source_people
from tasks.recount.original import Original
from tasks.release.files import Csv, relation_of
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect
from tasks.store.keys import code_of

_DIGEST = re.compile(r"[0-9a-f]{32,128}")
EARLIER, OF_PSEUDONYMS = "an earlier release of the same people", "pseudonyms that earlier releases have too"


class AttackedFiles(NamedTuple):
    """What is attacked.

    Attributes:
        files: The data files.
        layout: How CSV is read.
        original: The source; None where it is not at hand.
        manifest: The text of the manifest, whose digests are tried too; empty where there is none yet.
        records: Records of the source; 0 where nobody says so.
    """

    files: Sequence[Path]
    layout: Csv
    original: Original | None = None
    manifest: str = ""
    records: int = 0


class PlayedAttacks(NamedTuple):
    """What attacks on a release came to.

    Attributes:
        labels: Against people as labels show them: figures that follow from the data files alone, and may stand in the release.
        source: Against people of the source: figures for whoever has that.
        basis: What they were played with.
    """

    labels: tuple[AttackFigures, ...]
    source: tuple[AttackFigures, ...]
    basis: AttackBasis

    @property
    def broken(self) -> list[AttackFigures]:
        """The attacks that win more than the job accepts."""
        return broken_attacks([*self.labels, *self.source])

    @property
    def published(self) -> tuple[AttackFigures, ...]:
        """What stands in the release: the figures of labels, and of the source that an attack breaks the release, without figures."""
        return (*self.labels, *(without_figures(one) for one in broken_attacks(self.source)))


def without_figures(one: AttackFigures) -> AttackFigures:
    """Return an attack with its verdict and no count, as its counts follow from the source."""
    counts = dict.fromkeys(("guesses", "right", "control_guesses", "control_right"), 0)
    return one.model_copy(update=counts | dict.fromkeys(("advantage", "low", "high"), 0.0))


def attack_release(job: Job, settings: AttackSettings, attacked: AttackedFiles, spill: Path) -> PlayedAttacks:
    """Play all attacks against the files of a release.

    Args:
        job: What was asked.
        settings: How many people, by which seed.
        attacked: The files, and what is known of them.
        spill: Folder for DuckDB's spill files.
    """
    labels, source, unplayed = list[Guesses](), list[Guesses](), list[str]()
    with connect(job, spill, last=True) as connection:
        try:
            relation = relation_of(connection, attacked.files, attacked.layout)
            coded = read_release(connection, relation, job, settings.seed)
            missing = max(1 - coded.records / attacked.records, 0.0) if attacked.records else 0.0
            plan = AttackPlan(job, settings, missing)
            labels = label_attacks(plan, coded)
            if attacked.original is None:
                unplayed.append("The source is not at hand as Parquet files of this machine: only what labels show was attacked.")
            else:
                register_objects(connection, attacked.original.relation)
                published = hexadecimal_texts(coded) | set(_DIGEST.findall(attacked.manifest.lower()))
                people = read_source_people(connection, job, attacked.original, coded, settings.seed, named=bool(published))
                source = source_attacks(plan, coded, people, published)
                if attacked.manifest:
                    source.append(digests_of_files(attacked.original.digests, published))
        except duckdb.OutOfMemoryException:
            raise
        except (duckdb.Error, pa.ArrowException) as error:
            # The kind alone, because their words hold values.
            unplayed.append(f"Attacks could not be played: the columns cannot be read for them ({type(error).__name__}).")
    sample = None if settings.sample == "all" else settings.sample
    basis = AttackBasis(sample=sample, seed=settings.seed, code=attack_code(), unplayed=tuple(unplayed))
    return PlayedAttacks(_figures(labels), _figures(source), basis)


def _figures(played: Sequence[Guesses]) -> tuple[AttackFigures, ...]:
    return tuple(one.figures() for one in played if one.guesses)


@cache
def attack_code() -> str:
    """Return the fingerprint of the code of the attacks."""
    return code_of(__name__)


def earlier_attacks(overlaps: Sequence[Overlap], joined: Sequence[Joined], *, refused: bool) -> tuple[AttackFigures, ...]:
    """Return what composition with earlier releases came to, as attacks; the counts are those that a release reports.

    Args:
        overlaps: Earlier releases of some of the same records.
        joined: What releases with the same pseudonyms disclose together.
        refused: Whether the job refuses releases that tell more together; else it accepts them with a warning.
    """
    played = [
        Guesses("linkage", one.release, EARLIER, one.shared, min(one.shared_at_risk, one.shared), 0, 0, promised=refused)
        for one in overlaps
        if one.shared and one.shared_at_risk is not None
    ]
    played += [
        Guesses("joins", ", ".join(one.columns), OF_PSEUDONYMS, one.people, min(one.below_k, one.people), 0, 0, promised=refused)
        for one in joined
        if one.people and one.below_k is not None
    ]
    return _figures(played)
