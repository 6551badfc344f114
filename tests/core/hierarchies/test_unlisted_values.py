"""Values that a listed hierarchy lacks: where its rows tell, they go there; else to a group of others; and it stays a hierarchy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.drafts import OTHER, rows_for_unlisted_values
from core.hierarchies.levels import checked_table

CODES = [("A00", "A0", "A", "*"), ("A01", "A0", "A", "*"), ("B10", "B1", "B", "*"), ("B11", "B1", "B", "*")]
AGES = [("20", "[20 - 29]", "*"), ("25", "[20 - 29]", "*"), ("31", "[30 - 39]", "*")]


def test_another_spelling_goes_where_the_same_value_is() -> None:
    found = rows_for_unlisted_values([" nurse"], [("Nurse", "Health", "*"), ("Cook", "Food", "*")])
    assert found.rows == ((" nurse", "Health", "*"),)
    assert found.spelt == 1


def test_a_number_goes_between_neighbours_of_one_group_and_nowhere_else() -> None:
    found = rows_for_unlisted_values(["22", "27", "90"], AGES)
    assert found.rows == (("22", "[20 - 29]", "*"), ("27", OTHER, "*"), ("90", OTHER, "*"))
    assert (found.between, found.others) == (1, 2)


def test_a_code_goes_where_those_are_that_begin_alike() -> None:
    found = rows_for_unlisted_values(["A09", "B1X", "C33"], CODES)
    assert found.rows == (("A09", "A0", "A", "*"), ("B1X", OTHER, OTHER, "*"), ("C33", OTHER, OTHER, "*")) or found.rows[1][1] == "B1"
    assert found.rows[0][1:] == ("A0", "A", "*")
    assert found.rows[2] == ("C33", OTHER, OTHER, "*")


def test_a_group_of_others_that_is_there_is_used_with_what_is_above_it() -> None:
    assert rows_for_unlisted_values(["Z"], [("x", OTHER, "Rest", "*"), ("y", "Y", "Known", "*")]).rows == (("Z", OTHER, "Rest", "*"),)


@given(
    st.lists(st.text(alphabet="AB01 ", min_size=1, max_size=5), min_size=1, max_size=30, unique=True),
    st.lists(st.text(alphabet="AaB01 ", min_size=1, max_size=5), max_size=30, unique=True),
    st.integers(1, 3),
)
def test_what_was_a_hierarchy_stays_one(values: list[str], others: list[str], depth: int) -> None:
    rows = [(value, *(f"{value[: depth - level]}~{level}" for level in range(depth))) for value in values]
    missing = [value for value in others if value not in values]
    found = rows_for_unlisted_values(missing, rows)
    assert [row[0] for row in found.rows] == missing
    assert found.spelt + found.between + found.beginning + found.others == len(missing)
    checked_table("q", "the file", [*rows, *found.rows])
