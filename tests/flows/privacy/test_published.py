"""Columns with ``publish``: whole runs keep what they say, the recount refuses what does not, and what cannot be recounted is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from tasks.recount.original import original_of
from tasks.recount.recount import recount
from tasks.release.files import data_files
from tasks.report.sentences import empty_column_warnings, warning_sentences
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise, CommandLine
from tests.jobs import people_job
from tests.tampering.kinds import anew

K, ROWS = 6, 600
SHARED = ["income", "town", "born", "group"]


def table() -> pa.Table:
    random = np.random.default_rng(4)
    income = np.round(np.exp(random.normal(9, 1, ROWS)), 2)
    return pa.table(
        {
            "person": random.integers(0, 350, ROWS),
            # Some ages are of too few, so that records are suppressed.
            "age": np.minimum(random.geometric(0.06, ROWS), 80) + 18,
            "income": pa.array([None if row % 90 == 0 else one for row, one in enumerate(income)]),
            "town": [f"t{min(int(one), 60)}" for one in random.exponential(9, ROWS)],
            "born": pa.array(random.integers(0, 9_000, ROWS), pa.int32()).cast(pa.date32()),
            "group": income,
            "hours": random.poisson(40, ROWS),
            "near": random.integers(0, 9_999, ROWS),
        }
    )


def job(folder: Path, method: str, **columns: Any) -> Path:
    pq.write_table(table(), folder / "in.parquet", row_group_size=200)
    said = {
        "version": 1,
        "name": "published",
        "source": {"path": "in.parquet"},
        "columns": {
            "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1]}}],
            "sensitive": [{"name": "income", "publish": "shared"}, {"name": "group", "publish": {"microaggregate": 3}}],
            "insensitive": [
                {"name": "town", "publish": "shared"},
                {"name": "born", "publish": "shared"},
                {"name": "hours", "publish": {"top": 50, "bottom": 30}},
                {"name": "near", "publish": {"round": 100}},
            ],
            **columns,
        },
        "privacy": {"k": K, "l": {"income": {"distinct": 2}}},
        "suppression": {"limit": 0.4},
        "method": {"name": method, **({"levels": {"age": [0, 0]}} if method == "skald" else {})},
        "memory": "256MB",
        "target": "releases",
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(said))
    return folder / "job.yaml"


def release_in(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("person", ["person", "none"])
@pytest.mark.parametrize("method", ["skald", "kmember"])
def test_every_published_value_is_that_of_k_who_are_released(direct: CommandLine, method: str, person: str) -> None:
    roles = {"person": "person"} if person == "person" else {"person": "none", "identifiers": ["person"]}
    job(direct.folder, method, **roles)
    done = direct("run", "job.yaml", "--json")
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    rows = pl.read_parquet(data_files(release_in(direct.folder)))
    assert (manifest["suppressed"] > 0) == (method == "skald")
    for name in SHARED:
        assert rows.group_by(name).len()["len"].min() >= K
    assert rows["near"].drop_nulls().to_numpy().max() % 100 == 0
    assert rows["hours"].min() >= 30
    assert rows["hours"].max() <= 50
    figures = manifest["published"]
    assert figures.keys() == {"income", "group", "town", "born", "hours", "near"}
    assert figures["income"]["publish"] == "shared"
    assert figures["near"] == {"publish": {"round": "100"}, "changed": 0.99, "error": 25.0, "null": 0.0}
    for name, one in figures.items():
        assert one["null"] == pytest.approx(rows[name].null_count() / len(rows), abs=1e-6)
    assert figures["income"]["null"] > 0
    # How far the highest lie above the top is told of nobody, and texts have no error.
    assert figures["hours"]["error"] is None
    assert figures["town"]["error"] is None
    release = release_in(direct.folder)
    verified = direct("verify", str(release), "--job", "job.yaml")
    assert verified.returncode == 0, verified.stderr
    assert "Values null" in (release / "report.html").read_text()
    # A manifest that is made anew, as if by this program, is seen by its figures.
    loaded = load_job(direct.folder / "job.yaml")
    anew(release, lambda said: said["published"]["income"].update(null=0.0))
    with pytest.raises(VerificationError, match="what columns lost") as refused:
        verify_published(loaded, release, VerificationContext(str(release)))
    assert refused.value.exit_code == 4


@pytest.mark.ci
def test_the_recount_refuses_values_that_are_not_what_the_job_publishes(direct: CommandLine) -> None:
    path = job(direct.folder, "skald", person="none", identifiers=["person"])
    assert direct("run", "job.yaml").returncode == 0
    loaded, [file] = load_job(path), data_files(release_in(direct.folder))
    written = pq.read_table(file)
    source = table()

    def recounted(changed: pa.Table) -> str:
        scratch = direct.folder / "data" / "changed.parquet"
        scratch.parent.mkdir(exist_ok=True)
        pq.write_table(changed, scratch)
        with pytest.raises(VerificationError) as refused:
            recount(loaded, [scratch], direct.folder / "spill", "it", original_of(loaded))
        return str(refused.value)

    def with_column(name: str, values: pa.Array) -> pa.Table:
        return written.set_column(written.schema.get_field_index(name), name, values.cast(written.schema.field(name).type))

    # One record has another's place on the grid; a value of one person; a column as it is in the source.
    income = written["income"].to_pylist()
    other = next(one for one in income if one is not None and one != income[0])
    assert "income" in recounted(with_column("income", pa.array([other, *income[1:]])))
    lone = recounted(with_column("town", pa.array(["t59", *written["town"].to_pylist()[1:]])))
    assert "'town' publishes 1 value of fewer than 6 records" in lone
    exact = pa.array(source["near"].to_pylist()[: len(written)])
    assert "near" in recounted(with_column("near", exact))


@pytest.mark.ci
def test_what_cannot_be_published_so_is_refused_in_a_sentence(direct: CommandLine) -> None:
    path = job(direct.folder, "skald", person="person")
    said = yaml.safe_load(path.read_text())
    for columns, more, sentence in (
        ({"insensitive": [{"name": "town", "publish": {"round": 5}}, "born", "hours", "near"]}, {}, "only numbers are rounded"),
        ({"insensitive": ["town", "born", {"name": "hours", "publish": {"round": 0.5}}, "near"]}, {}, "values of that type"),
        ({"insensitive": ["town", "born", "hours", {"name": "near", "publish": "rare"}]}, {}, "must be exact, shared"),
        ({}, {"method": {"name": "mondrian", "fragments": {"count": 2}}}, "all of them at once"),
        ({}, {"replay": "some"}, "decided anew for each release"),
    ):
        wrong = {**said, "columns": {**said["columns"], **columns}, "privacy": {"k": K}, **more}
        path.write_text(yaml.safe_dump(wrong))
        done = direct("run", "job.yaml")
        assert done.returncode in {2, 3}, sentence
        assert sentence in done.stderr
    assert not (direct.folder / "releases" / "CURRENT").exists()


@pytest.mark.ci
def test_the_report_says_of_no_column_with_publish_that_it_is_published_as_in_the_source(anonymise: Anonymise, tmp_path: Path) -> None:
    def cells(**columns: Any) -> dict[str, str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        page = (anonymise(job(folder, "skald", **columns), "suppression.limit=1").folder / "report.html").read_text()
        rows = re.findall(r'<th scope="row">(Sensitive|Insensitive)</th><td>.*?</td><td class="soft">(.*?)</td>', page, re.DOTALL)
        return {role: " ".join(re.sub(r"<[^>]+>", "", cell).split()) for role, cell in rows}

    every, some = "published as publish says", "published as in the source, but as publish says: "
    assert cells(identifiers=["person"]) == {"Sensitive": every, "Insensitive": every}
    plain = {"sensitive": ["income"], "insensitive": ["town", {"name": "hours", "publish": {"top": 50, "bottom": 30}}]}
    found = cells(**plain, withheld=["person", "group", "born", "near"])
    assert found == {"Sensitive": "published as in the source", "Insensitive": some + "hours"}


@pytest.mark.ci
def test_a_column_of_which_nothing_can_be_published_is_named(anonymise: Anonymise, tmp_path: Path) -> None:
    """Two records have true: what is left beside them would be theirs, so that no value is published."""
    path = people_job(tmp_path, pa.table({"q": ["a"] * 40, "s": ["x", "y"] * 20, "ok": [True, True, *[False] * 38]}))
    said = yaml.safe_load(path.read_text())
    said["columns"] = {
        "quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}],
        "insensitive": ["s", {"name": "ok", "publish": "shared"}],
    }
    path.write_text(yaml.safe_dump(said))
    made = anonymise(path)
    manifest = made.manifest
    assert "no value published" in (made.folder / "report.html").read_text()
    [warning] = empty_column_warnings(manifest)
    assert warning.startswith("Column 'ok' has no value in the release")
    assert warning in warning_sentences(manifest)
