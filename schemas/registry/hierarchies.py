"""Job models of hierarchies from bins, prefixes, dates and CSV files."""

import datetime
import hashlib
import re
from decimal import Decimal
from fractions import Fraction
from io import BytesIO, TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, field_validator, model_validator

from schemas.errors.hierarchies import HierarchyError
from schemas.reading.model import MOST_DIGITS, Character, ExactDecimal, PathText, StrictModel, alternatives, fault
from schemas.reading.regular_files import content_of

OF_2000 = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878", "879", "884", "890", "893",
)  # fmt: skip
OF_2010 = (
    "036", "059", "102", "202", "203", "204", "205", "369", "556", "692", "753", "772", "821", "823", "878", "879", "884", "893",
)  # fmt: skip
OF_2020 = OF_2010
SPARSE_ZIP_CODES = {"hipaa": OF_2020, "hipaa_2020": OF_2020, "hipaa_2010": OF_2010, "hipaa_2000": OF_2000}
"""First three digits of the ZIP codes of areas of 20,000 people or fewer, by the word of a job; ``hipaa`` is the newest census."""
# Before there were several, the one word was that of 2000: a job that meant that list keeps its digest under its name.
DIGESTED = {"hipaa": "hipaa_2020", "hipaa_2000": "hipaa"}
LeafStatistics: TypeAlias = Literal["hipaa", "hipaa_2000", "hipaa_2010", "hipaa_2020"]


def sparse_prefixes(value: object) -> object:
    """Return a census name, or a list of prefixes of one length; raise for other values."""
    if isinstance(value, str) and value in SPARSE_ZIP_CODES:
        return value
    if not isinstance(value, list) or not value or not all(isinstance(prefix, str) and prefix for prefix in value):
        raise fault(f"must be the word {alternatives(SPARSE_ZIP_CODES)}, or a list of beginnings as text; put each in quotes")
    if len({len(prefix) for prefix in value}) > 1:
        raise fault("must be beginnings of one length")
    return value


_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
Sparse = Annotated[
    LeafStatistics | list[str], BeforeValidator(sparse_prefixes), WithJsonSchema({"anyOf": [{"enum": list(SPARSE_ZIP_CODES)}, _LIST]})
]


