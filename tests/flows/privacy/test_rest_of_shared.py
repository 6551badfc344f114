"""A run ends with exit code 3 where suppression makes values the rest and classes then break l or t, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors.methods import SharedValuesError
from tests.conftest import MODES, Anonymise, CommandLine
from tests.jobs import people_job, released

METHODS: dict[str, dict[str, Any]] = {"skald": {}, "mondrian_cof": {"pool": "suppress"}}
SMALLEST = {"10": "ab", "20": "acc", "99": "b"}
"""By zip the values of its records. Without the last record, b is left to one; then so is a."""


def job(folder: Path, values: dict[str, str], method: str, **privacy: Any) -> Path:
    rows = [(name, value) for name, held in values.items() for value in held]
    columns = {
        "quasi_identifiers": [{"name": "zip", "hierarchy": {"prefix": [2]}}],
        "sensitive": [{"name": "s", "publish": "shared"}],
    }
    return people_job(
        folder,
        pa.table({"zip": [name for name, _ in rows], "s": [value for _, value in rows]}),
        columns=columns,
        privacy={"k": 2} | privacy,
        suppression={"limit": 0.5},
        method={"name": method} | METHODS[method],
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_class_that_breaks_l_by_the_rest_ends_the_run_with_a_sentence(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    sentences = []
    # The second run takes up what the first one left.
    for _ in range(2):
        with pytest.raises(SharedValuesError) as refused:
            anonymise(job(tmp_path, SMALLEST, method, l={"s": {"distinct": 2}}))
        sentences.append(str(refused.value))
        assert refused.value.exit_code == 3
    assert not (tmp_path / "releases").exists()
    first, again = sentences
    assert first == again == str(SharedValuesError.of_the_rest(["s"], ["privacy.l"]))


def test_a_class_that_keeps_l_with_the_rest_is_published(anonymise: Anonymise, tmp_path: Path) -> None:
    done = anonymise(job(tmp_path, SMALLEST | {"10": "abcc"}, "skald", l={"s": {"distinct": 2}}))
    assert sorted(released(done.folder).rows()) == [
        ("10", "c"),
        ("10", "c"),
        ("10", "other"),
        ("10", "other"),
        *[("20", "c")] * 2,
        ("20", "other"),
    ]
    # Of the whole source every value stays: that some stand for others comes of suppression.
    assert done.manifest.published["s"].changed == round(3 / 7, 6)


def test_a_value_that_is_released_nowhere_is_the_rest_of_the_source(anonymise: Anonymise, tmp_path: Path) -> None:
    """Of the values a, b, c and the rest, c is left out: one value fewer makes the others lie farther apart."""
    with pytest.raises(SharedValuesError) as refused:
        anonymise(job(tmp_path, {"10": "aaax", "20": "bbby", "98": "c", "99": "c"}, "skald", t={"s": {"t": 0.25, "distance": "ordered"}}))
    assert str(refused.value) == str(SharedValuesError.of_the_rest(["s"], ["privacy.t"]))


@pytest.mark.ci
@pytest.mark.parametrize("mode", MODES)
def test_the_command_says_the_same_with_prefect(mode: str, request: pytest.FixtureRequest) -> None:
    line: CommandLine = request.getfixturevalue(mode)
    path = job(line.folder, SMALLEST, "skald", l={"s": {"distinct": 2}})
    done = line("run", path.name)
    assert done.returncode == 3
    assert str(SharedValuesError.of_the_rest(["s"], ["privacy.l"])) in done.stderr
