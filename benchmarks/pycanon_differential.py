"""Comparison of ``skald verify`` with pycanon 1.3 on small releases.

Compared are k, distinct, entropy and recursive (c,l)-diversity, and t-closeness.

    python -m benchmarks.pycanon_differential --python OTHER/bin/python [--rows 2000] [--releases 6]

pycanon wants an older typing_extensions than Pydantic, so it lives in an environment of its own (``pip install pycanon pyarrow``), whose
Python is called here. Nulls are filled before, because its group-by drops the records that hold one. Of every figure that pycanon finds,
the verification must accept just that and refuse the next better one. Ends with 1 where it does not.

The (c,l) of pycanon counts the *rarest* value of a class where Machanavajjhala et al. (2007) have the most frequent one, so it is shown
beside the definition's own, which is what the verification is held to.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import yaml

QIDS = ["sex", "age", "zip"]
SLACK = 1e-6
THEIRS = """
import json, sys
import pandas as pd
from pycanon import anonymity
path, qids, columns = json.loads(sys.argv[1])
frame = pd.read_parquet(path)
found = {"k": int(anonymity.k_anonymity(frame, qids))}
for column in columns:
    counts = frame.groupby(qids + [column]).size().groupby(qids)
    least = anonymity.l_diversity(frame, qids, [column])
    falling = [sorted(sizes, reverse=True) for _, sizes in counts]
    found[column] = {
        "distinct": least,
        "entropy": anonymity.entropy_l_diversity(frame, qids, [column]),
        "recursive": anonymity.recursive_c_l_diversity(frame, qids, [column])[0],
        "defined": int(max(sizes[0] / sum(sizes[least - 1:]) for sizes in falling) + 1),
        "t": float(anonymity.t_closeness(frame, qids, [column])),
    }
print(json.dumps(found, default=float))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the Python of an environment with pycanon")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--releases", type=int, default=6)
    given = parser.parse_args()
    os.environ["SKALD_DIRECT"] = "1"
    checks = wrong = 0
    for seed in range(given.releases):
        with TemporaryDirectory() as folder:
            job, release = filled_release(Path(folder), given.rows, seed)
            [file] = (release / "data").glob("*.parquet")
            asked = json.dumps([str(file), QIDS, ["disease", "visits"]])
            said = subprocess.run([given.python, "-W", "ignore", "-c", THEIRS, asked], check=True, capture_output=True, text=True).stdout
            found = json.loads(said)
            print(f"release {seed}: k {found['k']}; " + "; ".join(f"{name} {found[name]}" for name in ("disease", "visits")))
            for what, setting, holds in claims(found):
                checks += 1
                if accepts(job, release, setting) != holds:
                    wrong += 1
                    print(f"  DIFFERS: {what}: {setting} should be {'kept' if holds else 'refused'}")
    print(f"{checks} checks, {wrong} differ")
    sys.exit(bool(wrong))


def claims(found: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield what must be kept by the release and what must not, as settings."""
    yield "k", f"privacy={{k: {found['k']}}}", True
    yield "k", f"privacy={{k: {found['k'] + 1}}}", False
    for column, distance in (("disease", "equal"), ("visits", "ordered")):
        figures = found[column]
        for kind in ("distinct", "entropy"):
            # An entropy diversity is told in whole numbers, rounded down.
            for more, holds in ((0, True), (1, False)):
                yield kind, f"privacy={{k: 2, l: {{{column}: {{{kind}: {figures[kind] + more}}}}}}}", holds
        for c, holds in ((figures["defined"], True), (figures["defined"] - 1, False)):
            if c and figures["distinct"] > 1:
                yield "recursive", f"privacy={{k: 2, l: {{{column}: {{recursive: {{c: {c}, l: {figures['distinct']}}}}}}}}}", holds
        for t, holds in ((figures["t"] + SLACK, True), (figures["t"] - SLACK, False)):
            if 0 < t <= 1:
                yield f"t {distance}", f"privacy={{k: 2, t: {{{column}: {{t: {t:.9f}, distance: {distance}}}}}}}", holds


def accepts(job: Path, release: Path, setting: str) -> bool:
    """Return whether the verification accepts a release under other privacy settings."""
    from schemas.errors.base import VerificationError
    from schemas.job.job import load_job
    from tasks.recount.recount import recount
    from tasks.release.files import data_files

    loaded = load_job(job, [setting])
    try:
        recount(loaded, data_files(release), job.parent / "spill", "release")
    except VerificationError:
        return False
    return True


def filled_release(folder: Path, rows: int, seed: int) -> tuple[Path, Path]:
    """Make a release and fills its nulls; return the job file and the folder of the filled release."""
    from flows.skald import skald

    random = np.random.default_rng(seed)

    def some(values: list[Any], nulls: float) -> list[Any]:
        picked = (random.beta(1, 2, rows) * len(values)).astype(int)
        return [None if null else values[place] for place, null in zip(picked, random.random(rows) < nulls, strict=True)]

    columns = {
        "sex": some(["f", "m"], 0.02),
        "age": some(list(range(20, 80)), 0.02),
        "zip": some([f"{number:05d}" for number in range(10000, 99999, 7000)], 0.02),
        "disease": some(["flu", "gout", "cough", "measles", "mumps"], 0.05),
        "visits": some(list(range(7)), 0.05),
    }
    (folder / "source").mkdir()
    pl.DataFrame(columns).write_parquet(folder / "source" / "all.parquet")
    job = folder / "job.yaml"
    job.write_text(yaml.safe_dump(job_content(2 + 3 * seed)))
    made = skald(job, ())
    frame = pl.concat([pl.read_parquet(path) for path in sorted((made.folder / "data").glob("*.parquet"))])
    frame = frame.with_columns(pl.col(pl.String).fill_null("null"), pl.col(pl.Int64).fill_null(-1))
    (folder / "filled" / "data").mkdir(parents=True)
    frame.write_parquet(folder / "filled" / "data" / "all.parquet")
    return job, folder / "filled"


def job_content(k: int) -> dict[str, Any]:
    hierarchies = [{"tree": {"*": ["f", "m"]}}, {"widths": [5, 10, 20, 40]}, {"prefix": [3, 2, 1]}]
    return {
        "version": 1,
        "name": "differential",
        "source": {"path": "source/*.parquet"},
        "columns": {
            "quasi_identifiers": [{"name": name, "hierarchy": one} for name, one in zip(QIDS, hierarchies, strict=True)],
            "sensitive": ["disease", "visits"],
            "insensitive": [],
        },
        "privacy": {"k": k},
        "suppression": {"limit": 0.05},
        "method": {"name": "skald"},
        "memory": "256MB",
        "target": "releases",
    }


if __name__ == "__main__":
    main()
