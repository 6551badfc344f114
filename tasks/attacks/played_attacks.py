"""The attacks on a release, against people as its labels show them and against people of its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.attacks.attacked_tables import (
    NO_VALUE,
    AttackedPeople,
    AttackedRelease,
    Codes,
    Guesses,
    added_guesses,
    joint_codes,
    label_fits,
    people_known_by_labels,
    people_with_value,
    recombined_people,
    with_values_of_others,
)
from core.attacks.inference import (
    MOST_LABELS,
    downcoding_by_halves,
    inference_by_class,
    inference_by_learner,
    inference_from_left_out_persons,
)
from core.attacks.record_attacks import (
    LEAST_DIGITS,
    linkage_by_columns,
    linkage_by_order,
    linkage_by_pseudonyms,
    linkage_with_noise,
    membership_by_class,
    membership_by_digests,
    persons_within,
    singled_out_by_both,
    singled_out_by_ends,
    singled_out_by_labels,
    singled_out_by_value,
    singled_out_in_source,
    small_and_random_classes,
)
from schemas.job.columns import REST
from schemas.job.job import Job
from schemas.job.privacy import AttackSettings
from schemas.release.manifest import has_class_ranges, has_rank_bins
from tasks.attacks.source_people import CodedRelease, MatchedPeople, SourceAxis, SourcePeople, matched_people

AT_ONCE = 6_000_000
"""Labels that are compared with people at once: people times classes times quasi-identifiers."""
MOST_PREDICATES, ROWS_OF_PREDICATES = 200, 2_000_000
"""Classes whose labels are compared with the source, and records times classes at most."""
LEAST_PEOPLE, LEAST_CONTROL, MOST_IDENTIFIERS = 50, 30, 300


@dataclass(frozen=True)
class AttackPlan:
    """What attacks need: the job, its attack settings, and the share of source records not released.

    Attributes:
        job: The job.
        settings: Its attack settings.
        missing: Share of the source's records that are not in the release.
    """

    job: Job
    settings: AttackSettings
    missing: float = 0.0

    def random(self) -> np.random.Generator:
        """Return a new random generator from the seed of the settings."""
        return np.random.default_rng(self.settings.seed)

    def draw_people(self, count: int, release: AttackedRelease, random: np.random.Generator) -> list[Codes]:
        """Draw row numbers to attack, each once: one array, several if all people are, none of an empty table.

        It is one part unless all people are attacked.
        """
        most = max(AT_ONCE // max(release.labels.size, 1), LEAST_PEOPLE)
        order = random.permutation(count)
        if self.settings.sample == "all":
            return np.array_split(order, -(-count // most)) if count else []
        return [order[: min(most, self.settings.sample)]] if count else []

    def sample_of(self, count: int) -> int:
        """Return how many of ``count`` possible guesses are made: all, or at most the settings' sample size."""
        return count if self.settings.sample == "all" else min(count, self.settings.sample)

    @property
    def promises(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings of l and t by column and model name; empty for jobs with a person column."""
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        if not self.job.columns.person:
            for kind, column, spec in self.job.privacy.models:
                found[column][kind.name] = spec
        return found


def label_attacks(plan: AttackPlan, coded: CodedRelease) -> list[Guesses]:
    """Run the attacks that need the release alone; return their guesses, an empty list without records."""
    release, random = coded.release, plan.random()
    if not release.records:
        return []
    played = [singled_out_by_labels(release, plan.job.privacy.k, plan.sample_of(release.records), random)]
    played += _by_columns(plan, coded, random)
    parts = []
    for chosen in plan.draw_people(release.records, release, random):
        people = people_known_by_labels(release, chosen)
        parts.append(_against_people(plan, release, people, recombined_people(people, random), None, random))
    return played + _added(parts)


def _by_columns(plan: AttackPlan, coded: CodedRelease, random: np.random.Generator) -> Iterator[Guesses]:
    """Attack by other columns than the labels: singling out by values, linkage by pseudonyms."""
    columns, release = plan.job.columns, coded.release
    pseudonyms = [one.name for one in columns.pseudonyms]
    named = {*columns.sensitive, *pseudonyms, *(() if columns.insensitive == REST else columns.insensitive)}
    for name, codes in release.values.items():
        known = name in named or columns.insensitive == REST
        if name in pseudonyms or not np.any(codes >= 0):
            continue
        sample = plan.sample_of(release.records)
        if release.is_complete:
            shared = columns.ways.get(name) == "shared" and not columns.person
            yield singled_out_by_value(release, name, plan.job.privacy.k, sample, promises_shared_values=shared, is_published=known)
        yield singled_out_by_both(release, name, sample, random)
    if release.is_complete:
        for names in columns.links:
            # Where persons are counted, only their own pseudonyms tell whose records are whose.
            if all(name in release.values for name in names) and (not columns.person or list(names) == columns.person):
                accepted = all(name in columns.linkable for name in names)
                yield linkage_by_pseudonyms(_under_one_name(release, names), ", ".join(names), plan.job.privacy.k, is_accepted=accepted)


def _under_one_name(release: AttackedRelease, names: tuple[str, ...]) -> AttackedRelease:
    """Return the release with some columns joined to one."""
    codes = np.stack([release.values[name] for name in names], axis=1)
    joint = np.where((codes < 0).any(axis=1), NO_VALUE, joint_codes(codes))
    return AttackedRelease(
        release.owners, release.sizes, release.labels, {", ".join(names): joint}, release.file_positions, release.is_complete
    )


def _against_people(
    plan: AttackPlan,
    release: AttackedRelease,
    people: AttackedPeople,
    control: AttackedPeople,
    valued_control: AttackedPeople | None,
    random: np.random.Generator,
) -> list[Guesses]:
    """Run linkage, membership and inference attacks against people and a control group.

    Args:
        people: People of the release.
        control: Other people: left out of the release, or made up.
        valued_control: People left out, with known values; None to exchange the values of ``people`` instead.
        random: Draws.
    """
    k = plan.job.privacy.k
    played = [
        linkage_by_columns(release, people, control, k, random, half_of_columns=False),
        linkage_by_columns(release, people, control, k, random, half_of_columns=True),
        linkage_with_noise(release, people, control, k, random),
        membership_by_class(release, people, control),
    ]
    for column in plan.job.columns.sensitive:
        if column not in people.values or not len(release.sizes):
            continue
        # The distribution of all records is known of a complete reading only.
        bounded = plan.promises.get(column, {}) if release.is_complete else {}
        mine = people_with_value(people, column)
        others = people_with_value(valued_control, column) if valued_control else with_values_of_others(mine, random)
        played += inference_by_class(release, column, mine, others, bounded, plan.missing)
        played.append(inference_by_learner(release, column, mine, others))
    return played


def _added(parts: list[list[Guesses]]) -> list[Guesses]:
    """Add up guesses over parts of the people; attacks on all classes are counted once."""
    return [one[0] if one[0].promised else added_guesses(list(one)) for one in zip(*parts, strict=True)]


def source_attacks(plan: AttackPlan, coded: CodedRelease, source: SourcePeople, published: Collection[str]) -> list[Guesses]:
    """Attack people of the source; return guesses, not to be published; empty without records or people.

    Args:
        published: Hexadecimal texts in the release.
    """
    release, random = coded.release, plan.random()
    if not release.records or not len(source):
        return []
    parts, downcoded = [], []
    for chosen in plan.draw_people(len(source), release, random):
        matched = matched_people(release, source, chosen)
        left_out = matched.outside if len(matched.outside) >= LEAST_CONTROL else None
        control = left_out or recombined_people(matched.inside, random)
        played = _against_people(plan, release, matched.inside, control, left_out, random)
        if source.is_complete and release.is_complete:
            certain = np.flatnonzero(matched.certain)
            played.append(linkage_by_order(release, matched.inside.chosen_people(certain), matched.rows[certain]))
        parts.append(played)
        downcoded.append(_downcoded(plan, release, source, matched, random))
    found = _added(parts) + _added(downcoded)
    if source.is_complete:
        found += [*_singled_out(plan, release, source, random), *_by_ends(plan, source, random)]
        found += _by_left_out(plan, release, source, random) if release.is_complete else []
    return found + _by_digests(source, published, random)


def _downcoded(
    plan: AttackPlan, release: AttackedRelease, source: SourcePeople, matched: MatchedPeople, random: np.random.Generator
) -> list[Guesses]:
    played = []
    owners = release.owners[matched.inside.records]
    for place, (qid, axis) in enumerate(zip(plan.job.columns.quasi_identifiers, source.axes, strict=True)):
        if 0 < len(axis.spans.low) <= MOST_LABELS:
            labels = release.labels[:, place]
            records = np.bincount(labels, release.sizes, minlength=len(axis.spans.low)).astype(np.int64)
            people = labels[owners], axis.positions[matched.rows]
            played.append(downcoding_by_halves(qid.name, axis.spans.low, axis.spans.high, records, *people, axis.positions, random))
    return played


def _singled_out(plan: AttackPlan, release: AttackedRelease, source: SourcePeople, random: np.random.Generator) -> Iterator[Guesses]:
    """Count the people of the source that match the labels of classes, and mixed labels as control."""
    count = max(min(MOST_PREDICATES, ROWS_OF_PREDICATES // max(len(source), 1)), 8)
    chosen = small_and_random_classes(release, min(count, plan.sample_of(len(release.sizes))), random)
    mine = release.labels[chosen]
    made = np.where(np.arange(mine.shape[1]) < (mine.shape[1] + 1) // 2, mine, mine[random.permutation(len(mine))])
    counts, others = (persons_within(_fits_of_all(source.axes, labels), source.persons) for labels in (mine, made))
    yield singled_out_in_source(counts, others, plan.job.privacy.k)


def _by_left_out(plan: AttackPlan, release: AttackedRelease, source: SourcePeople, random: np.random.Generator) -> Iterator[Guesses]:
    """Attack sensitive values of persons who were left out, for columns with l or t.

    Where labels overlap, the combination of a record is unknown, and nothing is attacked.
    """
    columns = [name for name in plan.promises if name in source.values]
    owners = [axis.spans.label_of_positions(axis.spans.null + 1) for axis in source.axes] if columns else []
    if not columns or any(one is None for one in owners):
        return
    labels = [one[axis.positions] for one, axis in zip(owners, source.axes, strict=True) if one is not None]
    for column in columns:
        mine = np.stack(labels, axis=1).astype(np.int64), source.values[column]
        yield inference_from_left_out_persons(release, column, *mine, plan.job.privacy.k, plan.sample_of(len(source)), random)


def _fits_of_all(axes: list[SourceAxis], labels: Codes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which records of the source match which labels, shape (n, m), boolean."""
    found = np.ones((len(axes[0].positions), len(labels)), np.bool_)
    for place, axis in enumerate(axes):
        found &= label_fits(axis.spans, np.arange(axis.spans.null + 1), labels[:, place])[axis.positions]
    return found


LARGEST = int(np.iinfo(np.int64).max)
"""Whole numbers beyond it are not drawn."""


def _by_ends(plan: AttackPlan, source: SourcePeople, random: np.random.Generator) -> Iterator[Guesses]:
    """Single out people by the ends of integer ranges; control: as many random integers of their span."""
    for qid, axis in zip(plan.job.columns.quasi_identifiers, source.axes, strict=True):
        if not (has_class_ranges(plan.job, qid) or has_rank_bins(qid)) or not pt.is_integer(axis.values.type) or not len(axis.ends):
            continue
        counts = _people_of_values(axis, source)
        least, most = (int(one.as_py()) for one in pc.min_max(axis.values).values())
        if most > LARGEST:
            continue
        drawn = np.sort(random.integers(least, most, len(axis.ends), endpoint=True))
        values = np.asarray(axis.values.cast(pa.int64()))
        places = np.minimum(np.searchsorted(values, drawn), len(values) - 1)
        others = np.where(values[places] == drawn, counts[axis.order[places]], 0)
        mine = np.where(axis.ends >= 0, counts[axis.ends], 0)
        observed = not plan.job.shared_ends or has_rank_bins(qid)
        yield singled_out_by_ends(qid.name, mine, others, allows_observed_ends=observed)


def _people_of_values(axis: SourceAxis, source: SourcePeople) -> Codes:
    """Return the number of people with the value at each position."""
    if source.persons is None:
        return np.bincount(axis.positions, minlength=axis.spans.null + 1)
    held = source.persons >= 0
    width = int(source.persons.max(initial=0)) + 1
    pairs = np.unique(axis.positions[held] * width + source.persons[held])
    return np.bincount(pairs // width, minlength=axis.spans.null + 1)


def _by_digests(source: SourcePeople, published: Collection[str], random: np.random.Generator) -> list[Guesses]:
    if not published:
        return []
    played = []
    for name, texts in source.identifiers.items():
        held = texts.drop_null()
        some = held.take(pa.array(random.permutation(len(held))[:MOST_IDENTIFIERS])).to_pylist()
        played.append(membership_by_digests(name, some, [f"{text[::-1]}?" for text in some], published))
    return played


def hexadecimal_texts(coded: CodedRelease) -> set[str]:
    """Return the text values of a release that look like hexadecimal digests, in lower case."""
    found: set[str] = set()
    for values in coded.values.values():
        if pt.is_string(values.type) or pt.is_large_string(values.type):
            looks = pc.match_substring_regex(values, f"^[0-9a-fA-F]{{{LEAST_DIGITS},128}}$")
            found |= {text.lower() for text in values.filter(looks).to_pylist() if text}
    return found
