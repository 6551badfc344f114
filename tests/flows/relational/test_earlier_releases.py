"""Releases of several tables held against earlier ones of the same persons, by whoever has all files and joins them by hand."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import yaml

from flows.tables import tables
from flows.verification import verified_tables
from schemas.errors.base import VerificationError
from schemas.errors.refusals import OverlapError
from schemas.relational.tables_job import load_tables_job
from schemas.release.increments import PersonsOverlap
from tasks.composition.by_contents import OTHER_TABLES, OTHER_WAYS, OTHERWISE_READ
from tasks.composition.earlier import UNREGISTERED
from tasks.relational.earlier_releases import FEW_ROWS
from tasks.relational.publication import PublishedTables
from tests.conftest import Anonymise
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables, read_release
from tests.oracles.relational.histories import children

pytestmark = pytest.mark.ci

K, KEY = 4, hashlib.sha256(b"one").hexdigest()
LASTING = [{"name": "person_id", "treatment": {"hash": {"key": {"env": "TABLES_KEY"}}}}]
Rows = Mapping[str, list[dict[str, Any]]]


@contextmanager
def changed_job(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the job of a file to be changed, and write it again."""
    written = yaml.safe_load(path.read_text())
    yield written
    path.write_text(yaml.safe_dump(written, sort_keys=False))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLES_KEY", KEY)


class Seen(NamedTuple):
    """A person of a release, as whoever joins its files sees one: by labels, by everything, and the values of a column."""

    labels: Any
    everything: Any
    values: frozenset[Any]


def source_of(persons: int = 440) -> dict[str, pa.Table]:
    """Return tables in which no two persons have the same income, so that each is known by it."""
    made = hospital_tables(persons, seed=1)
    place = made["person"].column_names.index("income")
    return made | {"person": made["person"].set_column(place, "income", made["person"]["person_id"])}


def of_persons(source: Mapping[str, pa.Table], first: int, last: int) -> dict[str, pa.Table]:
    """Return the rows of persons with some numbers."""
    whose = dict(zip(*(source["visit"][name].to_pylist() for name in ("visit_id", "person_id")), strict=True))
    found = {}
    for name, table in source.items():
        owners = table["person_id"].to_pylist()
        if name == "condition":
            owners = [whose.get(visit, owner) for visit, owner in zip(table["visit_id"].to_pylist(), owners, strict=True)]
        found[name] = table.filter(pa.array([first <= owner < last for owner in owners]))
    return found


def job_of_tables(folder: Path, source: Mapping[str, pa.Table], *, lasting: bool = True, **parts: Any) -> Path:
    """Write tables in the place of those that are there, and their job."""
    for name in source:
        rmtree(folder / name, ignore_errors=True)
    of_tables = deepcopy(JOB["tables"])
    if lasting:
        of_tables["person"]["columns"]["identifiers"] = LASTING
    return hospital_job(folder, source, tables=of_tables, **parts)


def seen(release: PublishedTables) -> dict[str, Seen]:
    """Return what a release tells of each published pseudonym."""
    rows = read_release(release.folder)
    visits, within = children(rows["visit"], "person_id"), children(rows["condition"], "visit_id")
    alone = children([row for row in rows["condition"] if row["visit_id"] is None], "person_id")

    def bag(members: Any) -> Any:
        return frozenset(Counter(members).items())

    def told(person: dict[str, Any], *, labels: bool) -> Any:
        def of(row: dict[str, Any], others: str) -> Any:
            return tuple(value for name, value in row.items() if not name.endswith("_id") and not (labels and name == others))

        def conditions(those: list[dict[str, Any]]) -> Any:
            return bag(of(row, "icd") for row in those)

        mine = visits.get(person["person_id"], [])
        below = bag((of(visit, "nights"), conditions(within.get(visit["visit_id"], []))) for visit in mine)
        return of(person, "income"), below, conditions(alone.get(person["person_id"], []))

    found = {}
    for person in rows["person"]:
        own = person["person_id"]
        those = [*alone.get(own, []), *(row for visit in visits.get(own, []) for row in within.get(visit["visit_id"], []))]
        found[own] = Seen(told(person, labels=True), told(person, labels=False), frozenset(row["icd"] for row in those))
    return found


