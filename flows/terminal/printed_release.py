"""Output of a run at its end; errors of printing do not undo its published release."""

from __future__ import annotations

import os
import sys

from flows.terminal.runs import release_summary
from flows.terminal.screen import Screen, print_json, say
from schemas.errors.storage import PrintingError
from schemas.release.manifest import Manifest
from schemas.release.terms import Unreported
from tasks.report.sentences import warning_sentences


def print_published(manifest: Manifest, place: str, *, new: bool, as_json: bool, untold: Unreported | None = None) -> None:
    """Print the summary or the manifest of a published release.

    Args:
        manifest: That of the release.
        place: Where people find it.
        new: Whether this run made it.
        as_json: Whether the manifest is printed, and warnings on standard error.
        untold: What this run found out that the release does not tell.

    Raises:
        PrintingError: it could not be printed, which says nothing against the release.
    """
    try:
        if as_json:
            for sentence in warning_sentences(manifest):
                say(f"Warning: {sentence}")
            print_json(manifest.model_dump(mode="json"))
        else:
            Screen().print(release_summary(manifest, place, new=new, untold=untold))
        sys.stdout.flush()
    except OSError as error:
        raise PrintingError.of_release(manifest.release, error.strerror or type(error).__name__) from None
    except Exception as error:
        if os.environ.get("SKALD_DEBUG"):
            raise
        # Of another error its kind alone.
        raise PrintingError.summary_failed(manifest.release, type(error).__name__) from None
