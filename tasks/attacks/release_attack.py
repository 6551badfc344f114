"""Attacks on a release: its files as any reader has them, and its source as its holder has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from core.attacks.attacked_tables import Guesses
from core.attacks.record_attacks import membership_by_file_digests
from schemas.job.job import Job
from schemas.job.privacy import AttackBasis, AttackFigures, AttackSettings, broken_attacks
from schemas.reading.model import FrozenModel
from schemas.release.increments import Joined, Overlap
from tasks.attacks.played_attacks import AttackPlan, hexadecimal_texts, label_attacks, source_attacks
from tasks.attacks.source_people import read_release, read_source_people
from tasks.recount.original import NOT_AT_HAND, Original
from tasks.release.files import Csv, relation_of
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect, is_file_fault, is_out_of_memory
from tasks.store.keys import code_of

_DIGEST = re.compile(r"[0-9a-f]{32,128}")
EARLIER, OF_PSEUDONYMS = "an earlier release of the same people", "pseudonyms that earlier releases have too"


class AttackedFiles(NamedTuple):
    """The files of an attacked release, and its source if at hand.

    Attributes:
        files: The data files.
        layout: How CSV is read.
        original: The source; None where it is not at hand.
        manifest: The text of the manifest, whose digests are tried too; empty where there is none yet.
        records: Records of the source; 0 where unknown.
    """

    files: Sequence[Path]
    layout: Csv
    original: Original | None = None
    manifest: str = ""
    records: int = 0


class PlayedAttacks(FrozenModel):
    """Figures of attacks on labels and on people of the source, with the settings of the attacks.

    Attributes:
        labels: Figures of attacks on people as labels show them; they follow from the data files and may be published.
        source: Figures of attacks on people of the source; they are for its holder only.
    """

    labels: tuple[AttackFigures, ...]
    source: tuple[AttackFigures, ...]
    basis: AttackBasis

    @property
    def broken(self) -> list[AttackFigures]:
        """Return the attacks that win more than the job accepts."""
        return broken_attacks([*self.labels, *self.source])

    @property
    def published(self) -> tuple[AttackFigures, ...]:
        """Return the attacks to publish: all on labels, and, with zero counts, broken ones on the source.

        The latter are without figures.
        """
        return (*self.labels, *(without_figures(one) for one in broken_attacks(self.source)))


def without_figures(attack: AttackFigures) -> AttackFigures:
    """Return a copy of an attack's figures with zero counts and advantage, which disclose the source."""
    counts = dict.fromkeys(("guesses", "right", "control_guesses", "control_right"), 0)
    return attack.model_copy(update=counts | dict.fromkeys(("advantage", "low", "high"), 0.0))


def attack_release(job: Job, settings: AttackSettings, attacked: AttackedFiles, spill: Path) -> PlayedAttacks:
    """Run all attacks against a release's files; return the figures and, as text, which did not run.

    Args:
        settings: The number of people and the seed.
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
                unplayed.append(f"{NOT_AT_HAND.capitalize()}: only what labels show was attacked.")
            else:
                register_objects(connection, attacked.original.relation)
                published = hexadecimal_texts(coded) | set(_DIGEST.findall(attacked.manifest.lower()))
                people = read_source_people(connection, job, attacked.original, coded, settings.seed, with_identifiers=bool(published))
                source = source_attacks(plan, coded, people, published)
                if attacked.manifest:
                    source.append(membership_by_file_digests(attacked.original.digests, published))
        except (duckdb.Error, pa.ArrowException) as error:
            if isinstance(error, duckdb.Error) and (is_out_of_memory(error) or is_file_fault(error)):
                raise
            # The kind alone, because their words hold values.
            unplayed.append(f"Attacks could not be played: the columns cannot be read for them ({type(error).__name__}).")
    sample = None if settings.sample == "all" else settings.sample
    basis = AttackBasis(sample=sample, seed=settings.seed, code=attack_code(), unplayed=tuple(unplayed))
    return PlayedAttacks(labels=_figures(labels), source=_figures(source), basis=basis)


def _figures(played: Sequence[Guesses]) -> tuple[AttackFigures, ...]:
    return tuple(one.figures() for one in played if one.guesses)


@cache
def attack_code() -> str:
    """Return the fingerprint of the attacks' code, cached."""
    return code_of(__name__)


def earlier_attacks(overlaps: Sequence[Overlap], joined: Sequence[Joined], *, refused: bool) -> tuple[AttackFigures, ...]:
    """Return measured overlaps and joins with earlier releases as attack figures; skip unmeasured ones.

    Args:
        overlaps: Earlier releases of some of the same records.
        joined: Links to releases with the same pseudonyms.
        refused: Whether the job refuses releases that disclose more together; else it accepts them with a warning.
    """
    played = [
        Guesses("linkage", one.release, EARLIER, max(one.shared or 0, one.shared_at_risk), one.shared_at_risk, 0, 0, promised=refused)
        for one in overlaps
        if one.shared_at_risk is not None and (one.shared or one.shared_at_risk)
    ]
    played += [
        Guesses("joins", ", ".join(one.columns), OF_PSEUDONYMS, one.people, min(one.below_k, one.people), 0, 0, promised=refused)
        for one in joined
        if one.people and one.below_k is not None
    ]
    return _figures(played)
