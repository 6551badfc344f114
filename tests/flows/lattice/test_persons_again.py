"""A source that grows, levels that are replayed on other data, and people of every kind: k counts them anew over all there is."""

from __future__ import annotations

import shutil
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import PrivacyError
from schemas.errors.methods import HoldersError
from schemas.errors.storage import PeopleLostError
from tasks.publication import target
from tasks.report.sentences import overlap_sentences, warning_sentences
from tests.conftest import Anonymise
from tests.flows.lattice.test_local_suppression import settings
from tests.flows.lattice.test_persons import K, columns, job, people_in, visits
from tests.flows.lattice.test_persons_left import classes_of, table_of, verified
from tests.flows.lattice.test_persons_left import job as local_job
from tests.flows.lattice.test_persons_left import people_in as people_of
from tests.jobs import digests, generalise, people, released

TREATMENTS = [("drop", 0), ("mask", 0), ("cell", 2)]


def grown(folder: Path, table: pa.Table) -> None:
    """Put a further file beside those of the source."""
    pq.write_table(table, folder / "people" / "zzz.parquet")


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(("treatment", "rounds"), TREATMENTS)
def test_a_source_that_grew_is_released_as_if_it_had_always_been_so(
    anonymise: Anonymise, tmp_path: Path, treatment: str, rounds: int
) -> None:
    """The new file holds visits of old people beside those of new ones."""
    old, new = table_of(300, 1), visits(120, 3)
    notes = pa.array([f"new {number}" for number in range(120)])
    new = new.set_column(new.column_names.index("note"), "note", notes)
    assert set(old["person"].to_pylist()) & set(new["person"].to_pylist()) - {None}
    asked = settings(treatment, rounds, 0.3)
    path = local_job(tmp_path / "grown", old, files=2)
    first = anonymise(path, *asked)
    grown(tmp_path / "grown", new)
    made = anonymise(path, *asked)
    whole = pa.concat_tables([old, new])
    fresh = anonymise(local_job(tmp_path / "fresh", whole), *asked)
    assert digests(made.folder) == digests(fresh.folder)
    assert made.manifest.persons == fresh.manifest.persons
    increment = made.manifest.increment
    assert increment is not None
    assert (increment.since, increment.unchanged, increment.new) == (first.manifest.release, 2, 1)
    # Whose the new records are nobody counted.
    assert increment.histograms_records is None
    [overlap] = made.untold.overlaps
    assert (overlap.unit, overlap.unmeasured) == ("person", "")
    assert overlap_sentences(made.manifest) == [overlap.sentence()]
    assert all(people_of(members) >= 5 for members in classes_of(made.folder, whole).values())
    verified(path, asked, made.folder)


@pytest.mark.slow
def test_old_files_are_not_read_again_for_their_people(anonymise: Anonymise, tmp_path: Path) -> None:
    pairs = tmp_path / ".skald" / "people" / "artifacts" / "pairs"
    path = job(tmp_path, files=2)
    anonymise(path)
    before = {file.name: file.stat().st_mtime_ns for file in pairs.iterdir()}
    grown(tmp_path, visits(80, 3))
    anonymise(path)
    after = {file.name: file.stat().st_mtime_ns for file in pairs.iterdir()}
    assert before.items() < after.items()
    # The two small ones share a chunk, and the new one has its own.
    assert len([name for name in after if name.endswith(".parquet")]) == 2


