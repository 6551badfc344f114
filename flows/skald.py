"""SKALD: chunked full-domain k-anonymisation with one globally chosen node (papers/skald.txt, Fig. 2)."""

from dataclasses import dataclass
from pathlib import Path

from schemas.job import load_job
from schemas.release import Manifest
from tasks.coding import load_coding
from tasks.phases import count_domains, count_histograms, count_sizes, merge_domains, merge_histograms, rewrite, search, write_files
from tasks.publishing import make_manifest, publish, published, release_id, stage_files, staging_folder
from tasks.recodings import check_hierarchies, choose_root, read_outcome
from tasks.risk import risk_before
from tasks.runs import open_run
from tasks.sources import check_unchanged, read_source
from tasks.steps import as_flow
from tasks.verification import recount


@dataclass(frozen=True)
class Published:
    """A release that is published, and whether this run made it."""

    manifest: Manifest
    folder: Path
    new: bool


@as_flow
def skald(job_file: Path, settings: tuple[str, ...] = ()) -> Published:
    """Runs a job: one job file to a verified release.

    Args:
        job_file: The YAML file.
        settings: Overrides such as ``privacy.k=10``.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    job = load_job(job_file, settings)
    check_hierarchies(job)
    with open_run(job) as run:
        with run.phase("source"):
            source = read_source(job, run.store)
            release = release_id(job, source)
            if manifest := published(job, release):
                return Published(manifest, job.target_path / release, new=False)
        with run.phase("phase 1: domains"):
            domain = merge_domains(run, source, count_domains(run, source))
            coding = load_coding(job, domain, run.store)
            root = choose_root(job, coding)
        with run.phase("phase 2: histogram"):
            parts = count_histograms(run, source, domain, root)
            histogram = merge_histograms(run, domain, root, parts)
            sizes = count_sizes(run, domain, root, histogram, parts)
        with run.phase("phase 2: search"):
            recoding = search(run, domain, root, histogram, parts)
        with run.phase("phase 3: rewrite"):
            files = write_files(run, source, domain, recoding, rewrite(run, source, domain, recoding))
        with run.phase("verify"):
            staging = staging_folder(job, release)
            staged = stage_files(files, run.store, staging)
            counted = recount(
                job, [staging / file.path for file in staged], run.spill, f"release '{release}'", [file.path for file in source.files]
            )
            check_unchanged(source)
        before = risk_before(sizes, run.store)
        outcome, tops = read_outcome(recoding, run.store), [hierarchy.top for hierarchy in coding.hierarchies]
        manifest = make_manifest(job, source, release, outcome, staged, counted, run.seconds, before, tops)
        publish(job, staging, manifest, counted)
        run.published()
        return Published(manifest, job.target_path / release, new=True)
