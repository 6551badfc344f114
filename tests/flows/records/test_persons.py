"""Where a job names persons, k of them share every class of a method that recodes single records."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from schemas.errors.base import PrivacyError, VerificationError
from schemas.job.job import load_job
from tasks.composition.release_history import people_of_release
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.conftest import CommandLine
from tests.covering import each_value
from tests.flows.lattice.test_persons import largest_share, told_of
from tests.jobs import QIDS, digests, job_of, people, people_job, released

pytestmark = pytest.mark.slow

METHODS = ["rayden", "canon", "mondrian_cof", "clustering", "kmember"]
K = 4
UNPUBLISHED = ["person", "zip", "note", "score", "visits"]
QUICK = settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
Anonymise = Callable[..., PublishedRelease]


def visits(records: int = 400, seed: int = 1) -> pa.Table:
    """Visits of a quarter as many people: some come once, one sixty times, one is every third record; some are nobody's."""
    random = np.random.default_rng(seed)
    whose: list[int | None] = random.integers(0, records // 4, records).tolist()
    for row in random.permutation(records)[:60]:
        whose[row] = 5000
    for row in range(0, records, 3):
        whose[row] = 6000
    for row in range(3, records, 40):
        whose[row] = None
    table = people(records, seed).set_column(0, "person", pa.array(whose, pa.int64()))
    return table.append_column("row", pa.array(range(records)))


TABLE = visits()


def job_for(folder: Path, method: str, table: pa.Table = TABLE, **parts: Any) -> Path:
    """A job that publishes the number of each row, by which what is published is found in the source."""
    columns = job_of()["columns"]
    named = {"person": "person", "identifiers": UNPUBLISHED, "insensitive": ["row"]}
    columns = columns | {"quasi_identifiers": [qid for qid in columns["quasi_identifiers"] if qid["name"] != "zip"]} | named
    given = {"columns": columns | parts.pop("columns", {}), "privacy": {"k": K}, "suppression": {"limit": 1}}
    return people_job(folder, table, method={"name": method} | parts.pop("options", {}), **given | parts)


PUBLISHED = [qid for qid in QIDS if qid != "zip"]


def classes_of(made: PublishedRelease, table: pa.Table = TABLE) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The source's rows of each published class, found by their numbers."""
    rows = {row["row"]: row for row in table.to_pylist()}
    found = defaultdict(list)
    for row in released(made.folder).to_dicts():
        found[tuple(row[qid] for qid in PUBLISHED)].append(rows[row["row"]])
    return found


def persons_of(rows: list[dict[str, Any]]) -> set[int]:
    return {row["person"] for row in rows} - {None}


OPTIONS = [
    ("rayden", {"outliers": "freely", "alpha": 0.5}),
    ("rayden", {"outliers": "freely", "alpha": 1, "pool": "suppress", "split": "median"}),
    ("rayden", {"outliers": "bounded", "alpha": 0.5, "vantage": "farthest", "generalisation": "set"}),
    ("canon", {"split": "median", "vantage": "seed"}),
    ("mondrian_cof", {"alpha": 1, "outliers": "freely"}),
    ("mondrian_cof", {"alpha": 0.5, "outliers": "bounded", "pool": "suppress"}),
    ("clustering", {"start": "parents", "distance": "raw", "generalisation": "level"}),
    ("clustering", {"generalisation": "set"}),
]


@pytest.mark.promise
@pytest.mark.parametrize(("way", "treatment"), each_value([*((method, {}) for method in METHODS), *OPTIONS], ["drop", "mask"]))
def test_every_class_has_k_people_counted_one_by_one(
    run: Anonymise, tmp_path: Path, way: tuple[str, dict[str, Any]], treatment: str
) -> None:
    method, options = way
    made = run(job_for(tmp_path, method, options=options, suppression={"limit": 1, "treatment": treatment}))
    found, manifest = classes_of(made), made.manifest
    sizes = [len(persons_of(rows)) for rows in found.values()]
    assert min(sizes) == manifest.min_class >= K
    assert len(sizes) == manifest.classes > 10
    every = [row["person"] for rows in found.values() for row in rows if row["person"] is not None]
    assert manifest.persons is not None
    assert manifest.persons.model_dump() == {
        "columns": ("person",),
        "source": told_of(len(set(TABLE["person"].to_pylist()) - {None}), len(set(every))),
        "released": len(set(every)),
        "smallest_class": min(sizes),
        "most_records": sorted(Counter(every).values(), reverse=True)[K - 1],
        "largest_share": largest_share([(name, row["person"]) for name, rows in found.items() for row in rows], set(found)),
        "withheld": None,
    }
    assert manifest.risk["after"]["prosecutor_max"] == 1 / min(sizes)
    if not manifest.suppressed:
        assert manifest.loss["c_avg"] == pytest.approx(sum(sizes) / len(sizes) / K)
    assert "person" not in released(made.folder).columns


@pytest.mark.parametrize("method", METHODS)
def test_counted_in_records_the_same_table_has_classes_of_fewer_people(run: Anonymise, tmp_path: Path, method: str) -> None:
    made = run(job_for(tmp_path, method, columns={"person": []}))
    assert made.manifest.persons is None
    assert min(len(persons_of(rows)) for rows in classes_of(made).values()) < K


@pytest.fixture(scope="module", params=METHODS)
def undisturbed(request: pytest.FixtureRequest, run: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    made = run(disturbed(tmp_path_factory.mktemp("one"), request.param, TABLE), "rows_per_file=100", "threads=1")
    return request.param, digests(made.folder)


def disturbed(folder: Path, method: str, table: pa.Table, **parts: Any) -> Path:
    # Without the rows' numbers many records differ in their person alone.
    columns = {"identifiers": [*UNPUBLISHED, "row"], "insensitive": []}
    options = {"alpha": 1} if method in {"rayden", "mondrian_cof"} else {}
    return job_for(folder, method, table, columns=columns, options=options, **parts)


@QUICK
@given(order=st.randoms(use_true_random=False), files=st.integers(1, 5), row_group=st.integers(20, 600), chunk_rows=st.integers(30, 600))
def test_release_is_a_function_of_the_set_of_records_and_their_people(
    run: Anonymise, undisturbed: tuple[str, list[str]], order: Any, files: int, row_group: int, chunk_rows: int
) -> None:
    method, expected = undisturbed
    rows = list(range(len(TABLE)))
    order.shuffle(rows)
    with TemporaryDirectory() as folder:
        job = disturbed(Path(folder), method, TABLE.take(rows), files=files, row_group=row_group)
        assert digests(run(job, "rows_per_file=100", f"chunk_rows={chunk_rows}").folder) == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", ["l={disease: {distinct: 3}}"])
def test_other_privacy_models_count_everybody_once_for_each_value(run: Anonymise, tmp_path: Path, method: str, asked: str) -> None:
    made = run(job_for(tmp_path, method), f"privacy.{asked}")
    for rows in classes_of(made).values():
        assert len(persons_of(rows)) >= K
        assert len({row["disease"] for row in rows if row["person"] is not None}) >= 3


@pytest.mark.parametrize("method", METHODS)
def test_a_key_of_three_columns_names_the_same_people(run: Anonymise, tmp_path: Path, method: str) -> None:
    whose, table = TABLE["person"].to_pylist(), TABLE
    parts = {
        "site": [None if who is None else "north" if who % 2 else "south" for who in whose],
        "number": [None if who is None else who // 10 for who in whose],
        "digit": [None if who is None else who % 10 for who in whose],
    }
    for name, values in parts.items():
        table = table.append_column(name, pa.array(values))
    three = {"person": ["site", "number", "digit"], "identifiers": [*UNPUBLISHED, "site", "number"]}
    one, other = run(job_for(tmp_path / "one", method)), run(job_for(tmp_path / "other", method, table, columns=three))
    assert one.manifest.persons is not None
    assert other.manifest.persons is not None
    # Who comes first among equal records is told by the key, so that classes may differ.
    assert one.manifest.persons.source == other.manifest.persons.source
    assert min(len(persons_of(rows)) for rows in classes_of(other).values()) >= K


@pytest.mark.parametrize("method", METHODS)
def test_too_few_people_are_refused_however_many_records_they_have(run: Anonymise, tmp_path: Path, method: str) -> None:
    whose = pa.array([row % 3 for row in range(len(TABLE))], pa.int64())
    with pytest.raises(PrivacyError, match="k = 4 cannot be met by 3 persons"):
        run(job_for(tmp_path, method, TABLE.set_column(0, "person", whose)))
    assert not list((tmp_path / "releases").glob("people-*"))


def test_what_is_kept_of_people_is_private_verified_and_gone_with_the_artefacts(
    run: Anonymise, direct: CommandLine, tmp_path: Path
) -> None:
    made = run(job_for(tmp_path, "rayden"))
    store = Store(tmp_path / ".skald" / "people" / "artifacts")
    kept = list((store.folder / "people").glob("*.parquet"))
    assert kept
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    verified = direct("verify", str(made.folder), "--job", str(tmp_path / "job.yaml"), "--json")
    assert json.loads(verified.stdout)["min_class"] == made.manifest.min_class
    files = people_of_release(made.manifest.release, store)
    assert files is not None
    few = pl.read_parquet(files[0][0]).with_columns(person=pl.lit(7, pl.UInt64)).group_by("class", "person").agg(pl.col("records").sum())
    few.write_parquet(files[0][0])
    with pytest.raises(VerificationError, match=f"fewer than k = {K} persons"):
        verify_release(load_job(tmp_path / "job.yaml"), made.folder, files)
    run(job_for(tmp_path / "deleted", "rayden", artifacts="delete"))
    assert not list((tmp_path / "deleted" / ".skald").rglob("*.parquet"))


def test_another_person_codes_the_records_again_and_another_k_does_not(run: Anonymise, tmp_path: Path) -> None:
    job = job_for(tmp_path, "clustering")
    run(job)
    coded = tmp_path / ".skald" / "people" / "artifacts" / "coded"
    before = set(coded.iterdir())
    run(job, "privacy.k=5")
    assert set(coded.iterdir()) == before
    run(job, "columns.person=[person, zip]")
    # As many others: what the release before needed goes when it is not of use any more.
    after = set(coded.iterdir())
    assert len(after - before) == len(before)


SHARED = ("rows_per_file=100", "method.fragments={count: 4, sample: 1}")


@pytest.mark.parametrize("method", METHODS)
def test_fragments_keep_k_people_each_and_count_those_who_are_in_several_once(run: Anonymise, tmp_path: Path, method: str) -> None:
    made = run(job_for(tmp_path / "one", method), *SHARED)
    found, manifest = classes_of(made), made.manifest
    sizes = [len(persons_of(rows)) for rows in found.values()]
    assert made.untold.search["fragments"] > 1
    assert min(sizes) == manifest.min_class >= K
    assert manifest.persons is not None
    assert (manifest.persons.source, manifest.released) == (len(set(TABLE["person"].to_pylist()) - {None}), len(TABLE))
    assert manifest.persons.released == len(set.union(*map(persons_of, found.values())))
    rows = np.random.default_rng(1).permutation(len(TABLE))
    again = run(job_for(tmp_path / "two", method, TABLE.take(rows), files=3), *SHARED, "chunk_rows=77")
    assert digests(again.folder) == digests(made.folder)
    assert again.manifest.persons == manifest.persons
