"""What commands print as JSON has the names that scripts know: those of these fields."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from core.lattice.search import DrawnNode, LatticeMap
from core.recount.classes import Recount
from core.recount.histories import TablesRecount
from core.recount.linked import LinkCount
from core.recount.people import PersonCount
from flows.verification import NOT_PLAIN, figures_of
from schemas.job.identifiers import ColumnPublication
from tasks.verification.release import Verified

VERIFIED = "records classes min_class failing exposed masked measured withheld source unproved unverified sampled one_value"


@pytest.mark.parametrize(
    ("printed", "names"),
    [
        (LinkCount, "columns known people sets smallest below_k failing left_over unexpected"),
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


def test_what_publishing_columns_lost_is_printed_as_a_manifest_has_it() -> None:
    loss = {"publish": {"top": 90}, "changed": 0.25, "error": None, "null": 0.5}
    recount = Recount(9, 1, 9, 0, 0, 0, published={"age": ColumnPublication(**loss)})
    made = figures_of(Verified(recount, None))
    printed = json.loads(json.dumps(made))
    assert made == printed, "a program gets lists too where JSON has them"
    assert printed["published"] == {"age": loss}
