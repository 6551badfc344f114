"""Of earlier releases it is found what they share with a source, or said why that cannot be told."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units.source_digests import Sketch
from schemas.errors.refusals import OverlapError
from schemas.job.job import Job
from schemas.release.increments import Joined, Overlap, composition_warning
from tasks.composition import earlier, overlaps
from tasks.composition.earlier import UNREGISTERED, Earlier, likeness
from tasks.composition.registry import Registered, ReleaseRegistry, _size
from tasks.counting.contents import Sketches
from tasks.store.keys import FolderSecret
from tests.core.recount.test_classes import manifest
from tests.jobs import job_of

NOTHING = Sketch.of(np.array([], np.uint64))


def records(*digests: int) -> Sketch:
    return Sketch.of(np.array(digests, np.uint64) << np.uint64(40))


@pytest.mark.parametrize("replays", [True, False])
@pytest.mark.parametrize("linked", [True, False])
def test_a_refusal_names_what_can_help(replays: bool, linked: bool) -> None:
    said = str(OverlapError.refused(2, ["one", "other"], replays=replays, linked=linked))
    assert ("eplay one of them" in said) == replays
    assert ("ive pseudonyms another key" in said) == linked
    first = "Replay one" if replays else "Give pseudonyms" if linked else "Say 'overlaps: warn'"
    assert f"compared with it. {first}" in said
    assert said.casefold().count("say 'overlaps: warn'; or, of one") == 1


def compared(theirs: tuple[Sketch, Sketch] | None) -> Earlier | None:
    """Compare a source of five records with the sketches of records and persons of another release."""
    mine = records(1, 2, 3, 4, 5), NOTHING
    registry: Any = SimpleNamespace(sketches_of=lambda _entry: theirs)
    known: Any = SimpleNamespace(columns=(("q", "integer"),))
    keyed: Any = SimpleNamespace(of=lambda _columns: (mine, mine))
    entry: Any = SimpleNamespace(reach=(1.0, 1.0))
    return earlier._by_sketches(known, entry, registry, keyed, Earlier("people-1", 5, linkage_key=(("q", "integer"),)))


def test_releases_are_compared_by_their_sketches_and_one_without_is_said_to_have_none() -> None:
    shared, others, gone = compared((records(1, 2, 3), NOTHING)), compared((records(7, 8, 9), NOTHING)), compared(None)
    assert shared is not None
    assert gone is not None
    assert (shared.untold, others, gone.untold) == ("", None, "the sketch of its records is gone or damaged")


@pytest.mark.parametrize(
    ("mine", "theirs", "alike"),
    [("ab", "ab", True), ("ab", "abc", True), ("abc", "ab", True), ("ab", "bc", False), ("aab", "ab", False), ("aa", "aa", False),
     ("aab", "aab", False)],
)  # fmt: skip
def test_equal_files_hold_all_that_is_common_only_where_one_source_has_further_ones_and_none_twice(
    mine: str, theirs: str, alike: bool
) -> None:
    assert earlier._are_common_in_files(Counter(mine), Counter(theirs)) is alike


def test_of_a_sketch_never_more_than_all_records_count_however_little_it_covers() -> None:
    mine, theirs = records(1, 2, 3), records(2, 3, 4, 4)
    for reach in (0.0, 1e-9, 0.5, 1.0):
        assert likeness(mine, mine, theirs, reach).theirs == 4


@pytest.mark.parametrize(("reach", "within"), [(0.0, 0), (0.25, 3), (0.249, 1), (0.5, 3), (0.75, 7), (1.0, 15)])
def test_of_mine_so_many_records_count_as_lie_where_the_sketch_of_the_others_knows_all(reach: float, within: int) -> None:
    """One, two, four and eight records that lie at an eighth, two eighths and so on; a record at the edge is one that is known."""
    whole = 1 << 64
    digests = np.array([whole // 8, whole // 4, whole * 5 // 8, whole - 4096], np.uint64)
    mine = Sketch.of(np.repeat(digests, [1, 2, 4, 8]))
    found = likeness(mine, mine, Sketch.of(digests[:1]), reach)
    assert (found.mine, found.common_of_first, found.common_of_second) == (within, 1, 1)
    assert found.mine_doubled == 14 / 15


@pytest.mark.parametrize(("reach", "theirs"), [(0.0, 12), (0.125, 12), (0.25, 12), (0.5, 6), (1.0, 3)])
def test_of_theirs_such_a_share_counts_as_lies_where_the_sketch_of_mine_knows_all(reach: float, theirs: float) -> None:
    """Mine knows all digests of the first quarter."""
    mine, other = (
        Sketch(np.array([1, 1 << 62], np.uint64), np.array([1, 1]), is_complete=False),
        Sketch.of(np.repeat(records(5).digests, 12)),
    )
    assert likeness(mine, mine, other, reach).theirs == theirs


@pytest.mark.parametrize(
    ("said", "known", "found"),
    [
        ({"levels": {"q": 0}}, set(), [("people-0", UNREGISTERED)]), ({"levels": {"q": 0}}, {"people-0"}, []),
        ({"levels": {"q": 0, "other": 1}}, set(), [("people-0", UNREGISTERED)]), ({"levels": {"other": 1}}, set(), []), (None, set(), []),
    ],
)  # fmt: skip
def test_a_release_that_is_not_registered_is_named_where_its_columns_are_those_of_the_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: dict[str, Any] | None, known: set[str], found: list[tuple[str, str]]
) -> None:
    (tmp_path / "copied").mkdir()
    if said is not None:
        (tmp_path / "copied" / "manifest.json").write_text(manifest(**said).model_dump_json())
    monkeypatch.setattr(earlier, "read_secrets", lambda _job: [])
    monkeypatch.setattr(earlier, "files_in", lambda *_: ())
    job: Any = SimpleNamespace(target_path=tmp_path, target_address=None, privacy=SimpleNamespace(k=5))
    source: Any = SimpleNamespace(files=())
    assert [(one.release, one.untold) for one in earlier._of_manifests(job, source, {"q": "integer"}, known)] == found


@pytest.mark.parametrize(
    ("columns", "qids", "file", "work", "alike"),
    [
        ("ab", "xy", "", "", True), ("b", "ab", "", "", True), ("abc", "abc", "", "", True), ("b", "ay", "", "", False),
        # One file with other columns is one that was read with another delimiter, say; and one job may look at others.
        ("xb", "x", "", "", False), ("xb", "x", "f", "", True), ("xb", "x", "g", "", False), ("x", "x", "", "mine", True),
    ],
)  # fmt: skip
def test_a_release_linked_by_other_columns_is_told_of_where_either_has_the_columns_of_the_other(
    columns: str, qids: str, file: str, work: str, alike: bool
) -> None:
    """This source has the columns a and b, which are its quasi-identifiers."""
    known: Any = SimpleNamespace(
        person_names=(), tables_below=(), kinds={"a": "text", "b": "text"}, quasi_identifiers=("a", "b"), exact=(), source=None
    )
    known.run = SimpleNamespace(job=SimpleNamespace(work_location="mine"))
    entry: Any = SimpleNamespace(
        most=None,
        release="people-1",
        k=5,
        records=9,
        linkage_key=(("z", "text"),),
        person=(),
        person_names=(),
        tables_below=(),
        work=work,
        key="K",
        columns=tuple(columns),
        qids=qids,
        exact=(),
        files=(file,),
    )
    registry: Any = SimpleNamespace(key="K", keyed_files=lambda _source: {"f": "plain"})
    found = earlier._related(known, entry, registry, None)
    assert (found and found.untold) == (earlier.OTHER_COLUMNS if alike else None)


@pytest.mark.parametrize(("mine", "theirs", "whole"), [("ab", "ab", True), ("aa", "a", False), ("a", "aa", False), ("ab", "a", True)])
def test_files_that_a_source_holds_twice_do_not_tell_which_records_are_common(
    monkeypatch: pytest.MonkeyPatch, mine: str, theirs: str, whole: bool
) -> None:
    monkeypatch.setattr(earlier, "files_in", lambda *_: set(mine) & set(theirs))
    said: Any = SimpleNamespace(
        release="people-1", privacy={"k": 5}, records=9, sources=[SimpleNamespace(digest=digest) for digest in theirs]
    )
    found = earlier._of_manifest(said, list(mine), [], {})
    assert found is not None
    assert (set(found.files), found.is_reported) == (set(mine) & set(theirs), whole)


@pytest.mark.parametrize("tables", [("visit",), ()], ids=["known", "older"])
def test_columns_of_rows_are_found_though_an_older_registry_says_of_no_tables(tables: tuple[str, ...]) -> None:
    known: Any = SimpleNamespace(tables_below=("visit",), exact=("visit.ward",), quasi_identifiers=("visit.day", "a"))
    assert earlier.exact_of_both(known, ["b", "visit.ward"], ["visit.day", "visit.b"], tables) == ("visit.day", "visit.ward")


def test_of_two_releases_the_weaker_promise_is_what_both_must_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    for mine, other in ((3, 5), (5, 3)):
        known: Any = SimpleNamespace(
            run=SimpleNamespace(job=SimpleNamespace(privacy=SimpleNamespace(k=mine))), source=SimpleNamespace(records=20),
            overlap=SimpleNamespace, most=None,
        )  # fmt: skip
        found = overlaps._measured(known, Earlier("people-1", other, untold="why"))
        assert found is not None
        assert (found.k, found.unmeasured, found.most) == (3, "why", None)


@pytest.mark.parametrize(("mine", "theirs", "most"), [(None, 9, (20, 9)), (22, None, (22, 7)), (22, 9, (22, 9))])
def test_where_a_release_states_no_number_of_its_source_bounds_of_both_are_kept(
    mine: int | None, theirs: int | None, most: tuple[int, int]
) -> None:
    job, source = SimpleNamespace(privacy=SimpleNamespace(k=5)), SimpleNamespace(records=20)
    known: Any = SimpleNamespace(run=SimpleNamespace(job=job), source=source, overlap=SimpleNamespace, most=mine)
    found = overlaps._measured(known, Earlier("people-1", 5, records=7, untold="why", most=theirs))
    assert found is not None
    assert found.most == most


def test_sketches_are_keyed_by_what_they_are_of() -> None:
    said: list[str] = []
    registry: Any = SimpleNamespace(_keyed=lambda kind, sketch: said.append(kind) or sketch)
    mine = Sketches(records(1, 2), records(3))
    found = ReleaseRegistry.keyed_sketches(registry, mine)
    assert (said, found.records, found.persons) == (["record", "person"], mine.records, mine.persons)


def test_files_are_known_by_keyed_digests_in_no_order_of_the_source() -> None:
    registry = ReleaseRegistry(Path(), FolderSecret(b"secret"))
    source: Any = SimpleNamespace(files=[SimpleNamespace(digest=digest, rows=rows) for digest, rows in (("c", 4), ("a", 0), ("b", 1))])
    names, files = registry.keyed_file_digests(source), registry.keyed_files(source)
    assert names == sorted(files)
    assert sorted(files.values()) == ["b", "c"], "an empty file holds no record"
    assert FolderSecret(b"another").keyed("file", "b") not in files
    assert registry.key != ReleaseRegistry(Path(), FolderSecret(b"another")).key


def test_keyed_sketches_tell_of_counts_only_whether_there_is_a_double() -> None:
    secret = FolderSecret(b"secret")
    mine = Sketches(Sketch(np.array([3, 9, 12], np.uint64), np.array([1, 2, 7]), is_complete=False), records(5))
    found = ReleaseRegistry(Path(), secret).keyed_sketches(mine)
    assert found.records.digests.tolist() == secret.keyed_numbers("record", [3, 9, 12])
    assert found.persons.digests.tolist() == secret.keyed_numbers("person", [5 << 40])
    assert (found.records.counts.tolist(), found.records.is_complete) == ([1, 2, 2], False)
    assert (found.persons.counts.tolist(), found.persons.is_complete) == ([1], True)


def registered(folder: Path, **said: Any) -> Registered:
    made: dict[str, Any] = {
        "format": 1, "release": "people-1", "place": str(folder), "work": "", "k": 5, "records": 5, "files": (), "linkage_key": (),
        "person": (), "columns": (), "qids": (), "sketch": "", "reach": (0.5, 1.0), "key": "", "made": 0.0,
    }  # fmt: skip
    return Registered(**(made | said))


def test_a_registered_release_gives_back_its_sketches_unless_they_were_changed(tmp_path: Path) -> None:
    registry = ReleaseRegistry(tmp_path, FolderSecret(b"secret"))
    mine = Sketches(Sketch(np.array([9, 3, 12], np.uint64), np.array([1, 2, 2]), is_complete=False), records(5, 6))
    entry = registry.enter(registered(tmp_path), mine)
    assert (entry.key, entry.made > 0) == (registry.key, True)
    found = registry.sketches_of(entry)
    assert found is not None
    assert (found.records.digests.tolist(), found.records.counts.tolist()) == ([9, 3, 12], [1, 2, 2])
    assert (found.persons.digests.tolist(), found.persons.counts.tolist()) == ([5 << 40, 6 << 40], [1, 1])
    assert (found.records.is_complete, found.persons.is_complete) == (False, True)
    assert registry.sketches_of(entry.model_copy(update={"sketch": "0"})) is None
    assert registry.sketches_of(registered(tmp_path, release="people-2")) is None


def test_a_release_is_in_its_folder_and_without_one_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manifest says whether it publishes pseudonyms; where that cannot be read, it may."""
    assert registered(tmp_path, place="").is_there
    assert registered(tmp_path, place="").pseudonyms_may_be_there
    entry = registered(tmp_path)
    assert not entry.is_there
    assert entry.pseudonyms_may_be_there
    (tmp_path / "people-1").mkdir()
    assert entry.is_there
    path = tmp_path / "people-1" / "manifest.json"
    for text, may_be in (
        ("no manifest", True), (manifest().model_dump_json(), False), (manifest(pseudonyms={"ssn": "hashed"}).model_dump_json(), True),
    ):  # fmt: skip
        path.write_text(text)
        assert entry.pseudonyms_may_be_there is may_be
    # One that lies in an object store is not the folder of this name that happens to be here.
    path.write_text(manifest().model_dump_json())
    monkeypatch.chdir(tmp_path)
    assert registered(tmp_path, place="").pseudonyms_may_be_there


