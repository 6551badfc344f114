"""A corpus of ways to tamper with a finished release, and whoever tries them: strangers, and one who knows this program but has no key.

A kind is a function that changes a release folder. What it leaves must be refused by ``skald verify`` with exit code 4: kinds marked
``keyed`` where the public key is given, all others without it too, and without anything that the run folder keeps.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from schemas.release.evidence import Document, complete_manifest
from schemas.release.manifest import Manifest
from tasks.release.examples import examples_of
from tasks.report.page import render, report_code
from tasks.report.report import make_report, recount_release_files
from tasks.store.files import file_digest

Layout = Literal["parquet", "csv", "duckdb", "hive"]
Tamper = Callable[[Path], object]


@dataclass(frozen=True)
class Kind:
    """A way to tamper.

    Attributes:
        name: What is done.
        tamper: Does it to a release folder.
        layout: Of which release it is a way.
        keyed: Whether only a signature tells: everything was made anew, and contradicts nothing.
    """

    name: str
    tamper: Tamper
    layout: Layout = "parquet"
    keyed: bool = False


KINDS: dict[str, Kind] = {}


def kind(name: str, layout: Layout = "parquet", *, keyed: bool = False) -> Callable[[Tamper], Tamper]:
    """Register a way to tamper."""

    def register(tamper: Tamper) -> Tamper:
        add(name, tamper, layout, keyed=keyed)
        return tamper

    return register


def add(name: str, tamper: Tamper, layout: Layout = "parquet", *, keyed: bool = False) -> None:
    """Register a way to tamper that is made of others."""
    full = f"{layout}: {name}"
    assert full not in KINDS
    KINDS[full] = Kind(full, tamper, layout, keyed)


def all_kinds() -> Iterator[Kind]:
    """Yield all kinds, those of every module of this folder."""
    from tests.tampering import bytes_and_entries, figures, files_anew, signatures  # noqa: F401

    yield from KINDS.values()


def read(release: Path) -> dict[str, Any]:
    """Return what the manifest says."""
    found: dict[str, Any] = json.loads((release / "manifest.json").read_text())
    return found


def data(release: Path) -> list[Path]:
    """Return the data files."""
    return sorted(path for path in (release / "data").rglob("part-*") if path.is_file()) or sorted((release / "data").glob("*.duckdb"))


def anew(release: Path, change: Callable[[dict[str, Any]], object] = lambda said: None, *, report: bool = True) -> None:
    """Make digests, report, lists and seal anew, as this program would: all that can be done without a key.

    Args:
        release: The folder, in which files may have been changed.
        change: Changes what the manifest says.
        report: Whether the report is made of it; else it stays, and its digest is taken.
    """
    said = read(release)
    for file in said["files"]:
        if (release / file["path"]).is_file():
            file["sha256"] = file_digest(release / file["path"])
            file["bytes"] = (release / file["path"]).stat().st_size
    change(said)
    manifest = Manifest.model_validate(said)
    if report:
        _report_anew(release, manifest)
    documents = [
        Document(path=name, sha256=file_digest(release / name), code=report_code(), bytes=(release / name).stat().st_size)
        for name in ("report.html", "report.json")
    ]
    (release / "manifest.json").write_text(complete_manifest(manifest, tuple(documents), manifest.signed_by)[1])


def _report_anew(release: Path, manifest: Manifest) -> None:
    try:
        recount = recount_release_files("it", data(release), manifest)
        made = make_report(manifest, recount, examples_of("it", data(release), manifest))
        texts = {"report.html": render(made), "report.json": made.model_dump_json(indent=2) + "\n"}
    except Exception:
        return
    for name, text in texts.items():
        (release / name).write_text(text)


def private_key(folder: Path, name: str = "signing.pem") -> Path:
    """Make a key pair with openssl, as the pages say; return the private one, beside which ``public-…`` lies."""
    key = folder / name
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True, capture_output=True)
    key.chmod(0o600)
    subprocess.run(["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(folder / f"public-{name}")], check=True, capture_output=True)
    return key
