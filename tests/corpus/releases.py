"""Jobs of all methods whose releases stay the same to the byte, with the digests of their data files in ``releases.json``.

The jobs cover nearly all pairs of settings: the method, who counts, what is promised, what becomes of suppressed records, and the form of
the files. ``python -m tests.corpus.releases`` records the digests anew, after a change that is meant to change releases.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from tests.command_line import CommandLine
from tests.jobs import JOB, people, write_job, write_parquet

RECORDED = Path(__file__).with_name("releases.json")
JOBS, ROWS, CHUNK = 66, 600, 200
QIDS = ["sex", "age", "zip", "height", "smoker", "born"]
METHODS: dict[str, dict[str, Any]] = {
    "skald": {"name": "skald", "objective": "dm_star"},
    "skald gcp": {"name": "skald", "objective": "gcp"},
    "skald dense": {"name": "skald", "root": "dense", "objective": "dm_all"},
    "mondrian": {"name": "mondrian"},
    "mondrian ncp": {"name": "mondrian", "score": "ncp"},
    "mondrian fragments": {"name": "mondrian", "fragments": {"count": 3, "sample": 0.5}},
    "kmember": {"name": "kmember"},
    "rayden": {"name": "rayden"},
    "canon": {"name": "canon"},
    "mondrian_cof": {"name": "mondrian_cof"},
    "clustering": {"name": "clustering"},
}
UNITS = ("records", "persons", "linked persons")
PROMISES: dict[str, dict[str, Any]] = {
    "k": {"k": 4},
    "distinct": {"k": 3, "l": {"disease": {"distinct": 2}}},
    "entropy": {"k": 3, "l": {"disease": {"entropy": 1.5}}},
    "recursive": {"k": 3, "l": {"disease": {"recursive": {"c": 3, "l": 2}}}},
    "t": {"k": 3, "t": {"disease": {"t": 0.5}}},
    "ordered t": {"k": 3, "t": {"visits": {"t": 0.4, "distance": "ordered"}}},
}
SUPPRESSED: dict[str, dict[str, Any]] = {
    "none": {"limit": 0},
    "drop": {"limit": 0.1},
    "mask": {"limit": 0.1, "treatment": "mask"},
    "cell": {"limit": 0.1, "treatment": "cell"},
    "rounds": {"limit": 0.1, "rounds": 1},
}
FORMS: dict[str, dict[str, Any]] = {
    "text": {},
    "bounds": {"intervals": "bounds"},
    "csv": {"output": {"format": "csv"}},
    "folders": {"output": {"partition_by": ["sex"]}},
}
FACTORS = (tuple(METHODS), UNITS, tuple(PROMISES), tuple(SUPPRESSED), tuple(FORMS))
Case = tuple[str, ...]


def cases() -> dict[str, Case]:
    """Return the jobs by name: each has a method, a unit, a promise, a treatment and a form, and together they have all pairs of these.

    Each is the one of a few drawn at random that has most pairs that no earlier one has.
    """
    drawn, random = list(filter(_fits, product(*FACTORS))), Random(0)
    chosen: list[Case] = []
    missing = {pair for case in drawn for pair in _pairs(case)}
    while len(chosen) < JOBS:
        best = max(random.sample(drawn, 600), key=lambda case: len(missing & set(_pairs(case))))
        chosen.append(best)
        drawn.remove(best)
        missing -= set(_pairs(best))
    return {", ".join(case): case for case in chosen}


def _fits(case: Case) -> bool:
    """Return whether a job may say these together.

    Bounds hold no star. Only full-domain recoding has stars and rounds. A person's records may be in two fragments, which then cannot keep
    what counts shares of persons.
    """
    method, unit, promise, suppressed, form = case
    local = suppressed in {"cell", "rounds"}
    shares = "fragments" in method and unit != "records" and promise not in {"k", "distinct"}
    return not shares and not (local and not method.startswith("skald")) and not (form == "bounds" and (local or suppressed == "mask"))


def _pairs(case: Case) -> Iterator[tuple[tuple[int, str], ...]]:
    return combinations(enumerate(case), 2)


def job_of(case: Case) -> dict[str, Any]:
    """Return the job of a case."""
    method, unit, promise, suppressed, form = case
    columns: dict[str, Any] = {
        "person": "none" if unit == "records" else "person",
        "quasi_identifiers": JOB["columns"]["quasi_identifiers"],
        "sensitive": ["disease", "visits"],
        "insensitive": ["score"],
        "identifiers": ["note"],
    }
    if unit == "records":
        columns["identifiers"] = ["person", "note"]
    if unit == "linked persons":
        columns["identifiers"] = [{"name": "person", "treatment": {"hash": {"key": {"env": "CORPUS_KEY"}}}}, "note"]
        columns["linkable"] = ["person"]
    settings = {"chunk_rows": CHUNK, "privacy": PROMISES[promise], "suppression": SUPPRESSED[suppressed], "method": METHODS[method]}
    return JOB | {"name": "corpus", "columns": columns} | settings | FORMS[form]


def records() -> pa.Table:
    """Return records of people, of whom every third has two, alike in what is sensitive and not in everything else."""
    table = people(ROWS, seed=7)
    again = np.arange(ROWS)[::3]
    further = people(ROWS, seed=8).take(again)
    for name in ("person", "disease", "visits"):
        further = further.set_column(further.schema.get_field_index(name), name, table[name].take(again))
    return pa.concat_tables([table, further])


def outcome(case: Case, folder: Path) -> dict[str, Any]:
    """Run the job of a case in an empty folder.

    Returns:
        The exit code and, where there is a release, the digest of the names and the bytes of its data files.
    """
    write_parquet(folder / "people", records(), files=2)
    line = CommandLine("direct", folder)
    done = line("run", write_job(folder, job_of(case)), CORPUS_KEY="0123456789abcdef0123456789abcdef")
    current = folder / "releases" / "CURRENT"
    if done.returncode:
        return {"code": done.returncode}
    data, digest = folder / "releases" / current.read_text().strip() / "data", hashlib.sha256()
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(data)}\n".encode() + path.read_bytes())
    return {"code": 0, "sha256": digest.hexdigest()}


def recorded() -> Mapping[str, Mapping[str, Any]]:
    """Return how each job ended when the digests were last recorded, by name."""
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return found


def record() -> None:
    """Run all jobs and records how they end."""
    ended = {}
    for name, case in cases().items():
        with TemporaryDirectory() as folder:
            ended[name] = outcome(case, Path(folder))
    RECORDED.write_text(json.dumps(ended, indent=1) + "\n")


if __name__ == "__main__":
    record()
