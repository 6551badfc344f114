"""Where a job names persons, k of them share every published combination, however many records each of them has."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import JobError, PrivacyError, VerificationError
from schemas.job.job import load_job
from tasks.composition.release_history import people_of_release
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.conftest import Anonymise, CommandLine
from tests.house.replaced import PERSON_CELLS_PART
from tests.jobs import LEVELS, generalise, job_of, people, people_job, released, write_csv
from tests.oracles.persons import best_node, losses

QIDS = ["sex", "age", "smoker"]
K, LIMIT = 4, Fraction(1, 20)


def visits(records: int = 400, seed: int = 1) -> pa.Table:
    """Visits of about a quarter as many people: some come once, one comes sixty times, one is in every corner; some are nobody's."""
    random = np.random.default_rng(seed)
    table = people(records, seed)
    whose: list[int | None] = random.integers(0, records // 4, records).tolist()
    for row in random.permutation(records)[:60]:
        whose[row] = 5000
    for row in range(0, records, 7):
        whose[row] = 6000
    for row in range(3, records, 40):
        whose[row] = None
    return table.set_column(0, "person", pa.array(whose, pa.int64()))


TABLE = visits()
WHOSE: list[int | None] = TABLE["person"].to_pylist()


def columns(**others: Any) -> dict[str, Any]:
    of_all = job_of()["columns"]
    wanted = [qid for qid in of_all["quasi_identifiers"] if qid["name"] in QIDS]
    dropped = ["person", "zip", "height", "born"]
    return of_all | {"quasi_identifiers": wanted, "identifiers": dropped, "person": "person"} | others


def job(folder: Path, table: pa.Table = TABLE, **parts: Any) -> Path:
    options = {name: parts.pop(name) for name in ("files", "row_group") if name in parts}
    given = {"columns": columns(), "privacy": {"k": K}, "suppression": {"limit": float(LIMIT)}} | parts
    return people_job(folder, table, **options, **given)


def rows() -> list[tuple[Any, ...]]:
    return list(zip(*(TABLE[qid].to_pylist() for qid in QIDS), strict=True))


def ladders() -> list[list[dict[Any, Any]]]:
    found = []
    for qid in QIDS:
        values = set(TABLE[qid].to_pylist())
        tops = [level == len(LEVELS[qid]) - 1 for level in range(len(LEVELS[qid]))]
        steps = zip(LEVELS[qid], tops, strict=True)
        found.append([{value: label(value) if value is not None or top else None for value in values} for label, top in steps])
    return found


def people_in(node: Sequence[int], table: pa.Table = TABLE, whose: Sequence[Any] = WHOSE) -> dict[tuple[Any, ...], set[Any]]:
    """Who has a record in each class of a node."""
    found: dict[tuple[Any, ...], set[Any]] = {}
    for row, person in zip(generalise(table, node, QIDS), whose, strict=True):
        found.setdefault(row, set()).update([] if person is None else [person])
    return found


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("objective", ["dm_star", "dm_all"])
@pytest.mark.parametrize("limit", ["0", "0.05", "0.2"])
def test_the_node_is_the_best_of_all_by_counting_people_one_by_one(
    anonymise: Anonymise, tmp_path: Path, objective: str, limit: str
) -> None:
    made = anonymise(job(tmp_path, method={"name": "skald", "objective": objective}, suppression={"limit": float(limit)}))
    manifest = made.manifest
    best = best_node(rows(), WHOSE, ladders(), K, Fraction(limit), objective)
    assert manifest.node == best
    assert best is not None
    loss = losses(rows(), WHOSE, ladders(), best, K)
    assert (manifest.suppressed, manifest.loss["dm_star"], manifest.optimal) == (loss.suppressed, loss.dm_star, "certified")
    classes = {name: who for name, who in people_in(best).items() if len(who) >= K}
    assert set(map(tuple, released(made.folder).select(QIDS).rows())) == set(classes)
    assert manifest.min_class == min(map(len, classes.values()))


def largest_share(owned: Sequence[tuple[Any, Any]], kept: set[Any]) -> float:
    """The largest share of a class's records that one person holds, rounded up."""
    sizes = Counter(row for row, _ in owned)
    mine = Counter((row, person) for row, person in owned if row in kept and person is not None)
    most = max(Fraction(records, sizes[row]) for (row, _), records in mine.items())
    return next(share for share in (0.05, 0.1, 0.25, 0.5, 0.75, 1.0) if most <= Fraction(str(share)))


def test_the_manifest_tells_the_people_and_the_files_tell_nobody(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path))
    assert made.manifest.node is not None
    kept = {row for row, who in people_in(made.manifest.node).items() if len(who) >= K}
    mine = [person for row, person in zip(generalise(TABLE, made.manifest.node, QIDS), WHOSE, strict=True) if row in kept]
    counts = Counter(person for person in mine if person is not None)
    persons = made.manifest.persons
    assert persons is not None
    assert persons.model_dump() == {
        "columns": ("person",),
        "source": told_of(len(set(WHOSE) - {None}), len(counts)),
        "released": len(counts),
        "smallest_class": made.manifest.min_class,
        "most_records": sorted(counts.values(), reverse=True)[K - 1],
        "largest_share": largest_share(list(zip(generalise(TABLE, made.manifest.node, QIDS), WHOSE, strict=True)), kept),
        "withheld": None,
    }
    assert "person" not in released(made.folder).columns
    sizes = [len(who) for row, who in people_in(made.manifest.node).items() if row in kept]
    assert made.manifest.risk["after"]["prosecutor_max"] == 1 / min(sizes)
    assert made.manifest.risk["after"]["prosecutor_mean"] == len(sizes) / sum(sizes)


