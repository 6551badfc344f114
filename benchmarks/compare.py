"""The SKALD paper's experiment: one node for all chunks, or a node for each chunk alone.

See papers/skald.txt, V, Table III and Fig. 3.

    python -m benchmarks.compare [--chunks 1,5,25] [--chunk-rows 1000000] [--k 10,50,250,1000] [--limit 0.01]

Every chunk is anonymised by a run of its own, at its exact optimum, as a tool that holds its data in memory must do it. Then all chunks are
anonymised together. The releases of the chunks are concatenated and counted as one table: a class is all records with the same published
combination, whichever chunk they come from, and s is the sum of the suppressed records (eq. 4). That the paper counts so follows from its
figures. "Own chunk" is the sum of each chunk's own DM*, which favours the chunks: it falls with their size however coarse the node is.

The paper has 125 chunks of a million records. The data are made in ``benchmarks/.data`` and kept. Ends with 1 if a claim is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml

import skald
from benchmarks.medical import DATA
from data.medical import make_medical
from data.patients import pin_codes
from data.tables import JOBS

CLAIMS = {25: 4, 125: 9}
"""The least DM* ratio that the paper states, by number of chunks (section V)."""
Node = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One k and one number of chunks.

    Attributes:
        k: Least size of a class.
        chunks: How many chunks there are.
        records: Records of all chunks.
        together: Manifest of the release of all chunks; None where none can be made.
        nodes: Nodes of the chunks alone, with how many chunks chose each, most common first; None: the chunk released nothing.
        dm_star: DM* of the releases of the chunks, concatenated.
        summed: The sum of each chunk's own DM*.
        gcp: GCP of the releases of the chunks, over all records.
    """

    k: int
    chunks: int
    records: int
    together: Mapping[str, Any] | None
    nodes: Sequence[tuple[Node | None, int]]
    dm_star: int
    summed: int
    gcp: float

    @property
    def least(self) -> int:
        """DM* of the release of all chunks."""
        return int(self.together["loss"]["dm_star"]) if self.together else self.records**2

    @property
    def ratio(self) -> float:
        """The DM* ratio (eq. 5): above 1, one node for all chunks loses less than a node for each."""
        return self.dm_star / self.least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", default="1,5,25")
    parser.add_argument("--chunk-rows", type=int, default=1_000_000)
    parser.add_argument("--k", default="10,50,250,1000")
    parser.add_argument("--limit", default="0.01")
    given = parser.parse_args()
    counts, ks = (sorted(map(int, text.split(","))) for text in (given.chunks, given.k))
    start = os.times()
    print(f"{'k':>6}{'chunks':>8}{'ratio':>9}{'own chunk':>11}{'GCP':>8}{'alone':>8}  {'node of all':<16}of most chunks alone")
    cases = []
    for case in compared(chunks_of_patients(max(counts), given.chunk_rows), counts, ks, given.limit):
        cases.append(case)
        gcp = case.together["loss"]["gcp"] if case.together else 1
        nodes = spelt(node_of(case.together)), spelt(case.nodes[0][0])
        figures = f"{case.ratio:>9.2f}{case.summed / case.least:>11.2f}{gcp:>8.3f}{case.gcp:>8.3f}"
        print(f"{case.k:>6}{case.chunks:>8}{figures}  {nodes[0]:<16}{nodes[1]}", flush=True)
    used = sum(os.times()[:4]) - sum(start[:4])
    print(f"\n{max(counts)} chunks of {given.chunk_rows:,} records, limit {given.limit}: {used:.1f} CPU s")
    sys.exit(not all([met(cases, chunks, least) for chunks, least in CLAIMS.items()]))


def chunks_of_patients(chunks: int, rows: int) -> Path:
    """Make so many chunks of so many patients, or find them; return the folder of job and data."""
    folder = DATA / f"medical-{chunks}x{rows}"
    if not (folder / "medical").exists():
        shutil.copytree(JOBS, folder, dirs_exist_ok=True)
        make_medical(folder / "medical.part", chunks * rows, chunks)
        (folder / "medical.part").rename(folder / "medical")
    return folder


def compared(folder: Path, counts: Sequence[int], ks: Sequence[int], limit: str) -> Iterator[Case]:
    """Run all chunks alone and together, and yield each case by number of chunks and k."""
    for old in ("alone", "together"):
        shutil.rmtree(folder / old, ignore_errors=True)
    files = sorted((folder / "medical").glob("*.parquet"))
    for k in ks:
        alone = [_released(folder, folder / "alone" / file.stem, [file], k, limit) for file in files[: max(counts)]]
        for chunks in counts:
            together = _released(folder, folder / "together" / str(chunks), files[:chunks], k, limit)
            yield _case(k, chunks, together, alone[:chunks])


