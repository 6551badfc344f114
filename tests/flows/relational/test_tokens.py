"""Tokens of a vault in place of the unit's key, from the first run on."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skald
from flows.commands.releases import reveal
from flows.tables import tables
from flows.terminal.tables import plan_lines
from flows.verification import verified_tables
from schemas.errors.tables import RelationError
from schemas.relational.tables_job import load_tables_job
from tasks.relational.plan import plan_tables
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables, read_release

pytestmark = pytest.mark.ci


def tables_with_vault(vault: Path) -> dict[str, Any]:
    """Return the hospital's tables as a job names them, with tokens of a vault for persons."""
    vault.parent.mkdir(exist_ok=True)
    of_tables = deepcopy(JOB["tables"])
    of_tables["person"]["columns"]["identifiers"] = [{"name": "person_id", "treatment": {"token": {"vault": {"file": str(vault)}}}}]
    return of_tables


def tokens_in(vault: Path) -> dict[str, str]:
    """Return the token of each value of a vault."""
    return dict(zip(*(pq.read_table(vault)[name].to_pylist() for name in ("value", "token")), strict=True))


def pseudonyms_in(folder: Path) -> set[str]:
    return {row["person_id"] for row in read_release(folder)["person"]}


def test_a_new_vault_serves_the_first_run_and_every_later_release(tmp_path: Path) -> None:
    vault = tmp_path / "vaults" / "persons.parquet"
    path = hospital_job(tmp_path, hospital_tables(60, 3), tables=tables_with_vault(vault), attacks="off")
    before = plan_tables(load_tables_job(path), quick=True)
    assert (before.release, before.exists, vault.exists()) == (None, False, False)
    assert plan_lines(before).startswith("The release has no id yet: a run makes the vault, and the id follows from it.")
    made = tables(path, ())
    after = plan_tables(load_tables_job(path), quick=True)
    assert (after.release, after.exists) == (made.manifest.release, True)
    given = tokens_in(vault)
    assert set(given) == {str(number) for number in range(60)}
    assert pseudonyms_in(made.folder) <= set(given.values())
    assert (len(pseudonyms_in(made.folder)), made.manifest.pseudonyms.keys()) == (made.manifest.persons.released, {"person_id"})
    assert verified_tables(load_tables_job(path), made.folder).unverified == ()
    again = tables(path, ())
    assert (again.new, again.manifest, tokens_in(vault)) == (False, made.manifest, given)
    later = tables(path, ("privacy.k=5",))
    assert later.manifest.release != made.manifest.release
    assert tokens_in(vault) == given
    assert pseudonyms_in(later.folder) <= set(given.values())
    assert pseudonyms_in(later.folder) & pseudonyms_in(made.folder)


def test_tables_that_are_refused_get_no_tokens(tmp_path: Path) -> None:
    vault, source = tmp_path / "vaults" / "persons.parquet", hospital_tables(60, 3)
    source["person"] = pa.concat_tables([source["person"], source["person"].slice(0, 1)])
    with pytest.raises(RelationError, match="several"):
        tables(hospital_job(tmp_path, source, tables=tables_with_vault(vault), attacks="off"), ())
    assert not vault.exists()


def test_frames_get_the_tokens_of_a_new_vault_too(tmp_path: Path) -> None:
    vault, source = tmp_path / "vaults" / "persons.parquet", hospital_tables(60, 3)
    job: dict[str, Any] = {"version": 2, "tables": tables_with_vault(vault), "privacy": {"k": 4}, "suppression": {"limit": 0.3}}
    job["attacks"] = "off"
    for table in job["tables"].values():
        del table["source"]
    shown = [set(skald.anonymise(source, job)[0]["person"]["person_id"].to_pylist()) for _ in range(2)]
    assert shown[0] == shown[1] <= set(tokens_in(vault).values())


def test_whoever_has_the_vault_gets_back_whose_a_pseudonym_is(tmp_path: Path) -> None:
    vault = tmp_path / "vaults" / "persons.parquet"
    path = hospital_job(tmp_path, hospital_tables(60, 3), tables=tables_with_vault(vault), attacks="off")
    shown = sorted(pseudonyms_in(tables(path, ()).folder))
    (tmp_path / "shown.csv").write_text("\n".join(shown))
    reveal(path, "person_id", tmp_path / "originals.csv", tmp_path / "shown.csv", None)
    values = {token: value for value, token in tokens_in(vault).items()}
    expected = ["pseudonym,original", *(f"{one},{values[one]}" for one in shown)]
    assert (tmp_path / "originals.csv").read_text().split() == expected
