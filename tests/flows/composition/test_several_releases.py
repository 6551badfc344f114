"""Several releases of the same people: each is held against every earlier one of the folder of jobs, whatever changed between them.

What the manifest counts is compared with a look at every record of the published files: a column of numbers tells which record is which.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.refusals import OverlapError
from schemas.release.increments import Overlap
from tasks.composition.registry import Registered, ReleaseRegistry
from tasks.counting.contents import Sketches
from tasks.publication.verify_and_publish import PublishedRelease
from tests.conftest import Anonymise, CommandLine
from tests.core.composition.every_record import HIDDEN, Seen, told_together
from tests.flows.composition.several_jobs import COLUMNS, LATER, TABLE, job_in, numbered, other_job
from tests.jobs import JOB, QIDS, people, released, write_parquet

PARTS = ("shared", "added", "removed")


def classes_of(done: PublishedRelease, table: pa.Table, person: str | None = None) -> list[Seen]:
    """Return each record of a source with the labels that the release's files publish of it."""
    frame = released(done.folder)
    labels = dict(zip(frame["number"], frame.select([name for name in QIDS if name in frame.columns]).rows(), strict=True))
    whose = table[person].to_pylist() if person else [None] * len(table)
    return [Seen(one, labels.get(one, HIDDEN), owner) for one, owner in zip(table["number"].to_pylist(), whose, strict=True)]


def figures(overlap: Overlap) -> dict[str, tuple[int | None, int | None]]:
    return {part: (getattr(overlap, part), getattr(overlap, f"{part}_at_risk")) for part in PARTS}


def expected(now: PublishedRelease, then: PublishedRelease, tables: tuple[pa.Table, pa.Table], k: int = 5) -> dict[str, tuple[int, int]]:
    return told_together(classes_of(now, tables[0]), classes_of(then, tables[1]), k)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["skald", "rayden", "mondrian", "clustering"])
