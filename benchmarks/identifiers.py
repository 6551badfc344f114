"""The cost of pseudonyms per million distinct values.

Shown are CPU seconds, peak memory, and the ratio to a bare SHA-256 of the same values.

    python -m benchmarks.identifiers [--values 1000000]

Each treatment runs in a process of its own on values such as ``patient-000000123``; what making the values costs is taken off. Look-ups are
those of chunk after chunk of a million records in a vault that holds them all.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.measure import Cost, measure

KEY = bytes(range(32))
CHUNK = 1_000_000
WORKS = {
    "values": "making the values (taken off below)",
    "floor": "hashlib.sha256, a call for each value: the floor",
    "hash": "hash: HMAC-SHA-256",
    "mask": "mask: keep 3",
    "pattern": "mask: pattern",
    "shift": "shift: offsets of as many subjects, and their dates",
    "encrypt": "encrypt: FF1, 9 digits",
    "issue": "token: a new vault",
    "look_up": "token: looked up in that vault",
}


def values_of(count: int) -> pa.Array:
    return pa.array([f"patient-{number:09d}" for number in range(count)], pa.large_string())


def work(name: str, count: int, folder: Path) -> None:
    """Do one kind of work on distinct values."""
    from core.privacy.pseudonyms import covered_text, day_shifts, encrypted_values, keyed_hash, shift_dates
    from schemas.registry.treatments import EncryptSettings, MaskSettings

    values, place = values_of(count), {"env": "KEY"}
    match name:
        case "floor":
            for value in values.cast(pa.large_binary()).to_pylist():
                hashlib.sha256(value).hexdigest()
        case "hash":
            keyed_hash(values, KEY, 64)
        case "mask":
            covered_text(values, MaskSettings.model_validate({"keep": 3}))
        case "pattern":
            covered_text(values, MaskSettings.model_validate({"pattern": r"(\w+)-\d+", "replacement": r"\1-*"}))
        case "shift":
            shift_dates(pa.array(np.zeros(count, np.int32)).cast(pa.date32()), day_shifts(values, KEY, 30))
        case "encrypt":
            numbers = pa.array(np.arange(count))
            encrypted_values(numbers, EncryptSettings.model_validate({"key": place, "alphabet": "digits", "width": 9}), KEY)
        case "issue" | "look_up":
            _tokens(name, values, folder)


def _tokens(name: str, values: pa.Array, folder: Path) -> None:
    from schemas.job.job import load_job
    from tasks.writing.vaults import issue_tokens, tokens_of_values

    job = load_job(folder / "job.yaml")
    if name == "issue":
        issue_tokens(
            job, folder / "vault.parquet", [values.slice(first, CHUNK) for first in range(0, len(values), CHUNK)], folder / "spill"
        )
        return
    for first in range(0, len(values), CHUNK):
        tokens_of_values(job, folder / "vault.parquet", values.slice(first, CHUNK), folder / "spill")


def job_at(folder: Path) -> None:
    job = {
        "version": 1,
        "name": "tokens",
        "source": {"path": "none.parquet"},
        "columns": {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1]}}]},
        "privacy": {"k": 2},
        "method": {"name": "skald"},
        "memory": "1GB",
        "target": "releases",
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--work", choices=WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.values, asked.folder)
        return
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        job_at(folder)
        command = [sys.executable, "-m", "benchmarks.identifiers", "--values", str(asked.values), "--folder", str(folder), "--work"]
        costs: dict[str, Cost] = {name: measure([*command, name], root) for name in WORKS}
    base, floor = costs["values"], costs["floor"].cpu - costs["values"].cpu
    print(f"\n{asked.values:,} distinct values\n\n{'work':<56}{'CPU s':>8}{'peak MB':>9}{'× floor':>9}")
    for name, title in WORKS.items():
        spent = costs[name].cpu - (base.cpu if name != "values" else 0)
        print(f"{title:<56}{spent:>8.2f}{costs[name].peak / 1e6:>9.0f}{spent / floor:>9.1f}")


if __name__ == "__main__":
    main()
