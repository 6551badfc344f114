"""Figures of the manifest are changed by somebody who makes report, digests and seal anew: what files, job and source contradict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from schemas.release.manifest import Manifest
from tests.tampering.kinds import add, anew, kind, read

Said = dict[str, Any]


def changed(change: Callable[[Said], object]) -> Callable[[Path], object]:
    """Return what changes the manifest and makes all that depends on it anew."""

    def tamper(release: Path) -> None:
        before = read(release)
        anew(release, change)
        after = read(release)
        assert {name for name in after if after[name] != before[name]} - {"seal", "documents"}, "nothing was changed"

    return tamper


def place_of(said: Said, field: str) -> tuple[Any, Any]:
    """Return what holds a figure, and where in it; ``a.0.b`` is the figure b of the first a."""
    *above, last = [int(name) if name.isdigit() else name for name in field.split(".")]
    place: Any = said
    for name in above:
        place = place[name]
    return place, last


def plus(field: str, step: float = 1) -> Callable[[Said], object]:
    """Return what adds to a figure."""

    def change(said: Said) -> None:
        place, last = place_of(said, field)
        place[last] += step

    return change


def to(field: str, value: Any) -> Callable[[Said], object]:
    """Return what replaces a figure."""

    def change(said: Said) -> None:
        place, last = place_of(said, field)
        place[last] = value

    return change


def both(*changes: Callable[[Said], object]) -> Callable[[Said], object]:
    """Return what makes several changes."""
    return lambda said: [change(said) for change in changes]


for field in (
    "privacy.k", "records", "released", "suppressed", "masked", "classes", "min_class", "loss.dm", "loss.dm_star", "files.0.rows",
    "risk.after.records_above", "search.nodes", "suppressed_for.k", "tops.age", "levels.age", "sources.0.records", "asked.memory",
    "asked.rounds", "ncp.age", "loss.gcp",
):  # fmt: skip
    add(f"{field} is one more, all anew", changed(plus(field)))
for field in ("privacy.k", "min_class", "suppressed", "loss.dm_star", "classes"):
    add(f"{field} is one less, all anew", changed(plus(field, -1)))
for field in (
    "loss.c_avg", "loss.suppression_rate", "loss.gcp", "ncp.age", "risk.after.prosecutor_max", "risk.after.prosecutor_mean",
    "risk.after.uniqueness", "risk.after.share_above",
):  # fmt: skip
    add(f"{field} is a little less, all anew", changed(plus(field, -0.01)))
add("records and suppressed are raised, all anew", changed(both(plus("records", 40), plus("suppressed", 40))))
add(
    "records, suppressed and those of the source are raised, all anew",
    changed(both(plus("records", 40), plus("suppressed", 40), plus("sources.0.records", 40), plus("suppressed_for.k", 40))),
)
add("suppressed and masked are raised, all anew", changed(both(plus("suppressed", 3), plus("masked", 3), plus("suppressed_for.k", 3))))
add(
    "a finer node is said, all anew",
    changed(both(to("node.2", 1), to("levels.zip", 1), to("asked.quasi_identifiers.2.published", "the first 3 characters"))),
)


@kind("a coarser level is said with its words, all anew")
def coarser(release: Path) -> None:
    def change(said: Said) -> None:
        said["levels"]["zip"] += 1
        said["node"] = list(said["levels"].values())

    anew(release, change)


for field, value in {
    "method": "mondrian", "name": "others", "node": None, "levels": None, "optimal": "the best there is", "loss": {"dm": 1}, "risk": {},
    "measured": {"l": {"disease": 9.0}}, "pseudonyms": {"person": "a keyed hash"}, "asked.limit": "0.01", "asked.treatment": "mask",
    "asked.identifiers": [], "asked.sensitive": [], "asked.objective": "gcp", "asked.source": "CSV files", "hierarchies": {},
    "replay_of": "people-0123456789abcdef", "tops": {}, "format": 1, "privacy": {"k": 5, "l": {"disease": {"distinct": 2}}},
    "release": "people-0123456789abcdef", "files": [], "ncp": {"age": 0.0},
    "persons": {"columns": ["person"], "source": 9, "released": 9, "smallest_class": 9, "most_records": 1},
}.items():  # fmt: skip
    if field not in {"loss", "risk"}:
        add(f"{field} is another, all anew", changed(to(field, value)))


@kind("what was asked is left out")
def unasked(release: Path) -> None:
    path = release / "manifest.json"
    path.write_text(json.dumps(read(release) | {"asked": None}, indent=2))


add("format is a later one, all anew", changed(to("format", 3)))
add("a path of a file leads out, all anew", changed(to("files.0.path", "../raw.parquet")))
add("a path of a file is absolute, all anew", changed(to("files.0.path", "/etc/passwd")))
add("a path of a file is no data file, all anew", changed(to("files.0.path", "report.html")))
add("a file is listed twice, all anew", changed(lambda said: said["files"].append(said["files"][0])))
add("files are listed in another order, all anew", changed(lambda said: said["files"].reverse()))

# What nothing in a release contradicts: times and versions, names, what the search and earlier runs found, the source as it was.
for field, value in {
    "created": "2001-01-01T00:00:00+00:00", "seconds": {"source": 1.0}, "peak_rss": 1, "workers": 7, "versions.skald": "9.9",
    "run_by": "Bob", "source_name": "Census", "evolved": {"age": "text"}, "unmeasured_overlaps": 7, "inputs": "0" * 32, "increment": None,
    "job": "0" * 64, "sources.0.digest": "0" * 64, "search.evaluated": 1,
    "loss.dm_all": 1, "overlaps": [{"release": "people-0123456789abcdef", "k": 5, "shared": 9, "added": 0, "removed": 0}],
}.items():  # fmt: skip
    add(f"{field} is another, all anew", changed(to(field, value)), keyed=True)
add("what untreated columns tell is left out, all anew", changed(to("passthrough", {})), keyed=True)
add("a policy is said, all anew", changed(to("policy", "0" * 64)), keyed=True)
add("the optimum is said to be less than it is, all anew", changed(to("optimal", "best of the nodes above 1 root")), keyed=True)


def with_text(change: Callable[[str], str]) -> Callable[[Path], object]:
    """Return what changes the text of the manifest and seals it anew, without regard to what a manifest is."""

    def tamper(release: Path) -> None:
        import hashlib

        path = release / "manifest.json"
        open_one = change(path.read_text()).replace(read(release)["seal"], "")
        before, _, after = open_one.rpartition('"seal": "')
        path.write_text(f'{before}"seal": "{hashlib.sha256(open_one.encode()).hexdigest()}{after}')

    return tamper


add("the manifest has a key more, sealed anew", with_text(lambda text: text.replace("{", '{\n  "secret": "Alice 44",', 1)))
add("the manifest has a key more deep in it, sealed anew", with_text(lambda text: text.replace('"path":', '"raw": "Alice", "path":', 1)))
add("the manifest has a key twice, sealed anew", with_text(lambda text: text.replace("{", '{\n  "name": "Alice 44",', 1)))
add("the manifest says a comment, sealed anew", with_text(lambda text: text.replace("{", "{ // Alice 44", 1)))
add("the manifest is spread out, sealed anew", with_text(lambda text: text.replace('"k": 5', '"k":                5', 1)))


@kind("report.html says something else, all anew")
def other_page(release: Path) -> None:
    path = release / "report.html"
    path.write_text(path.read_text().replace("</h1>", " (Alice 44)</h1>", 1))
    anew(release, report=False)


@kind("report.json says something else, all anew")
def other_report(release: Path) -> None:
    path = release / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"maximum_risk": "none"}, indent=2))
    anew(release, report=False)


@kind("the report is another release's, all anew")
def foreign_report(release: Path) -> None:
    said = read(release)
    (release / "report.json").write_text((release / "report.json").read_text().replace(said["release"], "people-0123456789abcdef"))
    anew(release, report=False)


@kind("the documents are listed under other names, all anew")
def other_documents(release: Path) -> None:
    (release / "raw.csv").write_text("person,age\n")
    anew(release)
    from schemas.release.evidence import complete_manifest

    manifest = Manifest.model_validate(read(release))
    raw = manifest.documents[0].model_copy(update={"path": "raw.csv"})
    (release / "manifest.json").write_text(complete_manifest(manifest, (*manifest.documents, raw), None)[1])
