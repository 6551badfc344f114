"""Identifiers as pseudonyms: the same for a key wherever they are made, undone by whoever holds it, and no trace of it or of originals."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import random
import shutil
import sys
from collections import Counter
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from ffx import FF1
from pyarrow import ipc
from rich.console import Console

from flows.terminal.plans import plan_summary
from schemas.errors.base import SkaldError, SourceError, VerificationError
from schemas.errors.values import PseudonymError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.planning.plan import make_plan
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.recount.recount import verify_release
from tasks.writing.pseudonyms import reveal, write_originals
from tests.conftest import CommandLine
from tests.jobs import data_files, digests, released, write_parquet

CANARY = "CANARY"
SECRET = "5ecret-of-the-hospital-0123456789abcdef"
KEY = {"env": "SKALD_TEST_KEY"}
IDENTIFIERS: dict[str, Any] = {
    "person": {"hash": {"key": KEY, "length": 40}},
    "ssn": {"encrypt": {"key": KEY, "alphabet": "digits", "width": 9}},
    "phone": {"mask": {"keep": 3}},
    "email": {"token": {"vault": {"file": "vaults/email.parquet"}}},
    "account": {"encrypt": {"key": KEY, "alphabet": "digits", "separators": "-"}},
    "admitted": {"shift": {"key": KEY, "subject": "person", "days": 30}},
}
PSEUDONYMS = list(IDENTIFIERS)


def records(rows: int = 600) -> pa.Table:
    """Return records whose text identifiers are canaries; some are null, but nobody's dates."""
    draw = random.Random(7)

    def some(value: Any) -> Any:
        return None if draw.random() < 0.05 else value

    people = [draw.randrange(rows // 3) for _ in range(rows)]
    columns = {
        "person": [f"{CANARY}-p-{person}" for person in people],
        "ssn": [some(draw.randrange(10**9)) for _ in people],
        "phone": [some(f"{CANARY}-t-{draw.randrange(10**4)}") for _ in people],
        "email": [some(f"{CANARY}-m-{person % 50}") for person in people],
        "account": [some(f"{draw.randrange(10**4):04d}-{draw.randrange(10**5):05d}") for _ in people],
        "admitted": [some(date(2020, 1, 1) + timedelta(draw.randrange(400))) for _ in people],
        "age": [int(draw.triangular(18, 90, 30)) for _ in people],
        "disease": [draw.choice(["flu", "gout", "cough"]) for _ in people],
    }
    return pa.table(columns)


TABLE = records()


def job_at(folder: Path, *, files: int = 1, **parts: Any) -> Path:
    write_parquet(folder / "people", parts.pop("table", TABLE), files=files, row_group=170)
    treatments = parts.pop("identifiers", IDENTIFIERS)
    (folder / "vaults").mkdir(parents=True, exist_ok=True)
    others = [name for name in PSEUDONYMS if name not in treatments]
    job = {
        "version": 1,
        "name": "people",
        "source": {"path": "people/*.parquet"},
        "columns": {
            "identifiers": [*others, *({"name": name, "treatment": treatment} for name, treatment in treatments.items())],
            "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 5, 20]}}],
            "sensitive": ["disease"],
            # People have several records here, and the tests are about pseudonyms.
            "linkable": [name for name, treatment in treatments.items() if "shift" not in treatment],
        },
        "privacy": {"k": 5},
        "suppression": {"limit": 0},
        "method": {"name": "skald"},
        "memory": "256MB",
        "target": "releases",
    } | parts
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    return path


def run(job: Path, *settings: str) -> PublishedRelease:
    flow: Any = METHODS[load_job(job, settings).method.name].flow.load()
    published: PublishedRelease = getattr(flow, "fn", flow)(job, settings)
    return published


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKALD_TEST_KEY", SECRET)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job, its release and its vault."""
    folder = tmp_path_factory.mktemp("original")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKALD_TEST_KEY", SECRET)
        run(job_at(folder))
    return folder


def release_of(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


def sub_key(purpose: str) -> bytes:
    return hmac.new(SECRET.encode(), b"\xffskald " + purpose.encode(), hashlib.sha256).digest()


def expected(folder: Path) -> Counter[tuple[Any, ...]]:
    """What the release must publish besides the QIDs, made value by value."""
    vault = pq.read_table(folder / "vaults" / "email.parquet")
    tokens = dict(zip(vault["value"].to_pylist(), vault["token"].to_pylist(), strict=True))
    ff1 = FF1(sub_key("ff1"), radix=10)

    def shift(person: str) -> timedelta:
        drawn = int.from_bytes(hmac.new(sub_key("shift"), person.encode(), hashlib.sha256).digest()[:8]) % 60 - 30
        return timedelta(drawn if drawn < 0 else drawn + 1)

    def encrypted(account: str) -> str:
        made = ff1.encrypt(account.replace("-", ""))
        return f"{made[:4]}-{made[4:]}"

    makers = {
        "person": lambda value, row: hmac.new(SECRET.encode(), value.encode(), hashlib.sha256).hexdigest()[:40],
        "ssn": lambda value, row: int(ff1.encrypt(f"{value:09d}")),
        "phone": lambda value, row: "*" * (len(value) - 3) + value[-3:],
        "email": lambda value, row: tokens[value],
        "account": lambda value, row: encrypted(value),
        "admitted": lambda value, row: value + shift(row["person"]),
    }
    return Counter(
        (row["disease"], *(None if row[name] is None else make(row[name], row) for name, make in makers.items()))
        for row in TABLE.to_pylist()
    )


def published(release: Path) -> Counter[tuple[Any, ...]]:
    return Counter(released(release).select(["disease", *PSEUDONYMS]).rows())


@pytest.mark.ci
def test_every_treatment_publishes_what_it_says_with_types_kept_and_nulls_null(original: Path) -> None:
    frame = released(release_of(original))
    assert frame.columns == ["age", "disease", *PSEUDONYMS]
    assert frame.schema["ssn"] == pl.Int64
    assert frame.schema["admitted"] == pl.Date
    assert published(release_of(original)) == expected(original)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ({"name": "skald"}, ["chunk_rows=37", "rows_per_file=100"]),
        ({"name": "mondrian"}, ["chunk_rows=111"]),
        ({"name": "mondrian", "fragments": {"count": 3}}, ["rows_per_file=100"]),
        ({"name": "rayden"}, ["chunk_rows=50"]),
    ],
    ids=lambda one: one.get("name") if isinstance(one, dict) else None,
)
def test_a_key_gives_the_same_pseudonyms_in_any_chunk_file_method_and_run(
    original: Path, tmp_path: Path, method: dict[str, Any], settings: list[str]
) -> None:
    job = job_at(tmp_path, files=3, method=method)
    shutil.copytree(original / "vaults", tmp_path / "vaults", dirs_exist_ok=True)
    made = run(job, *settings)
    assert published(made.folder) == expected(original)
    if method["name"] == "skald":
        again = run(job_at(tmp_path / "again", files=2, method=method, identifiers=shared_vault(original)), "rows_per_file=100")
        assert digests(again.folder) == digests(made.folder)


def shared_vault(folder: Path) -> dict[str, Any]:
    return IDENTIFIERS | {"email": {"token": {"vault": {"file": str(folder / "vaults" / "email.parquet")}}}}


def test_manifest_report_and_summary_say_that_a_release_is_pseudonymous(original: Path) -> None:
    manifest = json.loads((release_of(original) / "manifest.json").read_text())
    assert list(manifest["pseudonyms"]) == PSEUDONYMS
    assert manifest["pseudonyms"]["person"] == "keyed hash (HMAC-SHA-256)"
    report = json.loads((release_of(original) / "report.json").read_text())
    assert report["asked"]["pseudonyms"] == manifest["pseudonyms"]
    assert "pseudonymous, not anonymous" in report["limits"][0]["text"]
    assert "linked record by record" in report["limits"][1]["text"]
    page = (release_of(original) / "report.html").read_text()
    assert "pseudonymous, not anonymous" in page
    assert "no identifier is among them" not in page


@pytest.mark.ci
def test_a_release_has_no_id_in_a_plan_before_its_vault_is_made(tmp_path: Path) -> None:
    path = job_at(tmp_path, identifiers={"email": IDENTIFIERS["email"]})

    def planned() -> tuple[str | None, bool, str]:
        plan = make_plan(load_job(path), quick=True)
        screen = Console(width=200, file=StringIO())
        screen.print(plan_summary(plan))
        assert isinstance(screen.file, StringIO)
        lines = map(str.strip, screen.file.getvalue().splitlines())
        return plan.release, plan.exists, next(line for line in lines if line.startswith("release"))

    release, exists, line = planned()
    assert (release, exists) == (None, False)
    assert "has no id yet: a run makes the vault, and the id follows from it" in line
    assert not [one for one in (tmp_path / "vaults").iterdir() if not one.name.startswith(".")]
    made = run(path).manifest.release
    release, exists, line = planned()
    assert (release, exists) == (made, True)
    assert made in line


@pytest.mark.ci
def test_another_key_makes_another_release_that_cannot_be_linked_and_the_same_one_none(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "copy"))
    assert not run(folder / "job.yaml").new
    monkeypatch.setenv("SKALD_TEST_KEY", SECRET[::-1])
    (folder / "vaults" / "email.parquet").unlink()
    with pytest.raises(PseudonymError, match="column 'email': the vault is gone that was used here before"):
        run(folder / "job.yaml")
    (folder / "vaults" / ".email.parquet.state").unlink()
    made = run(folder / "job.yaml")
    assert made.new
    for name in ("person", "email"):
        assert not set(released(made.folder)[name].drop_nulls()) & set(released(release_of(original))[name].drop_nulls())


