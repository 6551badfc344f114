"""Registry of the data sets of ``skald make-data``, and the folder of their example jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from data.hospital import TABLES, make_hospital
from data.medical import make_medical
from data.poker import make_poker
from data.visits import make_visits
from schemas.errors.base import listed, nearest, shown_path

# jobs/<name>.yaml, with the hierarchies that it names in jobs/hierarchies/
JOBS = Path(__file__).parent / "jobs"


class Maker(Protocol):
    """Protocol of functions that write a data set as Parquet files and return their paths.

    It writes ``rows`` records as ``files`` files into ``out``.
    """

    def __call__(self, out: Path, rows: int, files: int | None = None, seed: int = 0) -> list[Path]:
        """Write the data set, or raise ValueError with a sentence if an argument is out of range."""
        ...


MAKERS: Mapping[str, Maker] = MappingProxyType(
    {"medical": make_medical, "poker": make_poker, "visits": make_visits, "hospital": make_hospital}
)
PATTERNS = MappingProxyType({name: (f"{name}-*.parquet",) for name in MAKERS} | {"hospital": tuple(f"{table}/*" for table in TABLES)})
"""What is read as files of a data set, relative to its folder."""


def maker(name: str) -> Maker:
    """Return the function that writes the data set ``name``, or raise ValueError.

    Raises:
        ValueError: there is no such data set.
    """
    if name not in MAKERS:
        raise ValueError(f"there is no data set '{name}'{nearest(name, MAKERS)}; there is {listed(MAKERS)}")
    return MAKERS[name]


def check_absent(name: str, out: Path) -> None:
    """Raise ValueError if the folder holds files that a new data set would replace or mix with.

    Raises:
        ValueError: there are such files.
    """
    there = [shown_path(str(path.relative_to(out))) for pattern in PATTERNS[name] for path in sorted(out.glob(pattern))]
    if there:
        stay = "exists and stays as it is; give --out another folder, or remove it"
        if len(there) > 1:
            stay = "exist and stay as they are; give --out another folder, or remove them"
        raise ValueError(f"{listed(there, 3)} in '{out}' {stay}")