@pytest.mark.parametrize(
    ("linked", "persons", "theirs", "whose", "is_complete", "expected"),
    [
        (True, False, records(1, 9), NOTHING, True, "shared"), (True, False, records(8, 9), records(1), True, None),
        (False, True, records(1), records(2), True, "shared"), (False, True, records(1), records(9), True, None),
        (True, True, records(9), records(2), True, "shared"), (True, True, records(9), records(8), True, None),
        (True, False, records(8, 9), NOTHING, False, "doubtful"), (False, True, records(8, 9), records(9), False, "doubtful"),
        (False, False, records(1), records(1), False, None),
    ],
)  # fmt: skip
def test_sketches_share_records_or_persons_by_whatever_links_them(
    linked: bool, persons: bool, theirs: Sketch, whose: Sketch, is_complete: bool, expected: str | None
) -> None:
    """The source has five records of as many persons; of a sketch of either that is not complete others may be the same."""
    every = records(1, 2, 3, 4, 5)
    known: Any = SimpleNamespace(columns=(("all", "text"),))
    entry: Any = SimpleNamespace(reach=(1.0, 1.0))
    link = (("q", "text"),) if linked else ()
    for done in ((True, is_complete), (is_complete, True), (is_complete, is_complete)):
        pairs = zip(((every, every), (theirs, whose)), done, strict=True)
        mine, other = (Sketches(*(Sketch(one.digests, one.counts, all_of_it) for one in both)) for both, all_of_it in pairs)
        registry: Any = SimpleNamespace(sketches_of=lambda _entry, other=other: other)
        asked: list[Any] = []
        keyed: Any = SimpleNamespace(of=lambda columns, asked=asked, mine=mine: asked.append(columns) or (mine, mine))
        found = earlier._by_sketches(known, entry, registry, keyed, Earlier("people-1", 5, linkage_key=link, persons=persons))
        assert (found and ("doubtful" if found.doubtful else "shared")) == expected
        assert asked == [link or known.columns]


