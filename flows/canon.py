"""CANON: RAYDEN's tree on the numerical quasi-identifiers, without an outlier step (papers/rayden.txt, Related work)."""

from pathlib import Path

from flows.records import anonymise_records
from tasks.engine.flows import as_job_flow
from tasks.publication.verify_and_publish import Published


@as_job_flow
def canon(job_file: Path, settings: tuple[str, ...] = ()) -> Published:
    """Runs a job with ``method: {name: canon}``: VP-tree on Euclid's distance → ranges and common ancestors.

    Args:
        job_file: The YAML file.
        settings: Overrides such as ``privacy.k=10``.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    return anonymise_records(job_file, settings)
