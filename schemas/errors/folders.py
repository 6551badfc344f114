"""Errors of folders and files that are not SKALD's, and of the evidence of a release.

No key is ever part of a message.
"""

from __future__ import annotations

from typing import ClassVar

from schemas.errors.base import STAYS, SkaldError, StorageError, counted, shown_path


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
    def of_release(cls, release: str, size: int, most: int, *, of_tables: bool = False) -> LargeManifestError:
        """Manifest would be too large, because it lists every source file and data file."""
        larger = "" if of_tables else ", or raise rows_per_file"
        return cls(
            f"The manifest of '{release}' would take {size / 1e6:,.0f} MB. At most {most // 1_000_000:,} MB and two million entries are "
            f"read. Put the source into fewer files{larger}; nothing was published."
        )


class FolderError(StorageError):
    """Raised when a run would have to change a folder or file that is or may be of another owner."""

    @classmethod
    def not_ours(cls, folder: str) -> FolderError:
        """Work folder holds files that no run made."""
        return cls(
            f"The work folder '{folder}' holds files that are not SKALD's, and stays as it is. Set 'work' in the job to an empty folder or "
            "to one that is not there yet."
        )

    @classmethod
    def work_holds(cls, folder: str, contents: str) -> FolderError:
        """Work folder contains files that must survive ``skald clean``."""
        return cls(
            f"The work folder '{folder}' holds {contents}, and 'skald clean' empties it. Set 'work' in the job to a folder of its own."
        )

    @classmethod
    def pointer_is_a_folder(cls, target: str) -> FolderError:
        """File ``CURRENT`` of the target cannot be written, because a folder has its name."""
        return cls(f"'CURRENT' in the target '{target}' is a folder, and a run writes a file there. Rename it, or set another target.")

    @classmethod
    def takes_no_files(cls, path: str, reason: str) -> FolderError:
        """Nothing can be written at the place of ``--to``; the work was not begun."""
        return cls(f"Nothing can be written at '{shown_path(path)}' ({reason}). Give --to a place that is yours to write.")

    @classmethod
    def work_in_target(cls, folder: str) -> FolderError:
        """Work folder lies inside the target.

        Artefacts hold raw values, and a target is handed on.
        """
        return cls(
            f"The work folder '{folder}' lies in the target, which is handed on, and will hold raw values. Set 'work' or 'target' in the "
            "job to a folder outside."
        )

    @classmethod
    def lock_is_link(cls, path: str) -> FolderError:
        """Lock is a link or no regular file.

        It may belong to another owner.
        """
        return cls(f"The lock '{path}' is a link or no plain file, and is not opened. Remove it and run again.")

    @classmethod
    def open_to_others(cls, folder: str) -> FolderError:
        """File system gives every file the same mode, by which other users can read what is private."""
        return cls(
            f"Other users can read what is written in '{shown_path(folder)}': its file system keeps no modes, as exFAT, NTFS and SMB often "
            "do. Take a folder of another one ('work' in the job, or TMPDIR), or mount it for yourself alone (umask=077)."
        )

    @classmethod
    def no_locks(cls, folder: str, reason: str) -> FolderError:
        """File system has no locks, so two runs could work in one folder at a time."""
        return cls(
            f"No file can be locked in '{shown_path(folder)}' ({reason}), so a second run would not be noticed. Set 'work' in the job to a "
            "folder of another file system."
        )

    @classmethod
    def registry_is_link(cls, path: str) -> FolderError:
        """Registry of releases is a link, and may lead to a file of another owner."""
        return cls(
            f"'{path}', where releases are registered so that later ones can be held against them, is a link, and is not followed. Remove "
            "the link and run again; nothing was published."
        )


class WorkError(StorageError):
    """Raised when work in a bucket cannot start or continue."""

    @classmethod
    def not_ours(cls, address: str) -> WorkError:
        """Work prefix holds objects that no run made."""
        return cls(
            f"'{address}' holds objects that are not SKALD's, and stays as it is. Set 'work' in the job to a prefix below which there is "
            "nothing yet."
        )

    @classmethod
    def overlaps(cls, address: str, other_place: str) -> WorkError:
        """Work prefix and the target or source lie within each other."""
        return cls(
            f"The work '{address}' and {other_place} lie within each other: 'skald clean' empties the one, and it holds raw values. Set "
            "'work' in the job to a prefix of its own."
        )

    @classmethod
    def kept_by_rules_of_the_bucket(cls) -> WorkError:
        """Options of ``skald clean`` that keep newer work do not apply to work in a bucket.

        Lifecycle rules of the bucket remove what is old.
        """
        return cls(
            "'skald clean --keep-last' and '--keep-days' take work folders, and this job works in a bucket. Set a lifecycle rule of the "
            "bucket for what is old, or run 'skald clean' without them, which removes all."
        )

    @classmethod
    def lease_lost(cls, address: str) -> WorkError:
        """Another run may hold the lease, because this one did not renew it in time."""
        return cls(
            f"This run did not renew its lease of '{address}' in time, and another run may be at work there. Nothing was published by this "
            "one."
        ).continuing(STAYS)

    @classmethod
    def damaged(cls, address: str) -> WorkError:
        """Object in the bucket is gone or differs from its record."""
        return cls(f"'{address}' is gone, or is not what was written, and is not used. Nothing was published.").continuing(
            "The same command makes it again and continues from there."
        )


class BusyError(StorageError):
    """Raised when another run holds a folder; trying again later can succeed."""

    @classmethod
    def at_work(cls, folder: str) -> BusyError:
        """Another run is working in the run folder."""
        return cls(f"Another run is at work in '{folder}'. Wait for it, or set 'work' in the job to another folder.")


class EscapeError(StorageError):
    """Raised when a release names files outside its own folder."""

    # As for a verification that fails: what lies there is not what was published.
    exit_code: ClassVar[int] = 4

    @classmethod
    def leads_out(cls, release: str, names: int) -> EscapeError:
        """Absolute or climbing paths of a manifest or object store lead out of the release."""
        return cls(
            f"'{release}' is not what was published: {counted(names, 'name')} of files in it would lead out of its folder. Nothing was "
            "read or written there; do not use it."
        )

    @classmethod
    def has_links(cls, release: str, links: int) -> EscapeError:
        """Links lie in a release in place of files or folders."""
        return cls(
            f"'{release}' is not what was published: it holds {counted(links, 'link')} in the place of files or folders. Do not use it."
        )
