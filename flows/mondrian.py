"""Mondrian, centralised or in fragments (papers/distributed-mondrian.txt, Fig. 3)."""

from pathlib import Path

from flows.skald import Published
from schemas.job import load_job
from tasks.coding import load_coding
from tasks.mondrian import check_whole, in_fragments
from tasks.mondrian_phases import anonymise_cells, anonymise_fragments
from tasks.phases import count_domains, merge_domains
from tasks.publishing import publish, published, release_id, stage_files, staging_folder
from tasks.recodings import check_hierarchies
from tasks.record_releases import make_local_manifest
from tasks.runs import open_run
from tasks.sources import check_unchanged, read_source
from tasks.steps import as_flow
from tasks.verification import recount


@as_flow
def mondrian(job_file: Path, settings: tuple[str, ...] = ()) -> Published:
    """Runs a job with ``method: {name: mondrian}``: domains, cuts of all cells or fragment by fragment, a verified release.

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
        with run.phase("domains"):
            domain = merge_domains(run, source, count_domains(run, source))
            coding = load_coding(job, domain, run.store)
            check_whole(job, coding)
        anonymise = anonymise_fragments if in_fragments(job, coding) else anonymise_cells
        files, outcome = anonymise(run, source, domain)
        with run.phase("verify"):
            staging = staging_folder(job, release)
            staged = stage_files(files, run.store, staging)
            paths, originals = [staging / file.path for file in staged], [file.path for file in source.files]
            counted = recount(job, paths, run.spill, f"release '{release}'", originals)
            check_unchanged(source)
        manifest = make_local_manifest(job, source, release, outcome, staged, counted, run.seconds)
        publish(job, staging, manifest, counted)
        run.published()
        return Published(manifest, job.target_path / release, new=True)
