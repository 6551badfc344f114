"""Each check of a release is given what it is about, and what any of them finds is told."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import VerificationError
from tasks.recount import recount as recounts
from tasks.recount.people_of_source import PeopleOfSource
from tasks.recount.recount import RecountBasis, verify_against, written_rows
from tasks.release.files import Csv
from tests.core.recount.test_classes import job, recount
from tests.house.steps import Steps
from tests.tasks.recount.test_range_ends import AGES

UNEXPECTED = "'note' is published, but the job does not say so"
RELEASE, FILES, SPILL = Path("release"), [Path("release/data/0.parquet")], Path("spill")


class Source(SimpleNamespace):
    """A source, whose parts may be replaced."""

    def _replace(self, **changes: Any) -> Source:
        return Source(**vars(self) | changes)


@pytest.mark.parametrize("unproved", ["", "another source"])
@pytest.mark.parametrize(("persons", "kept", "lacking"), [(False, False, 0), (True, True, 0), (True, False, 0), (True, False, 2)])
@pytest.mark.parametrize(("with_manifest", "with_source"), [(True, True), (True, False), (False, True)])
def test_a_release_is_recounted_by_what_its_manifest_its_job_and_its_source_say(
    monkeypatch: pytest.MonkeyPatch, unproved: str, persons: bool, kept: bool, lacking: int, with_manifest: bool, with_source: bool
) -> None:
    of, found = SimpleNamespace(columns=SimpleNamespace(person=["who"] * persons), output=SimpleNamespace(delimiter=";")), recount()
    manifest = SimpleNamespace(columns={"q": "VARCHAR"}, endpoints={"q": "shared"}, files=("listed",)) if with_manifest else None
    original, people = Source(relation="source", is_complete=True) if with_source else None, "people" if kept else None
    found_out = PeopleOfSource("found out", "because", lacking)
    steps = Steps(monkeypatch, recounts, {
        "data_files": FILES, "read_manifest": manifest, "file_faults": ["of files"], "unproved_reason": unproved, "layout_of": "layout",
        "temporary_folder_of": nullcontext(SPILL), "claim_of": "claim", "_people_found_out": found_out, "claimed_k": 7, "recount": found,
        "manifest_faults": ["of the manifest"], "risk_faults": ["of the risk"], "link_faults": ["of links"],
    })  # fmt: skip
    with pytest.raises(VerificationError) as error:
        verify_against(of, RELEASE, original, people)
    asked = persons and not kept
    lack = [f"{lacking} of the classes do not hold the records that the source has for what they publish"] if lacking else []
    told = [["of files"], lack, ["of the manifest", "of the risk"], ["of links"]]
    assert list(error.value.faults) == [one for place, some in enumerate(told) if with_manifest or place % 2 for one in some]

    source = original._replace(is_complete=not unproved) if original and manifest else original
    claim, by = "claim" if manifest else None, found_out if asked else PeopleOfSource(people)
    assert steps.given["layout_of"] == (FILES, {"q": "VARCHAR"} if manifest else {}, ";")
    assert steps.given["unproved_reason"] == (of, manifest, original)
    assert steps.given["temporary_folder_of"] == (of, "verify")
    basis = RecountBasis(unproved, 7, claim, by.because, ranged=manifest.endpoints if manifest else None)
    assert steps.given["recount"] == (of, FILES, SPILL, "'release'", source, "layout", by.files, basis)
    expected = (of, "'release'", FILES, "layout", unproved, source, claim, SPILL) if asked else None
    assert steps.given.get("_people_found_out") == expected
    for name, given in (
        ("file_faults", (RELEASE, FILES, manifest and manifest.files)), ("claim_of", (manifest,)),
        ("manifest_faults", (of, manifest, found)), ("risk_faults", (manifest, found)),
    ):  # fmt: skip
        assert steps.given.get(name) == (given if with_manifest else None)
    assert steps.given["link_faults"] == (of, found.linked)


def test_what_the_recount_refuses_is_told_after_what_is_wrong_with_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise VerificationError("it", ["a class is too small"])

    Steps(monkeypatch, recounts, {
        "data_files": FILES, "read_manifest": SimpleNamespace(columns={}, endpoints={}, files=()),
        "file_faults": ["of files"], "unproved_reason": "", "temporary_folder_of": nullcontext(SPILL), "claim_of": None, "claimed_k": 5,
    })  # fmt: skip
    monkeypatch.setattr(recounts, "recount", refuse)
    with pytest.raises(VerificationError) as error:
        verify_against(job(), RELEASE, None)
    assert list(error.value.faults) == ["of files", "a class is too small"]


@pytest.mark.parametrize("few", [(), ("few people",)])
@pytest.mark.parametrize("unproved", ["", "another source"])
@pytest.mark.parametrize("with_source", [True, False])
def test_counts_are_judged_against_the_source_as_it_is_published(
    monkeypatch: pytest.MonkeyPatch, few: tuple[str, ...], unproved: str, with_source: bool
) -> None:
    of, found, asked, original = job(), recount(), list[Any](), "source" if with_source else None
    beside, basis, published = SimpleNamespace(few=few), RecountBasis(unproved), SimpleNamespace(original="as published", figures={"v": 1})
    counts: Any = SimpleNamespace(
        rows="rows", classes=lambda source: asked.append(source) or "classes", additional=lambda: beside,
        control_faults=lambda mine: [f"{mine.records} records"] if few else [],
    )  # fmt: skip
    steps = Steps(monkeypatch, recounts, {"published_source": published, "verdict_of": (found, ["a fault"] if few else [])})
    read = with_source and not unproved
    source = "as published" if read else original
    if few:
        with pytest.raises(VerificationError) as error:
            recounts.recount_by(of, counts, "it", original, basis)
        assert list(error.value.faults) == ["a fault", "few people", "95 records"]
    else:
        judged = recounts.recount_by(of, counts, "it", original, basis)
        assert judged.published == ({"v": 1} if read else {})
    assert asked == [source]
    assert steps.given.get("published_source") == ((of, "rows", "source") if read else None)
    assert steps.given["verdict_of"] == (of, "rows", "classes", beside, source, basis)


@pytest.mark.parametrize("with_source", [True, False])
def test_files_are_counted_in_one_database_beside_their_source(monkeypatch: pytest.MonkeyPatch, with_source: bool) -> None:
    of, files, rows = job(), [Path("0.parquet")], "rows"
    steps = Steps(monkeypatch, recounts, {
        "written_rows": nullcontext(("connection", "release", [])), "register_objects": None, "have_wide_records": True,
        "RowsInOneDatabase": rows, "CountsInOneDatabase": "counts", "recount_by": "found",
    })  # fmt: skip
    original, people, basis = Source(relation="source") if with_source else None, "people", RecountBasis("because")
    assert recounts.recount(of, files, SPILL, "it", original, "layout", people, basis) == "found"
    assert steps.given["written_rows"] == (of, files, SPILL, "it", "layout", {"last": True})
    assert steps.given.get("register_objects") == (("connection", "source") if with_source else None)
    assert steps.given["RowsInOneDatabase"] == ("connection", "release", "source" if with_source else "", {"wide": True})
    assert steps.given["CountsInOneDatabase"] == (of, rows, people)
    assert steps.given["recount_by"] == (of, "counts", "it", original, basis)


def test_files_whose_columns_are_wrong_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    Steps(monkeypatch, recounts, {"written_rows": nullcontext(("connection", "release", ["a column is missing"]))})
    with pytest.raises(VerificationError) as error:
        recounts.recount(job(), FILES, SPILL, "it")
    assert list(error.value.faults) == ["a column is missing"]


@pytest.mark.parametrize(
    ("suffix", "names", "faults"),
    [(suffix, *case) for suffix in (".csv", ".parquet") for case in ((["age"], []), (["age", "note"], [UNEXPECTED]))],
)
def test_the_columns_of_written_files_are_looked_at_and_csv_is_read_once(
    tmp_path: Path, suffix: str, names: list[str], faults: list[str]
) -> None:
    path, table = tmp_path / f"0{suffix}", pa.table({name: ["[0 - 3]", "[4 - 7]"] for name in names})
    if suffix == ".csv":
        path.write_text("".join(";".join(row) + "\n" for row in [names, *[[label] * len(names) for label in table["age"].to_pylist()]]))
    else:
        pq.write_table(table, path)
    of = job(columns=AGES, privacy={"k": 2})
    with written_rows(of, [path], tmp_path / "spill", "it", Csv(";", dict.fromkeys(names, "VARCHAR"))) as (connection, source, found):
        assert found == faults
        assert connection.execute(f"SELECT age FROM {source}").fetchall() == [("[0 - 3]",), ("[4 - 7]",)]
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert tables == ([("parsed",)] if suffix == ".csv" else [])
