"""What can be wrong with a table that a program hands over; never a value of it."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import SourceError, listed


class FrameError(SourceError):
    """A table in memory cannot be anonymised."""

    @classmethod
    def no_table(cls, kind: str) -> FrameError:
        """It is something else."""
        return cls(f"'{kind}' is no table. Give a DataFrame of Polars or pandas, or a table of Arrow.")

    @classmethod
    def same_names(cls, names: Sequence[str]) -> FrameError:
        """Columns cannot be told apart."""
        return cls(f"Several columns are called {listed(names)}. Rename them.")

    @classmethod
    def several_types(cls, column: str) -> FrameError:
        """A column of Python's objects holds different kinds of them."""
        return cls(f"Column '{column}' holds values of several types. Convert it to one, such as text.")

    @classmethod
    def unwritten(cls, kind: str) -> FrameError:
        """Its types cannot be written, or what makes it failed."""
        return cls(f"The table cannot be written as Parquet ({kind}). Convert columns of unusual types, such as lists or objects.")
