"""Two releases are compared by columns of which the digests of both are known, and else the question stays open."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.composition.joint_classes import ARRANGED_VALUES, ARRANGEMENTS
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job
from tasks.composition import by_contents
from tasks.composition.by_contents import ComparedContents, Side, compare_by_contents
from tasks.composition.joint_values import Promises
from tasks.counting.contents import DigestedColumns
from tasks.store.database import connect
from tasks.store.store import Store
from tests.jobs import job_of

KINDS = {"q": "text", "s": "text", "note": "text", "score": "real"}
PART: Any = SimpleNamespace(members="members", contents=None, sets=None)
Columns = tuple[tuple[str, str], ...]
NAMES: Columns = (("q", "text"), ("s", "text"))


def job_of_notes() -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"], "insensitive": ["note"]}
    return Job.model_validate(job_of(columns=columns, privacy={"k": 2, "l": {"s": {"distinct": 2}}}))


class Compared:
    """What is asked of both sides, for releases of which nothing but columns is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.job = job_of_notes()
        self.asked: list[DigestedColumns] = []
        said = {"promised": {"l": {"s": {"distinct": 3}}}, "means": (), "by_column": 2, "ways": None}
        self.entry = SimpleNamespace(untold="", parts=[PART], digested=(), **said)
        monkeypatch.setattr(by_contents, "read_entry", lambda _release, _store: self.entry)
        self.places: list[Any] = []
        self.here: list[Any] = []
        self.there = {"members"}
        monkeypatch.setattr(by_contents, "run_comparison", self._compared)

    def _compared(self, _run: Any, _question: Any, _job: Job, compared: ComparedContents, *places: Any, **_here: Any) -> ComparedContents:
        self.places += places
        self.here += _here.items()
        return compared

    def with_theirs(self, untreated: Columns, kept: Columns, *, linked: bool = True, work: Path | None = None) -> Any:
        job = self.job
        store = SimpleNamespace(is_complete=lambda artifact: artifact in self.there)
        run = SimpleNamespace(job=job, store=store, spill="spill", domain=None)

        def parts(by: DigestedColumns) -> list[Any]:
            self.asked.append(by)
            return [PART]

        known: Any = SimpleNamespace(
            run=run,
            kinds=KINDS,
            published_kinds=KINDS,
            digested=DigestedColumns(("q", "s"), ("note",), ("s",)),
            parts=parts,
            count_in_files=len,
            tables_below=(),
        )
        earlier: Any = SimpleNamespace(release="people-1", work=work, linkage_key=("q",) if linked else (), persons=False, files="ff")
        earlier.tables_below = ()
        self.entry.digested = (NAMES, untreated, kept)
        return by_contents.figures_by_contents(known, earlier, 2)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compared:
    return Compared(monkeypatch)


def test_columns_that_both_publish_as_they_are_show_changes(compared: Compared) -> None:
    found = compared.with_theirs((("note", "text"), ("score", "real")), (("s", "text"),))
    assert compared.asked == [DigestedColumns(("q", "s"), ("note", "score"), ("s",))]
    assert (found.mine.untreated, found.theirs.untreated) == (True, True)
    assert found.mine.by_column == found.theirs.by_column == ("untreated_0", "untreated_1")


@pytest.mark.parametrize("other", [("lost", "text"), ("score", "text")])
def test_of_untreated_columns_that_are_not_in_this_source_nobody_knows_the_digest(compared: Compared, other: tuple[str, str]) -> None:
    with pytest.raises(UnmeasuredError, match="changes would be overlooked"):
        compared.with_theirs((("note", "text"), other), ())


@pytest.mark.parametrize("work", [None, "other", "mine"])
def test_a_release_is_looked_for_in_the_work_that_made_it(
    compared: Compared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, work: str | None
) -> None:
    """If that is another one, it is compared where its artefacts are read."""
    places = {None: None, "mine": Path(job_of_notes().work_location), "other": tmp_path / "work"}
    monkeypatch.setattr(by_contents, "Store", lambda folder: SimpleNamespace(folder=folder, is_complete=lambda _artifact: True))
    compared.with_theirs((), (), work=places[work])
    own, theirs, _ = compared.places
    assert compared.here == [("here", work == "other")]
    if work == "other":
        assert theirs.folder == tmp_path / "work" / "artifacts"
    else:
        assert theirs is own


def test_what_the_other_release_promises_holds_beside_what_this_one_does(compared: Compared) -> None:
    found = compared.with_theirs((), ())
    mine: Any = found.promises.mine
    assert (mine["l"]["s"]["distinct"], found.promises.theirs) == (2, {"l": {"s": {"distinct": 3}}})