@pytest.mark.ci
def test_without_persons_the_same_table_would_have_classes_of_one_person(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, columns=columns(person=[]), method={"name": "skald", "objective": "dm_star"}))
    assert made.manifest.persons is None
    assert made.manifest.node is not None
    kept = Counter(generalise(TABLE, made.manifest.node, QIDS))
    assert min(len(people_in(made.manifest.node)[row]) for row, size in kept.items() if size >= K) < K


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("parts", [{"files": 3}, {"files": 2, "row_group": 50, "chunk_rows": 60}, {"threads": 1}])
def test_files_chunks_and_threads_change_nothing(anonymise: Anonymise, tmp_path: Path, parts: dict[str, Any]) -> None:
    one, other = anonymise(job(tmp_path / "one")), anonymise(job(tmp_path / "other", **parts))
    assert one.manifest.persons == other.manifest.persons
    assert one.manifest.node == other.manifest.node
    assert released(one.folder).equals(released(other.folder))


@pytest.mark.slow
def test_the_order_of_records_changes_nothing(anonymise: Anonymise, tmp_path: Path) -> None:
    shuffled = TABLE.take(pa.array(np.random.default_rng(0).permutation(len(TABLE))))
    one, other = anonymise(job(tmp_path / "one")), anonymise(job(tmp_path / "other", shuffled))
    assert (one.manifest.node, one.manifest.persons) == (other.manifest.node, other.manifest.persons)
    assert released(one.folder).equals(released(other.folder))


@pytest.mark.slow
def test_a_key_of_three_columns_names_the_same_people_and_nobody_where_one_is_missing(anonymise: Anonymise, tmp_path: Path) -> None:
    parts = {
        "site": [None if who is None else "north" if who % 2 else "south" for who in WHOSE],
        "number": [None if who is None else who // 10 for who in WHOSE],
        "digit": [None if who is None else who % 10 for who in WHOSE],
    }
    table = TABLE
    for name, values in parts.items():
        table = table.append_column(name, pa.array(values))
    three = columns(person=["site", "number", "digit"], identifiers=["person", "zip", "height", "born", "site", "number"])
    one, other = anonymise(job(tmp_path / "one")), anonymise(job(tmp_path / "other", table, columns=three))
    assert other.manifest.persons is not None
    assert other.manifest.persons.columns == ("site", "number", "digit")
    assert one.manifest.persons is not None
    assert one.manifest.persons.model_dump(exclude={"columns"}) == other.manifest.persons.model_dump(exclude={"columns"})
    assert released(one.folder).equals(released(other.folder))


@pytest.mark.ci
def test_a_mask_is_published_only_if_its_people_are_enough(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, suppression={"limit": 0.2, "treatment": "mask"}))
    assert made.manifest.node is not None
    lost = {row for row, who in people_in(made.manifest.node).items() if len(who) < K}
    mine = {person for row, person in zip(generalise(TABLE, made.manifest.node, QIDS), WHOSE, strict=True) if row in lost}
    assert bool(made.manifest.masked) == (len(mine - {None}) >= K)
    assert made.manifest.suppressed > 0