def pseudonym(person: int) -> str:
    return hmac.new(KEY.encode(), str(person).encode(), hashlib.sha256).hexdigest()


def joint(first: dict[str, Seen], later: dict[str, Seen], before: range, now: range) -> dict[Any, set[int]]:
    """Return who share each pair of histories; somebody may be absent from a source, and hidden in its release."""
    groups = defaultdict(set)
    for person in {*before, *now}:
        name = pseudonym(person)
        one = (first[name].labels if name in first else "hidden") if person in before else "absent"
        other = (later[name].labels if name in later else "hidden") if person in now else "absent"
        groups[(one, other)].add(person)
    return groups


def at_risk(groups: dict[Any, set[int]], part: str) -> tuple[int, int]:
    """Return the persons of a part, and how many of them share both histories with fewer than k."""
    whole = risk = 0
    for (one, other), persons in groups.items():
        if part != ("removed" if other == "absent" else "added" if one == "absent" else "shared"):
            continue
        whole += len(persons)
        if len(persons) < K and not {one, other} <= {"absent", "hidden"}:
            risk += len(persons)
    return whole, risk


def check_joined(made: PublishedTables, first: dict[str, Seen], later: dict[str, Seen]) -> None:
    assert made.manifest.joined is not None
    [joined] = made.manifest.joined
    both = first.keys() & later.keys()

    def sizes(what: str) -> dict[str, int]:
        sets = {name: tuple(getattr(side[name], what) if name in side else None for side in (first, later)) for name in {*first, *later}}
        counts = Counter(sets.values())
        return {name: counts[one] for name, one in sets.items()}

    whole, labels = sizes("everything"), sizes("labels")
    alone = [Counter(one.everything for one in side.values()) for side in (first, later)]
    by_itself = {name: alone[0][first[name].everything] if name in first else alone[1][later[name].everything] for name in whole}
    below = [name for name, size in whole.items() if size < K and (name in both or by_itself[name] > size)]
    assert (joined.people, joined.below_k) == (len(both), len(below))
    assert joined.by_labels == sum(labels[name] < K for name in both)
    assert joined.smallest == min(whole[name] for name in both)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_whoever_has_two_releases_finds_whom_the_second_says(method: str, tmp_path: Path) -> None:
    source, parts = source_of(), {"privacy": {"k": K, "l": {"condition": {"icd": {"distinct": 2}}}}, "method": {"name": method}}
    parts["suppression"] = {"limit": 0.4, "rows": 0.9 if method == "mondrian" else 0}
    first = tables(job_of_tables(tmp_path, of_persons(source, 0, 400), **parts), ())
    later = tables(path := job_of_tables(tmp_path, of_persons(source, 40, 440), **parts), ())
    assert first.manifest.overlaps == first.manifest.joined == ()
    assert later.manifest.overlaps is not None
    [overlap] = later.manifest.overlaps
    groups = joint(seen(first), seen(later), range(400), range(40, 440))
    expected = {part: at_risk(groups, part) for part in ("shared", "added", "removed")}
    found = PersonsOverlap(release=first.manifest.release, k=K, by="persons")
    if method == "skald":
        found = found.model_copy(update={part: whole for part, (whole, _) in expected.items()})
        found = found.model_copy(update={f"{part}_at_risk": risk for part, (_, risk) in expected.items()})
        values = {person: seen(later).get(pseudonym(person)) or seen(first).get(pseudonym(person)) for person in range(440)}
        broken = 0
        for (one, other), persons in groups.items():
            known = [held.values for person in persons if (held := values[person])]
            # Somebody must be without each value, since persons have several.
            if not {one, other} <= {"absent", "hidden"} and all(known) and frozenset.intersection(*known):
                broken += len(persons)
        found = found.model_copy(update={"values_at_risk": broken, "changed": 0})
        assert overlap == found.reported()
    assert overlap.shared_at_risk
    check_joined(later, seen(first), seen(later))
    # Nobody joins it to others by keys of its own, and it is compared all the same.
    own = tables(job_of_tables(tmp_path, of_persons(source, 40, 440), lasting=False, **parts), ())
    assert own.manifest.joined == ()
    assert own.manifest.overlaps is not None
    assert {one.release for one in own.manifest.overlaps} == {first.manifest.release, later.manifest.release}
    assert not {row["person_id"] for row in read_release(own.folder)["person"]} & set(seen(later))
    path = job_of_tables(tmp_path, of_persons(source, 40, 440), **parts)
    verified = verified_tables(load_tables_job(path), later.folder)
    assert len(verified.notes) == 1
    with pytest.raises(OverlapError, match="would not have been"):
        verified_tables(load_tables_job(path, ("overlaps=refuse",)), later.folder)
    with pytest.raises(OverlapError, match="Give pseudonyms another key; or say 'overlaps: warn'"):
        tables(path, ("overlaps=refuse", "privacy.k=5"))
    # Pseudonyms of each release's own link nothing, and another key would change nothing.
    path = job_of_tables(tmp_path, of_persons(source, 40, 440), lasting=False, **parts)
    with pytest.raises(OverlapError, match=r"compared with it\. Say 'overlaps: warn'; or, of one"):
        tables(path, ("overlaps=refuse", "privacy.k=5"))
    with pytest.raises(VerificationError, match="pseudonyms"):
        verified_tables(load_tables_job(job_of_tables(tmp_path, of_persons(source, 40, 440), lasting=False, **parts)), later.folder)


