"""What can be wrong with keys, vaults and the values that become pseudonyms; no key, path's content or value is ever in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from schemas.errors.base import SkaldError, StorageError, counted
from schemas.errors.shown import shown_path


class PseudonymError(SkaldError):
    """Identifiers cannot be published as the job says."""

    @classmethod
    def refused(cls, faults: Sequence[str]) -> Self:
        """Keys or vaults cannot be used; all of them at once."""
        lines = "".join(f"\n  - {fault}" for fault in faults)
        return cls(f"{counted(len(faults), 'fault')} of keys and vaults; nothing was published:{lines}")

    @classmethod
    def unfit(cls, column: str, file: str, count: int, reason: str) -> Self:
        """Values that a treatment cannot take."""
        return cls(f"Column '{column}': {counted(count, 'different value')} in '{shown_path(file)}' {reason}. Nothing was published.")

    @classmethod
    def no_subject(cls, column: str, subject: str, file: str, records: int) -> Self:
        """Dates of nobody, for which there is no shift."""
        return cls(
            f"Column '{column}': {counted(records, 'record')} in '{shown_path(file)}' "
            f"{'has' if records == 1 else 'have'} a date but no '{subject}', "
            "whose dates it would be shifted with. Give them one, or make the dates null; nothing was published."
        )

    @classmethod
    def another_key(cls, column: str) -> Self:
        """A worker reads another key than the run began with."""
        return cls(
            f"Column '{column}': a worker reads another key or vault than the run began with. Give all workers the same one and run again; "
            "nothing was published."
        )

    @classmethod
    def not_in_vault(cls, column: str, values: int) -> Self:
        """The source changed after tokens were given out."""
        return cls(
            f"Column '{column}': {counted(values, 'different value')} of the source got no token in the vault: source or vault changed "
            "during the run. Run again when they are at rest; nothing was published."
        )

    @classmethod
    def irreversible(cls, column: str, words: str) -> Self:
        """A treatment that cannot be undone."""
        return cls(f"Column '{column}': {words} cannot be undone, not even with a key.")

    @classmethod
    def no_pseudonyms(cls, column: str, hint: str) -> Self:
        """A column that the job does not publish as pseudonyms."""
        return cls(f"'{column}' is not among the identifiers that the job publishes as pseudonyms{hint}.")

    @classmethod
    def unreadable_list(cls, reason: str) -> Self:
        """What is to be revealed cannot be read."""
        return cls(f"The pseudonyms to reveal cannot be read: {reason}.")

    @classmethod
    def not_here(cls, path: str, reason: str) -> Self:
        """Originals may not be written there."""
        return cls(f"'{path}' cannot take the originals: {reason}.")


class SecretError(StorageError):
    """Without a secret every digest of a release would confirm guesses about its source."""

    @classmethod
    def weak(cls, variable: str) -> SecretError:
        """Whoever can guess the secret can guess the rest."""
        return cls(
            f"{variable} is set and too weak for a secret: 128 random bits are needed, such as the 64 characters that "
            "'openssl rand -hex 32' prints. Set it to those, or unset it; then each work folder has a secret of its own."
        )

    @classmethod
    def damaged(cls, path: str) -> SecretError:
        """What is there was not written by us, or not wholly."""
        return cls(
            f"'{path}' is not the secret that this work folder was given. Put it back; or remove it: releases then get other ids, so that "
            "the same job on the same data makes another one."
        )
