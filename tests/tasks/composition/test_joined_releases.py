"""What pseudonyms join is told of the releases that are known, and why it is not known of the others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.errors.refusals import OverlapError
from schemas.errors.signals import UnmeasuredError
from schemas.job.identifiers import SHARED
from schemas.release.increments import Overlap
from tasks.composition import overlaps, pseudonym_families
from tasks.composition.earlier import Earlier
from tasks.composition.pseudonym_families import FORMAT, INDEX_LOST, Disclosed, Head, Joining, join_releases
from tasks.store.files import file_digest
from tasks.store.keys import json_with_digest

FIGURES = {"people": 7, "below_k": 2, "by_labels": 1, "smallest": 2}
NOTHING = dict.fromkeys(FIGURES, 0)
OTHER: Any = SimpleNamespace(release="people-9", key_families=("another",), pseudonyms_may_be_there=True)


def entry(release: str, *families: str) -> Any:
    return SimpleNamespace(release=release, key_families=families, pseudonyms_may_be_there=True)


class Registry:
    """A registry with an index of the family ``f`` that holds some releases, which promise k = 2."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch, self.folded = folder, monkeypatch, list[Head | None]()
        monkeypatch.setattr(pseudonym_families, "family_of", lambda _job, _source, columns, _registry: columns[0][0])

    def index(self, *releases: str, **changes: Any) -> None:
        (self.folder / "f.sets").write_bytes(b"sets")
        said: dict[str, Any] = {"format": FORMAT, "family": "f", "key": "K", "file": "f.sets", "releases": releases, "k": 2}
        head = Head(**(said | {"sha256": file_digest(self.folder / "f.sets")} | changes))
        (self.folder / "f.family").write_text(json_with_digest(head.model_dump(mode="json")))

    def joined(
        self, entries: list[Any], figures: dict[str, int], *columns: str | tuple[str, ...], owners: Any = None
    ) -> tuple[Any, list[tuple[Any, ...]]]:
        def folded(_run: Any, release: str, _registry: Any, one: tuple[str, Any], head: Head | None) -> tuple[dict[str, int], Path | None]:
            self.folded.append(head)
            return figures, self.folder / f"{one[0]}.{release}.next"

        self._patch.setattr(pseudonym_families, "_folded", folded)
        registry: Any = SimpleNamespace(folder=self.folder, key="K", entries=lambda: (entries, 0))
        run: Any = SimpleNamespace(job=SimpleNamespace(privacy=SimpleNamespace(k=3)))
        nothing: Any = None
        named = [(one,) if isinstance(one, str) else one for one in columns or ("file",)]
        found = join_releases(run, nothing, "people-0", registry, [Disclosed(one, nothing, owners) for one in named])
        return found, [(one.releases, one.k, one.people, one.below_k, one.unmeasured) for one in found.joined]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    return Registry(tmp_path, monkeypatch)


def test_of_releases_in_the_index_it_is_known_what_they_disclose_together(registry: Registry) -> None:
    registry.index("people-1", "people-2")
    found, told = registry.joined([entry("people-1", "f"), entry("people-2", "f"), OTHER, entry("people-0", "f")], FIGURES)
    assert told == [(2, 2, 7, 2, "")]
    assert (found.families, [path.name for path in found.pending]) == (("f",), ["f.people-0.next"])
    assert [head and head.releases for head in registry.folded] == [("people-1", "people-2")]


def test_of_joined_people_whom_pseudonyms_do_not_show_no_number_below_k_is_reported(registry: Registry) -> None:
    registry.index("people-1", k=4)
    found, _ = registry.joined([entry("people-1", "f")], {"people": 7, "below_k": 1, "by_labels": 0, "smallest": 1}, owners="known")
    [one] = found.joined
    assert (one.people, one.below_k, one.by_labels, one.smallest, one.k) == (7, 3, 0, 3, 3)
    assert "for at most 3 persons, by labels alone for 0 persons; the smallest has at most 3 persons" in one.sentence()
    assert one.in_short().endswith("7 persons in several; below k = 3: at most 3 persons")