@pytest.mark.slow
def test_releases_of_one_table_and_of_several_are_compared_by_person(tmp_path: Path, anonymise: Anonymise) -> None:
    source = source_of(200)
    path = job_of_tables(tmp_path, source, lasting=False)
    columns = JOB["tables"]["person"]["columns"] | {"person": "person_id", "identifiers": ["person_id"]}
    alone = {"version": 1, "name": "alone", "source": {"path": "person/*.parquet"}, "columns": columns, "target": "alone"}
    alone |= {"privacy": {"k": K}, "memory": "256MB", "suppression": {"limit": 0.3}, "method": {"name": "skald"}}
    (tmp_path / "alone.yaml").write_text(yaml.safe_dump(alone))
    first = anonymise(tmp_path / "alone.yaml")
    made = tables(path, ())
    assert made.manifest.overlaps is not None
    [overlap] = made.manifest.overlaps
    assert (overlap.release, overlap.shared, overlap.added, overlap.removed) == (first.manifest.release, 200, 0, 0)
    assert overlap.shared_at_risk
    again = anonymise(tmp_path / "alone.yaml", "privacy.k=5")
    assert again.manifest.overlaps is not None
    assert {one.release: one.shared for one in again.manifest.overlaps}[made.manifest.release] == 200
    # Who knows few rows of a person knows no history.
    few = tables(path, ("privacy.knows.rows=1",))
    assert few.manifest.overlaps is not None
    assert {one.unmeasured for one in few.manifest.overlaps} == {FEW_ROWS}
    others = {name: table.set_column(0, table.column_names[0], table[0]) for name, table in hospital_tables(200, seed=3).items()}
    moved = others["person"]["person_id"].to_numpy() + 10_000
    others["person"] = others["person"].set_column(0, "person_id", pa.array(moved))
    shifted = pa.array(np.asarray(others["visit"]["person_id"]) + 10_000)
    others["visit"] = others["visit"].set_column(1, "person_id", shifted)
    nulls = [None if one is None else one + 10_000 for one in others["condition"]["person_id"].to_pylist()]
    others["condition"] = others["condition"].set_column(0, "person_id", pa.array(nulls, pa.int64()))
    others["person"] = others["person"].set_column(2, "income", pa.array(moved))
    strangers = tables(job_of_tables(tmp_path, others, lasting=False), ())
    assert [one for one in strangers.manifest.overlaps or () if not one.unmeasured] == []


