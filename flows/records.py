"""What the flows of all algorithms that recode single records have in common: everything but the algorithm."""

from pathlib import Path

from flows.skald import Published
from schemas.job import load_job
from tasks.artifacts import Artifact
from tasks.coding import load_coding
from tasks.mondrian_phases import anonymise_fragments
from tasks.phases import count_domains, merge_domains
from tasks.publishing import publish, published, release_id, stage_files, staging_folder
from tasks.recodings import check_hierarchies
from tasks.record_fragments import need_fragments
from tasks.record_phases import code_records, recode_records, rewrite, write_files
from tasks.record_recodings import LocalOutcome, read_local_outcome
from tasks.record_releases import make_local_manifest
from tasks.runs import Run, open_run
from tasks.sources import Source, check_unchanged, read_source
from tasks.verification import recount


def anonymise_records(job_file: Path, settings: tuple[str, ...] = ()) -> Published:
    """Runs a job: its records as codes, the classes that its method makes of them, a verified release.

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
            many = need_fragments(job, load_coding(job, domain, run.store))
        files, outcome = (anonymise_fragments if many else _anonymise_whole)(run, source, domain)
        with run.phase("verify"):
            staging = staging_folder(job, release)
            staged = stage_files(files, run.store, staging)
            counted = recount(
                job, [staging / file.path for file in staged], run.spill, f"release '{release}'", [file.path for file in source.files]
            )
            check_unchanged(source)
        manifest = make_local_manifest(job, source, release, outcome, staged, counted, run.seconds)
        publish(job, staging, manifest, counted)
        run.published()
        return Published(manifest, job.target_path / release, new=True)


def _anonymise_whole(run: Run, source: Source, domain: Artifact) -> tuple[list[Artifact], LocalOutcome]:
    """Recodes all records at once; returns the files of the release, and what it cost."""
    with run.phase("records"):
        coded = code_records(run, source, domain)
    with run.phase(run.job.method.name):
        recoding = recode_records(run, domain, coded)
    with run.phase("rewrite"):
        files = write_files(run, source, domain, recoding, rewrite(run, source, domain, recoding))
    return files, read_local_outcome(recoding, run.store)
