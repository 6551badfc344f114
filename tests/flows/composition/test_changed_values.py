"""What two releases reveal of people in both beyond their number: values that changed between them, and values that are left of both."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.refusals import OverlapError
from tasks.composition.earlier import OTHER_COLUMNS
from tests.conftest import Anonymise

NIGHTS = {"k": 5}


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def people(number: int = 60) -> list[dict[str, Any]]:
    return [
        {"pid": f"p{row}", "a": row // 10, "b": row % 10, "dx": ["flu", "hiv", "asthma"][row % 3], "note": f"seen {row % 2}"}
        for row in range(number)
    ]


def job_in(folder: Path, name: str = "job", *, qids: tuple[str, ...] = ("a",), person: bool = True, **parts: Any) -> Path:
    columns: dict[str, Any] = {
        "identifiers": ["pid"] if not person else [],
        "quasi_identifiers": [{"name": qid, "hierarchy": {"widths": [1, 10]}} for qid in qids],
        "sensitive": ["dx"],
        "insensitive": ["note"],
    }
    if person:
        columns["person"] = "pid"
    columns["identifiers"] = [*columns["identifiers"], *(qid for qid in ("a", "b") if qid not in qids)]
    job = {
        "version": 1, "name": name, "source": {"path": "people.parquet"}, "columns": columns, "privacy": NIGHTS,
        "method": {"name": "skald"}, "suppression": {"limit": 0.5}, "memory": "200MB", "target": f"releases/{name}",
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job | parts, sort_keys=False))
    return path


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("column", ["dx", "note"])
@pytest.mark.parametrize("person", [True, False])
def test_one_published_value_that_changed_is_one_who_left_and_one_who_came(
    anonymise: Anonymise, tmp_path: Path, column: str, person: bool
) -> None:
    rows, job = people(), job_in(tmp_path, person=person)
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(job)
    rows[7] = rows[7] | {column: "plague"}
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    with pytest.raises(OverlapError, match="came since"):
        anonymise(job, "overlaps=refuse")
    [overlap] = anonymise(job).untold.overlaps or ()
    assert (overlap.added, overlap.added_at_risk, overlap.removed, overlap.removed_at_risk) == (1, 1, 1, 1)
    # Of a record that nobody is named for, another diagnosis makes another record.
    assert overlap.changed == int(person or column == "note")
    assert not overlap.is_safe


@pytest.mark.ci
def test_values_of_everybody_that_changed_tell_nobody_apart(anonymise: Anonymise, tmp_path: Path) -> None:
    rows, job = people(), job_in(tmp_path, overlaps="refuse")
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(job)
    pq.write_table(table_of([row | {"note": f"later {row['b'] % 2}"} for row in rows]), tmp_path / "people.parquet")
    [overlap] = anonymise(job).untold.overlaps or ()
    assert (overlap.shared, overlap.changed, overlap.known_at_risk, overlap.is_safe) == (60, 60, 0, True)


@pytest.mark.ci
def test_who_is_told_apart_by_both_is_known_though_everybodys_value_changed(anonymise: Anonymise, tmp_path: Path) -> None:
    rows = people()
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(job_in(tmp_path, qids=("a",)))
    pq.write_table(table_of([row | {"dx": row["dx"].upper()} for row in rows]), tmp_path / "people.parquet")
    other = job_in(tmp_path, qids=("b",))
    # Each a holds ten and each b six, and both together hold one.
    [overlap] = anonymise(other).untold.overlaps or ()
    assert (overlap.shared, overlap.changed, overlap.shared_at_risk, overlap.added_at_risk) == (60, 60, 60, 0)
    with pytest.raises(OverlapError, match="Fewer than k"):
        anonymise(other, "overlaps=refuse")


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(("person", "column"), [(True, "note"), (True, "dx"), (False, "note")])
@pytest.mark.parametrize("one", ["left", "came", "changed", "stayed"])
def test_changes_of_one_column_hide_nobody_whose_other_values_both_files_show(
    anonymise: Anonymise, tmp_path: Path, person: bool, column: str, one: str
) -> None:
    """Of nine of a class the notes, or diagnoses, change. One left, came, changed in the other column, or stayed as it was."""
    rows, job = people(), job_in(tmp_path, person=person)
    changed = [row | {column: "other"} if 1 <= number < 10 else row for number, row in enumerate(rows)]
    if one == "changed":
        changed[0] = rows[0] | {"dx" if column == "note" else "note": "other"}
    for night in (rows[one == "came" :], changed[one == "left" :]):
        pq.write_table(table_of(night), tmp_path / "people.parquet")
        made = anonymise(job)
    [overlap] = made.untold.overlaps or ()
    at_risk = {"came": overlap.added_at_risk, "stayed": overlap.shared_at_risk}.get(one, overlap.removed_at_risk)
    assert (at_risk, overlap.is_safe) == (1, False)


@pytest.mark.ci
@pytest.mark.parametrize("person", [True, False])
@pytest.mark.parametrize("column", ["note", "town"])
def test_changes_of_an_untreated_column_hide_nobody_of_whom_another_one_changed(
    anonymise: Anonymise, tmp_path: Path, person: bool, column: str
) -> None:
    rows, job = [row | {"town": "here"} for row in people()], job_in(tmp_path, person=person)
    written = yaml.safe_load(job.read_text())
    written["columns"]["insensitive"] = ["note", "town"]
    job.write_text(yaml.safe_dump(written, sort_keys=False))
    for night in (
        rows,
        [row | ({"note": "other"} if number < 9 else {column: "other"} if number == 9 else {}) for number, row in enumerate(rows)],
    ):
        pq.write_table(table_of(night), tmp_path / "people.parquet")
        made = anonymise(job)
    [overlap] = made.untold.overlaps or ()
    alone = int(column == "town")
    assert (overlap.changed, overlap.added_at_risk, overlap.removed_at_risk, overlap.is_safe) == (10, alone, alone, not alone)


def paid_job(folder: Path, qid: str, size: int, *, person: bool) -> Path:
    """A job whose pay is published as means of so many."""
    path = job_in(folder, qids=(qid,), person=person, privacy=NIGHTS | {"l": {"dx": {"distinct": 2}}})
    written = yaml.safe_load(path.read_text())
    written["columns"]["sensitive"].append({"name": "pay", "publish": {"microaggregate": size}})
    path.write_text(yaml.safe_dump(written, sort_keys=False))
    return path


@pytest.mark.ci
@pytest.mark.parametrize("person", [True, False])
def test_what_publish_makes_of_a_value_is_no_change_of_it(anonymise: Anonymise, tmp_path: Path, person: bool) -> None:
    rows = [row | {"pay": 1000 + 37 * number % 61} for number, row in enumerate(people())]
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(paid_job(tmp_path, "a", 6, person=person))
    other = paid_job(tmp_path, "b", 9, person=person)
    # A job that publishes means cannot replay a release, and one that rounds can.
    with pytest.raises(OverlapError, match=r"compared with it\. Say 'overlaps: warn'; or, of one"):
        anonymise(other, "overlaps=refuse")
    with pytest.raises(OverlapError, match=r"Replay one of them that this job made \(replay\); or say 'overlaps: warn'; or, of one"):
        anonymise(other, "overlaps=refuse", "columns.sensitive=[dx, {name: pay, publish: {round: 20}}]")
    [overlap] = anonymise(other).untold.overlaps or ()
    assert (overlap.shared, overlap.changed, overlap.added, overlap.removed, overlap.is_safe) == (60, 0, 0, 0, False)
    # One whose pay did change is told apart by it.
    rows[7] = rows[7] | {"pay": 9_000}
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    last, *_ = anonymise(other, "name=later").untold.overlaps or ()
    assert (last.added, last.removed) == (1, 1)


@pytest.mark.ci
@pytest.mark.parametrize(("person", "role"), [(True, "insensitive"), (True, "sensitive"), (False, "insensitive")])
@pytest.mark.parametrize(("seen", "at_risk"), [(1, 1), (5, 0)])
def test_changes_that_rounding_hides_hide_no_other_one(
    anonymise: Anonymise, tmp_path: Path, person: bool, role: str, seen: int, at_risk: int
) -> None:
    """Of ten people of one class the pay of four changes within what is published, and one or five notes change."""
    rows = [row | {"pay": 1000 + number % 7} for number, row in enumerate(people())]
    path = job_in(tmp_path, person=person)
    written = yaml.safe_load(path.read_text())
    written["columns"][role].append({"name": "pay", "publish": {"round": 100}})
    path.write_text(yaml.safe_dump(written, sort_keys=False))
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(path)
    changed = [row | {"pay": row["pay"] + 10 * (number < 4)} for number, row in enumerate(rows)]
    changed[4 : 4 + seen] = [row | {"note": "left"} for row in changed[4 : 4 + seen]]
    pq.write_table(table_of(changed), tmp_path / "people.parquet")
    [overlap] = anonymise(path).untold.overlaps or ()
    assert (overlap.changed, overlap.added_at_risk, overlap.removed_at_risk) == (seen, at_risk, at_risk)


@pytest.mark.ci
@pytest.mark.parametrize("remade", [{"name": "pay", "publish": {"round": 100}}, {"name": "pay", "normalise": ["case"]}], ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_a_value_of_a_known_person_that_one_release_publishes_otherwise_is_seen_to_change(
    anonymise: Anonymise, tmp_path: Path, remade: dict[str, Any], first: bool
) -> None:
    text = "normalise" in remade
    rows = [row | {"pay": f"N{number % 7}" if text else 1000 + number % 7} for number, row in enumerate(people())]
    for pay in (remade, "pay") if first else ("pay", remade):
        path = job_in(tmp_path)
        written = yaml.safe_load(path.read_text())
        written["columns"]["sensitive"].append(pay)
        path.write_text(yaml.safe_dump(written, sort_keys=False))
        pq.write_table(table_of(rows), tmp_path / "people.parquet")
        made = anonymise(path)
        rows[7] = rows[7] | {"pay": "other" if text else 9000}
    [overlap] = made.untold.overlaps or ()
    assert (overlap.changed, overlap.added_at_risk, overlap.removed_at_risk) == (1, 1, 1)


@pytest.mark.ci
def test_a_job_that_looks_at_columns_that_the_earlier_source_lacked_names_its_releases(anonymise: Anonymise, tmp_path: Path) -> None:
    pq.write_table(table_of(people()), tmp_path / "people.parquet")
    then = anonymise(job_in(tmp_path, person=False))
    pq.write_table(table_of(people()).rename_columns(["pid", "region", "b", "dx", "note"]), tmp_path / "people.parquet")
    job = job_in(tmp_path, qids=("region",), person=False)
    written = yaml.safe_load(job.read_text())
    written["columns"]["identifiers"] = ["pid", "b"]
    job.write_text(yaml.safe_dump(written, sort_keys=False))
    [overlap] = anonymise(job).untold.overlaps or ()
    assert (overlap.release, overlap.unmeasured, overlap.is_safe) == (then.manifest.release, OTHER_COLUMNS, False)


def pays_of(release: Path) -> list[float]:
    return sorted(pq.read_table(release / "data")["pay"].to_pylist())


@pytest.mark.ci
@pytest.mark.parametrize("role", ["sensitive", "insensitive"])
def test_who_is_known_by_the_difference_of_two_means_is_counted(anonymise: Anonymise, tmp_path: Path, role: str) -> None:
    """Twelve pays lie far apart by fives, sixes or sevens, so that groups of five and of six differ by one person."""
    rows = [row | {"pay": 1_000_000 * (number // 6) + number % 6} for number, row in enumerate(people())]
    pq.write_table(table_of(rows), tmp_path / "people.parquet")

    def job(name: str, way: object) -> Path:
        path = job_in(tmp_path, name, person=False)
        written = yaml.safe_load(path.read_text())
        written["columns"][role].append({"name": "pay", "publish": way})
        path.write_text(yaml.safe_dump(written, sort_keys=False))
        return path

    first = anonymise(job("first", {"microaggregate": 6}))
    assert pays_of(first.folder)[::6] == [1_000_000 * place + 2.5 for place in range(10)]
    # The same groups of the same people tell nothing more.
    [same] = anonymise(job("same", {"microaggregate": 5})).untold.overlaps or ()
    assert (same.means_at_risk, same.is_safe) == (0, True)
    # A person more in one group: seven times the mean less six times the other is the pay of that person.
    rows.append(rows[0] | {"pid": "p60", "b": 77, "pay": 9})
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    later = anonymise(job("first", {"microaggregate": 6}))
    assert 7 * pays_of(later.folder)[0] - 6 * pays_of(first.folder)[0] == 9
    found = {one.release: one.means_at_risk for one in later.untold.overlaps or ()}
    assert set(found.values()) == {1}
    with pytest.raises(OverlapError, match="Their difference may give single values away"):
        anonymise(job("third", {"microaggregate": 6}), "overlaps=refuse")
    # Other values are no sums.
    [newest, *_] = anonymise(job("shared", "shared")).untold.overlaps or ()
    assert newest.means_at_risk is None


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("ways", "types"),
    [
        (("exact", "means"), ("int64", "int64")), (("means", "exact"), ("int64", "int64")), (("means", "means"), ("int64", "double")),
        (("means", "exact"), ("int64", "double")), (("exact", "means"), ("double", "int64")),
    ],
)  # fmt: skip
def test_records_are_linked_by_the_values_of_the_source_and_not_by_means(
    anonymise: Anonymise, tmp_path: Path, ways: tuple[str, str], types: tuple[str, str]
) -> None:
    """An extract with a null has fractions where others have whole numbers, and so have means."""
    rows = [row | {"pay": 1000 + 37 * number % 61} for number, row in enumerate(people())]
    for name, qid, way, kind in zip(("one", "two"), ("a", "b"), ways, types, strict=True):
        made = table_of(rows)
        pq.write_table(made.set_column(made.column_names.index("pay"), "pay", made["pay"].cast(kind)), tmp_path / "people.parquet")
        path = job_in(tmp_path, name, qids=(qid,), person=False)
        written = yaml.safe_load(path.read_text())
        written["columns"]["sensitive"].append({"name": "pay", "publish": {"microaggregate": 6} if way == "means" else "exact"})
        path.write_text(yaml.safe_dump(written, sort_keys=False))
        if name == "one":
            anonymise(path)
    with pytest.raises(OverlapError):
        anonymise(path, "overlaps=refuse")
    [overlap] = anonymise(path).untold.overlaps or ()
    # Each a holds ten and each b six, and both together hold one.
    assert (overlap.shared, overlap.shared_at_risk) == ((60, 60) if len(set(types)) == 1 else (None, None))
    assert ("in another type" in overlap.unmeasured) == (len(set(types)) > 1)


def crossing() -> list[dict[str, Any]]:
    """Return people whose class by a holds hiv and flu, and by b hiv and asthma: in both they all have hiv."""
    both = [{"a": 1, "b": 1, "dx": "hiv"}] * 6
    return [
        row | {"pid": f"p{number}", "note": "x"}
        for number, row in enumerate(
            [*both, *[{"a": 1, "b": 0, "dx": "flu"}] * 6, *[{"a": 0, "b": 1, "dx": "asthma"}] * 6, *[{"a": 0, "b": 0, "dx": "cold"}] * 6]
        )
    ]


@pytest.mark.ci
@pytest.mark.parametrize(
    "promise",
    [
        {"l": {"dx": {"distinct": 2}}},
        {"l": {"dx": {"entropy": 1.5}}},
        {"l": {"dx": {"recursive": {"c": 2, "l": 2}}}},
        {"t": {"dx": {"t": 0.5}}},
        {"t": {"dx": {"t": 0.4, "distance": "ordered"}}},
    ],
    ids=["distinct", "entropy", "recursive", "equal", "ordered"],
)
@pytest.mark.few(2)
@pytest.mark.parametrize("person", [True, False])
@pytest.mark.parametrize("who", ["both", "first", "second"])
def test_one_value_left_in_both_classes_breaks_what_either_promises(
    anonymise: Anonymise, tmp_path: Path, promise: dict[str, Any], who: str, person: bool
) -> None:
    pq.write_table(table_of(crossing()), tmp_path / "people.parquet")
    promised = [NIGHTS | promise if who in {"both", one} else NIGHTS for one in ("first", "second")]
    # Not by an order that this source alone knows: it is said that it was not compared.
    ordered = promise.get("t", {}).get("dx", {}).get("distance") == "ordered"
    unknown = ordered and who == "first"
    anonymise(job_in(tmp_path, "first", qids=("a",), person=person, privacy=promised[0]))
    job = job_in(tmp_path, "second", qids=("b",), person=person, privacy=promised[1])
    with pytest.raises(OverlapError):
        anonymise(job, "overlaps=refuse")
    [overlap] = anonymise(job).untold.overlaps or ()
    if unknown:
        assert (overlap.values_at_risk, overlap.shared_at_risk) == (None, None)
        assert "stand in no order" in overlap.sentence()
    else:
        assert (overlap.shared, overlap.shared_at_risk) == (24, 0)
        # Four joint classes of one value each. By the order, the two in the middle are 1/3 from the whole and the two at the ends 1/2.
        assert overlap.values_at_risk == (12 if ordered else 24)
        assert "what is left in both breaks the l-diversity or t-closeness" in overlap.sentence()
    assert not overlap.is_safe


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "promise",
    [
        {"l": {"dx": {"distinct": 2}}},
        {"l": {"dx": {"entropy": 1.5}}},
        {"l": {"dx": {"recursive": {"c": 2, "l": 2}}}},
        {"t": {"dx": {"t": 0.6}}},
    ],
    ids=["distinct", "entropy", "recursive", "equal"],
)
@pytest.mark.parametrize("who", ["both", "first", "second"])
def test_one_value_that_everybody_in_both_classes_holds_breaks_what_either_promises(
    anonymise: Anonymise, tmp_path: Path, promise: dict[str, Any], who: str
) -> None:
    """Who is in both has hiv and something else, which are as many different values as are asked for."""
    held = {(1, 1): ("flu", "asthma"), (1, 0): ("flu", "cold"), (0, 1): ("asthma", "cold"), (0, 0): ("flu", "cold")}
    rows = [row | {"dx": held[row["a"], row["b"]][number % 2]} for number, row in enumerate(crossing())]
    pq.write_table(table_of(rows + [row for row in crossing() if row["dx"] == "hiv"]), tmp_path / "people.parquet")
    for name, qid in (("first", "a"), ("second", "b")):
        job_in(tmp_path, name, qids=(qid,), privacy=NIGHTS | promise if who in {"both", name} else NIGHTS)
    anonymise(tmp_path / "first.yaml")
    with pytest.raises(OverlapError):
        anonymise(tmp_path / "second.yaml", "overlaps=refuse")
    [overlap] = anonymise(tmp_path / "second.yaml").untold.overlaps or ()
    assert (overlap.shared, overlap.shared_at_risk, overlap.values_at_risk) == (30, 0, 6)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("person", [True, False])
@pytest.mark.parametrize(
    "column", [{"normalise": ["case"]}, {"publish": "shared"}, {"publish": {"microaggregate": 6}}], ids=["normalise", "shared", "means"]
)
@pytest.mark.parametrize("both", [True, False])
def test_what_an_earlier_release_promises_is_of_the_values_that_it_publishes(
    anonymise: Anonymise, tmp_path: Path, column: dict[str, Any], person: bool, both: bool
) -> None:
    """Who has hiv in both has two spellings of it, rare codes, or numbers of one mean, in the second release."""
    rare = [["hiv", "Hiv", "hIv", "hiV", "HIv", "HIV"], [f"code {number}" for number in range(6)]]["publish" in column]
    rows = [row | {"dx": rare[number] if row["dx"] == "hiv" else row["dx"]} for number, row in enumerate(crossing())]
    if column.get("publish") == {"microaggregate": 6}:
        rows = [row | {"dx": 100 * (number // 6) + number} for number, row in enumerate(rows)]
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    first = job_in(tmp_path, "first", qids=("a",), person=person, privacy=NIGHTS | {"l": {"dx": {"distinct": 2}}})
    written = yaml.safe_load(first.read_text())
    written["columns"]["sensitive"] = [{"name": "dx"} | column]
    first.write_text(yaml.safe_dump(written, sort_keys=False))
    anonymise(first)
    second = job_in(tmp_path, "second", qids=("b",), person=person, privacy=NIGHTS | ({"l": {"dx": {"distinct": 2}}} if both else {}))
    with pytest.raises(OverlapError):
        anonymise(second, "overlaps=refuse")
    [overlap] = anonymise(second).untold.overlaps or ()
    assert (overlap.shared, overlap.shared_at_risk, overlap.values_at_risk) == (24, 0, 24)


@pytest.mark.ci
def test_the_same_classes_again_keep_what_they_kept(anonymise: Anonymise, tmp_path: Path) -> None:
    pq.write_table(table_of(people()), tmp_path / "people.parquet")
    job = job_in(
        tmp_path, privacy=NIGHTS | {"l": {"dx": {"distinct": 2}}, "t": {"dx": {"t": 0.5, "distance": "ordered"}}}, overlaps="refuse"
    )
    anonymise(job)
    [overlap] = anonymise(job, "rows_per_file=20").untold.overlaps or ()
    assert (overlap.values_at_risk, overlap.is_safe) == (0, True)
    assert "keeps the l and t" in overlap.sentence()


@pytest.mark.ci
@pytest.mark.parametrize("person", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_a_job_that_reads_other_spellings_still_knows_the_records(anonymise: Anonymise, tmp_path: Path, person: bool, first: bool) -> None:
    pq.write_table(table_of([row | {"dx": row["dx"].upper()} for row in people()]), tmp_path / "people.parquet")
    spelled, other = ({"name": "dx", "normalise": ["case"]}, "dx") if first else ("dx", {"name": "dx", "normalise": ["case"]})
    for name, qid, dx in (("one", "a", spelled), ("two", "b", other)):
        path = job_in(tmp_path, name, qids=(qid,), person=person)
        written = yaml.safe_load(path.read_text())
        written["columns"]["sensitive"] = [dx]
        path.write_text(yaml.safe_dump(written, sort_keys=False))
    anonymise(tmp_path / "one.yaml")
    with pytest.raises(OverlapError):
        anonymise(tmp_path / "two.yaml", "overlaps=refuse")
    [overlap] = anonymise(tmp_path / "two.yaml").untold.overlaps or ()
    # Each pair of a and b is of one record.
    assert (overlap.shared, overlap.shared_at_risk, overlap.changed, overlap.added, overlap.removed) == (60, 60, 0, 0, 0)


def aged(folder: Path, low: int, **parts: Any) -> Path:
    """A job of which no person is named, at a given level of ages."""
    path = job_in(folder, person=False, method={"name": "skald", "levels": {"age": [low, low]}}, **parts)
    written = yaml.safe_load(path.read_text())
    written["columns"]["quasi_identifiers"] = [{"name": "age", "hierarchy": {"widths": [1, 10, 20]}}]
    written["columns"]["identifiers"] = ["pid", "a", "b"]
    path.write_text(yaml.safe_dump(written, sort_keys=False))
    return path


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(("first", "then"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("left", [1, 5])
@pytest.mark.parametrize("note", ["seen", "later"])
def test_ages_that_change_within_their_label_hide_nobody_who_left(
    anonymise: Anonymise, tmp_path: Path, first: int, then: int, left: int, note: str
) -> None:
    """Birthdays that no label shows, and some who leave the same class: the files show these, if by sensitive values alone."""
    rows = [row | {"age": 20 + 5 * (number % 8), "note": "seen"} for number, row in enumerate(people(160))]
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(aged(tmp_path, first))
    older = [row | {"age": row["age"] + 1, "note": note} if row["age"] in {30, 35} and row["a"] < 6 else row for row in rows]
    gone = [row["pid"] for row in rows if row["age"] == 35][:left]
    later = [row for row in older if row["pid"] not in gone]
    hidden = sum(row["age"] != other["age"] and row["pid"] not in gone for row, other in zip(rows, older, strict=True))
    pq.write_table(table_of(later), tmp_path / "people.parquet")
    [overlap] = anonymise(aged(tmp_path, then)).untold.overlaps or ()
    at_risk = left * (left < NIGHTS["k"])
    assert (overlap.removed, overlap.removed_at_risk) == (hidden + left, at_risk)
    assert (overlap.added, overlap.added_at_risk) == (hidden, 0)
    assert (overlap.shared, overlap.is_safe) == (160 - hidden - left, not at_risk)


@pytest.mark.ci
@pytest.mark.parametrize("role", ["insensitive", "sensitive"])
@pytest.mark.parametrize("then", [{"name": "pay", "publish": {"round": 50}}, "pay"], ids=str)
def test_a_column_that_two_releases_publish_otherwise_does_not_keep_the_others_from_being_compared(
    anonymise: Anonymise, tmp_path: Path, role: str, then: Any
) -> None:
    """Fifteen have birthdays within their label, and one leaves: the diagnoses of the class lack one."""
    rows = [row | {"age": 20 + 5 * (number % 8), "pay": 1000 + number % 7} for number, row in enumerate(people(160))]
    older = [row | {"age": row["age"] + 1} if row["age"] in {30, 35} and row["a"] < 6 else row for row in rows]
    older.pop(next(number for number, row in enumerate(rows) if row["age"] == 35))
    for pay, night in (({"name": "pay", "publish": {"round": 100}}, rows), (then, older)):
        path = aged(tmp_path, 1)
        written = yaml.safe_load(path.read_text())
        written["columns"][role].append(pay)
        path.write_text(yaml.safe_dump(written, sort_keys=False))
        pq.write_table(table_of(night), tmp_path / "people.parquet")
        made = anonymise(path)
    [overlap] = made.untold.overlaps or ()
    assert (overlap.removed, overlap.removed_at_risk, overlap.added_at_risk, overlap.is_safe) == (16, 1, 0, False)


def lines_of(rows: list[dict[str, Any]], width: int) -> Counter[tuple[int, str, str]]:
    """The lines that a release shows at a width of ages."""
    return Counter((row["age"] // width, row["dx"], row["note"]) for row in rows)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("first", "then"), [(1, 1), (1, 2), (2, 1)])
def test_whoever_is_seen_to_leave_or_come_among_few_is_at_risk(
    anonymise: Anonymise, tmp_path: Path, seed: int, first: int, then: int
) -> None:
    """Seen by an own join of both nights' lines, at the coarser of their levels; some get older, leave or come."""
    drawn = random.Random(seed)
    rows = [row | {"age": 20 + drawn.randrange(40)} for row in people(240)]
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    anonymise(aged(tmp_path, first))
    stayed = [row for row in rows if drawn.random() < 0.98]
    later = [row | {"age": min(row["age"] + (drawn.random() < 0.2), 59)} for row in stayed]
    later += [row | {"pid": f"new {number}"} for number, row in enumerate(drawn.sample(rows, 4))]
    pq.write_table(table_of(later), tmp_path / "people.parquet")
    [overlap] = anonymise(aged(tmp_path, then)).untold.overlaps or ()
    seen, width = {}, 20 if 2 in {first, then} else 10
    there, here = lines_of(rows, width), lines_of(later, width)
    for part, lines in (("removed", there - here), ("added", here - there)):
        by_class = Counter[int]()
        for (age, *_), many in lines.items():
            by_class[age] += many
        seen[part] = sum(many for many in by_class.values() if many < NIGHTS["k"])
    assert overlap.removed_at_risk >= seen["removed"]
    assert overlap.added_at_risk >= seen["added"]
    assert not overlap.is_safe or not any(seen.values())


