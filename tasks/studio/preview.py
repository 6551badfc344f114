"""Preview of a few classes of a sample, without labels that disclose rare values."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from core.columns.column_types import is_text
from schemas.job.job import Job
from tasks.studio.choices import SampleClasses
from tasks.studio.sample import PeopleSample, value_text

MOST_CLASSES = 10
_WORDS = re.compile(r"[^\s\[\](){},;|<>=]+")


class ShownClass(NamedTuple):
    """A class in the preview: its labels, None for hidden ones, and its number of people."""

    labels: list[str | None]
    people: int


class Preview(NamedTuple):
    """A few classes of a sample with their labels, and counts of all classes and people.

    Attributes:
        columns: Names of the published columns.
        shown: Some classes that enough people are in, from the largest to the smallest.
        classes: How many classes there are.
        smallest: People in the smallest.
        persons_left_out: People in none.
        people: How many were tried.
    """

    columns: list[str]
    shown: list[ShownClass]
    classes: int
    smallest: int
    persons_left_out: int
    people: int


def preview_of(job: Job, sample: PeopleSample, made: SampleClasses, least: int) -> Preview:
    """Return a preview: up to ten classes of at least ``least`` people, rare labels hidden, and counts.

    Args:
        job: The job.
        sample: The sample.
        made: Its classes.
        least: People who must be in a class, and share a value that a label names.
    """
    able = np.flatnonzero(made.sizes >= least)
    order = able[np.argsort(-made.sizes[able], kind="stable")]
    places = order[np.unique(np.linspace(0, len(order) - 1, min(MOST_CLASSES, len(order))).round().astype(int))] if len(order) else order
    rows = made.labels.take(places).to_pylist()
    # Labels that are made for a class may name a value of one of its people.
    rare = {name: _rare(job, sample, name, least) for name in made.labels.column_names}
    shown = [
        ShownClass([_label(one, rare[name]) for name, one in row.items()], int(made.sizes[place]))
        for row, place in zip(rows, places.tolist(), strict=True)
    ]
    return Preview(
        made.labels.column_names,
        shown,
        len(made.sizes),
        int(made.sizes.min()) if len(made.sizes) else 0,
        made.suppressed,
        int(made.sizes.sum()) + made.suppressed,
    )


class _Rare(NamedTuple):
    """The rare values of a column, and how labels are searched for them."""

    values: frozenset[str]
    text: bool
    whole: bool


def _rare(job: Job, sample: PeopleSample, column: str, least: int) -> _Rare:
    """Return the values of a column, as text, that fewer than ``least`` people share.

    Bounds of intervals count as values of their column.
    """
    names = [qid.name for qid in job.columns.quasi_identifiers]
    name = column if column in names else column.removesuffix("_low").removesuffix("_high")
    steps = job.columns.normalised.get(name, [])
    whole = job.method.name == "skald"
    return _Rare(sample.rare_values(name, least, steps), not whole and is_text(sample.domain(name, steps).values.type), whole)


def _label(value: object, rare: _Rare) -> str | None:
    """Return a label as text; None if it would disclose a rare value."""
    if value is None:
        return "null"
    label = value_text(value)
    named = label in rare.values or (not rare.whole and any(word in rare.values for word in _WORDS.findall(label)))
    return None if named or (rare.text and any(one and one in label for one in rare.values)) else label
