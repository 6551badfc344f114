"""How the tests of the methods on single records run a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.job.method import METHODS as FLOWS
from tasks.publication.verify_and_publish import PublishedRelease

Anonymise = Callable[..., PublishedRelease]


@pytest.fixture(scope="module")
def run() -> Anonymise:
    """Run a job by the flow of its method, in this process."""

    def anonymise(job: Path, *options: str) -> PublishedRelease:
        method = next(line for line in job.read_text().splitlines() if line.strip().startswith("name: ") and line.strip()[6:] in FLOWS)
        flow: Any = FLOWS[method.strip()[6:]].flow.load()
        return getattr(flow, "fn", flow)(job, options)

    return anonymise
