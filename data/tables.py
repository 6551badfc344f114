"""The data sets that ``skald make-data`` can make, by name, and where their example jobs are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from data.hospital import make_hospital
from data.medical import make_medical
from data.poker import make_poker
from data.visits import make_visits
from schemas.errors.base import listed, nearest

# jobs/<name>.yaml, with the hierarchies that it names in jobs/hierarchies/
JOBS = Path(__file__).parent / "jobs"


class Maker(Protocol):
    """Writes a data set of ``rows`` records as ``files`` Parquet files into ``out`` and returns their paths."""

    def __call__(self, out: Path, rows: int, files: int | None = None, seed: int = 0) -> list[Path]:
        """Raise ValueError, with a sentence for the user, if an argument is out of range."""
        ...


MAKERS: Mapping[str, Maker] = MappingProxyType(
    {"medical": make_medical, "poker": make_poker, "visits": make_visits, "hospital": make_hospital}
)


def maker(name: str) -> Maker:
    """Return the maker of data set ``name``.

    Raises:
        ValueError: there is no such data set.
    """
    if name not in MAKERS:
        raise ValueError(f"there is no data set '{name}'{nearest(name, MAKERS)}; there is {listed(MAKERS)}")
    return MAKERS[name]