def test_values_and_masks_are_published_as_who_knows_them_knows_them_and_pseudonyms_with_a_secret_are_not() -> None:
    hashed = {"name": "who", "treatment": {"hash": {"key": {"env": "ONE"}}}}
    columns = {
        "quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}],
        "sensitive": ["dx"],
        "identifiers": [hashed, {"name": "phone", "treatment": {"mask": {"keep": 1}}}],
    }
    run: Any = SimpleNamespace(job=Job.model_validate(job_of(columns=columns, privacy={"k": 3})))
    source: Any = SimpleNamespace(payload=("dx", "who", "phone"))
    assert earlier.KnownRecords(run, source).exact == ("dx", "phone")


@pytest.mark.parametrize(("target", "is_folder"), [("s3://bucket/releases", False), ("releases", True)])
def test_a_release_in_an_object_store_is_registered_without_a_folder(tmp_path: Path, target: str, is_folder: bool) -> None:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": []}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 3}, target=target))
    mine = Sketches(Sketch(np.array([3, 9], np.uint64), np.array([1, 2]), is_complete=False), records(5))
    source: Any = SimpleNamespace(records=7, files=[SimpleNamespace(digest="a", rows=7)], columns=pa.schema([("q", pa.string())]))
    known: Any = SimpleNamespace(
        run=SimpleNamespace(job=job),
        source=source,
        columns=(("q", "text"),),
        person_columns=(),
        person_names=(),
        tables_below=(),
        quasi_identifiers=("q",),
        exact=("dx",),
        most=9,
        sketches=lambda columns: {known.columns: mine}[columns],
    )
    registry = ReleaseRegistry(tmp_path, FolderSecret(b"secret"))
    entry = overlaps.register_release(known, "people-1", registry, ["f"])
    assert bool(entry.place) == is_folder
    assert (entry.k, entry.records, entry.most, entry.qids, entry.columns, entry.key_families) == (3, 7, 9, ("q",), ("q",), ("f",))
    assert entry.exact == ("dx",)
    assert (entry.files, entry.reach, entry.published) == (tuple(registry.keyed_file_digests(source)), (mine.records.reach, 1.0), False)
    found = registry.sketches_of(entry)
    assert found is not None
    assert found.records.digests.tolist() == registry.keyed_sketches(mine).records.digests.tolist()


