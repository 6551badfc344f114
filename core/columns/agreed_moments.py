"""Between which ends all that reads and writes dates and times agrees on them.

Arrow holds years up to 292277026596, DuckDB up to 294246 and some integers of each width as infinity, Python and ISO 8601 four digits. What
is published must be what everybody reads.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pt

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NANOSECONDS = (1 << 63) - 2
"""The integers beyond it mean infinity to DuckDB, and nothing at all to NumPy."""


class Moment(NamedTuple):
    """The integer that Arrow holds for a moment, and how a sentence calls it."""

    number: int
    text: str


def agreed_moments(dtype: pa.DataType) -> tuple[Moment, Moment]:
    """Returns the first and the last moment of a type of dates or times on which all agree, both inclusive.

    With a zone it is a day less at both ends, so that the local calendar stays within them.
    """
    if pt.is_date32(dtype):
        return Moment(_FIRST_DAY, "0001-01-01"), Moment(_LAST_DAY, "9999-12-31")
    day = _DAY["ms" if pt.is_date64(dtype) else dtype.unit]
    if day == _DAY["ns"]:
        return Moment(-_NANOSECONDS, "1677-09-21"), Moment(_NANOSECONDS, "2262-04-11")
    inner = int(pt.is_timestamp(dtype) and dtype.tz is not None)
    first, last = (_FIRST_DAY + inner) * day, (_LAST_DAY + 1 - inner) * day - 1
    return Moment(first, f"0001-01-0{1 + inner}"), Moment(last, f"9999-12-{31 - inner}")


def inclusive_moments(dtype: pa.DataType) -> tuple[Moment, Moment] | None:
    """Returns the first and the last value of a type that is published as it is, both inclusive; None for types without such ends.

    Dates and times as above, with the last of the days too whatever the zone: 9999-12-31 is what many write for never, and nothing is
    worked out from it. A time of the day is less than a day.
    """
    if pt.is_time(dtype):
        return Moment(0, "00:00"), Moment(_DAY[dtype.unit] - 1, "23:59")
    if not (pt.is_date(dtype) or pt.is_timestamp(dtype)):
        return None
    return agreed_moments(pa.timestamp(dtype.unit) if pt.is_timestamp(dtype) else dtype)
