"""Mutants that nothing could kill: what they change is not seen by anybody, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {
    "tasks/composition/by_files.py:_comparable: run.recoded[1].withheld -> False": (
        "Only a job that names persons leaves records out by whose they are, and of such a job files are not compared."
    ),
}
"""By the name of a mutant."""