def test_new_pseudonyms_of_a_known_key_join_nothing(registry: Registry) -> None:
    registry.index("people-1")
    found, told = registry.joined([entry("people-1", "f")], NOTHING)
    assert (told, found.joined, len(found.pending)) == ([], (), 1)
    assert registry.joined([], FIGURES, "mail", "file")[0].joined != (), "another column is looked at by itself"


def test_columns_of_one_key_are_one_family(registry: Registry) -> None:
    registry.index("people-1")
    found, told = registry.joined([entry("people-1", "f")], FIGURES, ("mail", "file"), "file", "first")
    assert (found.families, [one.columns for one in found.joined], told) == (("m", "f"), [("file", "first")], [(1, 2, 7, 2, "")])


def test_the_first_release_of_a_family_joins_nothing(registry: Registry) -> None:
    found, told = registry.joined([OTHER, entry("people-0", "f")], FIGURES)
    assert (told, found.families, len(found.pending), registry.folded) == ([], ("f",), 1, [None])
    run: Any = None
    assert join_releases(run, run, "people-0", run, []) == Joining()


def test_a_release_that_the_index_lacks_is_told_of_beside_the_others(registry: Registry) -> None:
    registry.index("people-1")
    assert registry.joined([entry("people-1", "f"), entry("people-2", "f")], FIGURES)[1] == [(2, 2, 7, 2, INDEX_LOST)]
    older = [SimpleNamespace(release="people-3", key_families=None, pseudonyms_may_be_there=there) for there in (True, False)]
    [(releases, _, people, _, why)] = registry.joined([entry("people-1", "f"), *older[:1]], NOTHING)[1]
    assert (releases, people, why.split(",")[0]) == (2, 0, "another version of this program made some")
    assert registry.joined([entry("people-1", "f"), *older[1:]], NOTHING)[1] == []


@pytest.mark.parametrize("damaged", [{"format": FORMAT + 1}, {"key": "L"}, {"sha256": "0"}, {"file": "gone.sets"}, {"family": "g"}])
def test_an_index_that_cannot_be_believed_is_lost(registry: Registry, damaged: dict[str, Any]) -> None:
    registry.index("people-1", **damaged)
    [(_, _, people, below, why)] = registry.joined([entry("people-1", "f")], FIGURES)[1]
    assert (people, below, why, registry.folded) == (None, None, INDEX_LOST, [None])


