"""Where a job names persons, every class that Mondrian publishes holds the records of k of them, however it cuts."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import PrivacyError, VerificationError
from schemas.errors.methods import FragmentsError, HoldersError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.composition.release_history import people_of_release
from tasks.mondrian.fragments import batches_of_runs
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.flows.lattice.test_persons import K, columns, largest_share, visits
from tests.house.replaced import CELLS_BYTES_PER_PAIR, PERSON_CELLS_PART
from tests.jobs import people_job, released
from tests.oracles.persons import values_of

pytestmark = pytest.mark.slow

TABLE = visits(600)
ROWS = "row"
"""Published, so that a record is found again in the source; no quasi-identifier."""
CENTRALISED: dict[str, Any] = {"name": "mondrian"}
FRAGMENTS = CENTRALISED | {"fragments": {"count": 4, "sample": 1}}
QUANTILES = CENTRALISED | {"fragments": {"count": 5, "cut": "quantile", "sample": 0.3}}
RELAXED = CENTRALISED | {"mode": "relaxed"}
WAYS = [
    CENTRALISED,
    CENTRALISED | {"mode": "median", "score": "entropy"},
    CENTRALISED | {"score": "ncp"},
    CENTRALISED | {"generalisation": "set"},
    FRAGMENTS,
    QUANTILES,
    RELAXED,
    RELAXED | {"fragments": {"count": 4, "sample": 1}},
]


PASSED = ["note", "score", "visits", ROWS]
"""Published as they are, by name: what tells records apart is not among the rest."""
Cut = Callable[..., PublishedRelease]


@pytest.fixture(scope="module")
def cut() -> Cut:
    flow = METHODS["mondrian"].flow.load()
    return lambda job, *settings: getattr(flow, "fn", flow)(job, tuple(settings))


def numbered(table: pa.Table = TABLE) -> pa.Table:
    return table.append_column(ROWS, pa.array(range(len(table))))


def job(folder: Path, table: pa.Table | None = None, **parts: Any) -> Path:
    options = {name: parts.pop(name) for name in ("files", "row_group") if name in parts}
    given = {"columns": columns(insensitive=["disease", *PASSED], sensitive=[]), "privacy": {"k": K}, "method": CENTRALISED} | parts
    return people_job(folder, numbered() if table is None else table, **options, **given)


def of_source(table: pa.Table = TABLE) -> list[Hashable | None]:
    return table["person"].to_pylist()


def persons(folder: Path, whose: Sequence[Hashable | None], qids: Sequence[str] = ("sex", "age", "smoker")) -> dict[Any, set[Hashable]]:
    """Who has a record in each class of the written files, as plain as can be."""
    found: dict[Any, set[Hashable]] = defaultdict(set)
    for row in released(folder).iter_rows(named=True):
        person = whose[row[ROWS]]
        found[tuple(row[qid] for qid in qids)] |= set() if person is None else {person}
    return found


@pytest.mark.promise
@pytest.mark.parametrize("method", WAYS)
def test_every_class_of_the_files_holds_k_people(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    made = cut(job(tmp_path, method=method))
    found, whose = persons(made.folder, of_source()), of_source()
    rows = released(made.folder).select("sex", "age", "smoker", ROWS).rows()
    assert len(found) == made.manifest.classes > 3
    assert min(map(len, found.values())) == made.manifest.min_class >= K
    assert made.manifest.released == len(TABLE)
    counts = Counter(person for person in whose if person is not None)
    assert made.manifest.persons is not None
    assert made.manifest.persons.model_dump() == {
        "columns": ("person",),
        "source": len(counts),
        "released": len(counts),
        "smallest_class": made.manifest.min_class,
        "most_records": sorted(counts.values(), reverse=True)[K - 1],
        "largest_share": largest_share([(row[:-1], whose[row[-1]]) for row in rows], {row[:-1] for row in rows}),
        "withheld": None,
    }
    assert made.manifest.loss["c_avg"] == pytest.approx(sum(map(len, found.values())) / len(found) / K)
    assert made.manifest.risk["after"]["prosecutor_max"] == 1 / made.manifest.min_class


@pytest.mark.parametrize("method", [CENTRALISED, FRAGMENTS, RELAXED])
def test_without_persons_there_would_be_classes_of_fewer(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    made = cut(job(tmp_path, method=method, columns=columns(insensitive=["disease", *PASSED], sensitive=[], person=[])))
    assert made.manifest.persons is None
    assert min(map(len, persons(made.folder, of_source()).values())) < K


@pytest.mark.parametrize("method", WAYS)
def test_files_chunks_threads_and_order_change_nothing(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    one = cut(job(tmp_path / "one", method=method))
    shuffled = numbered().take(pa.array(np.random.default_rng(0).permutation(len(TABLE))))
    two = cut(job(tmp_path / "two", shuffled, files=3, row_group=50, chunk_rows=70, threads=1, method=method))
    assert one.manifest.persons == two.manifest.persons
    assert released(one.folder).equals(released(two.folder))


@pytest.mark.parametrize("method", [FRAGMENTS, RELAXED])
def test_lots_and_shares_of_people_change_nothing(
    cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: dict[str, Any]
) -> None:
    one = cut(job(tmp_path / "one", method=method, chunk_rows=90))
    monkeypatch.setattr(PERSON_CELLS_PART, 1_000_000)
    if method is not RELAXED:
        monkeypatch.setattr(
            "tasks.mondrian.fragments.batches_of_runs", lambda runs, tables, group, most: batches_of_runs(runs, tables, group, 40)
        )
    two = cut(job(tmp_path / "two", method=method, chunk_rows=90))
    assert list((tmp_path / "two" / ".skald" / "people" / "artifacts" / "person_cells").glob("*.npy"))
    assert one.manifest.persons == two.manifest.persons
    assert released(one.folder).equals(released(two.folder))


@pytest.mark.parametrize("method", [CENTRALISED, FRAGMENTS, RELAXED])
def test_every_class_holds_values_of_people_and_those_of_nobody_do_not_count(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    # Nobody's records have values that are not found elsewhere.
    disease = [str(row) if who is None else of for row, (who, of) in enumerate(zip(of_source(), TABLE["disease"].to_pylist(), strict=True))]
    table = numbered().set_column(TABLE.column_names.index("disease"), "disease", pa.array(disease))
    asked = {"k": K, "l": {"disease": {"distinct": 3}}}
    made = cut(job(tmp_path, table, method=method, privacy=asked, columns=columns(sensitive=["disease"], insensitive=PASSED)))
    values: dict[Any, set[str]] = defaultdict(set)
    for row in released(made.folder).iter_rows(named=True):
        if of_source()[row[ROWS]] is not None:
            values[row["sex"], row["age"], row["smoker"]].add(row["disease"])
    assert min(map(len, values.values())) >= 3
    assert min(map(len, persons(made.folder, of_source()).values())) >= K


@pytest.mark.parametrize("method", [CENTRALISED, FRAGMENTS, RELAXED])
def test_one_person_with_many_records_is_no_class(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    table = numbered().slice(0, 60).set_column(0, "person", pa.array([1] * 30 + [2] * 29 + [None], pa.int64()))
    with pytest.raises(PrivacyError, match="2 persons"):
        cut(job(tmp_path, table, method=method))
    assert not list((tmp_path / "releases").glob("*/manifest.json"))


@pytest.mark.parametrize("method", [CENTRALISED, FRAGMENTS])
def test_a_key_of_three_columns_names_the_same_people(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    whose, table = TABLE["person"].to_pylist(), numbered()
    parts = {
        "site": [None if who is None else "north" if who % 2 else "south" for who in whose],
        "number": [None if who is None else who // 10 for who in whose],
        "digit": [None if who is None else who % 10 for who in whose],
    }
    for name, values in parts.items():
        table = table.append_column(name, pa.array(values))
    names = ["person", "zip", "height", "born", *parts]
    three = columns(person=list(parts), identifiers=names, insensitive=["disease", *PASSED], sensitive=[])
    # Shared ends count a person at a record that the key draws.
    given: dict[str, Any] = {"method": method, "endpoints": "observed"}
    one, other = cut(job(tmp_path / "one", **given)), cut(job(tmp_path / "other", table, columns=three, **given))
    assert released(one.folder).equals(released(other.folder))


@pytest.mark.parametrize("method", [CENTRALISED, FRAGMENTS])
def test_the_person_may_be_published_as_a_pseudonym(
    cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: dict[str, Any]
) -> None:
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)
    treated = {"name": "person", "treatment": {"hash": {"key": {"env": "PERSON_KEY"}}}}
    named = columns(identifiers=[treated, "zip", "height", "born"], insensitive=["disease", *PASSED], sensitive=[], linkable="person")
    made, plain = cut(job(tmp_path, method=method, columns=named)), cut(job(tmp_path / "plain", method=method))
    assert made.manifest.persons == plain.manifest.persons
    assert released(made.folder).drop("person").sort(ROWS).equals(released(plain.folder).sort(ROWS))


@pytest.mark.parametrize("method", [CENTRALISED, FRAGMENTS])
def test_what_is_kept_of_people_is_private_and_recounted(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    made = cut(job(tmp_path, method=method))
    kept = people_of_release(made.manifest.release, Store(tmp_path / ".skald" / "people" / "artifacts"))
    assert kept is not None
    assert {path.stat().st_mode & 0o777 for path in (*kept[0], *kept[1])} == {0o600}
    counted, _ = verify_release(load_job(tmp_path / "job.yaml"), made.folder, kept)
    assert counted.persons is not None
    assert counted.persons.smallest == made.manifest.min_class
    frame = pl.read_parquet(kept[0][0])
    shutil.copy(kept[0][0], tmp_path / "kept.parquet")
    few = frame.with_columns(person=pl.lit(7, pl.UInt64)).group_by("class", "person").agg(pl.col("records").sum())
    few.write_parquet(kept[0][0])
    with pytest.raises(VerificationError, match=f"fewer than k = {K} persons"):
        verify_release(load_job(tmp_path / "job.yaml"), made.folder, kept)


def test_a_replay_counts_the_people_of_both_sources(cut: Cut, tmp_path: Path) -> None:
    path = job(tmp_path)
    first = cut(path)
    again = visits(600, seed=3)
    later = job(tmp_path, numbered(again), suppression={"limit": 0.9}, replay=first.manifest.release)
    made = cut(later)
    found = persons(made.folder, of_source(again))
    assert min(map(len, found.values())) == made.manifest.min_class >= K
    assert made.manifest.suppressed > 0
    assert made.manifest.loss["c_avg"] == pytest.approx(sum(map(len, found.values())) / len(found) / K)


def test_small_memory_shares_people_out_by_itself(cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CELLS_BYTES_PER_PAIR, 400_000)
    made = cut(job(tmp_path, numbered(visits(3000)), memory="256MB", chunk_rows=500))
    assert made.untold.search["fragments"] > 3
    assert min(map(len, persons(made.folder, of_source(visits(3000))).values())) >= K


# Nearly nine of ten people have a record of the same disease: a smaller c is refused, which has a test of its own here.
PROMISES = [{"l": {"disease": {"entropy": 2}}}, {"l": {"disease": {"recursive": {"c": 12, "l": 2}}}}, {"t": {"disease": {"t": 0.4}}}]


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("method", [CENTRALISED, CENTRALISED | {"generalisation": "hierarchy"}, RELAXED])
def test_everybody_counts_once_for_each_of_their_values(cut: Cut, tmp_path: Path, method: dict[str, Any], promise: dict[str, Any]) -> None:
    asked = {"k": K} | promise
    made = cut(job(tmp_path, method=method, privacy=asked, columns=columns(sensitive=["disease"], insensitive=PASSED)))
    found = persons(made.folder, of_source())
    assert min(map(len, found.values())) == made.manifest.min_class >= K
    assert made.manifest.classes > 3
    frame = released(made.folder)
    classes = [tuple(row[qid] for qid in ("sex", "age", "smoker")) for row in frame.iter_rows(named=True)]
    counted = values_of([of_source()[row] for row in frame[ROWS]], classes, frame["disease"].to_list())
    if "entropy" in str(promise):
        for values in counted.values():
            shares = np.array(list(values.values())) / values.total()
            assert np.exp(-(shares * np.log(shares)).sum()) >= 2 - 1e-6
    if "recursive" in str(promise):
        for group, values in counted.items():
            assert max(many for value, many in values.items() if value is not None) / len(found[group]) < 12 / 13


def test_what_no_class_of_all_can_keep_for_people_is_refused(cut: Cut, tmp_path: Path) -> None:
    having = {person for person, value in zip(of_source(), TABLE["disease"].to_pylist(), strict=True) if value == "flu"} - {None}
    assert len(having) / len(set(of_source()) - {None}) > 2 / 3
    asked = {"k": K, "l": {"disease": {"recursive": {"c": 2, "l": 2}}}}
    with pytest.raises(HoldersError, match="too many would hold the same one"):
        cut(job(tmp_path, privacy=asked, columns=columns(sensitive=["disease"], insensitive=PASSED)))


def test_what_unions_may_break_is_refused_where_memory_asks_for_fragments(
    cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CELLS_BYTES_PER_PAIR, 400_000)
    asked = {"k": K, "l": {"disease": {"entropy": 2}}}
    path = job(
        tmp_path,
        numbered(visits(3000)),
        privacy=asked,
        memory="256MB",
        chunk_rows=500,
        columns=columns(sensitive=["disease"], insensitive=PASSED),
    )
    with pytest.raises(FragmentsError, match="classes that two fragments share") as refused:
        cut(path)
    assert refused.value.exit_code == 2
