"""Cuts are priced by what classes will publish, beside what they hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.mondrian.partition import Rules, partition
from core.mondrian.ranks import CutAxis
from core.mondrian.recoding import SHARE, cut_label_prices
from core.privacy.promise import Promise
from core.recoding.prices import LabelPrices
from tests.oracles import clustering
from tests.oracles.mondrian import Column, Mondrian
from tests.oracles.records import Records, mixed_records

UNIT = 1 << 20


def walked(table: Records) -> list[CutAxis]:
    """Axes in which every group is a run, whatever the values are."""
    axes = []
    for domain, hierarchy, numerical in zip(table.domains, table.hierarchies, table.numerical, strict=True):
        values = len(domain.values)
        order = np.arange(values) if numerical else np.lexsort([groups[:values] for groups in hierarchy.groups])
        ranks = np.arange(domain.size)
        ranks[order] = np.arange(values)
        numbers = np.array(domain.values.to_pylist(), np.float64) if numerical else None
        axes.append(CutAxis(domain.qid, ranks, numbers, domain.nulls > 0))
    return axes


@given(mixed_records(most=30), st.integers(1, 5))
def test_cuts_save_most_of_what_labels_and_values_cost_together(table: Records, k: int) -> None:
    axes, k = walked(table), min(k, len(table.rows))
    ranks = np.stack([axis.ranks[table.codes[:, qid]] for qid, axis in enumerate(axes)], axis=1)
    told = cut_label_prices([LabelPrices(None, *of) for of in zip(table.domains, table.hierarchies, strict=True)], axes)
    columns = []
    for axis, domain, numerical in zip(axes, table.domains, table.numerical, strict=True):
        values = domain.values.take(np.argsort(axis.ranks[: len(domain.values)])).to_pylist()
        columns.append(Column([*values, *([None] if axis.nulls else [])], numerical))

    def label(qid: int, members: list[int]) -> float:
        hierarchy = table.hierarchies[qid]
        way = "interval" if table.numerical[qid] and not hierarchy.least else "hierarchy"
        return clustering.label_price(table, qid, way, members) / UNIT

    plain = Mondrian(columns, k, "ncp", told=label, shares=told.shares.tolist())
    records = [tuple(row) for row in ranks.tolist()]
    made = partition(ranks.astype(np.uint16), np.ones(len(ranks), np.int64), axes, Rules(Promise(k)), "ncp", cut_prices=told)
    found = sorted(sorted(part.tolist()) for part in np.split(made.order, made.starts[1:-1]))
    assert found == sorted(sorted(part) for part in plain.classes(records))
    assert set(told.shares.tolist()) <= {0.0, SHARE}
