"""What commands print as JSON has the names that scripts know: those of these fields."""

from __future__ import annotations

from dataclasses import fields

import pytest

from core.lattice.map import DrawnNode, LatticeMap
from core.recount.classes import Recount
from core.recount.histories import TablesRecount
from core.recount.linked import LinkCount
from core.recount.people import PersonCount
from flows.verification import NOT_PLAIN

VERIFIED = "records classes min_class failing exposed masked measured withheld source unproved unverified sampled one_value published"


@pytest.mark.parametrize(
    ("printed", "names"),
    [
        (LinkCount, "columns known people sets smallest below_k failing unexpected"),
        (PersonCount, "released most_records masked smallest failing exposed unexpected sizes largest_share records_of_one"),
        (
            TablesRecount,
            "persons histories smallest failing records most_rows penalties published passed together persons_together "
            "sensitive_together persons_sensitive_together",
        ),
        (LatticeMap, "name qids levels node heights drawn whole"),
        (DrawnNode, "node status"),
    ],
)
def test_fields_that_are_printed_keep_their_names(printed: type, names: str) -> None:
    assert [field.name for field in fields(printed)] == names.split()


def test_the_recount_is_printed_under_names_that_stay() -> None:
    assert {field.name for field in fields(Recount)} - NOT_PLAIN == set(VERIFIED.split())
