"""Errors of keys, vaults and values that become pseudonyms.

No key, content of a file or value is ever part of a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from schemas.errors.base import SkaldError, StorageError, counted, shown_path, verb_of


class PseudonymError(SkaldError):
    """Raised when identifiers cannot be published as pseudonyms in the way the job asks."""

    @classmethod
    def refused(cls, faults: Sequence[str]) -> Self:
        """Keys or vaults cannot be used; ``faults`` lists all of them."""
        lines = "".join(f"\n  - {fault}" for fault in faults)
        return cls(f"{counted(len(faults), 'fault')} of keys and vaults; nothing was published:{lines}")

    @classmethod
    def unfit(cls, column: str, file: str, count: int, reason: str) -> Self:
        """Values of a column do not fit its treatment."""
        return cls(f"Column '{column}': {counted(count, 'different value')} in '{shown_path(file)}' {reason}. Nothing was published.")

    @classmethod
    def no_subject(cls, column: str, subject: str, file: str, records: int) -> Self:
        """Dates to be shifted belong to no person, so that no shift is known."""
        return cls(
            f"Column '{column}': {counted(records, 'record')} in '{shown_path(file)}' "
            f"{verb_of(records, 'have')} a date but no '{subject}', "
            "whose dates it would be shifted with. Give them one, or make the dates null; nothing was published."
        )

    @classmethod
    def another_key(cls, column: str) -> Self:
        """One worker reads another key or vault than the run began with."""
        return cls(
            f"Column '{column}': a worker reads another key or vault than the run began with. Give all workers the same one and run again; "
            "nothing was published."
        )

    @classmethod
    def not_in_vault(cls, column: str, values: int) -> Self:
        """Values of the source have no token in the vault.

        Source or vault changed after the tokens were assigned.
        """
        return cls(
            f"Column '{column}': {counted(values, 'different value')} of the source got no token in the vault: source or vault changed "
            "during the run. Run again when they are at rest; nothing was published."
        )

    @classmethod
    def irreversible(cls, column: str, words: str) -> Self:
        """Pseudonyms of this treatment cannot be reversed."""
        return cls(f"Column '{column}': {words} cannot be undone, not even with a key.")

    @classmethod
    def no_pseudonyms(cls, column: str, hint: str) -> Self:
        """Column is not published as pseudonyms by the job."""
        return cls(f"'{column}' is not among the identifiers that the job publishes as pseudonyms{hint}.")

    @classmethod
    def unreadable_list(cls, reason: str) -> Self:
        """Pseudonyms to reveal cannot be read from the input."""
        return cls(f"The pseudonyms to reveal cannot be read: {reason}.")

    @classmethod
    def originals_not_writable(cls, path: str, reason: str) -> Self:
        """Originals may not be written to this path."""
        return cls(f"'{path}' cannot take the originals: {reason}.")


class SecretError(StorageError):
    """Raised when the secret of a work folder is weak or damaged.

    Without a secret every digest of a release would confirm guesses about its source.
    """

    @classmethod
    def weak(cls, variable: str) -> SecretError:
        """Secret in the environment variable is too weak.

        Anyone who can guess the secret can guess the source from the digests.
        """
        return cls(
            f"{variable} is set and too weak for a secret: 128 random bits are needed, such as the 64 characters that "
            "'openssl rand -hex 32' prints. Set it to those, or unset it; then each work folder has a secret of its own."
        )

    @classmethod
    def damaged(cls, path: str) -> SecretError:
        """Secret file of the work folder is incomplete, or no run wrote it."""
        return cls(
            f"'{path}' is not the secret that this work folder was given. Put it back; or remove it: releases then get other ids, so that "
            "the same job on the same data makes another one."
        )