@pytest.mark.ci
@pytest.mark.parametrize("ill", [("flu", "flu"), ("flu", "hiv")])
@pytest.mark.parametrize("note", ["seen", "later"])
def test_ages_that_change_within_their_label_lend_no_diversity_to_those_who_left(
    anonymise: Anonymise, tmp_path: Path, ill: tuple[str, str], note: str
) -> None:
    """Five leave a class, of whom the files show what they had."""
    rows = [row | {"age": 20 + 5 * (number % 8), "note": "seen"} for number, row in enumerate(people(160))]
    gone = [number for number, row in enumerate(rows) if row["age"] == 35][:5]
    for place, number in enumerate(gone):
        rows[number] = rows[number] | {"dx": ill[place % 2]}
    pq.write_table(table_of(rows), tmp_path / "people.parquet")
    diverse = {"privacy": NIGHTS | {"l": {"dx": {"distinct": 2}}}}
    anonymise(aged(tmp_path, 1, **diverse))
    older = [row | {"age": row["age"] + 1, "note": note} if row["age"] in {30, 35} and row["a"] < 8 else row for row in rows]
    pq.write_table(table_of([row for number, row in enumerate(older) if number not in gone]), tmp_path / "people.parquet")
    [overlap] = anonymise(aged(tmp_path, 1, **diverse)).untold.overlaps or ()
    assert overlap.removed > len(gone)
    assert (overlap.removed_at_risk, overlap.values_at_risk) == (0, overlap.removed if len({*ill}) == 1 else 0)
    assert overlap.is_safe is (len({*ill}) > 1)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("person", [True, False])
