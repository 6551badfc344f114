"""Attacks on the verification: a release is changed, and ``skald verify`` is asked about it.

The attacker has the job, the source and the secret.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.intruder.attack import ROOT, Attack, Ended, run, skald
from tests.tampering.files_anew import parquet
from tests.tampering.kinds import anew

PART = "what verify calls verified"
SECRET = {"SKALD_SECRET": "0f1e2d3c4b5a6978" * 4}
AGES = {"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}}
LYING = """
import sys
from typing import ClassVar, Literal
import numpy as np
import pyarrow as pa
from core.hierarchies.levels import Ladder, labelled
from schemas.registry.hierarchies import HierarchySpec
from schemas.registry.hierarchy_kinds import HIERARCHIES, HierarchyKind

class ParityHierarchy(HierarchySpec):
    kind: ClassVar[str] = "parity"
    parity: Literal[True]

def ladder(qid, domain, spec, folder):
    odd = domain.values.to_numpy(zero_copy_only=False) % 2 == 1
    return Ladder((labelled(pa.array(np.where(odd, "even", "odd"))),), axis=len(domain.values))

KIND = HierarchyKind(name="parity", schema=ParityHierarchy, ladder=ladder, words=lambda spec: "even and odd", steps=lambda spec: ["parity"])
with HIERARCHIES.having(KIND):
    from flows import cli
    cli.main()
"""
"""A kind of hierarchy whose labels are false, as somebody registers it."""


def _stays(folder: Path) -> None:
    """Write two stays of each of 40 patients, ten of whom are of each age."""
    rows = [(person, stay) for person in range(40) for stay in range(2)]
    table = {
        "patient": [f"p{person}" for person, _ in rows],
        "age": [20 + person // 10 for person, _ in rows],
        "illness": ["flu" if (person + stay) % 3 else "gout" for person, stay in rows],
        "ward": [f"ward {(person + stay) % 5}" for person, stay in rows],
    }
    (folder / "stays").mkdir()
    pq.write_table(pa.table(table), folder / "stays" / "stays.parquet")


def _job(**columns: Any) -> dict[str, Any]:
    named = {"quasi_identifiers": [AGES], "sensitive": ["illness"], "insensitive": ["ward"]} | columns
    promised = {"privacy": {"k": 10}, "suppression": {"limit": 0.1}, "method": {"name": "skald"}}
    return {"source": {"path": "stays/*.parquet"}, "columns": named, **promised}


def _release(folder: Path) -> Path:
    target = folder / "releases" / "job"
    return target / (target / "CURRENT").read_text().strip()


def _verified(folder: Path) -> Ended:
    return skald(folder, "verify", _release(folder), "--job", "job.yaml", **SECRET)


def _fewer_people(folder: Path) -> str:
    """Remove all records of three people of one class, and change the manifest to match.

    Seven people are left of ten.
    """
    _stays(folder)
    run(folder, _job(person="patient") | {"method": {"name": "skald", "node": [0]}}, **SECRET)
    shutil.rmtree(folder / ".skald")
    release = _release(folder)
    parquet(lambda table: table.slice(6))(release)

    def tell(said: dict[str, Any]) -> None:
        said["released"], said["suppressed"] = said["released"] - 6, said["suppressed"] + 6
        sizes, lost, records = [14, 20, 20, 20], said["suppressed"], said["records"]
        squares = sum(size * size for size in sizes)
        said["loss"].update(dm=squares + lost * records, dm_star=squares + lost * lost, suppression_rate=lost / records)
        said["one_value"]["illness"] = {"classes": 0, "records": 0, "share": 0.0}
        said["suppressed_for"] = {"k": lost}

    anew(release, tell)
    ended = _verified(folder)
    if ended.code:
        return f"exit {ended.code}: the class lacks records"
    return "exit 0, 'Verified', of a class of 7 people at k = 10"


def _false_labels(folder: Path) -> str:
    """Register a kind of hierarchy that calls even numbers odd, and publishes by it."""
    _stays(folder)
    job = _job(quasi_identifiers=[{"name": "age", "hierarchy": {"parity": True}}], identifiers=["patient"])
    lying = job | {"version": 1, "name": "job", "memory": "512MB", "target": "releases/job", "method": {"name": "skald", "node": [1]}}
    (folder / "job.yaml").write_text(json.dumps(lying))
    (folder / "lying.py").write_text(LYING)
    variables = os.environ | {"PYTHONPATH": str(ROOT), "SKALD_DIRECT": "1"} | SECRET
    command = [sys.executable, "lying.py", "run", "job.yaml", "--direct"]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"exit {done.returncode}: the kind is refused"
    return f"{sum(file['rows'] for file in _manifest(folder)['files'])} of 80 labels are false, exit 0"


def _untrue_figures(folder: Path) -> str:
    """Have the manifest say less loss and another policy."""
    _stays(folder)
    run(folder, _job(identifiers=["patient"]), **SECRET)
    shutil.rmtree(folder / ".skald")

    def tell(said: dict[str, Any]) -> None:
        said["loss"]["gcp"], said["policy"] = 0.0, "0" * 64

    anew(_release(folder), tell)
    ended = _verified(folder)
    named = [name for name in ("loss.gcp", "policy") if name in ended.text]
    told = " and ".join(named) + " are listed as taken on trust" if named else "nothing says that they were not looked at"
    return f"exit {ended.code}; {told}"


def _manifest(folder: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((_release(folder) / "manifest.json").read_text())
    return found


def _attack(name: str, before: str, play: Callable[[Path], str]) -> Attack:
    return Attack(PART, name, before, play)


ATTACKS = [
    _attack(
        "takes three of ten people out of a class, where the run folder is not",
        "exit 0, 'Verified', of a class of 7 people at k = 10",
        _fewer_people,
    ),
    _attack("registers a kind of hierarchy that says even for odd", "80 of 80 labels are false, exit 0", _false_labels),
    _attack("has the manifest say less loss and another policy", "exit 0; nothing says that they were not looked at", _untrue_figures),
]
