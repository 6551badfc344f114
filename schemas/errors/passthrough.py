"""What is refused of untreated columns: what ``rest`` does not take in (exit code 2), and what they tell together (3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.errors.base import PrivacyError, SourceError, counted


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


class UntreatedError(PrivacyError):
    """Untreated columns together tell fewer than k people apart, and the policy forbids to accept that."""

    @classmethod
    def below_k(cls, below: str, whole: int, unit: str, k: int, policy: str) -> UntreatedError:
        """So many share what is published of them untreated with fewer than k; ``below`` is a count as it may be told."""
        return cls(
            f"By the untreated columns together {below} of {counted(whole, unit)} share what is published of them with fewer than "
            f"k = {k:,}, and the policy '{policy}' forbids to accept it. Coarsen insensitive columns as quasi-identifiers, or list them "
            "under withheld; nothing was published."
        )