def test_one_person_with_many_records_is_no_class(anonymise: Anonymise, tmp_path: Path) -> None:
    table = people(60).set_column(0, "person", pa.array([1] * 30 + [2] * 29 + [None], pa.int64()))
    with pytest.raises(PrivacyError, match="2 persons") as refused:
        anonymise(job(tmp_path, table))
    assert refused.value.exit_code == 3
    assert not list((tmp_path / "releases").glob("*/manifest.json"))


def test_a_column_that_is_not_there_or_names_nobody_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="'persn'"):
        anonymise(job(tmp_path / "unknown", columns=columns(person="persn")))
    with pytest.raises(JobError, match="published as it is"):
        anonymise(job(tmp_path / "published", columns=columns(person="note")))
    nobody = TABLE.set_column(0, "person", pa.nulls(len(TABLE), pa.int64()))
    with pytest.raises(PrivacyError, match="0 persons"):
        anonymise(job(tmp_path / "nobody", nobody))


@pytest.mark.ci
def test_the_person_is_published_as_a_pseudonym_alone(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)
    treated = {"name": "person", "treatment": {"hash": {"key": {"env": "PERSON_KEY"}}}}
    made = anonymise(job(tmp_path, columns=columns(identifiers=[treated, "zip", "height", "born"], linkable="person")))
    plain = anonymise(job(tmp_path / "plain"))
    assert made.manifest.persons == plain.manifest.persons
    assert made.manifest.node == plain.manifest.node
    assert made.manifest.pseudonyms


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("output", [{"format": "csv"}, {"partition_by": ["sex"]}, {"format": "duckdb"}])
def test_people_are_counted_whatever_the_files_are(anonymise: Anonymise, tmp_path: Path, output: dict[str, Any]) -> None:
    plain, other = anonymise(job(tmp_path / "plain")), anonymise(job(tmp_path / "other", output=output))
    assert plain.manifest.persons == other.manifest.persons
    assert plain.manifest.risk["after"] == other.manifest.risk["after"]


@pytest.mark.ci
def test_text_from_csv_names_the_same_people(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path, source={"path": "people.csv", "format": "csv", "types": {"person": "text", "age": "integer", "smoker": "boolean"}})
    write_csv(tmp_path / "people.csv", TABLE.select(["person", *QIDS, "disease"]))
    settings = ("columns.identifiers=[person]", "columns.insensitive=[]")
    assert anonymise(path, *settings).manifest.persons == anonymise(job(tmp_path / "plain")).manifest.persons


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(
    "method", [{"root": "dense"}, {"roots": 1}, {"objective": "gcp"}, {"objective": "c_avg"}, {"objective": "entropy"}]
)
def test_every_way_to_search_keeps_k_people(anonymise: Anonymise, tmp_path: Path, method: dict[str, Any]) -> None:
    made = anonymise(job(tmp_path, method={"name": "skald"} | method))
    assert made.manifest.node is not None
    lost = sum(
        size for row, size in Counter(generalise(TABLE, made.manifest.node, QIDS)).items() if len(people_in(made.manifest.node)[row]) < K
    )
    assert made.manifest.suppressed == lost <= LIMIT * len(TABLE)