@pytest.mark.parametrize("published", [{}, {"publish": {"round": 10}}], ids=str)
@pytest.mark.parametrize("further", [1, 17])
@pytest.mark.parametrize(("pay", "at_risk"), [(20, 0), (40, 1)])
def test_changes_of_one_untreated_column_hide_no_change_of_another(
    anonymise: Anonymise, tmp_path: Path, person: bool, published: dict[str, Any], further: int, pay: int, at_risk: int
) -> None:
    """Of five of a class the notes change, of one the pay. So of one person in the class the pay is seen to change."""
    others = [f"c{number:02}" for number in range(further)]
    columns = yaml.safe_load(job_in(tmp_path, person=person).read_text())["columns"]
    columns["insensitive"] = [*others, "note", {"name": "pay"} | published]
    job = job_in(tmp_path, columns=columns, privacy={"k": 3})
    rows = [row | dict.fromkeys(others, 1) | {"pay": 20} for row in people()]
    changed = [row | {"note": "other"} if 1 <= number <= 5 else row for number, row in enumerate(rows)]
    for night in (rows, [changed[0] | {"pay": pay}, *changed[1:]]):
        pq.write_table(table_of(night), tmp_path / "people.parquet")
        made = anonymise(job)
    [overlap] = made.untold.overlaps or ()
    assert (overlap.changed, overlap.removed_at_risk, overlap.is_safe) == (5 + at_risk, at_risk, not at_risk)
