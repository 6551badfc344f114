"""Columns of several tables with ``publish``: no value is that of fewer than k persons, whatever rows they have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.tables import tables
from schemas.errors.base import SourceError, VerificationError
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import TablesJob, load_tables_job
from tasks.recount.original import original_of
from tasks.recount.tables import WrittenTables, recount_tables
from tasks.relational.verified import VerifiedTables, verify_tables
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables, read_release
from tests.flows.relational.test_tables import check_release

pytestmark = pytest.mark.ci

K = 4


def asked(income: Any, nights: Any, icd: Any = "shared") -> dict[str, Any]:
    """Return the tables of the job with columns published so."""
    found = deepcopy(JOB["tables"])
    found["person"]["columns"]["sensitive"] = [{"name": "income", "publish": income}]
    found["visit"]["columns"]["insensitive"] = [{"name": "nights", "publish": nights}]
    found["condition"]["columns"]["sensitive"] = [{"name": "icd", "publish": icd}]
    return found


def varied(seed: int) -> dict[str, pa.Table]:
    """Return a hospital with rare values and nulls, of which one visitor has many rows."""
    random, source = np.random.default_rng(seed), hospital_tables(150, seed)
    rows = {name: len(table) for name, table in source.items()}
    income = pa.array(np.round(random.exponential(30, rows["person"])).astype(int), mask=random.random(rows["person"]) < 0.02)
    nights = pa.array(np.round(random.exponential(9, rows["visit"])), mask=random.random(rows["visit"]) < 0.1)
    icd = pa.array([str(int(abs(one))) for one in random.normal(0, 3, rows["condition"])])
    for name, column, values in (("person", "income", income), ("visit", "nights", nights), ("condition", "icd", icd)):
        source[name] = source[name].set_column(source[name].schema.get_field_index(column), column, values)
    return source


def persons_of(rows: list[dict[str, Any]], column: str) -> dict[Any, set[str]]:
    """Return who has each value."""
    found: dict[Any, set[str]] = {}
    for row in rows:
        found.setdefault(row[column], set()).add(row["person_id"])
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_every_shared_value_is_that_of_k_persons(tmp_path: Path, seed: int, method: str) -> None:
    source = varied(seed)
    ways = asked("shared", {"microaggregate": 5}) if seed % 2 else asked({"microaggregate": 2}, "shared")
    suppression = {"limit": 0.5, "rows": 0.9 if method == "mondrian" else 0.3}
    path = hospital_job(tmp_path, source, tables=ways, method={"name": method}, suppression=suppression)
    made = tables(path, ())
    rows = check_release(made, K)
    for table, column in (("person", "income"), ("visit", "nights"), ("condition", "icd")):
        assert min(map(len, persons_of(rows[table], column).values())) >= K
        figures, values = made.manifest.published[table][column], [row[column] for row in rows[table]]
        assert figures.publish in ("shared", {"microaggregate": 5}, {"microaggregate": 2})
        assert figures.null == pytest.approx(values.count(None) / len(values), abs=1e-6)
    # A value that no k persons of the source have is not published.
    shared = {one for one, whose in persons_of(source["condition"].to_pylist(), "icd").items() if len(whose) >= K}
    assert {row["icd"] for row in rows["condition"]} <= {*shared, "other"}
    verify_tables(load_tables_job(path), made.folder)


def test_each_of_many_columns_publishes_what_it_would_alone(tmp_path: Path) -> None:
    """Of so many columns the values are replaced in steps, by the writer and by the recount."""
    source, names = varied(1), [f"nights_{number}" for number in range(35)]
    ways = asked("exact", "shared", "exact")
    ways["visit"]["columns"]["insensitive"] += [{"name": name, "publish": "shared"} for name in names]
    for name in names:
        source["visit"] = source["visit"].append_column(name, source["visit"]["nights"])
    path = hospital_job(tmp_path, source, tables=ways, suppression={"limit": 0.5, "rows": 0.3})
    made = tables(path, ())
    visits = check_release(made, K)["visit"]
    assert len({row["nights"] for row in visits}) > 2
    assert all(row[name] == row["nights"] for row in visits for name in names)
    assert set(made.manifest.published["visit"]) == {"nights", *names}
    verify_tables(load_tables_job(path), made.folder)


def test_numbers_are_rounded_and_cut_and_files_that_say_otherwise_are_refused(tmp_path: Path) -> None:
    source = varied(3)
    path = hospital_job(tmp_path, source, tables=asked({"round": 10}, {"top": 12, "bottom": 2}, "exact"))
    made = tables(path, ())
    rows = check_release(made, K)
    assert {row["income"] % 10 for row in rows["person"] if row["income"] is not None} == {0}
    nights = {row["nights"] for row in rows["visit"] if row["nights"] is not None}
    assert (min(nights), max(nights)) == (2, 12)
    assert set(made.manifest.published) == {"person", "visit"}
    job = load_tables_job(path)
    assert "rounded to multiples of 10" in (made.folder / "report.html").read_text()
    for asked_otherwise in (
        "tables.person.columns.sensitive=[income]",
        "tables.visit.columns.insensitive=[{name: nights, publish: {top: 9}}]",
    ):
        with pytest.raises(VerificationError):
            recounted(load_tables_job(path, (asked_otherwise,)), made.folder, tmp_path)
    assert recounted(job, made.folder, tmp_path).published == made.manifest.published
    refuses_other_figures_of_nulls(job, made.folder)


def rewrite(folder: Path, said: dict[str, Any]) -> None:
    """Write a manifest anew, whose report is not made again."""
    said["documents"] = [one | {"code": "another"} for one in said["documents"]]
    unsealed = json.dumps(said | {"seal": ""}, indent=2) + "\n"
    seal = hashlib.sha256(unsealed.encode()).hexdigest()
    (folder / "manifest.json").write_text(unsealed.replace('"seal": ""', f'"seal": "{seal}"'))


def refuses_other_figures_of_nulls(job: TablesJob, folder: Path) -> None:
    """Refuse a release whose manifest states other nulls than the files have."""
    said = json.loads((folder / "manifest.json").read_text())

    def verified(change: Callable[[dict[str, Any]], object]) -> VerifiedTables:
        published = deepcopy(said["published"])
        change(published["visit"]["nights"])
        change(published["person"]["income"])
        rewrite(folder, said | {"published": published})
        return verify_tables(job, folder)

    assert said["published"]["visit"]["nights"]["null"] > 0
    assert "published" not in verified(lambda one: None).on_trust
    assert "published" in verify_tables(None, folder).on_trust
    for change in (lambda one: one.update(null=0.0), lambda one: one.update(null=one["null"] + 0.01)):
        with pytest.raises(VerificationError, match="figures of published columns") as refused:
            verified(change)
        assert refused.value.exit_code == 4


def recounted(job: TablesJob, release: Path, folder: Path) -> Any:
    """Recount the files of a release, knowing a job."""
    files = {table: sorted((release / "data" / table).glob("*.parquet")) for table in job.tables}
    originals = {name: original_of(table_job(job, name)) for name in job.tables}
    return recount_tables(WrittenTables(job, files, originals, {}), folder / "spill", "the release")


def test_a_shared_value_of_fewer_persons_with_many_rows_is_found(tmp_path: Path) -> None:
    """A person with k rows of one value is one person, also where the recount has no source."""
    source = varied(1)
    path = hospital_job(tmp_path, source, tables=asked("exact", "shared", "exact"))
    made = tables(path, ())
    [file] = (made.folder / "data" / "visit").glob("*.parquet")
    visits = pq.read_table(file)
    whose_visits = visits["person_id"].to_pylist()
    busiest = max(whose_visits, key=whose_visits.count)
    nights = [99.0 if whose == busiest else one for whose, one in zip(whose_visits, visits["nights"].to_pylist(), strict=True)]
    pq.write_table(visits.set_column(visits.schema.get_field_index("nights"), "nights", pa.array(nights)), file)
    job = load_tables_job(path)
    with pytest.raises(VerificationError, match="'nights' of 'visit' publishes 1 value of fewer than 4 persons"):
        files = {table: sorted((made.folder / "data" / table).glob("*.parquet")) for table in job.tables}
        recount_tables(WrittenTables(job, files, dict.fromkeys(job.tables), {}), tmp_path / "spill", "the release")


def test_models_look_at_what_is_published(tmp_path: Path) -> None:
    """Where all values but one are rare, two are published, and no history can have three."""
    source = varied(2)
    rows = len(source["condition"])
    rare = pa.array(["x" if place % 2 else f"only {place}" for place in range(rows)])
    source["condition"] = source["condition"].set_column(source["condition"].schema.get_field_index("icd"), "icd", rare)
    path = hospital_job(tmp_path, source, tables=asked("exact", "exact"), suppression={"limit": 0.9})
    assert not read_release(tables(path, ("privacy.l={condition: {icd: {distinct: 3}}}",)).folder)["condition"]
    privacy = ("privacy.l={condition: {icd: {distinct: 2}}}",)
    made = tables(path, privacy)
    assert {row["icd"] for row in read_release(made.folder)["condition"]} <= {"x", "other"}
    verify_tables(load_tables_job(path, privacy), made.folder)


def test_only_numbers_are_rounded(tmp_path: Path) -> None:
    path = hospital_job(tmp_path, varied(2), tables=asked("exact", "exact", {"round": 5}))
    with pytest.raises(SourceError, match="only numbers are rounded"):
        tables(path, ())