@pytest.mark.slow
def test_little_memory_shares_the_people_out(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = anonymise(job(tmp_path / "plain"))
    monkeypatch.setattr(PERSON_CELLS_PART, 1_000_000)
    shared = anonymise(job(tmp_path / "shared", files=3))
    assert list((tmp_path / "shared" / ".skald" / "people" / "artifacts" / "person_cells").glob("*.npy"))
    assert (plain.manifest.node, plain.manifest.persons) == (shared.manifest.node, shared.manifest.persons)


@pytest.mark.slow
def test_a_replay_counts_the_people_of_the_other_data(anonymise: Anonymise, tmp_path: Path) -> None:
    first = anonymise(job(tmp_path))
    assert first.manifest.node is not None
    other = visits(500, seed=9)
    pq.write_table(other, tmp_path / "people" / "000.parquet")
    whose = other["person"].to_pylist()
    lost = {row for row, who in people_in(first.manifest.node, other, whose).items() if len(who) < K}
    records = sum(row in lost for row in generalise(other, first.manifest.node, QIDS))
    if records > LIMIT * len(other):
        with pytest.raises(PrivacyError, match="do not hold here"):
            anonymise(tmp_path / "job.yaml", f"replay={first.manifest.release}")
    again = anonymise(tmp_path / "job.yaml", f"replay={first.manifest.release}", "suppression.limit=1")
    assert again.manifest.suppressed == records


def told_of(source: int, released: int) -> int | None:
    """Return how many persons of the source are told, given who is released: not where fewer than k are left out."""
    return source if source - released not in range(1, K) else None


def store_of(folder: Path) -> Store:
    return Store(folder / ".skald" / "people" / "artifacts")


@pytest.mark.slow
def test_verify_counts_people_while_the_run_folder_keeps_them_and_says_so_when_it_does_not(
    anonymise: Anonymise, direct: CommandLine, tmp_path: Path
) -> None:
    made = anonymise(job(tmp_path))
    command = ("verify", str(made.folder), "--job", str(tmp_path / "job.yaml"))
    there = json.loads(direct(*command, "--json").stdout)
    assert there["min_class"] == made.manifest.min_class
    assert there["persons"]["released"] == made.manifest.persons.released  # type: ignore[union-attr]
    assert not [line for line in there["unproved"] if "people" in line.lower()]
    shutil.rmtree(tmp_path / ".skald")
    elsewhere = direct(*command, "--json")
    assert elsewhere.returncode == 0
    assert json.loads(elsewhere.stdout)["persons"]["released"] == there["persons"]["released"]
    gone = direct(*command, "--json", "--set=source.path=nowhere.parquet")
    assert gone.returncode == 5
    assert json.loads(gone.stdout)["persons"] is None
    assert any("people" in line for line in json.loads(gone.stdout)["unverified"])


@pytest.mark.ci
def test_what_is_kept_of_people_is_private_and_goes_with_the_artefacts(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(job(tmp_path))
    kept = list((tmp_path / ".skald" / "people" / "artifacts" / "people").glob("*.parquet"))
    assert kept
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    anonymise(job(tmp_path / "deleted", artifacts="delete"))
    assert not list((tmp_path / "deleted" / ".skald").rglob("*.parquet"))


def test_a_private_file_of_other_classes_is_not_believed(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path))
    kept = people_of_release(made.manifest.release, store_of(tmp_path))
    assert kept is not None
    frame = pl.read_parquet(kept[0][0])
    pq.write_table(frame.with_columns(records=pl.col("records") + 1).to_arrow(), kept[0][0])
    with pytest.raises(VerificationError, match="not those whose persons"):
        verify_release(load_job(tmp_path / "job.yaml"), made.folder, kept)
    few = frame.with_columns(person=pl.lit(7, pl.UInt64)).group_by("class", "person").agg(pl.col("records").sum())
    pq.write_table(few.to_arrow(), kept[0][0])
    with pytest.raises(VerificationError, match=f"fewer than k = {K} persons"):
        verify_release(load_job(tmp_path / "job.yaml"), made.folder, kept)


@pytest.mark.slow
def test_another_k_counts_nothing_again_and_another_person_counts_people_only(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path)
    anonymise(path)
    before = {file.name for file in (tmp_path / ".skald" / "people" / "artifacts" / "pairs").glob("*.parquet")}
    anonymise(path, "privacy.k=6")
    assert {file.name for file in (tmp_path / ".skald" / "people" / "artifacts" / "pairs").glob("*.parquet")} == before
    anonymise(path, "columns.person=[person, zip]")
    after = {file.name for file in (tmp_path / ".skald" / "people" / "artifacts" / "pairs").glob("*.parquet")}
    assert before < after
    assert len(list((tmp_path / ".skald" / "people" / "artifacts" / "histograms").glob("*.parquet"))) == len(before)
