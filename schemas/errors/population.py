"""What is wrong with the table of a population."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import SourceError, listed
from schemas.texts.shown import told_path


class PopulationError(SourceError):
    """The population that risk is measured against cannot be read as the job has it."""

    @classmethod
    def no_files(cls, pattern: str) -> PopulationError:
        """A pattern of the population matches nothing."""
        return cls(
            f"population.path '{told_path(pattern)}' matches no file. Correct the path, which is relative to the job file, or leave it out."
        )

    @classmethod
    def lacks(cls, columns: Sequence[str]) -> PopulationError:
        """Quasi-identifiers are missing in it, or of a kind of type in which their labels cannot be read."""
        return cls(f"The population has no {listed(columns)} of the type that the source has. Name and type its columns like the source's.")

    @classmethod
    def no_parquet(cls) -> PopulationError:
        """One of its files is damaged or no Parquet."""
        return cls("The population cannot be read as Parquet. Mend its files, or leave population out.")