@pytest.mark.parametrize(("theirs", "common", "is_reported"), [("ab", "ab", True), ("bc", "b", False), ("abc", "ab", True)])
def test_files_of_both_are_common_however_they_are_keyed(tmp_path: Path, theirs: str, common: str, is_reported: bool) -> None:
    registry = ReleaseRegistry(tmp_path, FolderSecret(b"secret"))
    mine, other = (SimpleNamespace(files=[SimpleNamespace(digest=digest, rows=1) for digest in names]) for names in ("ab", theirs))
    kinds = {"q": "text", "who": "text"}
    known: Any = SimpleNamespace(
        source=mine, person_names=((("who", "text"),),), tables_below=(), kinds=kinds, quasi_identifiers=(), exact=("q", "z")
    )
    said: dict[str, Any] = {"files": tuple(registry.keyed_file_digests(other)), "linkage_key": (("q", "text"),), "key": registry.key}  # type: ignore[arg-type]
    found = earlier._related(known, registered(tmp_path, **said, person=(("who", "text"),), qids=("q",), exact=()), registry, None)
    assert found is not None
    assert (found.files, found.is_reported, found.persons, found.linkage_key) == (frozenset(common), is_reported, True, (("q", "text"),))
    assert found.exact == ("q",)
    unread = earlier._related(known, registered(tmp_path, **said | {"files": ()}), registry, None)
    assert unread is not None
    assert (unread.unread, unread.files, unread.persons) == (True, frozenset(), False)
    another = earlier._related(known, registered(tmp_path, **said | {"key": "0"}), registry, None)
    assert another is not None
    assert "another one now" in another.untold