@pytest.mark.slow
def test_masked_records_carry_no_pseudonym(tmp_path: Path) -> None:
    rare = TABLE.set_column(6, "age", pa.array([98 + row % 2 if row % 100 < 2 else [None, 31, 32][row % 3] for row in range(len(TABLE))]))
    made = run(job_at(tmp_path, table=rare, suppression={"limit": 0.05, "treatment": "mask"}), "privacy.k=12", "rows_per_file=5")
    frame = released(made.folder)
    masked = frame.filter(pl.col("age") == "*")
    assert made.manifest.masked == len(masked) == 12
    assert masked.select(PSEUDONYMS).null_count().row(0) == (12,) * len(PSEUDONYMS)
    # Null says nothing of a record either, and is still no star.
    others = frame.filter(pl.col("age").ne_missing("*"))
    assert others["age"].null_count() > 12
    assert others["person"].null_count() == 0
    path = data_files(made.folder)[-1]
    frame = pl.read_parquet(path).with_columns(person=pl.lit("0" * 40))
    assert "masked record" in faults(tmp_path, path, frame, "suppression.treatment=mask", "suppression.limit=0.05", "privacy.k=1")


def faults(folder: Path, path: Path, frame: pl.DataFrame, *settings: str) -> str:
    """Write a file of the release anew and return what the recount says."""
    pq.write_table(pa.table(frame.to_arrow(compat_level=pl.CompatLevel.oldest())), path)
    with pytest.raises(VerificationError) as refused:
        verify_release(load_job(folder / "job.yaml", settings), path.parent.parent)
    return str(refused.value)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("column", PSEUDONYMS)
