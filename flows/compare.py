"""The paper's experiments: each chunk anonymised alone, as in-memory tools must, against one node for all (papers/skald.txt, V)."""

from dataclasses import dataclass
from pathlib import Path

from core.evaluation.per_chunk_baseline import layout
from schemas.job.job import load_job
from tasks.comparison.chunk_phases import count_units, find_optima, optima_of_chunks, portion_of, recount_chunks
from tasks.comparison.chunk_picture import draw
from tasks.comparison.chunk_results import Comparison, comparison_folder, make_case, make_comparison, write_comparison
from tasks.comparison.chunks import check_experiment, check_objective, read_optimum
from tasks.counting.coding import load_coding
from tasks.counting.phases import count_domains, merge_domains
from tasks.engine.flows import as_flow
from tasks.lattice.recodings import check_hierarchies
from tasks.source.opening import open_run
from tasks.source.sources import check_unchanged, read_source

CHUNKS = (1, 5, 25, 125)
KS = (10, 50, 250, 1000)


@dataclass(frozen=True)
class Compared:
    """A comparison, and where its figures lie."""

    comparison: Comparison
    folder: Path


@as_flow
def compare(
    job_file: Path,
    settings: tuple[str, ...] = (),
    chunks: tuple[int, ...] = CHUNKS,
    ks: tuple[int, ...] = KS,
    cut: bool = False,
    to: Path | None = None,
) -> Compared:
    """Compares per-chunk optima with the one node for all chunks. Publishes nothing: only figures are written.

    Args:
        job_file: The YAML file; its ``privacy.k`` is not used, and of privacy models only k-anonymity is compared.
        settings: Overrides such as ``suppression.limit=0``.
        chunks: Numbers of chunks. The source is cut into as many units as the largest says.
        ks: Values of k.
        cut: Cuts the same data into more chunks; else the data grow with the number of chunks, as in the paper: n chunks are n units.
        to: Folder for the figures; ``<target>-comparison`` if left out.

    Raises:
        SkaldError: with one sentence and the exit code of the command line.
    """
    job = load_job(job_file, settings)
    check_objective(job_file, job)
    chunks, ks = tuple(sorted(set(chunks))), tuple(sorted(set(ks)))
    check_hierarchies(job)
    with open_run(job) as run:
        with run.phase("source"):
            source = read_source(run)
            check_experiment(source, chunks, ks, cut=cut)
        with run.phase("domains"):
            domain = merge_domains(run, source, count_domains(run, source))
            coding = load_coding(job, domain, run.store)
        with run.phase("histograms"):
            units = count_units(run, source, domain, max(chunks))
        layouts = [layout(count, max(chunks), cut=cut) for count in chunks]
        with run.phase("each chunk alone"):
            alone = optima_of_chunks(run, domain, units, (chunk for parts in layouts for chunk in parts), ks)
        with run.phase("all chunks together"):
            wholes = [portion_of(run, domain, units[: parts[-1].stop], bins=True) for parts in layouts]
            together = [optima for whole in wholes for optima in find_optima(run, domain, [whole], ks)]
        with run.phase("recount"):
            cases = []
            for parts, optima in zip(layouts, together, strict=True):
                for number, skald in enumerate(optima):
                    releases = [alone[chunk][number] for chunk in parts]
                    found = [read_optimum(release, run.store) for release in releases]
                    cases.append(make_case(read_optimum(skald, run.store), found, recount_chunks(run, domain, releases)))
        check_unchanged(source)
        comparison = make_comparison(job, source, coding, cases, run.seconds, cut=cut)
    folder = comparison_folder(job, to)
    write_comparison(folder, comparison)
    draw(folder, comparison)
    return Compared(comparison, folder)
