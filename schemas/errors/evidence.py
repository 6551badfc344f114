"""Errors of the evidence of a release: signing keys, and manifests of other formats.

No key is ever part of a message.
"""

from __future__ import annotations

from typing import ClassVar

from schemas.errors.base import SkaldError


class SigningKeyError(SkaldError):
    """Raised when a key for signatures cannot be used."""

    @classmethod
    def private(cls, reason: str) -> SigningKeyError:
        """No usable private key is in the file that ``SKALD_SIGNING_KEY`` names."""
        return cls(
            f"The signing key that SKALD_SIGNING_KEY names {reason}. Make one with: (umask 077; openssl genpkey -algorithm ed25519 -out "
            "signing.pem), or unset the variable to publish without a signature; nothing was published."
        )

    @classmethod
    def public(cls, reason: str) -> SigningKeyError:
        """No usable public key is in the file of ``skald verify --key``."""
        return cls(
            f"The file of --key {reason}. Give the public half of an Ed25519 key: openssl pkey -in signing.pem -pubout -out public.pem; "
            "nothing was verified."
        )


class ManifestFormatError(SkaldError):
    """Raised when this version cannot verify a release whose manifest has another format."""

    # As for a verification that fails: a changed number would else be a way around it.
    exit_code: ClassVar[int] = 4

    @classmethod
    def unknown(cls, release: str, given: int, known: int) -> ManifestFormatError:
        """Manifest format is older or newer than the one that this version verifies.

        Older formats do not list all files of a release. Of newer formats this version knows nothing.
        """
        which = "an earlier version of SKALD, which did not list all files" if given < known else "a later version of SKALD"
        return cls(
            f"'{release}' was not verified: its manifest is of format {given}, that of {which}; this version verifies format {known}. "
            "Verify it with the version that made it, or run its job again."
        )


class ListedReportError(SkaldError):
    """Raised when a rebuilt report differs from the report that the manifest lists."""

    @classmethod
    def differs(cls, release: str) -> ListedReportError:
        """Rebuilt report differs from the listed one, because another version made that one.

        The manifest and its signature belong to the listed report.
        """
        return cls(
            f"The report that this version makes is not the one that the manifest of '{release}' lists, which stays. Write it elsewhere: "
            "--to FOLDER."
        )


class LargeManifestError(SkaldError):
    """Raised when a release's manifest would be larger than verification reads."""

    @classmethod
    def of_release(cls, release: str, size: int, most: int) -> LargeManifestError:
        """Manifest would be too large, because it lists every source file and data file."""
        return cls(
            f"The manifest of '{release}' would take {size / 1e6:,.0f} MB. At most {most // 1_000_000:,} MB and two million entries are "
            "read. Put the source into fewer files, or raise rows_per_file; nothing was published."
        )
