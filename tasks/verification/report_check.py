"""The report made again from manifest and files, and held against the one that lies beside them."""

from __future__ import annotations

from pathlib import Path

from core.recount.classes import Recount
from schemas.reading.regular_files import content_of
from schemas.release.evidence import DOCUMENTS
from schemas.release.manifest import Manifest
from schemas.release.terms import Terms
from tasks.release.examples import examples_of
from tasks.release.files import data_files
from tasks.report.page import render, report_code
from tasks.report.report import make_report

OTHER_CODE = "The report was held against its digest alone: another version of this program made it."


def report_faults(release: Path, manifest: Manifest, terms: Terms, recount: Recount) -> tuple[list[str], list[str]]:
    """Returns whether a report says anything but its manifest and files, and what could not be held against them, in sentences.

    Args:
        release: The folder.
        manifest: Its manifest.
        terms: What was asked.
        recount: What was counted in its files.

    Raises:
        StorageError: the folder holds no data files, or the disk is full.
        VerificationError: the files cannot be read.
        EscapeError: links are among its entries.
    """
    if {one.code for one in manifest.documents} != {report_code()}:
        return [], [OTHER_CODE]
    examples = examples_of(f"'{release}'", data_files(release), manifest, terms)
    report = make_report(manifest, terms, recount, examples)
    texts = dict(zip(DOCUMENTS, (render(report), report.model_dump_json(indent=2) + "\n"), strict=True))
    wrong = [name for name, text in texts.items() if not _holds(release / name, text.encode())]
    return [f"{name} does not say what manifest and files do" for name in wrong], []


def _holds(path: Path, content: bytes) -> bool:
    """Tells whether a file holds some bytes; one that is gone is told of with the other entries of its folder."""
    try:
        return content_of(path, len(content), links=False) == content
    except FileNotFoundError:
        return True
    except OSError:
        return False
