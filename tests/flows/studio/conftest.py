"""A small source with values that one person alone has, a job of it, and a studio that shows it to a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from flows.studio.security import SessionKeys
from flows.studio.serving import application
from flows.studio.state import Studio

CANARIES = ("Canaryville", "987654321", "1901-02-03", "canary-note", "Kanarienstadt", "77.125")
"""Values of one person each, in a text, a number, a date, a column that is not published, a name of a group, and a sensitive number."""
PORT = 8765

JOB = """\
# A job with hierarchies of all kinds.
version: 1
name: towns
source: {path: people.parquet}

columns:
  person: none  # every record
  identifiers: [who]
  withheld: [note]
  quasi_identifiers:
    - {name: town, hierarchy: {csv: town.csv}}  # a place
    - name: born_in
      hierarchy:
        tree:
          Kanarienstadt: [Kanarienstadt]
          North: [Alder, Birch]
          South: [Cedar]
    - {name: income, hierarchy: {widths: [1, 1000, 100000]}}
    - {name: born, hierarchy: {date: [day, month, year, decade]}}
  sensitive:
    - {name: score, publish: shared}
  insensitive: []

privacy: {k: 6}
suppression: {limit: 0.05}
method: {name: skald}
memory: 256MB
target: releases
"""


def people(rows: int = 240) -> pa.Table:
    """Return people of whom the last one alone has the canaries."""
    random = np.random.default_rng(7)
    towns, names = ["Alder", "Birch", "Cedar"], ["who", "town", "born_in", "income", "born", "score", "note"]
    columns = [
        [f"p{number}" for number in range(rows)],
        [*random.choice(towns, rows - 1).tolist(), "Canaryville"],
        [*random.choice(towns, rows - 1).tolist(), "Kanarienstadt"],
        [*(random.integers(1, 5, rows - 1) * 1000).tolist(), 987654321],
        [*(f"19{year}-01-01" for year in random.integers(60, 64, rows - 1).tolist()), "1901-02-03"],
        [*random.integers(1, 4, rows - 1).astype(float).tolist(), 77.125],
        [*["nothing"] * (rows - 1), "canary-note"],
    ]
    return pa.table(dict(zip(names, columns, strict=True))).set_column(4, "born", pa.array(columns[4]).cast(pa.date32()))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return a job file beside its source."""
    pq.write_table(people(), tmp_path / "people.parquet")
    (tmp_path / "town.csv").write_text("Alder;North;*\nBirch;North;*\nCedar;South;*\nCanaryville;Canaryville;*\n")
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path / "job.yaml"


@pytest.fixture
def keys() -> SessionKeys:
    return SessionKeys(PORT)


@pytest.fixture
def studio(job: Path) -> Iterator[Studio]:
    made = Studio(job)
    yield made
    made.works.close()


@pytest.fixture
def stranger(studio: Studio, keys: SessionKeys) -> TestClient:
    """Return a client that has not been let in."""
    return TestClient(application(studio, keys), base_url=keys.origin, follow_redirects=False)


@pytest.fixture
def client(stranger: TestClient, keys: SessionKeys) -> TestClient:
    """Return a client with the cookie."""
    stranger.get(f"/state?token={keys.token}")
    return stranger


Post = Callable[..., str]


@pytest.fixture
def post(client: TestClient, studio: Studio, keys: SessionKeys) -> Post:
    """Return what sends a form as the page would and gives the page that follows."""

    def send(action: str, **form: object) -> str:
        given = {"stamp": studio.read_job_file().stamp, "page": "/columns", **form}
        answer = client.post(f"/do/{action}", data=given, headers={"origin": keys.origin})
        assert answer.status_code == 303, answer.text
        return client.get(answer.headers["location"]).text

    return send