def job_on_csv(folder: Path, name: str, qid: str, **source: Any) -> Path:
    """Write a job on two CSV files, whose persons are looked for by one column of theirs."""
    columns = {"identifiers": [one for one in ("a", "b") if one != qid], "quasi_identifiers": [{"name": qid, "hierarchy": {"widths": [1]}}]}
    of_tables = {
        "person": {"source": {"path": "person.csv", "types": {"pid": "integer", "a": "integer", "b": "integer"}}, "key": "pid"},
        "visit": {"source": {"path": "visit.csv", "types": {"pid": "integer", "cost": "double"}} | source, "references": {"pid": "person"}},
    }
    of_tables["person"] |= {"columns": columns}
    of_tables["visit"] |= {"columns": {"sensitive": ["cost"]}}
    job = {"version": 2, "name": name, "tables": of_tables, "privacy": {"k": 5}, "memory": "200MB", "target": f"releases/{name}"}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job | {"suppression": {"limit": 0.5}}, sort_keys=False))
    return path


@pytest.mark.parametrize("other", [{}, {"decimal": ",", "thousands": "."}], ids=["in one way", "in two ways"])
def test_who_is_told_apart_by_two_releases_is_known_however_both_read_the_files(tmp_path: Path, other: dict[str, Any]) -> None:
    (tmp_path / "person.csv").write_text("pid,a,b\n" + "".join(f"{row},{row // 10},{row % 10}\n" for row in range(60)))
    (tmp_path / "visit.csv").write_text("pid,cost\n" + "".join(f"{row},{1 + row % 7}.{100 + row}\n" for row in range(60)))
    tables(job_on_csv(tmp_path, "one", "a"), ())
    path = job_on_csv(tmp_path, "two", "b", **other)
    with pytest.raises(OverlapError, match="Nothing was published"):
        tables(path, ("overlaps=refuse",))
    made = tables(path, ())
    assert made.manifest.overlaps is not None
    [overlap] = made.manifest.overlaps
    # Each a holds ten people and each b six, and both together hold one.
    assert (overlap.shared, overlap.shared_at_risk, overlap.changed) == (60, 60, 60 if other else 0)
    # What is published already is not as the job asks now.
    with pytest.raises(OverlapError, match="Withdraw"):
        tables(path, ("overlaps=refuse",))


def test_a_release_of_which_this_source_lacks_labels_beside_common_ones_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("pid,a,b\n" + "".join(f"{row},{row // 10},{row % 10}\n" for row in range(60)))
    (tmp_path / "visit.csv").write_text("pid,cost,ward\n" + "".join(f"{row},{row},x\n" for row in range(60)))
    for name, qid in (("one", "a"), ("two", "b")):
        path = job_on_csv(tmp_path, name, qid)
        with changed_job(path) as written:
            written["tables"]["visit"]["columns"]["quasi_identifiers"] = [{"name": "ward", "hierarchy": {"prefix": [1]}}]
        made = tables(path, ())
    [overlap] = made.manifest.overlaps or ()
    # How costs stand with wards may have changed, and only both columns together with the other job's would say so.
    assert (overlap.unmeasured, overlap.is_safe) == (OTHER_TABLES, False)