class Known:
    """Earlier releases that have something in common with this one, by how many of them are safe."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, asked: str, *, safe: int = 0, unsafe: int = 0, records: int = 100) -> None:
        ones = [SimpleNamespace(is_safe=number < safe, number=number, exact=()) for number in range(safe + unsafe)]
        for one in ones:
            one.reported = lambda one=one: SimpleNamespace(sentence=lambda: f"overlap {one.number}")
        self.earlier = earlier = [SimpleNamespace(release=f"people-{number}", doubtful=False) for number in range(len(ones))]
        self.asked = list[tuple[Any, ...]]()
        monkeypatch.setattr(overlaps, "earlier_releases", lambda *asked: self.asked.append(asked) or earlier)
        monkeypatch.setattr(overlaps, "_measured", lambda _known, one: ones[earlier.index(one)])
        self.job = SimpleNamespace(overlaps=asked, replay=None, is_of_several=True, method=SimpleNamespace(name="skald"))
        self.known: Any = SimpleNamespace(run=SimpleNamespace(job=self.job), source=SimpleNamespace(records=records))

    def overlaps(self, *joined: Any) -> dict[str, Any]:
        registry: Any = object()
        return overlaps.overlaps_of(self.known, "people-0", registry, joined)


SAFE, UNSAFE = (SimpleNamespace(is_safe=safe, releases=3, sentence=lambda: "some are joined") for safe in (True, False))


def test_safe_overlaps_are_published_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in ("refuse", "warn"):
        found = Known(monkeypatch, asked, safe=2).overlaps(SAFE)
        assert (len(found["overlaps"]), found["unmeasured_overlaps"], found["joined"]) == (2, 0, (SAFE,))


@pytest.mark.parametrize(("unsafe", "joined"), [(1, ()), (0, (UNSAFE,)), (2, (UNSAFE, SAFE))])
def test_an_overlap_that_is_not_safe_is_refused_where_the_job_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, unsafe: int, joined: tuple[Any, ...]
) -> None:
    assert len(Known(monkeypatch, "warn", safe=1, unsafe=unsafe).overlaps(*joined)["overlaps"]) == 1 + unsafe
    with pytest.raises(OverlapError) as refused:
        Known(monkeypatch, "refuse", safe=1, unsafe=unsafe).overlaps(*joined)
    assert "overlap 0" not in str(refused.value)
    assert all((f"overlap {number}" in str(refused.value)) == (number <= unsafe) for number in (1, 2))
    assert ("some are joined" in str(refused.value)) == (UNSAFE in joined)


def test_of_many_overlaps_some_are_measured_and_all_where_one_is_to_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Known(monkeypatch, "warn", safe=5, unsafe=1).overlaps()
    assert (len(found["overlaps"]), found["unmeasured_overlaps"]) == (overlaps.MOST, 6 - overlaps.MOST)
    with pytest.raises(OverlapError):
        Known(monkeypatch, "refuse", safe=5, unsafe=1).overlaps()


def test_without_a_registry_nothing_is_known_of_overlaps_and_nothing_published_where_they_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for asked in ("warn", "ignore"):
        known = Known(monkeypatch, asked, unsafe=1)
        assert overlaps.overlaps_of(known.known, "people-0", None, (UNSAFE,)) == {"overlaps": None, "joined": None}
        assert known.asked == []
    with pytest.raises(OverlapError):
        overlaps.overlaps_of(Known(monkeypatch, "refuse", safe=1).known, "people-0", None)


@pytest.mark.parametrize("asked", ["warn", "refuse"])
def test_the_release_that_is_replayed_is_measured_first_and_of_each_it_is_asked_how_many_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """One of which it is in doubt whether it shares anything comes after the others, and is not among those that are not measured."""
    known, registry = Known(monkeypatch, asked, safe=5), SimpleNamespace()
    known.job.replay, known.earlier[1].doubtful = SimpleNamespace(name="people-3"), True
    any_registry: Any = registry
    found = overlaps.overlaps_of(known.known, "people-0", any_registry)
    order = [one.number for one in found["overlaps"]]
    assert (order, found["unmeasured_overlaps"]) == (([3, 0, 2, 4, 1], 0) if asked == "refuse" else ([3, 0, 2, 1], 1))
    assert known.asked == [(known.known, "people-0", registry, None if asked == "refuse" else overlaps.MOST)]


@pytest.mark.parametrize(("share", "measured"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_of_large_sources_fewer_overlaps_are_measured_and_one_of_the_largest(
    monkeypatch: pytest.MonkeyPatch, share: int, measured: int
) -> None:
    for records, count in ((overlaps.MOST_RECORDS // share, measured), (overlaps.MOST_RECORDS // share + 1, max(min(share - 1, 3), 1))):
        found = Known(monkeypatch, "warn", safe=5, records=records).overlaps()
        assert (len(found["overlaps"]), found["unmeasured_overlaps"]) == (count, 5 - count)


@pytest.mark.parametrize(
    ("method", "several", "way", "replays"),
    [
        ("skald", False, "keep", True), ("skald", True, "keep", False), ("skald", False, SHARED, False), ("skald", False, None, True),
        ("canon", False, "keep", False),
    ],
)  # fmt: skip
def test_to_replay_another_release_is_named_where_that_can_be_done(
    monkeypatch: pytest.MonkeyPatch, method: str, several: bool, way: str | None, replays: bool
) -> None:
    known = Known(monkeypatch, "refuse", unsafe=1)
    known.job.method.name, known.job.is_of_several = method, several
    known.job.columns = SimpleNamespace(ways={} if way is None else {"note": "keep", "pay": way})
    with pytest.raises(OverlapError) as refused:
        known.overlaps()
    assert ("Replay one of them" in str(refused.value)) is replays


def header_at(path: Path, file: str) -> None:
    said: dict[str, Any] = {"format": FORMAT, "family": "f", "key": "K", "file": file, "sha256": "", "releases": ("people-1",), "k": 2}
    path.write_text(json_with_digest(Head(**said).model_dump(mode="json")))
    (path.parent / Path(file).name).touch()


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("f-1.sets", "f-2.sets", {"f-2.sets"}), ("f-1.sets", "f-1.sets", {"f-1.sets"}), (None, "f-2.sets", {"f-2.sets"}),
        ("notes.txt", "f-2.sets", {"f-2.sets", "notes.txt"}), ("../f-1.sets", "f-2.sets", {"f-2.sets", "f-1.sets"}),
    ],
)  # fmt: skip
def test_an_index_takes_the_place_of_the_one_before_and_no_other_file_goes(
    tmp_path: Path, old: str | None, new: str, left: set[str]
) -> None:
    folder = tmp_path / "registry"
    folder.mkdir()
    if old:
        header_at(folder / "f.family", old.removeprefix("../"))
        if old.startswith(".."):
            header_at(folder / "f.family", "f-3.sets")
            (folder / "f-3.sets").rename(folder / "f-1.sets")
    header_at(folder / "f.people-2.next", new)
    pseudonym_families._commit(folder / "f.people-2.next")
    assert {one.name for one in folder.iterdir()} == {"f.family", *left}
    head = pseudonym_families._read(folder / "f.family")
    assert head is not None
    assert head.file == new
    (folder / "f.people-3.next").write_text("no header")
    pseudonym_families._commit(folder / "f.people-3.next")
    assert {one.name for one in folder.iterdir()} == {"f.family", *left}


def test_an_index_that_is_withdrawn_goes_with_its_header_and_no_other_file_does(tmp_path: Path) -> None:
    header_at(tmp_path / "f.family", "f-1.sets")
    for file, left in (("f-2.sets", set[str]()), ("notes.txt", {"notes.txt"})):
        header_at(tmp_path / "f.people-2.next", file)
        pseudonym_families._withdraw(tmp_path / "f.people-2.next")
        assert {one.name for one in tmp_path.iterdir()} == {"f.family", "f-1.sets", *left}


@pytest.mark.parametrize("is_reported", [True, False])
@pytest.mark.parametrize("person", [(), ("who",)])
@pytest.mark.parametrize("by_files", [{"shared_at_risk": 1}, UnmeasuredError("by files")])
@pytest.mark.parametrize("by_contents", [{"added_at_risk": 2}, None, UnmeasuredError("by contents")])
@pytest.mark.parametrize("doubtful", [True, False])
def test_an_overlap_is_measured_by_files_where_they_say_all_and_else_by_contents(
    monkeypatch: pytest.MonkeyPatch, is_reported: bool, person: tuple[str, ...], by_files: Any, by_contents: Any, doubtful: bool
) -> None:
    """Where nothing is in common there is none, nor where that is in doubt and cannot be told."""
    job = SimpleNamespace(privacy=SimpleNamespace(k=3), columns=SimpleNamespace(person=person))
    files = [SimpleNamespace(rows=rows, digest=digest) for rows, digest in ((5, "a"), (7, "b"), (8, "c"))]
    source, asked = SimpleNamespace(records=20, files=files), list[Any]()
    run: Any = SimpleNamespace(job=job)
    known: Any = SimpleNamespace(run=run, source=source, overlap=Overlap, most=None)
    theirs = Earlier("people-1", 5, 15, files=frozenset("ab"), is_reported=is_reported, doubtful=doubtful)

    def answer(said: Any) -> Any:
        def measure(*given: Any) -> Any:
            asked.append(given)
            if isinstance(said, UnmeasuredError):
                raise said
            return said

        return measure

    monkeypatch.setattr(overlaps, "figures_by_files", answer(by_files))
    monkeypatch.setattr(overlaps, "figures_by_contents", answer(by_contents))
    found = overlaps._measured(known, theirs)
    counts = {"shared": 12, "added": 8, "removed": 3, "few_persons": bool(person)}
    first = Overlap(release="people-1", k=3, **(counts if is_reported else {}))
    of_files = is_reported and not person
    enough = of_files and isinstance(by_files, dict)
    assert asked == [(run, source, first)] * of_files + [(known, theirs, 3)] * (not enough)
    said = by_files if enough else by_contents
    if said is None or (doubtful and isinstance(said, UnmeasuredError)):
        assert found is None
    else:
        assert found == first.model_copy(update={"unmeasured": "by contents"} if isinstance(said, UnmeasuredError) else said)
