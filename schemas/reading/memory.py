"""Amounts of memory as people write them."""

import re
from fractions import Fraction

from schemas.reading.model import fault

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
"""Bytes of a unit, its name in capitals."""
LEAST_MEMORY = 64_000_000
"""Bytes below which no run is tried."""
PATTERN = r"^[0-9]+(\.[0-9]+)? ?([KMGTkmgt][Ii]?)?[Bb]$"
"""Amounts as text, for JSON schemas."""
MEMORY_SCHEMA = {"anyOf": [{"type": "integer", "minimum": LEAST_MEMORY}, {"type": "string", "pattern": PATTERN}]}
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([a-z]+)", re.IGNORECASE)
_MOST_MEMORY = 2**63


def memory_bytes(value: object) -> int:
    """Returns a memory budget in bytes.

    Args:
        value: a number of bytes, or text such as ``1GB`` (10^9), ``2GiB`` (2 * 2^30), ``1.5 GB``; case does not matter.

    Raises:
        PydanticCustomError: neither of the two, less than 64MB or more than a 64-bit size.
    """
    size = _size(value)
    if size is None:
        raise fault("must be an amount of memory such as 1GB, 512MB or 2GiB, or a number of bytes")
    if not LEAST_MEMORY <= size < _MOST_MEMORY:
        raise fault("must be at least 64MB" if size < LEAST_MEMORY else "is more memory than a machine can have")
    return size


def _size(value: object) -> int | None:
    # To Python true is an int.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    unit = UNITS.get(found[2].upper()) if found else None
    # Exact: in floats 1.1GB is no whole number of bytes.
    return int(Fraction(found[1]) * unit) if found and unit else None