@pytest.mark.parametrize("at_risk", [0, 3])
@pytest.mark.parametrize(("by", "what"), [("files", "records"), ("contents", "records"), ("persons", "persons")])
def test_of_another_release_it_is_said_what_it_shares(by: Any, what: str, at_risk: int) -> None:
    """Its source may be another one, or an older one, and its records those of the same persons with other values."""
    figures = {"shared": 9, "added": 4, "removed": 2, "added_at_risk": 0, "removed_at_risk": 0}
    told = Overlap(release="people-1", k=2, by=by, shared_at_risk=at_risk, **figures).sentence()
    assert told.startswith(f"Release people-1 shares {what} with this one")
    assert "same source" not in told


COUNTS = st.integers(0, 9)
PAIRS = st.builds(
    Overlap,
    release=st.just("people-1"),
    k=st.just(3),
    by=st.sampled_from(["files", "contents", "persons"]),
    unit=st.sampled_from(["record", "person"]),
    shared=COUNTS,
    shared_at_risk=st.none() | COUNTS,
    added=COUNTS,
    added_at_risk=COUNTS,
    removed=COUNTS,
    removed_at_risk=st.none() | COUNTS,
    values_at_risk=st.none() | COUNTS,
    means_at_risk=st.none() | COUNTS,
    rounded=st.booleans(),
    unmeasured=st.sampled_from(["", "its artefacts are gone"]),
    exact=st.sampled_from([(), ("town",)]),
)
JOINS = st.builds(
    Joined,
    columns=st.just(("who",)),
    releases=st.integers(1, 4),
    k=st.just(3),
    people=COUNTS,
    below_k=st.none() | COUNTS,
    unmeasured=st.sampled_from(["", "its artefacts are gone"]),
)


