"""What ``insensitive: rest`` does not take in; exit code 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.errors.base import SourceError, counted


class PassthroughError(SourceError):
    """Columns that would have been published untreated without anybody having named them."""

    @classmethod
    def not_of_the_rest(cls, columns: Mapping[str, Sequence[str]]) -> PassthroughError:
        """Values of columns, each with the reasons, look as if they told who somebody is."""
        named = "; ".join(f"'{name}': {', '.join(reasons)}" for name, reasons in columns.items())
        return cls(
            f"'insensitive: rest' does not take in {counted(len(columns), 'column')} that may tell who people are ({named}). Give each "
            "another role, such as identifiers; to publish one all the same, list the insensitive columns by their names."
        )
