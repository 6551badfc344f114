"""Each check of a published release is given what it is about; the form and the report are looked at where figures are right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from core.recount.classes import Recount
from schemas.errors.base import StorageError, VerificationError
from schemas.release.evidence import MANIFEST as MANIFEST_NAME
from tasks.verification import release as releases
from tasks.verification.entries import DIGESTS_DIFFER
from tasks.verification.release import OTHER_LIBRARY, VerificationContext, Verified
from tests.core.recount.test_classes import manifest, recount
from tests.house.steps import Steps

RELEASE, FILES, ASKED = Path("release"), [Path("release/data/0.csv")], SimpleNamespace(memory=300_000_000)
MANIFEST: Any = SimpleNamespace(columns={"q": "VARCHAR"}, asked=ASKED, files=("listed",))


@pytest.mark.parametrize("job", ["none", "its own", "another"])
@pytest.mark.parametrize("source", [None, "source"])
@pytest.mark.parametrize("unproved", [(), ("not compared",)])
@pytest.mark.parametrize("wrong", ["", "source", "figures", "form", "report"])
def test_what_a_release_says_is_held_against_what_was_counted(
    monkeypatch: pytest.MonkeyPatch, job: str, source: str | None, unproved: tuple[str, ...], wrong: str
) -> None:
    of: Any = SimpleNamespace(output=SimpleNamespace(delimiter=";")) if job != "none" else None
    counted = SimpleNamespace(unproved=unproved, unverified=("t",))
    said = {name: [f"of the {name}"] * (name == wrong) for name in ("source", "figures", "form", "report")}
    steps = Steps(monkeypatch, releases, {
        "job_faults": ([], ["another job"] * (job == "another")), "unverified_without_job": ["no job"], "_source_faults": said["source"],
        "figure_faults": said["figures"], "layout_of": "layout", "_form_faults": (said["form"], ["unformed"]),
        "report_faults": (said["report"], ["unreported"]), "other_job_note": "other", "exchanged_unseen": "exchanged",
        "uncounted_promises": ["uncounted"], "unverified_claims": ("on trust",),
    })  # fmt: skip
    of_source = job == "its own" and source is not None and not unproved
    proved, faults = job != "none" and not unproved, [] if wrong == "source" and not of_source else said.get(wrong, [])
    held = (of, RELEASE, MANIFEST, FILES, source, counted, "it")
    if faults:
        with pytest.raises(VerificationError) as error:
            releases._held(*held)
        assert list(error.value.faults) == faults
    else:
        notes = {"none": ["no job"], "another": ["another job"], "its own": []}[job] + ["unformed", "unreported"]
        notes += ["other"] * (job != "none") + ["exchanged"]
        unverified = ("uncounted",) if job == "none" else ("t",)
        assert releases._held(*held) == Verified(counted, MANIFEST, tuple(notes), unverified, ("on trust",))
        assert steps.given["unverified_claims"] == (of, MANIFEST, counted, {"is_its_job": job == "its own"})
    assert steps.given.get("job_faults") == ((of, MANIFEST) if of else None)
    assert steps.given.get("_source_faults") == ((of, MANIFEST, source) if of_source else None)
    assert steps.given["figure_faults"] == (MANIFEST, counted, {"proved": proved})
    formed = not faults or wrong in ("form", "report")
    assert steps.given.get("layout_of") == ((FILES, {"q": "VARCHAR"}, ";" if of else ",") if formed else None)
    assert steps.given.get("_form_faults") == ((FILES, MANIFEST, "layout", of if job == "its own" else None) if formed else None)
    assert steps.given.get("report_faults") == ((RELEASE, MANIFEST, counted) if not faults or wrong == "report" else None)


def test_that_digests_differ_is_no_note_of_another_job(monkeypatch: pytest.MonkeyPatch) -> None:
    of: Any = SimpleNamespace(output=SimpleNamespace(delimiter=";"))
    counted = SimpleNamespace(unproved=(), unverified=())
    Steps(monkeypatch, releases, {
        "job_faults": ([], []), "figure_faults": [], "layout_of": "layout", "_form_faults": ([], []), "report_faults": ([], []),
        "other_job_note": f"it is not: {DIGESTS_DIFFER}", "exchanged_unseen": "", "unverified_claims": (),
    })  # fmt: skip
    assert releases._held(of, RELEASE, MANIFEST, FILES, None, counted, "it").notes == ()


@pytest.mark.parametrize("seal", ["", "a seal"])
@pytest.mark.parametrize("key", [None, b"a key"])
@pytest.mark.parametrize(("faults", "counted"), [([], []), (["evidence"], []), (["evidence"], ["evidence", "classes"]), ([], ["classes"])])
def test_what_nothing_tells_is_taken_on_trust_without_a_seal_and_a_key_and_faults_of_both_kinds_are_told_once(
    monkeypatch: pytest.MonkeyPatch, seal: str, key: bytes | None, faults: list[str], counted: list[str]
) -> None:
    steps = Steps(monkeypatch, releases, {
        "_evidence_faults": faults, "data_files": FILES, "_counted": recount(), "newer_releases": ("newer",),
        "_held": Verified(recount(), MANIFEST, on_trust=("created",)),
    })  # fmt: skip
    if counted:

        def refuse(*_: Any) -> Any:
            raise VerificationError("it", counted)

        monkeypatch.setattr(releases, "_counted", refuse)
    context: Any = VerificationContext("it", seal=seal, key=key, original="source")
    given: Any = ("job", RELEASE, b"content", MANIFEST, context)
    if faults or counted:
        with pytest.raises(VerificationError) as error:
            releases._verified_with_manifest(*given)
        assert list(error.value.faults) == list(dict.fromkeys([*faults, *counted]))
        return
    found = releases._verified_with_manifest(*given)
    assert (found.on_trust, found.newer) == (() if seal or key else ("created",), ("newer",))
    assert steps.given == {
        "_evidence_faults": given, "data_files": (RELEASE,),
        "_counted": ("job", RELEASE, MANIFEST, FILES, "source", context, "'it'"),
        "_held": ("job", RELEASE, MANIFEST, FILES, "source", recount(), "'it'"), "newer_releases": ("it", RELEASE, MANIFEST),
    }  # fmt: skip


@pytest.mark.parametrize("wrong", ["", "files", "report", "promises"])
def test_without_a_job_a_release_is_counted_by_what_its_manifest_asks(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    first, last = recount(), Recount(1, 1, 1, 0, 0, 0)
    steps = Steps(monkeypatch, releases, {
        "file_faults": ["files"] * (wrong == "files"), "recount_release_files": first,
        "rebuilt_report_faults": ["report"] * (wrong == "report"), "count_promises": (last, ["promises"] * (wrong == "promises")),
    })  # fmt: skip
    given: Any = (None, RELEASE, MANIFEST, FILES, None, VerificationContext("it"), "it")
    if wrong:
        with pytest.raises(VerificationError) as error:
            releases._counted(*given)
        assert list(error.value.faults) == [wrong]
    else:
        assert releases._counted(*given) is last
    expected = {
        "file_faults": (RELEASE, FILES, MANIFEST.files), "recount_release_files": ("it", FILES, MANIFEST),
        "rebuilt_report_faults": (MANIFEST, first), "count_promises": ("it", FILES, MANIFEST, first),
    }  # fmt: skip
    assert steps.given == ({"file_faults": expected["file_faults"]} if wrong == "files" else expected)


@pytest.mark.parametrize("key", [None, b"a key"])
def test_a_key_asks_for_a_signature(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: bytes | None) -> None:
    Steps(monkeypatch, releases, {"manifest_text_faults": ["text"], "entry_faults": ["entries"], "pointer_faults": ["pointer"]})
    found = releases._evidence_faults(None, tmp_path, b"content", MANIFEST, VerificationContext("it", key=key))
    assert found == ["text", "entries", "pointer", *(["there is no signature of the key"] if key else [])]


@pytest.mark.parametrize("link", [False, True])
def test_a_manifest_is_a_file_of_its_release_and_no_link(tmp_path: Path, link: bool) -> None:
    text = manifest().model_dump_json()
    (tmp_path / "elsewhere.json").write_text(text)
    if link:
        (tmp_path / MANIFEST_NAME).symlink_to(tmp_path / "elsewhere.json")
        with pytest.raises(VerificationError, match="cannot be read"):
            releases._read(tmp_path, "it")
    else:
        (tmp_path / MANIFEST_NAME).write_text(text)
        assert releases._read(tmp_path, "it") == (text.encode(), manifest())


def test_with_a_job_a_release_is_verified_against_it_and_its_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch, releases, {"verify_against": ("found", "manifest")})
    context: Any = VerificationContext("it", "people")
    assert releases._counted("job", RELEASE, MANIFEST, FILES, "source", context, "it") == "found"
    assert steps.given == {"verify_against": ("job", RELEASE, "source", "people")}


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".duckdb"])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("bom", [None, True])
@pytest.mark.parametrize("rows", [(3, 2), (3, 3)])
def test_the_form_of_files_is_looked_at_by_their_kind_where_the_same_library_wrote_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str, same: bool, bom: bool | None, rows: tuple[int, int]
) -> None:
    """The name of a data folder above the release is no part of the files' names in it."""
    library, versions = "pyarrow" if suffix == ".parquet" else "duckdb", {"pyarrow": "1", "duckdb": "2"}
    files = [tmp_path / "data" / "release" / "data" / "a=1" / f"{number}{suffix}" for number in range(2)]
    listed = [SimpleNamespace(path=f"data/a=1/{number}{suffix}", rows=many) for number, many in enumerate(rows)]
    manifest: Any = SimpleNamespace(asked=ASKED, files=listed, versions=versions | ({} if same else {library: "0"}))
    opened, read = list[tuple[int, Path]](), list[Any]()

    class Database:
        def __init__(self, memory: int, spill: Path) -> None:
            opened.append((memory, spill))

        def __enter__(self) -> str:
            return "connection"

        def __exit__(self, *_: object) -> None:
            pass

    steps = Steps(monkeypatch, releases, {
        "versions": versions, "parquet_faults": ["parquet"], "csv_faults": ["csv"], "faults_outside_table": ["table"],
    })  # fmt: skip
    monkeypatch.setattr(releases, "database", Database)
    monkeypatch.setattr(releases, "_rows", lambda *given: read.append(given) or 3 - files.index(given[1]))
    job: Any = SimpleNamespace(output=SimpleNamespace(bom=bom)) if bom else None
    faults, notes = releases._form_faults(files, manifest, "layout", job)
    [(memory, inner)] = opened
    spill = inner.parent
    assert (memory, inner.name) == (300_000_000, "spill")
    assert read == [("connection", path, "layout") for path in files]
    expected: dict[str, tuple[str, tuple[Any, ...]]] = {
        ".parquet": ("parquet_faults", (files, spill, {"same_library": same})),
        ".csv": ("csv_faults", ("connection", files, "layout", spill, bom)),
        ".duckdb": ("faults_outside_table", ("connection", files[0])),
    }
    name, given = expected[suffix]
    looked = suffix != ".csv" or same
    assert {one: mine for one, mine in steps.given.items() if one != "versions"} == ({name: given} if looked else {})
    kind = {"parquet_faults": "parquet", "csv_faults": "csv", "faults_outside_table": "table"}[name]
    assert faults == ["the manifest's rows of files are not those of the files"] * (rows[1] == 3) + [kind] * looked
    assert notes == ([] if same or suffix not in OTHER_LIBRARY else [OTHER_LIBRARY[suffix]])


def test_files_that_cannot_be_read_are_told_of_by_the_kind_of_error_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifest: Any = SimpleNamespace(asked=ASKED, files=[], versions={})
    path = tmp_path / "release" / "data" / "0.csv"
    path.parent.mkdir(parents=True)
    path.write_text("q\nsecret\n")
    for error, raised in ((duckdb.ConversionException("secret"), False), (duckdb.OutOfMemoryException("full"), True)):

        def fail(*_: Any, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(releases, "_rows", fail)
        if raised:
            with pytest.raises(StorageError, match="does not suffice"):
                releases._form_faults([path], manifest, "layout", None)
        else:
            assert releases._form_faults([path], manifest, "layout", None)[0] == ["the files cannot be read (ConversionException)"]
