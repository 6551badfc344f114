"""What can be wrong with the evidence that goes with a release: keys, and manifests of other formats. No key is ever in a sentence."""

from __future__ import annotations

from typing import ClassVar

from schemas.errors.base import SkaldError


class SigningKeyError(SkaldError):
    """A key cannot be used."""

    @classmethod
    def private(cls, reason: str) -> SigningKeyError:
        """The key that ``SKALD_SIGNING_KEY`` names."""
        return cls(
            f"The signing key that SKALD_SIGNING_KEY names {reason}. Make one with: (umask 077; openssl genpkey -algorithm ed25519 -out "
            "signing.pem), or unset the variable to publish without a signature; nothing was published."
        )

    @classmethod
    def public(cls, reason: str) -> SigningKeyError:
        """The key that ``skald verify --key`` is given."""
        return cls(
            f"The file of --key {reason}. Give the public half of an Ed25519 key: openssl pkey -in signing.pem -pubout -out public.pem; "
            "nothing was verified."
        )


class ManifestFormatError(SkaldError):
    """A manifest is of a format whose figures and lists this version cannot hold against a release."""

    # As for a verification that fails: a changed number would else be a way around it.
    exit_code: ClassVar[int] = 4

    @classmethod
    def unknown(cls, release: str, given: int, known: int) -> ManifestFormatError:
        """An older one does not list all files of its release; of a newer one nothing is known."""
        which = "an earlier version of SKALD, which did not list all files" if given < known else "a later version of SKALD"
        return cls(
            f"'{release}' was not verified: its manifest is of format {given}, that of {which}; this version verifies format {known}. "
            "Verify it with the version that made it, or run its job again."
        )


class ListedReportError(SkaldError):
    """A report that is made again would not be the one that the release's manifest lists."""

    @classmethod
    def differs(cls, release: str) -> ListedReportError:
        """Another version of this program made it; the manifest, and whoever signed it, stand for that one."""
        return cls(
            f"The report that this version makes is not the one that the manifest of '{release}' lists, which stays. Write it elsewhere: "
            "--to FOLDER."
        )


class LargeManifestError(SkaldError):
    """A release's manifest would be larger than is read by whoever verifies it."""

    @classmethod
    def of_release(cls, release: str, size: int, most: int) -> LargeManifestError:
        """Source files and data files make it so large, because the manifest lists each of them."""
        return cls(
            f"The manifest of '{release}' would take {size / 1e6:,.0f} MB. At most {most // 1_000_000:,} MB and two million entries are "
            "read. Put the source into fewer files, or raise rows_per_file; nothing was published."
        )