def test_a_release_of_which_an_artefact_is_gone_is_not_measured(compared: Compared) -> None:
    compared.there = set()
    with pytest.raises(UnmeasuredError, match="its artefacts are gone"):
        compared.with_theirs((), ())


@pytest.mark.parametrize(
    ("several", "sets", "names", "kinds", "found"),
    [
        (True, "sets", ("q", "s"), {}, ARRANGEMENTS), (False, "sets", ("q", "s"), {}, ()), (True, None, ("q", "s"), {}, ()),
        (True, "sets", ("r", "s"), {}, (ARRANGED_VALUES,)), (True, "sets", ("q", "r", "s"), {}, None),
        (True, "sets", ("q", "s"), {"q": "real"}, None), (True, "sets", ("r", "s"), {"s": "real"}, None),
    ],
)  # fmt: skip
def test_how_values_stand_together_is_compared_by_what_is_in_both_sources(
    several: bool, sets: str | None, names: tuple[str, ...], kinds: dict[str, str], found: tuple[str, ...] | None
) -> None:
    """``r`` is in the other source alone, or a column of another kind."""
    own, other = DigestedColumns(("q", "s"), ("note",), ("s",)), DigestedColumns(names, ("note",), ("s",))
    digested = tuple(tuple((name, kinds.get(name, "text")) for name in part) for part in (names, ("note",), ("s",)))
    entry: Any = SimpleNamespace(parts=[SimpleNamespace(sets=None), SimpleNamespace(sets=sets)], digested=digested)
    known: Any = SimpleNamespace(run=SimpleNamespace(job=SimpleNamespace(is_of_several=several)), kinds=KINDS)
    if found is None:
        with pytest.raises(UnmeasuredError, match="columns of several tables"):
            by_contents._arranged(known, entry, own, other)
    else:
        assert by_contents._arranged(known, entry, own, other) == found
        # What neither publishes beside the other's cannot stand otherwise.
        assert by_contents._arranged(known, entry, own, DigestedColumns(names, (), ("score",))) == ()


def test_what_one_of_both_publishes_as_it_is_shows_no_change(compared: Compared) -> None:
    found = compared.with_theirs((("lost", "text"), ("score", "real")), ())
    assert compared.asked == [DigestedColumns(("q", "s"), (), ("s",))]
    assert (found.mine.untreated, found.theirs.untreated) == (False, False)


def test_values_have_the_numbers_of_their_digests_on_either_side(compared: Compared) -> None:
    found = compared.with_theirs((), (("other", "text"), ("s", "text"), ("score", "real"), ("q", "real")), linked=False)
    assert compared.asked == [DigestedColumns(("q", "s"), (), ("s", "score"))]
    assert compared.places[0] is compared.places[1]
    assert compared.places[2:] == ["spill"]
    assert found.promises.columns == ("s", "score", "other", "q")
    assert found.mine.values == (0, 1, None, None)
    assert found.theirs.values == (1, 2, 0, 3)
    assert (found.by_contents, found.by_persons, found.k, found.in_files) == (False, False, 2, 2)


def test_means_are_compared_where_both_publish_them(compared: Compared) -> None:
    publish = {"s": "shared", "score": {"microaggregate": 3}, "other": {"round": 10}}
    columns = {"sensitive": [{"name": name, "publish": way} for name, way in publish.items()]}
    qids = [{"name": "q", "hierarchy": {"prefix": [1]}}]
    compared.job = Job.model_validate(job_of(columns=columns | {"quasi_identifiers": qids}, privacy={"k": 2}))
    compared.entry.means = ("score", "s", "other")
    kept = (("s", "text"), ("score", "real"), ("other", "text"))
    found = compared.with_theirs((), kept)
    assert [found.promises.columns[number] for number in found.means] == ["score"]
    assert compared.with_theirs((), kept[:1]).means == ()


def test_two_releases_that_nothing_links_have_nothing_in_common(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are compared at the end of a run, with the memory that a step has which works alone."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(by_contents, "connect", lambda *given, **said: asked.append(said) or connect(*given, **said))
    # That both publish a column as it is links none of their records.
    side = Side((), True, ())
    compared = ComparedContents(side, side, False, False, 2, Promises({}, {}, (), None))
    assert compare_by_contents(job_of_notes(), compared, Store(tmp_path / "mine"), Store(tmp_path / "theirs"), tmp_path) == [None, ""]
    assert asked == [{"last": True}]