DateUnit = Literal["day", "month", "quarter", "year", "decade"]
DATE_UNITS: tuple[DateUnit, ...] = get_args(DateUnit)
"""The calendar units of a date hierarchy, finest first."""
LAST_YEAR = 9999
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class HierarchySpec(StrictModel):
    """Base class for the settings of one hierarchy in a job.

    A kind has a field of its own name, by which it is recognised.
    """

    kind: ClassVar[str]
    """The name of the kind in `schemas.registry.hierarchy_kinds.HIERARCHIES`."""
    ranged: ClassVar[bool] = False
    """Whether its groups are ranges of numbers, which can be published as two columns of bounds."""
    listed_in: ClassVar[str | None] = None
    """The field that names a file of groups, if one does."""
    # In a dict, which the frozen model may change and takes along to workers in other processes.
    _read: dict[str, str] = PrivateAttr(default_factory=dict)
    _copies: dict[str, Path] = PrivateAttr(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Return whether two hierarchies have equal settings, whatever was read or made of these."""
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)

    __hash__ = StrictModel.__hash__

    def file_content(self, folder: Path) -> bytes:
        """Return the bytes of the hierarchy's file, which it must have; raise if they changed in the run.

        A file that changes between two readings would group some records by its old content and others by the new one, under one digest.

        Args:
            folder: Where the job file lies.
        """
        assert self.listed_in is not None
        path = str(getattr(self, self.listed_in))
        content = content_of(self._copies.get(path) or folder / path)
        digest = hashlib.sha256(content).hexdigest()
        if self._read.setdefault(path, digest) != digest:
            raise HierarchyError.changed(path)
        return content

    def use_copy(self, path: Path | None) -> None:
        """Set a copy to read in place of the hierarchy's file, or None to remove it.

        Steps that run without the folder of jobs need the copy.
        """
        assert self.listed_in is not None
        self._copies.clear()
        if path:
            self._copies[str(getattr(self, self.listed_in))] = path

    def text(self, folder: Path) -> TextIOWrapper:
        """Return the hierarchy's file as a stream of UTF-8 text, with line ends unchanged.

        A byte order mark is skipped.
        """
        return TextIOWrapper(BytesIO(self.file_content(folder)), encoding="utf-8-sig", newline="")

    @property
    def hides(self) -> bool:
        """Whether some original values may never be published."""
        return False


class CsvHierarchy(HierarchySpec):
    """Groups from a CSV file without a header.

    Column 0 holds the value, the next ones its groups, finest first.
    """

    kind: ClassVar[str] = "csv"
    listed_in: ClassVar[str | None] = "csv"
    # A job's digest has the file's content in the place of its path.
    uncounted: ClassVar[frozenset[str]] = frozenset({"csv"})
    csv: PathText
    """The file, relative to the job file."""
    delimiter: Character = ";"
    """What separates the fields of the file."""
    nulls: str | None = None
    """The value of column 0 that stands for nulls: above the values themselves a null belongs to its groups. Left out, nulls are a group of
    their own at every level."""
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"nulls"})


class WidthsHierarchy(HierarchySpec):
    """Numerical bins with one width per level (papers/skald.txt, section III).

    The bins are aligned to multiples of the width from ``origin``.
    """

    kind: ClassVar[str] = "widths"
    ranged: ClassVar[bool] = True
    widths: Annotated[list[ExactDecimal], Field(min_length=1)]
    """Bin widths, finest first, each a multiple of the one before so that the levels nest."""
    origin: ExactDecimal = Decimal(0)
    """Where a bin of every width begins."""
    encode: bool = False
    """Whether the widths count ranks of the observed values (from 0) and not units of the value; for sparse columns."""
    top: ExactDecimal | None = None
    """Values from here on are one group at every level, such as 90 for the ages that HIPAA's safe harbour wants told as 90 or older."""
    bottom: ExactDecimal | None = None
    """Values below are one group at every level."""
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"top", "bottom"})

    @field_validator("widths")
    @classmethod
    def _nested(cls, widths: list[Decimal]) -> list[Decimal]:
        """Check that the bin widths nest."""
        if faults := width_faults(widths):
            raise fault(*faults)
        return widths

    @model_validator(mode="after")
    def _ranks_are_whole(self) -> Self:
        """Check that bins of ranks have whole widths, and that ``bottom`` lies below ``top``."""
        if self.encode and any(number != number.to_integral_value() for number in (*self.widths, self.origin)):
            raise fault("encode: true counts ranks, so widths and origin must be whole numbers")
        ends = [end for end in (self.bottom, self.top) if end is not None]
        if self.encode and ends:
            raise fault("encode: true counts ranks, so that top and bottom, which are values, do not go with it")
        if len(ends) > 1 and ends[0] >= ends[1]:
            raise fault("bottom must be less than top")
        # All are scaled by one power of ten, and what comes of that must fit an int64.
        places = max(decimals(number) for number in (*self.widths, self.origin, *ends))
        if max(self.widths[-1], *map(abs, (self.origin, *ends))) * Decimal(10) ** places >= Decimal(10) ** MOST_DIGITS:
            raise fault(f"widths, origin, top and bottom together span more than {MOST_DIGITS} digits; write them with fewer decimals")
        return self

    @property
    def hides(self) -> bool:
        """Whether values beyond ``top`` or ``bottom`` may not be published."""
        return self.top is not None or self.bottom is not None


class PrefixHierarchy(HierarchySpec):
    """Prefixes with one number of kept characters per level; other characters are masked."""

    kind: ClassVar[str] = "prefix"
    prefix: Annotated[list[int], Field(min_length=1)]
    """Characters kept, most first; the level that keeps none is added by itself."""
    mask: Character = "*"
    """What stands for the characters that are not kept."""
    sparse: Sparse | None = None
    """Beginnings whose values are one group, 000, at every level; hipaa stands for the 3-digit ZIP codes of 20,000 people or fewer in the
    newest census, which is that of 2020, and hipaa_2000, hipaa_2010 and hipaa_2020 for those of each."""
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"sparse"})

    @property
    def hides(self) -> bool:
        """Whether values with sparse prefixes may not be published."""
        return self.sparse is not None

    @property
    def sparse_values(self) -> tuple[str, ...]:
        """Return the sparse prefixes, all of one length, whose values form one group of zeros."""
        return SPARSE_ZIP_CODES[self.sparse] if isinstance(self.sparse, str) else tuple(self.sparse or ())

    def canonical(self) -> dict[str, Any]:
        """Return the settings as JSON data, with the newest census replaced by its year.

        A newer census so makes another job.
        """
        content = super().canonical()
        if isinstance(self.sparse, str):
            content["sparse"] = DIGESTED.get(self.sparse, self.sparse)
        return content

    @field_validator("prefix")
    @classmethod
    def _shrinking(cls, prefix: list[int]) -> list[int]:
        """Check that the numbers of kept characters fall from level to level."""
        if any(kept < 1 for kept in prefix):
            raise fault("every number of kept characters must be at least 1; the level that keeps none is added by itself")
        if any(fine <= coarse for fine, coarse in pairwise(prefix)):
            raise fault("numbers of kept characters must fall from level to level")
        return prefix


