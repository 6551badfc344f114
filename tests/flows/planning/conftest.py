"""What plans need that count with another word than the process is used to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.job.job import load_job
from tasks.counting.coding import forget_large_coding
from tests.jobs import people_job


@pytest.fixture
def coded_anew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A coding is loaded once per process, and has cells packed by the word of then: it is let go of before and afterwards."""
    held = load_job(people_job(Path(tmp_path_factory.mktemp("any")))).model_copy(update={"memory": 0})
    forget_large_coding(held)
    yield
    forget_large_coding(held)