def test_tables_of_which_one_lost_a_label_name_the_earlier_release_though_the_registry_is_lost(tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("pid,a,b\n" + "".join(f"{row},{row // 10},{row % 10}\n" for row in range(60)))
    (tmp_path / "visit.csv").write_text("pid,cost,ward\n" + "".join(f"{row},{row},x\n" for row in range(60)))
    path = job_on_csv(tmp_path, "one", "a")
    with changed_job(path) as written:
        written["tables"]["visit"]["columns"]["quasi_identifiers"] = [{"name": "ward", "hierarchy": {"prefix": [1]}}]
    earlier = tables(path, ())
    rmtree(tmp_path / ".skald")
    with changed_job(path) as written:
        written["tables"]["visit"]["columns"] = {"sensitive": ["cost"], "withheld": ["ward"]}
    [overlap] = tables(path, ()).manifest.overlaps or ()
    assert (overlap.release, overlap.unmeasured, overlap.is_safe) == (earlier.manifest.release, UNREGISTERED, False)


def test_values_of_tables_that_two_releases_publish_otherwise_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("pid,a,b\n" + "".join(f"{row},{row // 10},{row % 10}\n" for row in range(60)))
    (tmp_path / "visit.csv").write_text("pid,cost\n" + "".join(f"{row},{row}\n" for row in range(60)))
    tables(job_on_csv(tmp_path, "one", "a"), ())
    path = job_on_csv(tmp_path, "one", "a")
    with changed_job(path) as written:
        written["tables"]["visit"]["columns"]["sensitive"] = [{"name": "cost", "publish": {"round": 50}}]
    [overlap] = tables(path, ()).manifest.overlaps or ()
    assert (overlap.unmeasured, overlap.is_safe) == (OTHER_WAYS, False)
    # What is published in the same way again shows whose values changed.
    (tmp_path / "visit.csv").write_text("pid,cost\n" + "".join(f"{row},{row + 100 * (row == 7) + (row > 50)}\n" for row in range(60)))
    overlaps = tables(path, ()).manifest.overlaps or ()
    assert [(one.changed, one.is_safe) for one in overlaps if not one.unmeasured] == [(5, False)]


def test_persons_of_one_file_whose_keys_two_jobs_read_otherwise_are_no_others(tmp_path: Path) -> None:
    keys = [f"{1 + row % 9}.{100 + row}" for row in range(60)]
    (tmp_path / "person.csv").write_text("pid,a,b\n" + "".join(f"{key},{row // 10},{row % 10}\n" for row, key in enumerate(keys)))
    (tmp_path / "visit.csv").write_text("pid,cost\n" + "".join(f"{key},5\n" for key in keys))
    for name, qid, said in (("one", "a", {"decimal": "."}), ("two", "b", {"decimal": ",", "thousands": "."})):
        path = job_on_csv(tmp_path, name, qid, **said)
        with changed_job(path) as written:
            for table in written["tables"].values():
                table["source"] |= said | {"types": table["source"]["types"] | {"pid": "decimal(9, 3)"}}
        if name == "one":
            tables(path, ())
    with pytest.raises(OverlapError, match="cannot be compared"):
        tables(path, ("overlaps=refuse",))
    [overlap] = tables(path, ()).manifest.overlaps or ()
    assert (overlap.unmeasured, overlap.is_safe) == (OTHERWISE_READ, False)


def test_a_value_of_one_release_of_tables_that_another_takes_for_known_is_told(tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("pid,a,b\n" + "".join(f"{row},{row // 10},{row % 10}\n" for row in range(60)))
    (tmp_path / "visit.csv").write_text("pid,cost\n" + "".join(f"{row},{row % 7}\n" for row in range(60)))
    tables(job_on_csv(tmp_path, "one", "b"), ())
    path = job_on_csv(tmp_path, "two", "a")
    with changed_job(path) as written:
        written["tables"]["person"]["columns"] |= {"identifiers": [], "insensitive": ["b"]}
    [overlap] = tables(path, ()).manifest.overlaps or ()
    assert (overlap.exact, overlap.is_safe) == (("b",), False)
    [again] = tables(job_on_csv(tmp_path, "three", "b"), ()).manifest.overlaps[:1]  # type: ignore[index]
    assert again.exact == ("b",)