def year_or_day(value: object) -> int | str:
    """Return a year, or a day in ISO 8601; raise for other values."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LAST_YEAR:
        return value
    if isinstance(value, str) and _ISO_DAY.fullmatch(value):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            raise fault("is no day of the calendar") from None
        return value
    raise fault("must be a year, such as 1936, or a day, such as 1936-07-01")


YearOrDay = Annotated[
    int | str,
    BeforeValidator(year_or_day),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": LAST_YEAR}, {"type": "string", "format": "date"}]}),
]


class DateHierarchy(HierarchySpec):
    """Calendar units, one per level."""

    kind: ClassVar[str] = "date"
    date: Annotated[list[DateUnit], Field(min_length=1)]
    """Units, finest first: day, month, quarter, year, decade."""
    top: YearOrDay | None = None
    """Dates from this year or day on are one group at every level."""
    bottom: YearOrDay | None = None
    """Dates up to this year or day, to its end, are one group at every level, such as births of people over 89 for HIPAA's safe harbour."""
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"top", "bottom"})

    @field_validator("date")
    @classmethod
    def _coarsening(cls, units: list[DateUnit]) -> list[DateUnit]:
        """Check that the date units grow coarser from level to level."""
        if any(DATE_UNITS.index(fine) >= DATE_UNITS.index(coarse) for fine, coarse in pairwise(units)):
            raise fault("units must grow coarser from level to level, in the order " + ", ".join(DATE_UNITS))
        return units

    @model_validator(mode="after")
    def _ends_apart(self) -> Self:
        """Check that ``bottom`` lies before ``top``."""
        last, first = self.last_below, self.first_above
        if last is not None and first is not None and last >= first:
            raise fault("bottom must be before top")
        return self

    @property
    def hides(self) -> bool:
        """Whether dates beyond ``top`` or ``bottom`` may not be published."""
        return self.top is not None or self.bottom is not None

    @property
    def last_below(self) -> datetime.date | None:
        """Last day of the group of dates up to ``bottom``; None without a bottom."""
        if isinstance(self.bottom, str):
            return datetime.date.fromisoformat(self.bottom)
        return None if self.bottom is None else datetime.date(self.bottom, 12, 31)

    @property
    def first_above(self) -> datetime.date | None:
        """First day of the group of dates from ``top`` on; None without a top."""
        if isinstance(self.top, str):
            return datetime.date.fromisoformat(self.top)
        return None if self.top is None else datetime.date(self.top, 1, 1)

    @property
    def end_labels(self) -> tuple[str | None, str | None]:
        """Labels of the groups beyond ``bottom`` and ``top``; None where there is no such group."""
        below, above = (f"{end:04}" if isinstance(end, int) else end for end in (self.bottom, self.top))
        return None if below is None else f"<= {below}", None if above is None else f">= {above}"


def decimals(number: Decimal) -> int:
    """Return the number of digits after a number's decimal point, without trailing zeros."""
    # A fraction is in lowest terms, so that zeros at the end are gone.
    exponent = Fraction(number).denominator
    places = 0
    while 10**places % exponent:
        places += 1
    return places


def width_faults(widths: list[Decimal]) -> list[str]:
    """Return a message on why bin widths do not nest, with positions from 0; an empty list if they do."""
    if low := [position for position, width in enumerate(widths) if width <= 0]:
        return [f"widths must be positive; at fault: {width_positions_text(low)}"]
    exact = [Fraction(width) for width in widths]
    steps = list(enumerate(pairwise(exact), 1))
    if falling := [position for position, (fine, coarse) in steps if coarse <= fine]:
        return [f"widths must grow from level to level; at fault: {width_positions_text(falling)}"]
    if odd := [position for position, (fine, coarse) in steps if (coarse / fine).denominator != 1]:
        return [f"each width must be a multiple of the one before, or the levels do not nest; at fault: {width_positions_text(odd)}"]
    return []


def width_positions_text(positions: list[int]) -> str:
    """Return positions as text, such as ``widths[3], widths[5]``."""
    return ", ".join(f"widths[{position}]" for position in positions)