def test_a_file_that_grew_by_five_records_is_warned_of_with_their_number(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    job = job_in(tmp_path, method={"name": method})
    then = anonymise(job)
    grown = pa.concat_tables([TABLE, LATER.slice(0, 5)])
    write_parquet(tmp_path / "people", grown)
    now = anonymise(job)
    [overlap] = now.untold.overlaps
    assert overlap.release == then.manifest.release
    assert figures(overlap) == expected(now, then, (grown, TABLE))
    assert (overlap.shared, overlap.added, overlap.removed, overlap.by) == (len(TABLE), 5, 0, "contents")
    assert overlap.added_at_risk
    assert "Of 5 records that came since" in overlap.sentence()


@pytest.mark.ci
def test_the_command_line_warns_of_a_file_that_grew(direct: CommandLine, tmp_path: Path) -> None:
    job_in(tmp_path)
    first = json.loads(direct("run", "job.yaml", "--json").stdout)
    write_parquet(tmp_path / "people", pa.concat_tables([TABLE, LATER.slice(0, 5)]))
    done = direct("run", "job.yaml", "--json")
    assert done.returncode == 0
    [overlap] = json.loads(done.stdout)["overlaps"]
    assert (overlap["release"], overlap["added"]) == (first["release"], 5)
    assert "Warning: Together with earlier releases this one tells more than alone." in done.stderr
    assert f"Earlier: {first['release']}: below k = " in done.stderr
    assert "of 5 records that came since" in done.stderr


@pytest.mark.ci
def test_another_method_in_another_target_is_warned_of_with_the_counts(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    then = anonymise(job)
    now = anonymise(job, "method={name: mondrian}", "target=elsewhere")
    [overlap] = now.untold.overlaps
    assert overlap.release == then.manifest.release
    assert figures(overlap) == expected(now, then, (TABLE, TABLE))
    assert overlap.shared_at_risk is not None
    assert overlap.shared_at_risk > len(TABLE) / 2
    limits = [limit["text"] for limit in json.loads((now.folder / "report.json").read_text())["limits"]]
    assert overlap.sentence() in limits


@pytest.mark.ci
def test_another_job_over_the_same_source_is_warned_of(anonymise: Anonymise, tmp_path: Path) -> None:
    then = anonymise(job_in(tmp_path))
    # Fewer quasi-identifiers, in bins of other widths, and another sensitive column.
    qids = [{"name": "age", "hierarchy": {"widths": [1, 7]}}, *JOB["columns"]["quasi_identifiers"][2:]]
    columns = COLUMNS | {"quasi_identifiers": qids, "sensitive": ["note"], "insensitive": ["number", "sex", "disease", "score", "visits"]}
    now = anonymise(other_job(tmp_path, "another", columns=columns))
    [overlap] = now.untold.overlaps
    assert overlap.release == then.manifest.release
    frame, mine = released(now.folder), [name for name in QIDS if name != "sex"]
    labels = dict(zip(frame["number"], frame.select(mine).rows(), strict=True))
    here = [Seen(one, labels.get(one, HIDDEN)) for one in TABLE["number"].to_pylist()]
    assert figures(overlap) == told_together(here, classes_of(then, TABLE), 5)


@pytest.mark.ci
def test_a_query_of_some_of_the_records_is_warned_of(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    then = anonymise(job)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.register("given", TABLE)
        database.execute("CREATE TABLE people AS SELECT * FROM given")
    asked = {"path": "people.duckdb", "format": "duckdb", "query": "SELECT * FROM people WHERE number >= 4"}
    now = anonymise(other_job(tmp_path, "asked", source=asked))
    kept = TABLE.filter(pa.compute.greater_equal(TABLE["number"], 4))
    [overlap] = now.untold.overlaps
    assert figures(overlap) == expected(now, then, (kept, TABLE))
    assert (overlap.removed, overlap.added) == (4, 0)


@pytest.mark.ci
def test_records_that_were_exchanged_for_others_are_told_by_what_they_hold(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    then = anonymise(job)
    rows = TABLE.to_pylist()
    # Others with the same quasi-identifiers and another disease: as many records as before in every combination.
    for row in rows[:3]:
        row["disease"], row["number"] = "plague", row["number"] + 50_000
    changed = pa.Table.from_pylist(rows, TABLE.schema)
    write_parquet(tmp_path / "people", changed)
    now = anonymise(job)
    [overlap] = now.untold.overlaps
    assert figures(overlap) == expected(now, then, (changed, TABLE))
    assert (overlap.added, overlap.added_at_risk, overlap.removed, overlap.removed_at_risk) == (3, 3, 3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [["method.fragments={count: 3}"], [], ["method.mode=relaxed"]])
def test_fragments_are_held_against_earlier_releases_and_later_ones_against_them(
    anonymise: Anonymise, tmp_path: Path, settings: list[str]
) -> None:
    job = job_in(tmp_path, method={"name": "mondrian"})
    first = anonymise(job, *settings, "target=first")
    grown = pa.concat_tables([TABLE, LATER.slice(0, 5)])
    write_parquet(tmp_path / "people", grown)
    second = anonymise(job, *settings)
    third = anonymise(job, "method={name: skald}")
    [overlap] = second.untold.overlaps
    assert figures(overlap) == expected(second, first, (grown, TABLE))
    assert [one.release for one in third.untold.overlaps] == [second.manifest.release, first.manifest.release]
    assert figures(third.untold.overlaps[0]) == expected(third, second, (grown, grown))
    assert figures(third.untold.overlaps[1]) == expected(third, first, (grown, TABLE))


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "rayden"])
def test_persons_are_counted_where_the_job_names_them(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    random = np.random.default_rng(5)
    table = TABLE.set_column(0, "person", pa.array(random.integers(0, 150, len(TABLE)), mask=random.random(len(TABLE)) < 0.02))
    columns = {name: part for name, part in COLUMNS.items() if name != "identifiers"} | {"person": ["person"]}
    job = job_in(tmp_path, table, columns=columns, method={"name": method}, suppression={"limit": 0.3})
    then = anonymise(job, "privacy.k=4")
    rest = table.slice(0, len(table) - 9)
    write_parquet(tmp_path / "people", rest)
    now = anonymise(job, "privacy.k=4")
    [overlap] = now.untold.overlaps
    sides = classes_of(now, rest, "person"), classes_of(then, table, "person")
    assert overlap.unit == "person"
    assert figures(overlap) == told_together(*sides, 4, persons=True, again=True)
    assert (overlap.removed, overlap.by) == (9, "persons")
    assert overlap.known_at_risk
    assert "persons" in overlap.sentence()


@pytest.mark.slow
def test_records_that_an_earlier_release_left_out_by_whose_they_are_are_in_no_class_of_it(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their combinations are published, with records of others: cells do not tell which records are."""
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)
    table = TABLE.set_column(0, "person", pa.array(np.random.default_rng(5).integers(0, 150, len(TABLE))))
    hashed = {"name": "person", "treatment": {"hash": {"key": {"env": "PERSON_KEY"}, "length": 16}}}
    columns = COLUMNS | {"identifiers": [hashed], "person": ["person"]}
    then = anonymise(job_in(tmp_path, table, columns=columns, method={"name": "skald", "linked": "keep"}, suppression={"limit": 0.5}))
    assert then.untold.suppressed_for["linked"]
    now = anonymise(other_job(tmp_path, "plain"))
    [overlap] = now.untold.overlaps
    assert overlap.unit == "record"
    assert figures(overlap) == expected(now, then, (table, table))


@pytest.mark.ci
def test_persons_whose_other_values_all_changed_are_known_by_who_they_are(anonymise: Anonymise, tmp_path: Path) -> None:
    columns = {name: part for name, part in COLUMNS.items() if name != "identifiers"} | {"person": ["person"]}
    table = TABLE.set_column(0, "person", pa.array(range(len(TABLE))))
    job = job_in(tmp_path, table, columns=columns)
    then = anonymise(job)
    # A year later everybody is older, and one person has left.
    older = table.set_column(table.column_names.index("age"), "age", pa.compute.add(table["age"], 1)).slice(1)
    older = older.filter(pa.compute.is_valid(older["age"]))
    write_parquet(tmp_path / "people", older)
    now = anonymise(job)
    [overlap] = now.untold.overlaps
    sides = classes_of(now, older, "person"), classes_of(then, table, "person")
    assert figures(overlap) == told_together(*sides, 5, persons=True)
    assert (overlap.by, overlap.shared, overlap.removed) == ("persons", len(older), len(table) - len(older))
    assert overlap.shared_at_risk


@pytest.mark.ci
def test_refuse_ends_with_three_and_publishes_nothing(direct: CommandLine, tmp_path: Path) -> None:
    job_in(tmp_path)
    # Whoever may write above the target cannot turn the refusal off.
    (tmp_path / ".skald-work").touch()
    first = json.loads(direct("run", "job.yaml", "--json", "--set", "overlaps=refuse").stdout)
    assert not first["overlaps"]
    write_parquet(tmp_path / "people", pa.concat_tables([TABLE, LATER.slice(0, 5)]))
    done = direct("run", "job.yaml", "--json", "--set", "overlaps=refuse")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Nothing was published" in done.stderr
    assert "Of 5 records that came since" in done.stderr
    assert [path.name for path in (tmp_path / "releases").iterdir() if path.is_dir()] == [first["release"]]
    assert (tmp_path / "releases" / "CURRENT").read_text().strip() == first["release"]
    # What was refused is not known as a release either.
    write_parquet(tmp_path / "people", TABLE)
    assert json.loads(direct("run", "job.yaml", "--json").stdout)["release"] == first["release"]


@pytest.mark.ci
def test_refuse_publishes_what_tells_no_more(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path, overlaps="refuse")
    anonymise(job)
    [overlap] = anonymise(job, "rows_per_file=50").untold.overlaps
    assert (overlap.is_safe, overlap.shared) == (True, len(TABLE))


@pytest.mark.slow
def test_refuse_holds_a_release_against_all_earlier_ones(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    for number in range(5):
        anonymise(job, f"rows_per_file={50 + number}")
    last = anonymise(job, "rows_per_file=70").manifest
    assert (len(last.overlaps), last.unmeasured_overlaps) == (3, 2)
    assert len(anonymise(job, "rows_per_file=80", "overlaps=refuse").untold.overlaps) == 6


@pytest.mark.slow
def test_a_night_reads_no_more_sketches_however_many_came_before(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, read, plain = job_in(tmp_path), list[str](), ReleaseRegistry.sketches_of

    def counting(registry: ReleaseRegistry, entry: Registered) -> Sketches | None:
        read.append(entry.release)
        return plain(registry, entry)

    monkeypatch.setattr(ReleaseRegistry, "sketches_of", counting)
    nights = []
    for number in range(7):
        write_parquet(tmp_path / "people", TABLE.slice(number))
        read.clear()
        manifest = anonymise(job).manifest
        nights.append((len(read), len(manifest.overlaps or ()), manifest.unmeasured_overlaps))
    assert nights == [(min(night, 3), min(night, 3), max(night - 3, 0)) for night in range(7)]


@pytest.mark.ci
def test_what_cannot_be_compared_is_named_and_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    then = anonymise(job_in(tmp_path, artifacts="delete"))
    pq.write_table(TABLE.drop_columns(["disease"]), tmp_path / "fewer.parquet")
    columns = COLUMNS | {"sensitive": ["note"], "insensitive": ["number", "score", "visits"]}
    job = other_job(tmp_path, "fewer", columns=columns, source={"path": "fewer.parquet"})
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.release, overlap.shared) == (then.manifest.release, None)
    assert "its records are linked by columns that this job lacks" in overlap.sentence()
    with pytest.raises(OverlapError, match="its records are linked by columns that this job lacks"):
        anonymise(job, "overlaps=refuse", "privacy.k=6")
    # The file grew, and nothing but a sketch is left of the one before.
    write_parquet(tmp_path / "people", pa.concat_tables([TABLE, LATER]))
    named = {one.release: one.unmeasured for one in anonymise(tmp_path / "job.yaml").untold.overlaps}
    assert named[then.manifest.release] == "nothing is kept of it here, because its artefacts were removed"


@pytest.mark.ci
def test_other_people_and_other_tables_are_not_warned_of(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(job_in(tmp_path))
    write_parquet(tmp_path / "people", numbered(people(300, seed=7), first=20_000))
    assert not anonymise(tmp_path / "job.yaml").untold.overlaps
    (tmp_path / "cars").mkdir()
    pq.write_table(pa.table({"doors": [number % 9 for number in range(200)], "colour": ["red", "blue"] * 100}), tmp_path / "cars/1.parquet")
    columns = {"quasi_identifiers": [{"name": "doors", "hierarchy": {"widths": [1, 3]}}], "sensitive": ["colour"]}
    assert not anonymise(other_job(tmp_path, "cars", columns=columns, source={"path": "cars/*.parquet"})).untold.overlaps
