"""How few persons a release of several tables leaves out is stated nowhere, and what is stated follows from its labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from flows.tables import tables
from schemas.errors.base import VerificationError
from schemas.errors.tables import HistoryError
from schemas.relational.tables_job import load_tables_job
from schemas.release.increments import PersonsOverlap
from tasks.relational.publication import PublishedTables
from tasks.relational.report import report_content
from tasks.relational.stated_figures import source_faults
from tasks.relational.verified import verify_tables
from tests.flows.relational.test_tables import resealed

K, PERSONS, KINDS = 5, 60, 12


def write_sources(folder: Path, left: int, nobodys: int = 0) -> None:
    """Write 60 persons of two kinds and further ones of whom each has a kind of her own, with two visits each; and visits of nobody."""
    persons = [*range(PERSONS), *range(500, 500 + left)]
    kinds = [*("fm"[person % 2] for person in range(PERSONS)), *map(str, range(left))]
    visits = [*(person for person in persons for _ in range(2)), *range(900, 900 + nobodys)]
    for name, columns in {
        "person": {"id": persons, "kind": kinds},
        "visit": {"id": visits, "ward": ["ab"[number % 2] for number in range(len(visits))]},
    }.items():
        (folder / name).mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), folder / name / "rows.parquet")


def job_of(folder: Path) -> Path:
    """Write the job of persons and visits."""
    kinds: dict[str, Any] = {"name": "kind", "hierarchy": {"tree": {"*": ["f", "m", *map(str, range(KINDS))]}}}
    wards: dict[str, Any] = {"name": "ward", "hierarchy": {"tree": {"*": ["a", "b"]}}}
    job = {
        "version": 2,
        "name": "few",
        "tables": {
            "person": {"source": {"path": "person/*.parquet"}, "key": "id", "columns": {"quasi_identifiers": [kinds]}},
            "visit": {"source": {"path": "visit/*.parquet"}, "references": {"id": "person"}, "columns": {"quasi_identifiers": [wards]}},
        },
        "privacy": {"k": K},
        "suppression": {"limit": 0.2},
        "target": "releases",
        "memory": "200MB",
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    return path


def published(folder: Path, left: int, nobodys: int = 0) -> PublishedTables:
    """Publish a release that leaves out so many persons, and so many visits of nobody."""
    folder.mkdir(exist_ok=True)
    write_sources(folder, left, nobodys)
    return tables(job_of(folder), ("orphans=drop",) if nobodys else ())


@pytest.mark.ci
def test_persons_who_came_and_have_no_rows_are_counted_beside_those_who_were_there(tmp_path: Path) -> None:
    """The rows are the same ones, and what was counted of them is of fewer persons."""
    assert published(tmp_path, 0).manifest.persons.released == PERSONS
    source = tmp_path / "person" / "rows.parquet"
    came = pa.table({"id": [*range(700, 700 + K)], "kind": ["f"] * K})
    pq.write_table(pa.concat_tables([pq.read_table(source), came]), source)
    manifest = tables(tmp_path / "job.yaml", ()).manifest
    assert (manifest.persons.released, manifest.histories, manifest.min_class) == (PERSONS + K, 3, K)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(("left", "stated"), [(2, None), (4, None), (0, PERSONS), (7, PERSONS + 7)])
def test_how_few_persons_are_left_out_is_not_stated(tmp_path: Path, left: int, stated: int | None) -> None:
    made = published(tmp_path, left)
    persons, unit = made.manifest.persons, made.manifest.tables["person"]
    assert (persons.released, persons.source, unit.records) == (PERSONS, stated, stated)
    assert unit.suppressed == (None if stated is None else left)
    visit = made.manifest.tables["visit"]
    assert (visit.records, visit.suppressed) == ((None, None) if stated is None else (2 * stated, 2 * left))
    assert made.manifest.loss.by_table["person"] == (0 if stated is None else pytest.approx(left / stated))
    report = json.loads((made.folder / "report.json").read_text())
    assert (f" of {PERSONS + left} " in report["sentences"][0]) == (stated is not None)
    assert verify_tables(load_tables_job(job_of(tmp_path)), made.folder).notes == ()


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(("nobodys", "left"), [(1, 7), (K - 1, 0), (K, 7), (3, 2)])
def test_how_few_rows_find_nobody_is_not_stated(tmp_path: Path, nobodys: int, left: int) -> None:
    made = published(tmp_path, left, nobodys)
    visit, few, rows = made.manifest.tables["visit"], nobodys < K, 2 * (PERSONS + left) + nobodys
    assert visit.orphans == (None if few else nobodys)
    assert visit.suppressed == (None if 0 < left < K else 2 * left)
    assert visit.records == (None if few or visit.suppressed is None else rows)
    # Rows of nobody are no loss, and the others lose the same whether these are stated or not.
    shown = 0 if visit.suppressed is None else left
    assert made.manifest.loss.by_table["visit"] == pytest.approx(shown / (PERSONS + shown))
    [sentence] = [one for one in report_content(made.manifest)["sentences"] if one.startswith("'visit'")]
    assert (f"fewer than {K} of nobody" in sentence, f"{nobodys} of nobody" in sentence) == (few, not few)
    assert (f"<td>fewer than {K}</td>" in (made.folder / "report.html").read_text()) == few
    job = load_tables_job(job_of(tmp_path), ("orphans=drop",))
    assert verify_tables(job, made.folder).notes == ()
    assert verify_tables(None, made.folder).notes == ()
    if few and visit.suppressed is not None:
        said = made.manifest.model_dump(mode="json")["tables"]
        for stated, fault in (({"orphans": nobodys, "records": rows}, "find nobody, and these are fewer"), ({"records": rows}, "lacks")):
            resealed(made.folder, tables=said | {"visit": said["visit"] | stated})
            with pytest.raises(VerificationError, match=fault):
                verify_tables(job, made.folder)
        # Whoever has the source sees that none or many find nobody where few are said to.
        manifest = made.manifest
        for many in (rows - nobodys, rows - nobodys + K):
            assert any("not those of its source" in one for one in source_faults(manifest, {"visit": many}, job)), many
        assert source_faults(manifest, {"visit": rows}, job) == []


@pytest.mark.ci
def test_two_sources_with_the_same_labels_have_the_same_figures(tmp_path: Path) -> None:
    one, other = (published(tmp_path / str(left), left).manifest for left in (1, 4))
    # Everybody has two visits, and so their number is that of persons.
    assert (one.persons, one.tables, one.loss) == (other.persons, other.tables, other.loss)
    assert report_content(one)["sentences"] == report_content(other)["sentences"]


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("left", "source", "suppressed", "fault"),
    [
        (2, PERSONS + 2, 2, "fewer than k"),
        (2, PERSONS + 7, 7, "not those of its source"),
        (0, None, None, "not those of its source"),
        (0, PERSONS, None, "lacks counts of rows"),
    ],
)
def test_another_number_of_persons_than_the_rule_states_is_no_verified_release(
    tmp_path: Path, left: int, source: int | None, suppressed: int | None, fault: str
) -> None:
    made = published(tmp_path, left)
    said = json.loads((made.folder / "manifest.json").read_text())
    said["persons"]["source"] = source
    said["tables"]["person"] |= {"records": source, "suppressed": suppressed}
    resealed(made.folder, persons=said["persons"], tables=said["tables"])
    with pytest.raises(VerificationError, match=fault):
        verify_tables(load_tables_job(job_of(tmp_path)), made.folder)


@pytest.mark.ci
def test_rows_of_few_who_are_left_out_that_are_stated_all_the_same_are_refused(tmp_path: Path) -> None:
    made = published(tmp_path, 3)
    said = json.loads((made.folder / "manifest.json").read_text())["tables"]
    more = said["visit"] | {"withheld": said["visit"]["withheld"] + 6}
    for visit, fault in ((said["visit"] | {"records": 2 * PERSONS + 6, "suppressed": 6}, "fewer than k"), (more, "suppression.rows")):
        resealed(made.folder, tables=said | {"visit": visit})
        with pytest.raises(VerificationError, match=fault):
            verify_tables(load_tables_job(job_of(tmp_path)), made.folder)


@pytest.mark.ci
def test_rows_that_are_not_those_of_a_source_are_no_verified_release(tmp_path: Path) -> None:
    made = published(tmp_path, 0)
    said = json.loads((made.folder / "manifest.json").read_text())["tables"]
    said["visit"] |= {"records": said["visit"]["records"] + 1, "withheld": said["visit"]["withheld"] + 1}
    resealed(made.folder, tables=said)
    with pytest.raises(VerificationError, match="rows of 'visit' are not those of its source"):
        verify_tables(load_tables_job(job_of(tmp_path)), made.folder)


@pytest.mark.parametrize("hidden", [range(1, K), range(K, 2 * K)])
def test_common_persons_of_two_releases_do_not_say_how_few_either_leaves_out(hidden: range) -> None:
    found = set()
    for mine in hidden:
        for others in hidden:
            # All sources have the same 60 persons in common, and the others are in one alone.
            overlap = PersonsOverlap(release="few", k=K, shared=PERSONS, added=mine, removed=others, most=(PERSONS + K, PERSONS + K))
            stated = overlap.model_copy(update={} if hidden[0] < K else {"most": None}).reported()
            found.add((stated.shared, stated.added, stated.removed))
            if hidden[0] < K:
                assert stated.rounded
                assert (stated.shared or 0) <= PERSONS
                assert (stated.added or 0) >= mine
                assert (stated.removed or 0) >= others
            assert "most" not in stated.model_dump()
    assert len(found) == (1 if hidden[0] < K else len(hidden) ** 2)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("left", [3, 7])
def test_rows_of_a_table_with_one_for_each_person_do_not_say_how_few_are_left_out(tmp_path: Path, left: int) -> None:
    write_sources(tmp_path, left)
    (tmp_path / "income").mkdir()
    persons = [*range(PERSONS), *range(500, 500 + left)]
    pq.write_table(pa.table({"id": persons, "income": [1] * len(persons)}), tmp_path / "income/rows.parquet")
    job = yaml.safe_load(job_of(tmp_path).read_text())
    job["tables"]["income"] = {
        "source": {"path": "income/*.parquet"},
        "key": "id",
        "references": {"id": "person"},
        "columns": {"quasi_identifiers": [{"name": "income", "hierarchy": {"widths": [1]}}]},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    made = tables(tmp_path / "job.yaml", ())
    found = {name: (table.records, table.suppressed) for name, table in made.manifest.tables.items()}
    stated = (None, None) if left < K else (PERSONS + left, left)
    assert found == {"person": stated, "income": stated, "visit": (None, None) if left < K else (2 * (PERSONS + left), 2 * left)}
    assert made.manifest.loss.by_table["income"] == (0 if left < K else pytest.approx(left / (PERSONS + left)))
    [sentence] = (one for one in report_content(made.manifest)["sentences"] if one.startswith("'income'"))
    assert ("is not stated" in sentence) == (left < K)
    assert verify_tables(load_tables_job(tmp_path / "job.yaml"), made.folder).notes == ()


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("beyond", [[1], [1] * (K - 1), [2 * K], [1] * K, [1, 2] * K])
def test_of_how_few_persons_rows_are_withheld_is_not_stated(tmp_path: Path, beyond: list[int]) -> None:
    write_sources(tmp_path, 0)
    more = [person for person, many in enumerate(beyond) for _ in range(many)]
    visits = [*range(PERSONS), *range(PERSONS), *more]
    pq.write_table(pa.table({"id": visits, "ward": ["a"] * len(visits)}), tmp_path / "visit" / "rows.parquet")
    job = yaml.safe_load(job_of(tmp_path).read_text())
    job["tables"]["visit"]["rows"] = {"most": 2}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    made = tables(tmp_path / "job.yaml", ())
    visit, whole, few = made.manifest.tables["visit"], 2 * PERSONS + len(more), len(beyond) < K
    assert visit.released == 2 * PERSONS
    assert (visit.withheld, visit.records, visit.suppressed) == ((None, None, None) if few else (len(more), whole, 0))
    [sentence] = [one for one in report_content(made.manifest)["sentences"] if one.startswith("'visit'")]
    assert (f" of {whole:,} are published, {len(more):,} withheld" in sentence) != few
    assert ("is not stated, because few persons lost some" in sentence) == few
    parsed = load_tables_job(tmp_path / "job.yaml")
    assert verify_tables(parsed, made.folder).notes == ()
    said = json.loads((made.folder / "manifest.json").read_text())
    said["tables"]["visit"] |= {"withheld": 1, "records": 2 * PERSONS + 1, "suppressed": 0}
    resealed(made.folder, **said)
    with pytest.raises(VerificationError, match="these are of fewer than k persons"):
        verify_tables(parsed, made.folder)


@pytest.mark.ci
@pytest.mark.parametrize("whose", [[500, 501], [500] * 8], ids=["few rows of few", "many rows of one"])
def test_rows_of_few_among_many_who_are_left_out_are_not_stated(tmp_path: Path, whose: list[int]) -> None:
    write_sources(tmp_path, 7)
    visits = [*(person for person in range(PERSONS) for _ in range(2)), *whose]
    pq.write_table(pa.table({"id": visits, "ward": ["a", "b"] * (len(visits) // 2)}), tmp_path / "visit/rows.parquet")
    made = tables(job_of(tmp_path), ())
    found = {name: (table.records, table.suppressed) for name, table in made.manifest.tables.items()}
    assert found == {"person": (PERSONS + 7, 7), "visit": (None, None)}
    assert verify_tables(load_tables_job(job_of(tmp_path)), made.folder).notes == ()


@pytest.mark.ci
def test_a_release_that_states_nothing_hides_nobody_who_was_left_out(tmp_path: Path) -> None:
    made = published(tmp_path, 12)
    said = json.loads((made.folder / "manifest.json").read_text())
    nothing = {name: table | {"records": None, "suppressed": None, "withheld": None} for name, table in said["tables"].items()}
    resealed(made.folder, persons=said["persons"] | {"source": None}, tables=nothing)
    with pytest.raises(VerificationError, match="persons are not the rows of their table"):
        verify_tables(load_tables_job(job_of(tmp_path)), made.folder)


@pytest.mark.ci
def test_a_run_that_refuses_attacks_finds_its_release_again(tmp_path: Path) -> None:
    write_sources(tmp_path, 0)
    settings = ("attacks.refuse=true", "overlaps=refuse")
    first = tables(job_of(tmp_path), settings)
    assert (first.new, tables(job_of(tmp_path), settings).new) == (True, False)


@pytest.mark.parametrize("most", [None, (PERSONS + 2 * K, PERSONS + 2 * K)])
@pytest.mark.parametrize(("came", "left", "changed"), [(0, 0, 1), (K, K, K - 1), (3, 0, 7), (0, 2, 2), (K, K, K)])
def test_how_few_changed_does_not_follow_from_who_is_in_both(came: int, left: int, changed: int, most: tuple[int, int] | None) -> None:
    """Whoever knows how many persons both sources have learns nothing of one to k - 1."""
    overlap = PersonsOverlap(
        release="few", k=K, shared=PERSONS, added=came + changed, removed=left + changed, changed=changed, most=most
    ).reported()
    shared, added, removed, stated = (getattr(overlap, name) for name in ("shared", "added", "removed", "changed"))
    assert (added >= came + changed, removed >= left + changed, stated >= changed) == (True, True, True)
    mine, others = most or (PERSONS + came, PERSONS + left)
    for found in (stated, mine - shared, others - shared, added - (mine - shared), removed - (others - shared)):
        assert found == 0 or found >= K


def test_rows_are_withheld_though_everybody_has_a_number_of_rows_of_their_own(tmp_path: Path) -> None:
    write_sources(tmp_path, 0)
    visits = [person for person in range(PERSONS) for _ in range(person)]
    pq.write_table(pa.table({"id": visits, "ward": ["a"] * len(visits)}), tmp_path / "visit" / "rows.parquet")
    path, withholding = job_of(tmp_path), ("suppression.limit=0.5", "suppression.rows=0.5", "privacy.k=2")
    made = tables(path, withholding)
    assert (made.manifest.persons.released, made.manifest.min_class) == (PERSONS, 2)
    # Of what a limit allows the job's own number is said, whatever share of the rows was tried.
    with pytest.raises(HistoryError, match=r"60 persons of 60 still have .*; suppression.limit leaves out at most 6, and suppression.rows"):
        tables(path, ("suppression.limit=0.1", "suppression.rows=0.5", "privacy.k=2"))


def test_a_refusal_for_values_says_how_many_persons_the_limit_leaves_out(tmp_path: Path) -> None:
    write_sources(tmp_path, 0)
    job = yaml.safe_load(job_of(tmp_path).read_text())
    visits = job["tables"]["visit"]["columns"]
    visits["sensitive"] = [visits.pop("quasi_identifiers")[0]["name"]]
    job |= {"privacy": {"k": K, "l": {"visit": {"ward": {"distinct": 9}}}}, "suppression": {"limit": 0.2, "rows": 0.5}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    with pytest.raises(HistoryError, match="while at most 12 persons are left out"):
        tables(tmp_path / "job.yaml", ())


@pytest.mark.parametrize(("changed", "kinds"), [(0, range(1, K)), (PERSONS, range(PERSONS + 1, PERSONS + K)), (2, range(3, 2 + K))])
def test_how_few_are_in_both_or_stayed_alike_is_not_stated(changed: int, kinds: range) -> None:
    """Whoever knows how many persons both sources have learns the same of each number from one to k - 1."""
    mine, others, stated = 3 * PERSONS, 4 * PERSONS, set()
    for shared in kinds:
        came, left = mine - shared, others - shared
        overlap = PersonsOverlap(release="few", k=K, shared=shared, added=came + changed, removed=left + changed, changed=changed)
        told = overlap.reported()
        assert told.rounded
        assert (told.shared or 0) <= shared
        assert (told.added or 0) >= came + changed
        assert (told.removed or 0) >= left + changed
        stated.add((told.shared, told.added, told.removed, told.changed))
    assert len(stated) == 1