def test_the_recount_refuses_originals_in_the_place_of_pseudonyms(original: Path, tmp_path: Path, column: str) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "copy"))
    assert verify_release(load_job(folder / "job.yaml"), release_of(folder))[1]
    [path] = data_files(release_of(folder))
    raw = pl.Series(column, TABLE[column].to_pylist())
    if column == "admitted":
        raw = raw.cast(pl.String).str.replace("-", "/")
    told = faults(folder, path, pl.read_parquet(path).with_columns(raw))
    wanted = {"ssn": "of the source's 'ssn' published", "account": "of the source's 'account' published"}
    assert wanted.get(column, f"in '{column}' without the form of its treatment") in told
    assert CANARY not in told
    shutil.rmtree(folder / "people")
    told = faults(folder, path, pl.read_parquet(path).drop(column))
    assert f"'{column}' is missing" in told


def test_originals_come_back_to_whoever_holds_key_and_vault(direct: CommandLine, original: Path) -> None:
    shutil.copytree(original, direct.folder, dirs_exist_ok=True)
    frame, job = released(release_of(direct.folder)), load_job(direct.folder / "job.yaml")
    for column in ("ssn", "account", "email"):
        values = [str(value) for value in TABLE[column].drop_null().to_pylist()]
        assert Counter(reveal(job, column, frame[column].drop_nulls().cast(pl.String).to_list())) == Counter(values)
    assert reveal(job, "email", ["f" * 32, "x"]) == [None, None]
    assert reveal(job, "account", ["12", "x", "1234567-x"]) == [None] * 3
    persons = TABLE["person"].to_pylist()
    days = [date(2020, 2, 1)] * len(persons)
    back = reveal(job, "admitted", [str(day) for day in days], persons)
    again = reveal(job, "admitted", [f"{day} 12:30:00" for day in days], persons)
    assert [text and text[:10] for text in again] == back
    assert all(0 < abs((date.fromisoformat(str(text)) - day).days) <= 30 for text, day in zip(back, days, strict=True))
    (direct.folder / "list").write_text("\n".join(frame["email"].drop_nulls().head(3)))
    done = direct("reveal", "job.yaml", "email", "--from", "list", "--to", "back.csv", SKALD_TEST_KEY=SECRET)
    assert (done.returncode, done.stderr) == (0, "")
    assert CANARY not in done.stdout
    assert (direct.folder / "back.csv").read_text().count(CANARY) == 3
    assert (direct.folder / "back.csv").stat().st_mode & 0o777 == 0o600
    (direct.folder / "dates").write_text(f"{persons[0]},\n{persons[0]},{days[0]}\n")
    done = direct("reveal", "job.yaml", "admitted", "--from", "dates", "--to", "dates.csv", SKALD_TEST_KEY=SECRET)
    assert (done.returncode, done.stdout) == (0, "2 pseudonyms in dates.csv\n"), done.stderr
    assert (direct.folder / "dates.csv").read_text() == f"subject,pseudonym,original\n{persons[0]},,\n{persons[0]},{days[0]},{back[0]}\n"
    for to, why in (("back.csv", "exists"), ("releases/back.csv", "inside the target")):
        with pytest.raises(PseudonymError, match=why):
            write_originals(job, direct.folder / to, ["x"], ["y"], None)
    for column, why in (("person", "cannot be undone"), ("phone", "cannot be undone"), ("emial", "did you mean 'email'")):
        with pytest.raises(PseudonymError, match=why):
            reveal(job, column, ["x"])


