"""Of the releases that the registry and the target hold each is found once, in an order that does not change, and of each all is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.units.source_digests import Sketch
from schemas.job.job import Job, hierarchy_digests, privacy_content
from tasks.composition import earlier
from tasks.composition.earlier import UNREGISTERED, earlier_releases
from tasks.composition.release_history import STEP, Recoded, last_entry, read_entry, settings_of, write_entry
from tasks.counting.contents import Sketches
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.store.place import place_of, target_of
from tasks.store.store import Artifact, Store
from tasks.writing.people import KeptRecords, WrittenPersons
from tests.core.recount.test_classes import manifest
from tests.jobs import job_of
from tests.tasks.composition.test_related_releases import registered
from tests.tasks.recount.test_stated_tables import stated

KEY = (("q", "text"),)


def records(*digests: int) -> Sketch:
    return Sketch.of(np.array(digests, np.uint64) << np.uint64(40))


def known_of(folder: Path, replayed: str | None = None, *, kinds: tuple[str, ...] = ("q",), address: str | None = None) -> Any:
    """A source of the one file ``a``, by a job of the quasi-identifier ``q``."""
    job = SimpleNamespace(
        privacy=SimpleNamespace(k=9), replay=replayed and SimpleNamespace(name=replayed), target_path=folder,
        target_address=address,
    )  # fmt: skip
    source = SimpleNamespace(files=[SimpleNamespace(digest="a", rows=4)])
    mine = Sketches(records(1, 2, 3, 4), records())
    return SimpleNamespace(
        run=SimpleNamespace(job=job),
        source=source,
        kinds=dict.fromkeys(kinds, "text"),
        columns=KEY,
        person_names=(),
        tables_below=(),
        quasi_identifiers=("q",),
        exact=(),
        sketches={KEY: mine}.get,
    )


class Registry:
    """Releases by the numbers of their records, the newest first; sketches are as without a key, and of what has a 0 there is more."""

    key = "K"

    def __init__(self, folder: Path, releases: dict[str, tuple[int, ...] | str], damaged: tuple[str, ...] = ()) -> None:
        self._theirs, self._damaged = releases, list(damaged)
        self._entries = [
            registered(folder, release=name, key="K", linkage_key=KEY, files=(held,) if isinstance(held, str) else (), reach=(1.0, 1.0))
            for name, held in releases.items()
        ]
        self.read = list[str]()

    def entries(self) -> tuple[list[Any], list[str]]:
        return self._entries, self._damaged

    def keyed_files(self, source: Any) -> dict[str, str]:
        return {f"keyed {file.digest}": file.digest for file in source.files}

    def keyed_file_digests(self, source: Any) -> list[str]:
        return list(self.keyed_files(source))

    def keyed_sketches(self, mine: Sketches) -> Sketches:
        return mine

    def sketches_of(self, entry: Any) -> Sketches:
        self.read.append(entry.release)
        held: Any = self._theirs[entry.release]
        return Sketches(replace(records(*held), is_complete=0 not in held), records())


@pytest.mark.parametrize("most", [None, 0, 1, 2, 9])
@pytest.mark.parametrize("replayed", [None, "people-2"])
def test_sketches_are_read_until_so_many_releases_share_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int | None, replayed: str | None
) -> None:
    """Files that both have need no sketch, and count; so do not those that have nothing in common, as far as is known."""
    monkeypatch.setattr(earlier, "read_secrets", lambda _job: [])
    names: dict[str, Any] = {
        "people-6": (7, 0), "people-5": (7, 8), "people-4": (1, 2), "people-0": (1,), "people-3": "keyed a", "people-2": (3, 4),
        "people-1": (4,),
    }  # fmt: skip
    registry: Any = Registry(tmp_path, names, ("people-0", "people-7", "no name"))
    ordered = sorted((name for name in names if name != "people-0"), key=lambda name: name != replayed)
    expected, shared, read = list[tuple[str, bool, bool, frozenset[str], str]](), 0, list[str]()
    for name in ordered:
        by_file = names[name] == "keyed a"
        unread = not by_file and most is not None and shared >= most
        doubtful = not by_file and not unread and 0 in names[name]
        read += [name] * (not by_file and not unread)
        if unread or doubtful or by_file or {1, 2, 3, 4} & {*names[name]}:
            shared += not doubtful
            expected.append((name, unread, doubtful, frozenset("a" * by_file), ""))
    expected += [(name, False, False, frozenset(), "its entry in the registry is damaged") for name in ("people-7", "unknown")]
    found = list(earlier_releases(known_of(tmp_path, replayed), "people-0", registry, most))
    assert [(one.release, one.unread, one.doubtful, one.files, one.untold) for one in found] == expected
    assert [one.k for one in found] == [5] * (len(expected) - 2) + [9, 9], "of what is damaged nobody knows the k"
    assert registry.read == read


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (("q", "age", "visit.ward", "condition.chronic"), {"hospital-0": 0, "people-0": 100}),
        (("q", "age", "visit.ward"), {"hospital-0": 0, "people-0": 100}), (("visit.ward",), {"hospital-0": 0}), (("more",), {}),
        (("age", "visit.ward", "condition.chronic", "more"), {"hospital-0": 0}),
    ],
)  # fmt: skip
def test_releases_that_are_not_registered_are_found_by_the_columns_of_one_table_or_of_several(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kinds: tuple[str, ...], found: dict[str, int]
) -> None:
    monkeypatch.setattr(earlier, "read_secrets", lambda _job: [])
    for folder, said in (
        ("tables", stated(tmp_path / "tables")),
        ("table", manifest(levels={"q": 0}, node=[0])),
        (".staging", manifest(release="people-8", levels={"q": 0}, node=[0])),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "manifest.json").write_text(said.model_dump_json())
    registry: Any = Registry(tmp_path, {})
    told = list(earlier_releases(known_of(tmp_path, kinds=kinds), "people-9", registry))
    assert {one.release: one.records for one in told} == found
    assert {(one.release, one.k, one.untold) for one in told} == {(name, 4 if name == "hospital-0" else 5, UNREGISTERED) for name in found}
    # What is of this run, or known by the registry, is told of there.
    assert [one.release for one in earlier_releases(known_of(tmp_path, kinds=kinds), "people-0", registry)] == [
        name for name in found if name == "hospital-0"
    ]
    # No quasi-identifier at all is that of no source.
    (tmp_path / "tables" / "manifest.json").write_text(
        stated(
            tmp_path / "more",
            tables={"person": {"records": 4, "released": 4, "withheld": 0, "suppressed": 0, "orphans": 0, "levels": {}, "passthrough": {}}},
        ).model_dump_json()
    )
    assert [one.release for one in earlier_releases(known_of(tmp_path, kinds=kinds), "people-0", registry)] == []


@pytest.mark.parametrize("address", [None, "memory://unregistered"])
def test_releases_that_are_not_registered_are_found_in_a_folder_and_in_a_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str | None
) -> None:
    """The newest comes first; of what cannot be read nobody knows whose records it holds."""
    monkeypatch.setattr(earlier, "read_secrets", lambda _job: [])
    target, said = place_of(address or str(tmp_path)), {"levels": {"q": 0}, "node": [0]}
    for number, day in ((1, 3), (2, 5), (3, 4)):
        made = manifest(release=f"people-{number}", created=f"2026-01-0{day}T00:00:00+00:00", **said)
        target.write(f"people-{number}/manifest.json", made.model_dump_json().encode())
    target.write("people-4/manifest.json", b"no manifest")
    # A table whose column bears the word by which manifests of several tables are known.
    named = manifest(release="people-5", levels={"histories": 0}, node=[0]).model_dump_json()
    target.write("people-5/manifest.json", named.encode())
    found = earlier_releases(known_of(tmp_path, kinds=("q", "histories"), address=address), "people-1", Registry(tmp_path, {}))  # type: ignore[arg-type]
    assert [one.release for one in found] == ["people-4", "people-2", "people-3", "people-5"]


def artifact(step: str) -> Artifact:
    return Artifact(step=step, key="0" * 64, file=f"{step}/0", rows=1, size=2, sha256=step)


@pytest.mark.parametrize("is_recoded", [True, False])
def test_all_that_later_runs_compare_with_is_kept_of_a_release(tmp_path: Path, is_recoded: bool) -> None:
    columns = {"quasi_identifiers": [{"name": name, "hierarchy": {"prefix": [1]}} for name in "qr"], "sensitive": ["s"]}
    columns["insensitive"] = ["note", {"name": "pay", "publish": {"microaggregate": 2}}]
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2, "l": {"s": {"distinct": 2}}}, target=str(tmp_path)))
    recoding = RecodingArtifacts(outcome=artifact("outcome"), cells=artifact("cells"), classes=artifact("classes"))
    run: Any = SimpleNamespace(job=job, store=Store(tmp_path), recoded=(artifact("domain"), recoding) if is_recoded else None)
    files = [SimpleNamespace(name=f"{digest}.csv", digest=digest, rows=rows) for digest, rows in (("a", 3), ("b", 4))]
    source: Any = SimpleNamespace(files=files, chunks=[SimpleNamespace(key=(("a", 0, 3),)), SimpleNamespace(key=(("b", 0, 4, "read"),))])
    persons = WrittenPersons((artifact("people"),), (artifact("labels"),))
    parts = [KeptRecords(files=(("a", 3), ("b", 4)), members=artifact("members"), contents=artifact("contents"))]
    digested = [KEY, (("note", "text"), ("pay", "whole")), (("s", "text"),)] if is_recoded else None
    said = manifest()
    write_entry(run, said, source, persons, parts, digested)
    found = read_entry("people-0", run.store)
    assert found is not None
    assert dict(found) == {
        "release": "people-0", "files": (("a.csv", "a", 3), ("b.csv", "b", 4)), "chunks": ((("a", 0, 3),), (("b", 0, 4, "read"),)),
        "names": ("q", "r", "s"), "hierarchies": hierarchy_digests(job), "settings": settings_of(job), "code": STEP.key(), "untold": "",
        "recoded": Recoded(domain=artifact("domain"), recoding=recoding, intervals=job.intervals) if is_recoded else None,
        "people": persons.people, "classes": persons.classes, "parts": tuple(parts), "digested": tuple(digested) if digested else None,
        "promised": {"l": privacy_content(job)["l"]}, "seal": said.seal, "means": ("pay",),
        "by_column": 2 if is_recoded else 0, "ways": {"pay": [{"microaggregate": 2}, []]},
    }  # fmt: skip
    assert found.is_readable
    # It counts where the release is published, and only for the release that it is of.
    assert last_entry(job, run.store) is None
    target_of(job).write("people-0/manifest.json", b"")
    assert last_entry(job, run.store) == found
    record = next(run.store.folder.rglob("people-0.record"))
    record.rename(record.with_name("people-1.record"))
    assert read_entry("people-1", run.store) is None


def test_of_releases_that_are_not_registered_the_newest_comes_first_and_a_file_without_records_is_nothing_that_they_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is registered is no second release where its manifest cannot be read."""
    monkeypatch.setattr(earlier, "read_secrets", lambda _job: [])
    for hour, (name, digests) in enumerate({"people-1": "ex", "people-4": "a", "people-2": "ea", "people-5": "a", "people-3": "y"}.items()):
        path = tmp_path / name / "manifest.json"
        path.parent.mkdir()
        said = {"sources": [{"digest": digest} for digest in digests], "created": f"2026-01-01T0{hour}:00:00+00:00"}
        path.write_text(manifest(release=name, **said).model_dump_json())
    for name in ("people-7", "people-8", "somebody's name"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("nothing")
    known, registry = known_of(tmp_path), Registry(tmp_path, {"people-7": (9,)})
    known.source.files.append(SimpleNamespace(digest="e", rows=0))
    asked: Any = registry
    found = [(one.release, one.k, one.files, one.untold) for one in earlier_releases(known, "people-9", asked)]
    unread = [(name, 9, frozenset[str](), "its manifest cannot be read") for name in ("people-8", "unknown")]
    assert found == [*unread, *((name, 5, frozenset("a"), "") for name in ("people-5", "people-2", "people-4"))]
