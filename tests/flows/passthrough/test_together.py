"""What untreated columns tell together is counted as it is, said first, and leaves no maximum risk to claim where fewer than k share it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import yaml

from schemas.errors.base import VerificationError
from schemas.errors.refusals import PolicyError, UntreatedError
from schemas.job.job import load_job
from schemas.release.manifest import Manifest
from tasks.composition.release_history import people_of_release
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.conftest import Anonymise, CommandLine
from tests.jobs import released, two_column_job, write_job, write_parquet

K = 6
RANDOM = np.random.default_rng(7)
ROWS = 600
PERSONS = [int(number) for number in RANDOM.integers(0, 220, ROWS)]
TABLE = pa.table(
    {
        "person": PERSONS,
        "age": RANDOM.integers(20, 60, ROWS),
        "sex": RANDOM.choice(["f", "m"], ROWS),
        "dx": [None if number == 9 else f"d{number}" for number in RANDOM.integers(0, 10, ROWS)],
        "site": RANDOM.choice(["north", "south", "east"], ROWS, p=[0.6, 0.38, 0.02]),
        "dose": [[None, float("nan"), 0.0, -0.0, 2.5, 7.25][number] for number in RANDOM.integers(0, 6, ROWS)],
        "code": pa.array([None if number > 7 else number for number in RANDOM.integers(0, 9, ROWS)], pa.int16()),
    }
)
QIDS = [{"name": "age", "hierarchy": {"widths": [10, 20]}}, {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}]
UNTREATED = ["site", "dose", "code"]


def job(folder: Path, table: pa.Table = TABLE, files: int = 2, columns: dict[str, Any] | None = None, **parts: Any) -> Path:
    """Write a job; everybody is released, under the decade of age and the sex."""
    write_parquet(folder / "in", table, files=files)
    roles = {"identifiers": ["person"], "person": "none", "quasi_identifiers": QIDS, "sensitive": ["dx"], "insensitive": UNTREATED}
    whole = {
        "version": 1, "name": "together", "source": {"path": "in/*.parquet"}, "columns": roles | (columns or {}), "privacy": {"k": K},
        "suppression": {"limit": 0.3}, "method": {"name": "skald", "node": [2, 1]}, "memory": "512MB", "target": "releases",
        "chunk_rows": 170,
    }  # fmt: skip
    return write_job(folder, whole | parts)


def same(value: Any) -> Hashable:
    """Return what SQL takes for the same value: zero has no sign, and what is not a number is one value."""
    return "nan" if isinstance(value, float) and isnan(value) else value


def stand_out(contents: Sequence[Hashable], whose: Sequence[int]) -> tuple[set[int], set[int]]:
    """Return who is alone with a content, and who shares one with fewer than k, one by one."""
    holders: dict[Hashable, set[int]] = defaultdict(set)
    for content, person in zip(contents, whose, strict=True):
        holders[content].add(person)
    groups = list(holders.values())
    return set().union(*(one for one in groups if len(one) == 1)), set().union(*(one for one in groups if len(one) < K))


def told(number: int) -> int:
    return K if 0 < number < K else number


def counted_by_hand(rows: Sequence[dict[str, Any]], names: Sequence[str], labels: Sequence[str], whose: Sequence[int]) -> list[int]:
    contents = [tuple(same(row[name]) for name in names) for row in rows]
    alone, below = stand_out(contents, whose)
    labelled = [(*content, *(row[name] for name in labels)) for content, row in zip(contents, rows, strict=True)]
    return [told(len(one)) for one in (alone, below, stand_out(labelled, whose)[1])]


def figures(manifest: Manifest, kind: str) -> list[int]:
    one = getattr(manifest, f"{kind}_together")
    return [one.unique_records, one.below_k, one.with_classes]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("output", ["parquet", "csv", "duckdb"])
@pytest.mark.parametrize("method", ["skald", "mondrian", "kmember"])
def test_records_are_those_of_a_plain_count_of_the_files(anonymise: Anonymise, tmp_path: Path, method: str, output: str) -> None:
    given = {} if method == "skald" else {"method": {"name": method}}
    path = job(tmp_path, **given, output={"format": output})
    made = anonymise(path)
    rows = _rows(made.folder, output)
    for kind, names in (("passthrough", UNTREATED), ("sensitive", ["dx"])):
        assert figures(made.manifest, kind) == counted_by_hand(rows, names, ["age", "sex"], range(len(rows)))
    assert made.manifest.pseudonyms_together is None
    assert made.manifest.passthrough_together.all == len(rows)  # type: ignore[union-attr]
    assert verify_release(load_job(path), made.folder)[0].together


def _rows(folder: Path, output: str) -> list[dict[str, Any]]:
    if output == "parquet":
        return released(folder).to_dicts()
    if output == "csv":
        types = {"dose": pl.Float64, "code": pl.Int64}
        return pl.concat([pl.read_csv(path, schema_overrides=types) for path in sorted((folder / "data").iterdir())]).to_dicts()
    import duckdb

    [path] = sorted((folder / "data").iterdir())
    with duckdb.connect(str(path), read_only=True) as connection:
        [(name,)] = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return connection.sql(f'FROM "{name}"').pl().to_dicts()


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden", "fragments"])
def test_persons_are_those_of_a_plain_count_of_people(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    ways = {"fragments": {"name": "mondrian", "fragments": {"count": 2}}, "skald": {"name": "skald", "node": [2, 1]}}
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)
    treated = {"name": "person", "treatment": {"hash": {"key": {"env": "PERSON_KEY"}, "length": 16}}}
    person = {"person": "person", "identifiers": [treated], "linkable": "person"}
    path = job(tmp_path, columns=person, method=ways.get(method, {"name": method}), suppression={"limit": 0})
    made, rows = anonymise(path), TABLE.to_pylist()
    unit = made.manifest.passthrough_together
    assert unit is not None
    assert (unit.unit, unit.all) == ("person", len(set(PERSONS)))
    coarse = [row | {"age": row["age"] // 20, "sex": "*"} for row in rows]
    for kind, names in (("passthrough", UNTREATED), ("sensitive", ["dx"])):
        found, expected = figures(made.manifest, kind), counted_by_hand(coarse, names, ["age"], PERSONS)
        assert found[:2] == expected[:2]
        assert found[2] == expected[2] if method == "skald" else found[2] >= found[1]
    # Everybody has a pseudonym that nobody else has.
    assert figures(made.manifest, "pseudonyms")[0] == len(set(PERSONS))
    people = people_of_release(made.manifest.release, Store(load_job(path).work_path / "artifacts"))
    assert verify_release(load_job(path), made.folder, people)[0].together
    # Without the run folder persons of classes are counted in the source, and not by what is published beside the labels.
    elsewhere = verify_release(load_job(path), made.folder)[0]
    assert elsewhere.persons is None or elsewhere.together == {}


@pytest.mark.ci
def test_it_is_said_first_and_no_maximum_risk_is_claimed(direct: CommandLine) -> None:
    path = job(direct.folder, privacy={"k": 12}, method={"name": "skald"}, columns={"insensitive": "rest"})
    done = direct("run", path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    folder = direct.folder / "releases" / (direct.folder / "releases" / "CURRENT").read_text().strip()
    report, manifest = (json.loads((folder / name).read_text()) for name in ("report.json", "manifest.json"))
    few, page = manifest["passthrough_together"]["below_k"], (folder / "report.html").read_text()
    assert few > 12
    assert said.startswith(f"warning By the untreated columns together {few} of")
    assert report["came_out"]["warnings"][0].startswith(f"By the untreated columns together {few} of")
    assert list(manifest)[1] == "passthrough_together"
    for text in (said, page, json.dumps(report)):
        assert "EMA" not in text
        assert "keeps 0." not in text
    assert report["maximum_risk"].startswith("No maximum risk is claimed: by the untreated columns together")
    [singling_out] = [one for one in report["criteria"] if one["name"] == "Singling out"]
    assert not singling_out["kept"]
    checked = " ".join(direct("verify", folder, "--job", path).stdout.split())
    assert f"warning By the untreated columns together {few} of" in checked
    assert "keeps 0." not in checked


def test_where_k_share_every_combination_it_is_claimed(anonymise: Anonymise, tmp_path: Path) -> None:
    columns = {"insensitive": ["code"], "withheld": ["site", "dose"], "sensitive": [], "identifiers": ["person", "dx"]}
    made = anonymise(job(tmp_path, columns=columns), "privacy.k=12")
    report = json.loads((made.folder / "report.json").read_text())
    assert figures(made.manifest, "passthrough")[:2] == [0, 0]
    assert "0.09" in report["maximum_risk"]
    assert report["came_out"]["warnings"] == []


@pytest.mark.ci
def test_a_job_accepts_it_by_name_and_the_claim_says_what_it_is_of(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, columns={"accept_untreated": True}), "privacy.k=12")
    claim = json.loads((made.folder / "report.json").read_text())["maximum_risk"]
    assert "0.09" in claim
    assert "by the quasi-identifiers alone. The job accepts that" in claim
    plain = anonymise(job(tmp_path / "plain"), "privacy.k=12")
    assert made.manifest.release != plain.manifest.release
    assert [file.sha256 for file in made.manifest.files] == [file.sha256 for file in plain.manifest.files]


@pytest.mark.ci
def test_a_policy_forbids_to_accept_it(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump({"version": 1, "accept_untreated": False}))
    monkeypatch.setenv("SKALD_POLICY", str(policy))
    with pytest.raises(PolicyError, match=r"columns\.accept_untreated is true, and the policy forbids it"):
        anonymise(job(tmp_path, columns={"accept_untreated": True}))
    with pytest.raises(UntreatedError, match="share what is published of them with fewer") as refused:
        anonymise(job(tmp_path))
    assert refused.value.exit_code == 3
    assert not list((tmp_path / "releases").glob("together-*"))
    coarse = {"insensitive": [], "withheld": UNTREATED}
    assert anonymise(job(tmp_path / "coarse", columns=coarse)).new
    # What was published before there was a policy is no reason to go on.
    monkeypatch.delenv("SKALD_POLICY")
    assert anonymise(job(tmp_path)).new
    monkeypatch.setenv("SKALD_POLICY", str(policy))
    with pytest.raises(UntreatedError, match="Withdraw the release"):
        anonymise(job(tmp_path))


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("alone", [0, 1, K - 1, K, K + 1])
def test_how_few_stand_out_is_not_told_where_they_are_fewer_than_k(anonymise: Anonymise, tmp_path: Path, alone: int) -> None:
    rows = 40
    table = pa.table({"q": ["a"] * rows, "s": ["x", "y"] * (rows // 2), "other": [*map(str, range(alone)), *["same"] * (rows - alone)]})
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"], "insensitive": ["other"]}
    made = anonymise(two_column_job(tmp_path, table, {"prefix": [1]}, columns=columns, privacy={"k": K}))
    assert figures(made.manifest, "passthrough") == [told(alone)] * 3
    if 0 < alone < K:
        warning = json.loads((made.folder / "report.json").read_text())["came_out"]["warnings"][0]
        assert f"at most {K} of" in warning


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("key", ["passthrough_together", "sensitive_together"])
def test_a_figure_that_is_not_that_of_the_files_is_noticed(anonymise: Anonymise, tmp_path: Path, key: str) -> None:
    path = job(tmp_path)
    made = anonymise(path)
    manifest = json.loads((made.folder / "manifest.json").read_text())
    manifest[key]["with_classes"] -= 1
    (made.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(VerificationError, match="does not say truly how many stand out by the"):
        verify_release(load_job(path), made.folder)


@pytest.mark.ci
def test_what_is_withheld_is_not_published_and_cancels_no_claim(anonymise: Anonymise, tmp_path: Path) -> None:
    # A longitude that repeats is no number of a person either, under whichever role.
    table = TABLE.append_column("longitude", pa.array([-122.25 + number / 8 for number in RANDOM.integers(0, 20, ROWS)]))
    roles = {"person": [], "identifiers": ["longitude"], "withheld": ["person", *UNTREATED], "insensitive": []}
    made = anonymise(job(tmp_path, table, columns=roles), "privacy.k=12")
    report = json.loads((made.folder / "report.json").read_text())
    assert set(released(made.folder).columns) == {"age", "sex", "dx"}
    assert (made.manifest.repeats, report["came_out"]["warnings"]) == ({}, [])
    assert "0.09" in report["maximum_risk"]
    assert report["asked"]["withheld"] == ["person", *UNTREATED]
    numbered = {"person": [], "identifiers": ["person", "longitude"], "withheld": UNTREATED, "insensitive": []}
    assert list(anonymise(job(tmp_path / "numbered", table, columns=numbered)).manifest.repeats) == ["person"]