def test_people_that_are_lost_before_they_are_counted_are_not_replaced_by_records(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = target.stage_output

    def losing(*arguments: Any) -> Any:
        for kept in (tmp_path / ".skald" / "people" / "artifacts" / "people").glob("*.parquet"):
            kept.unlink()
        return stage(*arguments)

    path = job(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(target, "stage_output", losing)
        with pytest.raises(PeopleLostError, match="the same command makes the rest again"):
            anonymise(path)
    assert not list((tmp_path / "releases").glob("people-*"))
    assert anonymise(path).manifest.persons is not None


@pytest.mark.slow
def test_a_new_file_of_the_same_people_makes_no_class_of_more(anonymise: Anonymise, tmp_path: Path) -> None:
    """Twice the records by the same people: every class has as many of them as before, and the same are suppressed."""
    table = visits()
    path = job(tmp_path, table)
    first = anonymise(path, "suppression.limit=0.2")
    grown(tmp_path, table.slice(0, len(table) - 1))
    node = f"replay={first.manifest.release}"
    again = anonymise(path, "suppression.limit=0.3", node)
    assert again.manifest.node == first.manifest.node
    assert again.manifest.min_class == first.manifest.min_class
    assert 0 <= 2 * first.manifest.suppressed - again.manifest.suppressed <= 1
    assert again.manifest.persons is not None
    assert first.manifest.persons is not None
    assert again.manifest.persons.released == first.manifest.persons.released


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(("treatment", "rounds"), TREATMENTS)
def test_a_replayed_node_keeps_k_people_of_the_other_data(anonymise: Anonymise, tmp_path: Path, treatment: str, rounds: int) -> None:
    path, asked = local_job(tmp_path, table_of(300, 1)), settings(treatment, rounds, 0.2)
    first = anonymise(path, *asked)
    other = table_of(280, 8)
    pq.write_table(other, tmp_path / "people" / "000.parquet")
    loose = settings(treatment, rounds, 1)
    again = anonymise(path, *loose, f"replay={first.manifest.release}")
    assert again.manifest.node == first.manifest.node
    classes = classes_of(again.folder, other)
    assert min(map(people_of, classes.values())) == again.manifest.min_class >= 5
    verified(path, (*loose, f"replay={first.manifest.release}"), again.folder)


@pytest.mark.slow
def test_a_copied_file_makes_nobody_two(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path)
    first = anonymise(path)
    shutil.copy(tmp_path / "people" / "000.parquet", tmp_path / "people" / "copy.parquet")
    again = anonymise(path)
    assert (again.manifest.node, again.manifest.min_class) == (first.manifest.node, first.manifest.min_class)
    assert not any("count twice" in sentence for sentence in warning_sentences(again.manifest))


@pytest.mark.slow
def test_a_person_in_two_files_and_many_chunks_is_one(anonymise: Anonymise, tmp_path: Path) -> None:
    """Every class has K people of whom one is in all files, and another has half of the records."""
    size = 40
    table = people(8).slice(0, 1)
    rows = pa.concat_tables([table] * size)
    whose = [0 if row % 2 else row % (K - 1) for row in range(size)]
    rows = rows.set_column(0, "person", pa.array(whose, pa.int64()))
    few = job(tmp_path / "few", rows, files=4, row_group=2, chunk_rows=3)
    with pytest.raises(PrivacyError, match=f"{len(set(whose))} persons"):
        anonymise(few)
    whose[-1] = 99
    enough = job(tmp_path / "enough", rows.set_column(0, "person", pa.array([*whose[:-2], 98, 99], pa.int64())), files=4, row_group=2)
    made = anonymise(enough, "chunk_rows=3")
    assert made.manifest.persons is not None
    assert made.manifest.min_class == made.manifest.persons.source == len({*whose[:-2], 98, 99})


def test_somebody_with_all_records_but_a_few_is_one_of_k(anonymise: Anonymise, tmp_path: Path) -> None:
    table = people(200, 5)
    whose = [1] * 190 + list(range(2, 12))
    made = anonymise(job(tmp_path, table.set_column(0, "person", pa.array(whose, pa.int64())), suppression={"limit": 0.9}))
    assert made.manifest.node is not None
    mine = people_in(made.manifest.node, table, whose)
    assert {tuple(row) for row in released(made.folder).select(["sex", "age", "smoker"]).rows()} == {
        row for row, who in mine.items() if len(who) >= K
    }
    assert made.manifest.persons is not None
    # One has nearly all records, and what k of them have is one record.
    assert made.manifest.persons.most_records == 1
    assert made.untold.most_records == 190


@pytest.mark.ci
def test_k_people_of_whom_one_has_all_values_are_not_diverse(anonymise: Anonymise, tmp_path: Path) -> None:
    """The class has four values, and everybody in it holds one of them for certain."""
    table = pa.concat_tables([people(1)] * 7)
    table = table.set_column(0, "person", pa.array([1, 1, 1, 1, 2, 3, 4], pa.int64()))
    diseases = ["flu", "gout", "cough", "measles", "flu", "flu", "flu"]
    table = table.set_column(table.column_names.index("disease"), "disease", pa.array(diseases))
    path = job(tmp_path, table, suppression={"limit": 0})
    for refused in ("{distinct: 4}", "{distinct: 2}"):
        with pytest.raises(HoldersError):
            anonymise(path, f"privacy.l={{disease: {refused}}}")
    for refused in ("{entropy: 4}", "{distinct: 5}"):
        with pytest.raises(PrivacyError):
            anonymise(path, f"privacy.l={{disease: {refused}}}")
    # One other value of the person with the common one is enough for two.
    others = table.set_column(table.column_names.index("disease"), "disease", pa.array(["flu", "flu", "flu", "flu", "flu", "gout", "flu"]))
    made = anonymise(job(tmp_path / "others", others, suppression={"limit": 0}), "privacy.l={disease: {distinct: 2}}")
    assert (made.manifest.min_class, made.manifest.measured["l"]["disease"]) == (4, 2)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("limit", ["0.3", "1"])
def test_records_of_nobody_are_published_with_k_people_and_never_without(anonymise: Anonymise, tmp_path: Path, limit: str) -> None:
    table = visits(300, 4)
    whose = [None if row % 3 == 0 else person for row, person in enumerate(table["person"].to_pylist())]
    table = table.set_column(0, "person", pa.array(whose, pa.int64()))
    made = anonymise(job(tmp_path, table), f"suppression.limit={limit}")
    node = made.manifest.node
    assert node is not None
    records: defaultdict[Any, int] = defaultdict(int)
    for row in generalise(table, node, ["sex", "age", "smoker"]):
        records[row] += 1
    kept = [row for row, who in people_in(node, table, whose).items() if len(who) >= K]
    assert made.manifest.released == sum(records[row] for row in kept)
    assert made.manifest.suppressed <= Fraction(limit) * 300
    mine = [person for row, person in zip(generalise(table, node, ["sex", "age", "smoker"]), whose, strict=True) if row in set(kept)]
    assert None in mine


def test_a_key_of_three_columns_is_one_person_only_where_all_three_agree(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.concat_tables([people(1)] * 8)
    keys = [("n", 1, 1), ("n", 1, 1), ("n", 1, 2), ("n", 2, 1), ("s", 1, 1), ("n", 1, None), (None, 1, 1), ("n", None, 1)]
    for place, name in enumerate(["site", "number", "digit"]):
        table = table.append_column(name, pa.array([key[place] for key in keys]))
    three = columns(person=["site", "number", "digit"], identifiers=["person", "zip", "height", "born", "site", "number", "digit"])
    made = anonymise(job(tmp_path, table, columns=three, suppression={"limit": 0}))
    assert made.manifest.persons is not None
    assert (made.manifest.min_class, made.manifest.persons.source, made.manifest.released) == (4, 4, 8)
    with pytest.raises(PrivacyError, match="4 persons"):
        anonymise(tmp_path / "job.yaml", "privacy.k=5")
