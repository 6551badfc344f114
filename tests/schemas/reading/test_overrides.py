"""A setting given beside the job file replaces the file's, under the same rules."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.job.job import load_job
from schemas.reading.job_files import apply_overrides
from tests.schemas.job.test_job import CONTRACT, SHORT, hierarchy_of, write
from tests.schemas.reading.test_faults import faults_of


def test_a_setting_is_replaced_by_its_path_and_read_as_yaml(tmp_path: Path) -> None:
    overrides = [
        "privacy.k=10",
        "suppression.limit=0.10",
        "columns.quasi_identifiers.2.name=years",
        "columns.quasi_identifiers.3.hierarchy.widths=[0.5, 1]",
        "columns.insensitive=rest",
        "memory=2GiB",
    ]
    job = load_job(write(tmp_path, CONTRACT), overrides)
    assert (job.privacy.k, job.suppression.limit, job.memory, job.columns.insensitive) == (10, Decimal("0.1"), 2**31, "rest")
    assert job.columns.quasi_identifiers[2].name == "years"
    assert hierarchy_of(job, "bmi").widths == [Decimal("0.5"), Decimal(1)]


def test_a_section_that_the_file_leaves_out_is_made(tmp_path: Path) -> None:
    assert load_job(write(tmp_path, SHORT), ["suppression.limit=0.5"]).suppression.limit == Decimal("0.5")
    assert load_job(write(tmp_path, SHORT + "suppression:\n"), ["suppression.treatment=mask"]).suppression.treatment == "mask"


def test_the_last_of_two_overrides_holds(tmp_path: Path) -> None:
    assert load_job(write(tmp_path, SHORT), ["privacy.k=3", "privacy.k=4"]).privacy.k == 4


def test_an_override_mends_a_fault_of_the_file(tmp_path: Path) -> None:
    assert load_job(write(tmp_path, SHORT.replace("{k: 2}", "{k: none}")), ["privacy.k=3"]).privacy.k == 3


def test_a_value_may_hold_an_equals_sign(tmp_path: Path) -> None:
    assert load_job(write(tmp_path, SHORT), ["target=releases/day=1"]).target == Path("releases/day=1")


def test_leaves_of_a_tree_stay_as_written_in_an_override(tmp_path: Path) -> None:
    job = load_job(write(tmp_path, SHORT), ["columns.quasi_identifiers.0.hierarchy={tree: {a: [007, 1.50]}}"])
    assert hierarchy_of(job, "age").routes == [["007", "a"], ["1.50", "a"]]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("privcy.k=3", "privcy: unknown key (did you mean 'privacy'?)"),
        ("privacy.kk=3", "privacy.kk: unknown key (did you mean 'k'?)"),
        ("privacy.k", "--set 1 must read key=value"),
        ("=3", "--set 1 must read key=value"),
        ("privacy..k=3", "--set 1 must read key=value"),
        ("privacy.k=", "privacy.k: is empty"),
        ("privacy.k=[", "--set privacy.k: not valid YAML at line 1, column 2"),
        ("privacy.k={a: 1, a: 2}", "--set privacy.k: privacy.k.a: given twice"),
        ("memory.size=3", "--set memory.size: memory holds a single value"),
        ("columns.quasi_identifiers.1.name=x", "--set columns.quasi_identifiers[1].name: give a position in the list, from 0 to 0"),
        ("columns.quasi_identifiers.age.name=x", "give a position in the list, from 0 to 0"),
        ("columns.quasi_identifiers.-1.name=x", "give a position in the list, from 0 to 0"),
    ],
)
def test_a_wrong_override_is_told(tmp_path: Path, override: str, expected: str) -> None:
    assert any(expected in told for told in faults_of(tmp_path, SHORT, override))


PATHS = [
    "source.path={}",
    "source.path=[a.csv, {}]",
    "source.connection={{file: {}}}",
    "target={}",
    "work={}",
    "replay={}",
    "population={{path: {}}}",
    "columns.quasi_identifiers.0.hierarchy={{csv: {}}}",
    "columns.identifiers=[{{name: id, treatment: {{hmac: {{key: {{file: {}}}}}}}}}]",
]


@pytest.mark.parametrize("path", ['"a\\ud800"', '"\\udcff/b"', '"s3://bucket/\\udfff"', "a\udcff"], ids=ascii)
@pytest.mark.parametrize("setting", PATHS)
def test_no_path_of_a_job_holds_half_a_character(tmp_path: Path, setting: str, path: str) -> None:
    told = faults_of(tmp_path, SHORT, setting.format(path))
    says = "not valid YAML: a character that is not UTF-8 in line 1" if path == "a\udcff" else "stands for half a character (line 1)"
    assert sum(says in fault for fault in told) == 1
    assert "".join(told).encode()


def test_faults_of_overrides_are_told_with_those_of_the_file(tmp_path: Path) -> None:
    told = faults_of(tmp_path, SHORT.replace("{k: 2}", "{k: 0}"), "memory=1", "nonsense")
    assert [line.split(":")[0] for line in told] == [
        "--set 2 must read key=value, with dots between the keys, as in privacy.k=10", "privacy.k", "memory",
    ]  # fmt: skip


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.integers())
def test_what_was_put_is_found_again(keys: list[str], value: int) -> None:
    data: dict[str, object] = {"z": 1}
    assert apply_overrides(data, [f"{'.'.join(keys)}={value}"]) == []
    found: object = data
    for key in keys:
        assert isinstance(found, dict)
        found = found[key]
    assert (found, data["z"]) == (value, 1)
