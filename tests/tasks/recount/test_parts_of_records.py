"""Records are told apart by parts of their digests: as many as fit, and few looked up in one statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from core.recount.truth import DigestPart
from tasks.recount.truth import JOINS, MOST_COUNTS, PARTS, _looked_up, _parts_of


@pytest.mark.parametrize(("values", "parts"), [(1, PARTS), (MOST_COUNTS // PARTS, PARTS), (MOST_COUNTS // 32, 32), (MOST_COUNTS // 8, 8)])
def test_parts_are_a_power_of_two_as_they_are_bits_of_a_digest(values: int, parts: int) -> None:
    one: Any = SimpleNamespace(source=range(values - 1), released=range(1), spans=SimpleNamespace(positions_in_sets=0))
    assert _parts_of(one) == parts


def test_of_many_columns_a_record_has_the_same_digest_in_the_release_and_in_the_source() -> None:
    columns = [f"c{number}" for number in range(JOINS + 2)]
    parts = [DigestPart("r.p", "s.p"), *(DigestPart(f"r.{name}", f"of_{name}.digest", f"of_{name}", name) for name in columns)]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE source AS SELECT 7 AS p, {', '.join(f'{place} AS {name}' for place, name in enumerate(columns))}")
        labels = ", ".join(f"{100 + place} AS {name}" for place, name in enumerate(columns))
        connection.execute(f"CREATE TABLE release AS SELECT 7 AS p, {labels}")
        for place, name in enumerate(columns):
            connection.execute(f"CREATE TABLE of_{name} AS SELECT {place} AS value, {100 + place} AS digest")
        source, made, before = _looked_up("source", parts)
        for statement in before:
            connection.execute(statement)
        [here] = connection.execute(f"SELECT {', '.join(part.released for part in made)} FROM release AS r").fetchall()
        [there] = connection.execute(f"SELECT {', '.join(part.source for part in made)} FROM {source} AS s").fetchall()
    assert here == there
    assert len(here) == 3
