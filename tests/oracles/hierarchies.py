"""Labels of hierarchies worked out value by value, with fractions, the calendar and dictionaries; and the domains to try them on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from schemas.job.columns import QuasiIdentifier

Number = int | float | Decimal


def quasi_identifier(spec: Mapping[str, Any], name: str = "x") -> QuasiIdentifier:
    """A QID as the job reads it."""
    return QuasiIdentifier.model_validate({"name": name, "hierarchy": dict(spec)})


def domain_of(values: Any, dtype: pa.DataType | None = None, nulls: int = 0, name: str = "x") -> Domain:
    """A domain of ascending distinct values, each held by one record more than the value before."""
    array = values if isinstance(values, pa.Array) else pa.array(values, dtype)
    return Domain(name, array, np.arange(1, len(array) + 1, dtype=np.int64), nulls)


def built(spec: Mapping[str, Any], domain: Domain, folder: Path = Path()) -> Hierarchy:
    """The hierarchy of a job's mapping over a domain."""
    return build_hierarchy(quasi_identifier(spec, domain.qid), domain, folder)


def published(hierarchy: Hierarchy, level: int) -> list[Any]:
    """What a level publishes for each code of the domain."""
    labels = hierarchy.labels[level].to_pylist()
    return [labels[group] for group in hierarchy.groups[level]]


def exact(value: Number) -> Fraction:
    """The number that a value's shortest text says."""
    return Fraction(str(value))


def bin_edges(value: Number, width: Number, origin: Number = 0) -> tuple[Fraction, Fraction]:
    """The half-open bin of a value, ``low <= value < high``."""
    low = exact(origin) + exact(width) * math.floor((exact(value) - exact(origin)) / exact(width))
    return low, low + exact(width)


def closed_label(value: int, width: Number, origin: Number = 0) -> str:
    """The label of an integer's bin: the least and the greatest integer in it."""
    low, high = bin_edges(value, width, origin)
    return f"[{math.ceil(low)} - {math.ceil(high) - 1}]"


def half_open_label(value: Number, width: Number, origin: Number = 0) -> str:
    """The label of a decimal's bin, written with the decimal places of the width and the origin."""
    places = max(places_of(width), places_of(origin))
    low, high = (written(edge, places) for edge in bin_edges(value, width, origin))
    return f"[{low} - {high})"


def places_of(number: Number) -> int:
    """Decimal places that a number needs."""
    return next(places for places in range(400) if (exact(number) * 10**places).denominator == 1)


def written(number: Fraction, places: int) -> str:
    """A number with so many decimal places, by long division."""
    whole = abs(number) * 10**places
    assert whole.denominator == 1
    digits = str(int(whole)).rjust(places + 1, "0")
    text = f"{digits[: len(digits) - places]}.{digits[len(digits) - places :]}" if places else digits
    return f"-{text}" if number < 0 else text


def rank_bins(values: Sequence[Number], width: int) -> list[tuple[Number, Number]]:
    """The least and greatest observed value of each value's bin of ranks."""
    bins = [[other for position, other in enumerate(values) if position // width == rank // width] for rank in range(len(values))]
    return [(min(members), max(members)) for members in bins]


def masked(text: str, kept: int, mask: str) -> str:
    """The first characters of a text, the others masked."""
    return "".join(character if position < kept else mask for position, character in enumerate(text))


def calendar_label(day: date | datetime, unit: str) -> str:
    """The calendar unit of a day."""
    return {
        "day": f"{day.year:04}-{day.month:02}-{day.day:02}",
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
        "decade": f"{day.year - day.year % 10:04}s",
    }[unit]


def first_appearance(labels: Sequence[Any]) -> list[int]:
    """Number labels by the position at which they first appear."""
    seen: dict[Any, int] = {}
    return [seen.setdefault(label, len(seen)) for label in labels]
