"""What choices cost on a sample: the figures are those of the flows' own code, counted here one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import Job, load_job
from schemas.reading.regular_files import given_job
from tasks.planning.pilot_runs import CodedPeople
from tasks.studio.choices import coded_people, method_points, preferred_node, preview_of, sample_classes, sample_pareto_front
from tasks.studio.listed_groups import lines_of_rare, with_moved_values
from tasks.studio.sample import people_sample_of
from tests.tasks.studio.test_sample import job_data

AGES = [20 + number * number % 37 for number in range(150)]
TOWNS = [["Alder", "Birch", "Cedar"][number % 3] for number in range(149)] + ["Lone"]


@pytest.fixture
def coded(tmp_path: Path) -> tuple[Job, CodedPeople]:
    table = pa.table({"who": [str(one) for one in range(150)], "town": TOWNS, "age": AGES, "ill": ["flu", "gout"] * 75})
    pq.write_table(table, tmp_path / "visits.parquet")
    data = job_data() | {"source": {"path": "visits.parquet"}, "suppression": {"limit": 0.05}}
    job = load_job(given_job(data, tmp_path))
    return job, coded_people(job, people_sample_of(job, data["source"]))  # type: ignore[arg-type]


def test_a_node_of_the_front_suppresses_who_is_counted_one_by_one(coded: tuple[Job, CodedPeople]) -> None:
    job, people = coded
    front = sample_pareto_front(people)
    assert front and front.nodes and preferred_node(job, front) in {tuple(one.node) for one in front.nodes}
    towns: list[object] = [one.as_py() for one in people.columns[0]]
    ages = [one.as_py() for one in people.columns[1]]
    for one in front.nodes:
        town = towns if one.node[0] == 0 else ["*"] * len(towns)
        age = {0: ages, 1: [value // 10 for value in ages]}.get(one.node[1], ["*"] * len(ages))
        sizes = Counter(zip(town, age, strict=True))
        lost = sum(size for size in sizes.values() if size < job.privacy.k)
        kept = [size for size in sizes.values() if size >= job.privacy.k]
        assert one.suppressed == pytest.approx(lost / len(towns))
        assert one.risk == pytest.approx(len(kept) / sum(kept))
        made = sample_classes(people, tuple(one.node))
        assert sorted(made.sizes.tolist()) == sorted(kept) and made.suppressed == lost


def test_other_methods_keep_k(coded: tuple[Job, CodedPeople]) -> None:
    for point in method_points(coded[1]):
        assert not point.fault and point.gcp is not None and 0 <= point.gcp <= 1
        assert point.risk <= 1 / coded[0].privacy.k


def test_a_preview_names_no_value_of_few(coded: tuple[Job, CodedPeople]) -> None:
    job, people = coded
    sample = people_sample_of(job, {"path": "visits.parquet"})
    made = sample_classes(people, (1, 1))
    shown = preview_of(job, sample, made, 5)
    assert shown.shown and all(one.people >= 5 for one in shown.shown)
    # A label that is made for a class may name somebody's value.
    local = job.model_copy(update={"method": load_job(given_job(job_data() | {"method": {"name": "mondrian"}}, job.folder)).method})
    labels = pa.table({"town": ["{Alder, Lone}", "Alder", "{Alder, Birch}"], "age": ["20", "[20 - 21]", None]})
    named = preview_of(local, sample, made._replace(labels=labels, sizes=made.sizes[:1].repeat(3)), 5)
    assert {one.labels[0] for one in named.shown} == {None, "Alder", "{Alder, Birch}"}


def test_values_move_to_the_groups_that_are_named_by_a_line() -> None:
    rows = [("a", "G", "*"), ("b", "G", "*"), ("c", "H", "*"), ("d", "H", "*")]
    assert with_moved_values(rows, [0], 2, "") == [("a", "H", "*"), *rows[1:]]
    assert with_moved_values(rows, [0, 3], None, "N") == [("a", "N", "*"), rows[1], rows[2], ("d", "N", "*")]
    assert with_moved_values([("a", "*"), ("b", "*")], [1], None, "N") == [("a", "a", "*"), ("b", "N", "*")]
    assert lines_of_rare(rows, 3, [2]) == [3]
    for lines, to, label in (([], 0, ""), ([9], 0, ""), ([0], 9, ""), ([0], None, ""), ([0], None, "H")):
        with pytest.raises(HierarchyError):
            with_moved_values(rows, lines, to, label)
