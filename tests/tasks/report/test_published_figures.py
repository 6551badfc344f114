"""What is said of columns with ``publish``: how many values are null, and never how many of these were null in the source."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from flows.commands.measures import utility_summary
from flows.terminal.runs import exposure_rows
from schemas.job.identifiers import ColumnPublication
from tasks.relational.report import _published_sentence
from tasks.utility.utility import Utility
from tests.core.recount.test_classes import manifest


def column(null: float, publish: Any = "shared") -> ColumnPublication:
    return ColumnPublication(publish=publish, changed=0.0, error=None, null=null)


@pytest.mark.parametrize(
    ("null", "share"), [(0.0, "0.0%"), (0.25, "25.0%"), (1.0, "100.0%"), (0.000001, "less than 0.1%"), (0.001, "0.1%"), (0.0009, "less")]
)
@pytest.mark.parametrize("publish", ["shared", {"microaggregate": "5"}])
def test_nulls_are_said_to_be_those_of_the_source_and_those_of_few_people(null: float, share: str, publish: Any) -> None:
    words = column(null, publish).nulls_text
    assert words.startswith(share)
    assert words.endswith("of its values are null" + (": nulls of the source, and values of too few people" if null else ""))


@pytest.mark.parametrize("publish", [{"round": "5"}, {"top": "9"}, {"bottom": "1", "top": "9"}])
def test_nulls_of_columns_of_which_nobody_is_counted_have_no_reason(publish: Any) -> None:
    assert column(0.5, publish).nulls_text == "50.0% of its values are null"


def test_utility_says_how_many_values_are_null() -> None:
    asked = {"queries": 0, "seed": 0, "sanity": 1.0, "median": 0.0, "mean": 0.0}
    told = {"release": "people-0", "records": 4, "released": 4, "suppressed": 0, "gcp": 0.0, "columns": {}, "queries": asked, "counts": {}}
    columns = {"income": column(0.25), "rent": column(0.0)}
    found = Utility.model_validate(told | {"association": 0.0, "published": columns})
    screen = Console(width=200, file=StringIO())
    screen.print(utility_summary(found))
    assert isinstance(screen.file, StringIO)
    income, rent = (line for line in screen.file.getvalue().splitlines() if "stand for others" in line)
    assert "others too; 25.0% of its values are null" in income
    assert rent.rstrip().endswith("others too; 0.0% of its values are null")


def test_report_and_terminal_say_how_many_values_are_null() -> None:
    assert "stand for others too. 25.0% of its values are null: nulls of" in _published_sentence("visit", "nights", column(0.25), 5)
    said = manifest(published={"income": column(0.25), "rent": column(0.0)})
    [(name, words)] = exposure_rows(said)
    assert (name, words[:22]) == ("null", "'income': 25.0% of its")