def test_all_keys_and_vaults_that_cannot_be_used_are_told_at_once_before_anything_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKALD_TEST_KEY")
    inside = IDENTIFIERS | {"email": {"token": {"vault": {"file": "releases/vault.parquet"}}}}
    job = job_at(tmp_path, identifiers=inside)
    with pytest.raises(PseudonymError) as raised:
        run(job)
    told = str(raised.value)
    assert told.count("SKALD_TEST_KEY is not set") == 4
    assert "column 'email': the file 'releases/vault.parquet' lies inside the target" in told
    assert raised.value.exit_code == 2
    assert not (tmp_path / "releases").exists()
    made = {path.parent.name for path in (tmp_path / ".skald" / "people" / "artifacts").glob("*/*")}
    assert made <= {"unpacked"}, "how long values are is looked at before the keys are; nothing is counted"


UNFIT: dict[str, tuple[dict[str, Any], pa.Array, type[SkaldError], str]] = {
    "short": ({"account": {"encrypt": {"key": KEY, "alphabet": "digits"}}}, pa.array(["1"] * 600), PseudonymError, "fewer than 6"),
    "pattern": ({"account": {"mask": {"pattern": "x", "replacement": ""}}}, pa.array(["y"] * 600), PseudonymError, "do not match"),
    "nobody": ({"admitted": IDENTIFIERS["admitted"]}, pa.nulls(600, pa.string()), PseudonymError, "a date but no 'person'"),
    "double": ({"account": IDENTIFIERS["person"]}, pa.array([0.5] * 600), SourceError, "make it text, a whole number or a date"),
    "no width": ({"account": {"encrypt": {"key": KEY, "alphabet": "digits"}}}, pa.array([1] * 600), SourceError, "encrypt.width"),
    "no date": ({"account": {"shift": {"key": KEY, "subject": "person", "days": 3}}}, pa.array(["a"] * 600), SourceError, "takes dates"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_values_that_a_treatment_cannot_take_are_told_by_column_and_count(tmp_path: Path, case: str) -> None:
    treatments, values, kind, why = UNFIT[case]
    column = "person" if case == "nobody" else "account"
    table = TABLE.set_column(TABLE.schema.get_field_index(column), column, values)
    with pytest.raises(kind, match=why) as raised:
        run(job_at(tmp_path, table=table, identifiers=treatments))
    assert CANARY not in str(raised.value)
    assert not list(tmp_path.glob("releases/people-*"))


def traces(folder: Path) -> list[Path]:
    """Files outside source and vault that hold an original identifier or the key, compressed artefacts read as what they are."""
    wanted = [CANARY.encode(), SECRET.encode(), SECRET.encode().hex().encode()]
    found = []
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts[0]
        if not path.is_file() or inside in {"people", "vaults"}:
            continue
        content = path.read_bytes()
        if path.suffix == ".arrow":
            content += str(ipc.open_file(path).read_all().to_pylist()).encode()
        elif path.suffix == ".parquet":
            content += str(pq.read_table(path).to_pylist()).encode()
        # The last three characters of a phone number are published as the job says.
        if any(secret in content for secret in wanted) or CANARY in path.name:
            found.append(path)
    return found


@pytest.mark.slow
def test_killed_after_tokens_were_given_a_run_ends_in_the_same_bytes_and_leaves_no_trace_of_key_or_originals(
    direct: CommandLine, tmp_path: Path
) -> None:
    job_at(tmp_path)
    settings = ("--set", "chunk_rows=40", "--set", "rows_per_file=200")
    direct.killed("runs/*.record", "run", "job.yaml", *settings, SKALD_TEST_KEY=SECRET)
    assert list((tmp_path / ".skald" / "people" / "artifacts" / "runs").glob("*.arrow"))
    assert not traces(tmp_path)
    vault = (tmp_path / "vaults" / "email.parquet").read_bytes()
    done = direct("run", "job.yaml", *settings, SKALD_TEST_KEY=SECRET)
    assert done.returncode == 0, done.stderr
    assert not [word for word in (CANARY, SECRET) if word in done.stdout + done.stderr]
    assert "pseudonymous" in done.stdout
    assert not traces(tmp_path)
    assert (tmp_path / "vaults" / "email.parquet").read_bytes() == vault
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKALD_TEST_KEY", SECRET)
        undisturbed = run(tmp_path / "job.yaml", "chunk_rows=600", "rows_per_file=200", "target=undisturbed", "work=elsewhere")
    assert digests(undisturbed.folder) == digests(release_of(tmp_path))


def test_a_worker_with_another_key_than_the_run_began_with_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.publication import verify_and_publish as publication

    read = publication.read_or_recall

    def read_and_rotate(*arguments: Any) -> Any:
        found = read(*arguments)
        os.environ["SKALD_TEST_KEY"] = SECRET[::-1]
        return found

    monkeypatch.setattr(sys.modules["flows.skald"], "read_or_recall", read_and_rotate)
    with pytest.raises(PseudonymError, match="another key or vault than the run began with"):
        run(job_at(tmp_path))
    assert not list(tmp_path.glob("releases/people-*"))


BLOCK = """
import sys
from pathlib import Path
from flows.server.local_api import prefect_api, prepare_prefect
with prefect_api(prepare_prefect()):
    from prefect.blocks.system import Secret
    from schemas.job.method import METHODS
    from schemas.errors.values import PseudonymError
    from schemas.job.run_parameters import RunParameters
    try:
        METHODS["skald"].flow.load()(RunParameters.of(Path("job.yaml"), ()))
    except PseudonymError as error:
        assert "Prefect block 'skald-key' cannot be loaded" in str(error)
    Secret(value=sys.argv[1]).save("skald-key")
    METHODS["skald"].flow.load()(RunParameters.of(Path("job.yaml"), ()))
"""


@pytest.mark.slow
def test_a_secret_block_of_prefect_is_a_key(prefect: CommandLine, tmp_path: Path) -> None:
    job_at(tmp_path, identifiers={"person": {"hash": {"key": {"prefect_block": "skald-key"}, "length": 40}}})
    command = [sys.executable, "-c", BLOCK, SECRET]
    done = prefect.ended(command)
    assert done.returncode == 0, done.stderr
    hashed = [hmac.new(SECRET.encode(), value.encode(), hashlib.sha256).hexdigest()[:40] for value in TABLE["person"].to_pylist()]
    assert Counter(released(release_of(tmp_path))["person"].to_list()) == Counter(hashed)
    assert not traces(tmp_path)
    assert SECRET not in done.stdout + done.stderr
