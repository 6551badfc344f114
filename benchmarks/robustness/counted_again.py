"""Counts in a release of a random job by a reader who has the source.

They are made in plain Python that shares no code with the product.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Table = Mapping[str, list[Any]]
Row = dict[str, Any]


def released_rows(release: Path) -> list[Row]:
    """Return the records of a release."""
    return [row for path in sorted((release / "data").rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def faults_of(release: Path, source: Table, job: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a release breaks of the promises of its job.

    Args:
        release: The folder of the release.
        source: The columns of the source, by name, each with a value a record; ``number`` tells records apart.
        job: The job.
    """
    rows = released_rows(release)
    known = {number: place for place, number in enumerate(source["number"])}
    if len({row["number"] for row in rows} & set(known)) != len(rows):
        yield "records that are not of the source, or repeat"
        return
    columns = job["columns"]
    places = [known[row["number"]] for row in rows]
    owners = [_owner(source, columns, place) for place in places]
    yield from _small_classes(rows, owners, job)
    yield from _suppressed_too_many(places, source, job)
    for one in columns["sensitive"]:
        name, way = (one, None) if isinstance(one, str) else (one["name"], one["publish"])
        truth = [source[name][place] for place in places]
        yield from _wrong_values(name, way, [row[name] for row in rows], truth, owners, job["privacy"]["k"])


def _owner(source: Table, columns: Mapping[str, Any], place: int) -> Any:
    """Return whose record it is: a person, nobody (None), or the record itself in a job without persons."""
    return source["person"][place] if "person" in columns else place


def labels_of(row: Row, columns: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a record publishes of its quasi-identifiers; an interval may be two columns."""
    names = [qid["name"] for qid in columns["quasi_identifiers"]]
    shown = [label for name in names for label in (name, f"{name}_from", f"{name}_to") if label in row]
    return tuple(str(row[label]) for label in shown)


def _small_classes(rows: list[Row], owners: list[Any], job: Mapping[str, Any]) -> Iterator[str]:
    classes: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        classes[labels_of(row, job["columns"])].append(place)
    k = job["privacy"]["k"]
    small = [members for members in classes.values() if len({owners[one] for one in members} - {None}) < k]
    if small:
        yield f"{len(small)} of {len(classes)} classes are of fewer than {k}"
    for name, model in job["privacy"].get("l", {}).items():
        if "distinct" in model and _is_exact(name, job):
            counts = [_distinct(name, model, rows, members, owners) for members in classes.values()]
            if few := sum(found < model["distinct"] for found in counts):
                yield f"{few} of {len(classes)} classes have fewer than {model['distinct']} values of {name}"


def _is_exact(name: str, job: Mapping[str, Any]) -> bool:
    return name in job["columns"]["sensitive"]


def _distinct(name: str, model: Mapping[str, Any], rows: list[Row], members: list[int], owners: list[Any]) -> int:
    values = {rows[one][name] for one in members if owners[one] is not None}
    return len(values if model.get("nulls") == "value" else values - {None})


def _suppressed_too_many(places: list[int], source: Table, job: Mapping[str, Any]) -> Iterator[str]:
    """Count records that are left out, where nothing but suppression leaves any out."""
    if "most_records" not in job["columns"]:
        left = len(source["number"]) - len(places)
        if left > job["suppression"]["limit"] * len(source["number"]) + 1e-9:
            yield f"{left} of {len(source['number'])} records are left out"


def _wrong_values(name: str, way: Any, told: list[Any], truth: list[Any], owners: list[Any], k: int) -> Iterator[str]:
    """Compare a sensitive column with the source, and counts the persons of each published value."""
    if way is None:
        if told != truth:
            yield f"{name} is not as in the source"
        return
    counts_persons = way == "shared" or "microaggregate" in way
    if not counts_persons and [one is None for one in truth] != [one is None for one in told]:
        yield f"nulls of {name} are not as in the source"
    if counts_persons:
        persons = Counter(value for value, _ in {(value, owner) for value, owner in zip(told, owners, strict=True) if owner is not None})
        if few := [value for value in set(told) - {None} if persons[value] < k]:
            yield f"{len(few)} published values of {name} are of fewer than {k}"
