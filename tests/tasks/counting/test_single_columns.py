"""The untreated columns that have digests of their own."""

from __future__ import annotations

import pytest

from tasks.counting.contents import MOST_BY_COLUMN, DigestedColumns


@pytest.mark.parametrize("number", [0, 1, 2, MOST_BY_COLUMN, MOST_BY_COLUMN + 1, 3 * MOST_BY_COLUMN])
def test_every_untreated_column_is_in_one_digest_beside_that_of_all(number: int) -> None:
    names = tuple(f"c{place}" for place in range(number))
    found = DigestedColumns((), names).single_columns
    # The digest of all columns is that of the only one.
    assert [name for some in found for name in some] == (list(names) if number > 1 else [])
    assert len(found) == (min(number, MOST_BY_COLUMN) if number > 1 else 0)
    assert all(len(some) == 1 for some in found[:-1])
