"""The optima of the Adult census data, as an exhaustive search over all 6,480 nodes once found them."""

from __future__ import annotations

import csv

import pyarrow as pa
import pytest

from core.columns.coding import Coder
from core.columns.domains import Node, read_domains
from core.histograms.cells import packing_of
from core.histograms.domain_counts import DomainCounter
from core.histograms.histogram import Histogram, HistogramCounter
from core.lattice.search import Search, SearchResult
from core.privacy.promise import Promise
from tests.oracles.hierarchies import built
from tests.places import ADULT

QIDS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
FINEST = (0,) * len(QIDS)

pytestmark = pytest.mark.skipif(not ADULT.is_dir(), reason="the Adult data are not part of the project")


@pytest.fixture(scope="module")
def adult() -> tuple[Histogram, list]:
    with (ADULT / "adult.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file, delimiter=";"))
    columns = [pa.array([record[qid] for record in records], pa.string()) for qid in QIDS]
    counter = DomainCounter([column.type for column in columns])
    counter.add(pa.RecordBatch.from_arrays(columns, names=QIDS))
    domains = read_domains(counter.table(), QIDS)
    hierarchies = [built({"csv": f"hierarchy_{domain.qid}.csv"}, domain, ADULT) for domain in domains]
    packing = packing_of(FINEST, hierarchies)
    cells = HistogramCounter(packing)
    cells.add(packing.pack([Coder(domain).code(column) for domain, column in zip(domains, columns, strict=True)]))
    return Histogram(FINEST, packing, *cells.result()), hierarchies


def found(adult: tuple[Histogram, list], k: int, percent: int, objective: str) -> SearchResult:
    histogram, hierarchies = adult
    result = Search(histogram, hierarchies, Promise(k), histogram.records * percent // 100, objective).run()
    assert result is not None
    return result


def test_the_table_and_its_lattice_have_the_size_they_are_known_for(adult: tuple[Histogram, list]) -> None:
    histogram, hierarchies = adult
    assert histogram.records == 30_162
    assert [hierarchy.levels for hierarchy in hierarchies] == [2, 5, 2, 3, 4, 3, 3, 3]


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(
    ("k", "percent", "objective", "node", "value", "passing"),
    [
        (5, 1, "dm_star", (1, 0, 1, 1, 3, 2, 2, 1), 4_053_144, 1_067),
        (5, 1, "dm_all", (1, 0, 1, 1, 3, 2, 2, 1), 4_035_534, 1_067),
        (10, 5, "dm_star", (1, 0, 1, 2, 3, 2, 2, 0), 3_382_742, 1_937),
        (10, 5, "dm_all", (0, 0, 1, 2, 2, 2, 2, 1), 2_129_936, 1_937),
    ],
)
def test_the_optimum_is_the_known_one(
    adult: tuple[Histogram, list], k: int, percent: int, objective: str, node: Node, value: int, passing: int
) -> None:
    result = found(adult, k, percent, objective)
    assert result.node == node
    assert getattr(result.loss, objective) == value
    assert (result.nodes_passing, result.nodes, result.unexamined) == (passing, 6_480, 0)
    assert result.evaluated < 6_480 // 4


@pytest.mark.ci
def test_the_suppressed_records_are_the_known_ones(adult: tuple[Histogram, list]) -> None:
    assert found(adult, 5, 1, "dm_star").loss.suppressed == 134
    assert found(adult, 10, 5, "dm_star").loss.suppressed == 1_043
