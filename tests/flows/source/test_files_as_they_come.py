"""Files as they really come: what is published is what Python or plain PyArrow reads of them, or they are refused in a sentence."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import InternalError, SkaldError
from tests.conftest import Anonymise
from tests.corpus.files import tables, texts
from tests.corpus.files.cases import Case
from tests.jobs import write_job

CASES = [*texts.cases(), *tables.cases()]
JOB: dict[str, Any] = {
    "version": 1,
    "name": "t",
    "columns": {
        "person": "none",
        "quasi_identifiers": [{"name": "h", "hierarchy": {"tree": {"*": ["a", "b"]}}}],
        "insensitive": ["v"],
        "accept_untreated": True,
    },
    "privacy": {"k": 1},
    "suppression": {"limit": 0},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "out",
}


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.ci
@pytest.mark.few(10)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_is_published_as_it_is_or_refused(tmp_path: Path, anonymise: Anonymise, case: Case) -> None:
    job = write_job(tmp_path, JOB | {"source": case.source})
    case.write(tmp_path)
    if case.values is None:
        with pytest.raises(SkaldError) as refused:
            anonymise(job)
        assert not isinstance(refused.value, InternalError)
        assert (refused.value.exit_code, case.said in str(refused.value)) == (2, True), str(refused.value)
        assert not (tmp_path / "out" / "CURRENT").exists()
        return
    release = anonymise(job).folder
    found = pa.concat_tables(pq.read_table(path, partitioning=None) for path in sorted((release / "data").glob("*.parquet")))
    assert _counted(found["v"].to_pylist()) == _counted(case.values)


def _counted(values: Any) -> Counter[tuple[str, str]]:
    """Return how often each value occurs, with its type; a decimal by its number, a moment by its instant."""
    return Counter((type(value).__name__, f"{value.normalize():f}" if isinstance(value, Decimal) else _written(value)) for value in values)


def _written(value: Any) -> str:
    offset = getattr(value, "utcoffset", lambda: None)()
    return repr((value - offset).replace(tzinfo=None)) if offset is not None else repr(value)