@given(PAIRS)
def test_a_short_line_states_each_count_at_risk_and_no_other(pair: Overlap) -> None:
    line = pair.in_short()
    assert line.startswith("people-1: ")
    assert ("'town' published as values" in line) == bool(pair.exact)
    if pair.shared_at_risk is None:
        assert line.startswith(f"people-1: not compared ({pair.unmeasured})")
        return
    for count, which in ((pair.shared_at_risk, "in both"), (pair.added_at_risk, "that came"), (pair.removed_at_risk, "that left since")):
        assert (which in line) == bool(count)
        if count:
            [part] = [one for one in re.split(r"[,;] |: ", line) if which in one]
            assert re.findall(r"\d+", part)[0] == str(count)
    assert ("break l or t" in line) == bool(pair.values_at_risk)
    assert ("whose two means of a column are those of fewer" in line) == bool(pair.means_at_risk)
    assert ("Their difference may give" in pair.sentence()) == bool(pair.means_at_risk)
    assert ("no record below" in line or "no person below" in line) == pair.model_copy(update={"exact": ()}).is_safe
    assert pair.is_safe or not pair.unmeasured or pair.unmeasured in line


@given(st.lists(PAIRS | JOINS, max_size=3), st.integers(0, 2))
def test_a_release_is_warned_of_where_a_comparison_is_unsafe_or_missing(compositions: list[Overlap | Joined], older: int) -> None:
    told = composition_warning(SimpleNamespace(compositions=compositions, unmeasured_overlaps=older))
    assert bool(told) == (older > 0 or not all(one.is_safe for one in compositions))
    at_risk = [one for one in compositions if (one.known_at_risk or one.exact if isinstance(one, Overlap) else one.below_k)]
    assert ("tells more than alone" in told) == bool(at_risk)
    assert older == 0 or "Not all earlier releases" in told
    assert not any(one.unmeasured for one in compositions) or "Not all earlier releases" in told


def test_the_size_of_a_folder_is_that_of_its_files_and_not_of_links(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    for size, name in ((3, "one"), (5, "deep/two"), (7, "deep/deeper/three")):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    (tmp_path / "folder").symlink_to(tmp_path / "deep")
    assert _size(tmp_path) == 15
    assert _size(tmp_path / "none") == 0


@pytest.mark.parametrize(("is_reported", "figures"), [(True, (7, 13, 33)), (False, (None, None, None))])
def test_records_of_the_same_files_are_shared_and_those_of_others_came_or_went(
    is_reported: bool, figures: tuple[int | None, int | None, int | None]
) -> None:
    class Told(SimpleNamespace):
        def model_copy(self, update: dict[str, Any]) -> Any:
            return Told(**vars(self) | update)

    job = SimpleNamespace(privacy=SimpleNamespace(k=5), columns=SimpleNamespace(person=()))
    files = [SimpleNamespace(digest=digest, rows=rows) for digest, rows in (("a", 3), ("b", 13), ("c", 4))]
    known: Any = SimpleNamespace(run=SimpleNamespace(job=job), source=SimpleNamespace(records=20, files=files), overlap=Told, most=None)
    earlier = Earlier("people-1", 5, records=40, untold="why", files=frozenset("acx"), is_reported=is_reported)
    found: Any = overlaps._measured(known, earlier)
    assert tuple(getattr(found, name, None) for name in ("shared", "added", "removed")) == figures
