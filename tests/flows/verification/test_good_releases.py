"""A release that a run published is what ``verify`` says it is, whatever its labels look like."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.job.job import load_job
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise
from tests.jobs import two_column_job

SPARSE = {"date": ["year", "decade"]}
RACES = "Asian;Other;*\nOther;Other;*\nWhite;W;*\nBlack;W;*\n"
CODES = "E11;E11;E\nE11.1;E11;E\nE12;E12;E\nF20;F20;F\n"
STARRED = "a;*;X\nb;*;X\nc;K;Y\nd;K;Y\n"
YEARS = [date(1926 + 3 * step, 1 + step % 12, 1 + step % 28) for step in range(24)]
CASES: dict[str, tuple[list[Any], dict[str, Any] | str, int]] = {
    "a value and a group of one name": (["Asian", "Other", "White", "Black"], RACES, 0),
    "a code below itself": (["E11", "E11.1", "E12", "F20"], CODES, 0),
    "codes that are masked": (["12345", "123**", "1****", "22345"], {"prefix": [3, 1]}, 0),
    "masked codes as beginnings": (["12345", "123**", "1****", "22345"], {"prefix": [3, 1]}, 1),
    "a group that is called as all are": (["a", "b", "c", "d"], STARRED, 1),
    "a value in braces": (["a", "{a}", "b", "{a, b}"], {"tree": {"*": ["a", "{a}", "b", "{a, b}"]}}, 0),
    "decades with a year for bottom": (YEARS, SPARSE | {"bottom": 1936}, 2),
    "decades with a year for top": (YEARS, SPARSE | {"top": 1985}, 2),
    "years with a day for bottom": (YEARS, SPARSE | {"bottom": "1936-05-03"}, 1),
    "decades with days for both": (YEARS, SPARSE | {"bottom": "1931-05-03", "top": "1985-03-02"}, 2),
}


def verified(anonymise: Anonymise, folder: Path, values: list[Any], hierarchy: dict[str, Any] | str, *settings: str) -> set[Any]:
    """Publish each value twice, and verify that; return what is published for them."""
    table = pa.table({"q": values * 2, "s": ["x", "y"] * len(values)})
    if isinstance(hierarchy, str):
        folder.mkdir(exist_ok=True)
        (folder / "q.csv").write_text(hierarchy)
        hierarchy = {"csv": "q.csv"}
    settings = ("privacy.k=2", "suppression.limit=1", *settings)
    made = anonymise(two_column_job(folder, table, hierarchy), *settings)
    verify_published(load_job(folder / "job.yaml", settings), made.folder, VerificationContext(str(made.folder)))
    return set(pa.parquet.read_table(made.folder / "data")["q"].to_pylist())


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("case", CASES)
def test_labels_that_only_look_alike_are_of_their_level(anonymise: Anonymise, tmp_path: Path, case: str) -> None:
    values, hierarchy, level = CASES[case]
    published = verified(anonymise, tmp_path, values, hierarchy, f"method={{name: skald, node: [{level}]}}")
    assert level or published == set(values)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("group", ["[0, 20[", "[5,8)", "[5, 8)", "[unknown]", "[1 - 9]", ">= 3"])
@pytest.mark.parametrize("method", ["{name: skald, node: [1]}", "{name: mondrian, generalisation: hierarchy}"])
@pytest.mark.parametrize("values", [list(range(8)), [date(2000, 1, 1 + day) for day in range(8)]], ids=["numbers", "dates"])
def test_a_listed_group_that_looks_like_a_range_is_a_name(
    anonymise: Anonymise, tmp_path: Path, values: list[Any], method: str, group: str
) -> None:
    listed = "".join(f'{value};"{group if place < 5 else "[rest]"}"\n' for place, value in enumerate(values))
    published = verified(anonymise, tmp_path, values, listed, f"method={method}", "privacy.k=5")
    assert published & {group, "*"}
