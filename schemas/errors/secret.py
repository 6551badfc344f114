"""What is wrong with the secret that digests are keyed with; exit code 2."""

from __future__ import annotations

from schemas.errors.base import StorageError


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