def _released(job_folder: Path, place: Path, files: Sequence[Path], k: int, limit: str) -> tuple[int, skald.Published | None]:
    """Anonymise some files in a folder of their own.

    Return how many records they have, and the release if there is one.
    """
    place.mkdir(parents=True, exist_ok=True)
    job = yaml.safe_load((job_folder / "medical.yaml").read_text())
    shutil.copytree(job_folder / "hierarchies", place / "hierarchies", dirs_exist_ok=True)
    (place / "medical").mkdir(exist_ok=True)
    for file in files:
        if not (place / "medical" / file.name).exists():
            os.link(file, place / "medical" / file.name)
    job |= {"privacy": {"k": k}, "suppression": {"limit": float(limit)}, "target": f"releases-{k}"}
    job["method"] = {"name": "skald", "objective": "dm_star", "roots": 24}
    pins = next(qid for qid in job["columns"]["quasi_identifiers"] if qid["name"] == "pin_code")
    (place / "hierarchies" / "pin_code.csv").write_text(_pin_code_bins(pins["hierarchy"]["widths"]))
    pins["hierarchy"] = {"csv": "hierarchies/pin_code.csv", "delimiter": ";"}
    path = place / "medical.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    records = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [[str(file) for file in files]]).fetchone()
    try:
        return int(records[0]) if records else 0, skald.run(path)
    except skald.SkaldError:
        # A chunk with too few records for k releases nothing.
        return int(records[0]) if records else 0, None


def _pin_code_bins(widths: Sequence[int]) -> str:
    """Return the bins of neighbouring PIN codes as a hierarchy file.

    A bin thus has the same label in all chunks.

    With ``encode`` the label of a bin ends at the values that a chunk has.
    """
    codes = sorted(pin_codes().tolist())
    bins = [[codes[place : place + width] for place in range(0, len(codes), width)] for width in widths[1:]]
    rows = zip(codes, *([f"{part[0]} to {part[-1]}" for part in parts for _ in part] for parts in bins), strict=True)
    return "".join(f"{';'.join(map(str, row))};*\n" for row in rows)


def _case(k: int, chunks: int, together: tuple[int, skald.Published | None], alone: Sequence[tuple[int, skald.Published | None]]) -> Case:
    manifests = [(records, published.manifest if published else None) for records, published in alone]
    suppressed = sum(manifest["suppressed"] if manifest else records for records, manifest in manifests)
    squares = _squares([published.folder for _, published in alone if published], manifests)
    own = sum(manifest["loss"]["dm_star"] if manifest else records**2 for records, manifest in manifests)
    lost = sum((manifest["loss"]["gcp"] if manifest else 1) * records for records, manifest in manifests)
    nodes = Counter(node_of(manifest) for _, manifest in manifests).most_common()
    first = together[1].manifest if together[1] else None
    return Case(k, chunks, together[0], first, nodes, squares + suppressed**2, own, lost / together[0])


def _squares(folders: Sequence[Path | str], manifests: Sequence[tuple[int, Mapping[str, Any] | None]]) -> int:
    """Return the sum of squared class sizes of the concatenated releases, counted by DuckDB."""
    qids = next((list(manifest["levels"]) for _, manifest in manifests if manifest), [])
    files = [str(path) for folder in folders for path in sorted(Path(folder, "data").glob("*.parquet"))]
    if not files:
        return 0
    # A level is text in one release and a number in another; as text they are the same class where they say the same.
    names = ", ".join(f'"{name}"::VARCHAR' for name in qids)
    tables = " UNION ALL ".join(f"SELECT {names} FROM read_parquet('{path}')" for path in files)
    sizes = f"SELECT *, count(*) AS size FROM ({tables}) GROUP BY ALL"
    found = duckdb.connect().execute(f"SELECT sum(size::HUGEINT * size) FROM ({sizes})").fetchone()
    return int(found[0]) if found else 0


def node_of(manifest: Mapping[str, Any] | None) -> Node | None:
    """Return the node of a release."""
    return tuple(manifest["node"]) if manifest else None


def spelt(node: Node | None) -> str:
    """Return the levels of a node as text."""
    return "nothing" if node is None else " ".join(map(str, node))


def met(cases: Sequence[Case], chunks: int, least: int) -> bool:
    """Tell, and print, whether the DM* ratio is at least what the paper claims for every k."""
    ratios = [case.ratio for case in cases if case.chunks == chunks]
    if not ratios:
        return True
    print(f"{chunks} chunks: DM* ratio at least {min(ratios):.2f}; the paper claims {least}: {'met' if min(ratios) >= least else 'MISSED'}")
    return min(ratios) >= least


if __name__ == "__main__":
    main()
