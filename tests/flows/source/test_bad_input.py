"""Bad input ends in one clear sentence and leaves nothing published."""

from __future__ import annotations

import fcntl
import gzip
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.base import SkaldError
from tests.conftest import Anonymise, CommandLine
from tests.jobs import CSV_TYPES, JOB, job_of, people, people_job, two_column_job, write_csv, write_job
from tests.places import ROOT

Refuse = Callable[..., str]
TABLE = people(60)
TREE = {"tree": {"*": ["a", "b"]}}


def nothing_left(folder: Path) -> None:
    """Assert that no release, no staging, no spill and no half-written file is there."""
    target = folder / "releases"
    assert not target.is_dir() or not list(target.iterdir())
    assert not list(folder.glob(".skald/*/spill"))
    assert not list(folder.glob(".skald/**/.*.part"))


@pytest.fixture
def refuse(anonymise: Anonymise) -> Refuse:
    """Run a job that must be refused, and returns the sentence."""

    def run(job: Path, *settings: str, code: int = 2) -> str:
        with pytest.raises(SkaldError) as refused:
            anonymise(job, *settings)
        assert refused.value.exit_code == code
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None
        nothing_left(job.parent)
        return str(refused.value)

    return run


def with_qid(name: str, hierarchy: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of ``JOB`` with one of its QIDs under another hierarchy."""
    columns = job_of()["columns"]
    for qid in columns["quasi_identifiers"]:
        if qid["name"] == name:
            qid["hierarchy"] = hierarchy
    return columns


def test_unknown_columns_are_named_with_the_nearest_right_spelling(refuse: Refuse, tmp_path: Path) -> None:
    columns = job_of()["columns"] | {"sensitive": ["diseases"], "insensitive": ["note", "score", "visits", "disease", "quux"]}
    said = refuse(people_job(tmp_path, TABLE, columns=columns))
    assert said == "The source lacks 2 columns that the job names: 'diseases' (did you mean 'disease'?), 'quux'."


def test_unlisted_columns_are_named(refuse: Refuse, tmp_path: Path) -> None:
    said = refuse(people_job(tmp_path, TABLE, columns=job_of()["columns"] | {"insensitive": ["score"]}))
    assert said.startswith("No role is given to 'note' and 'visits'.")
    assert "insensitive: rest" in said


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["q", "s", "Q"],
            "The names 'q' and 'Q' of columns of the source differ in case only, and databases take them for one. Rename one.",
        ),
        (
            ["q", "S", "s"],
            "The names 'S' and 's' of columns of the source differ in case only, and databases take them for one. Rename one.",
        ),
        (["q", "s", "q"], "Several columns of the source are called 'q'. Rename all but one."),
        (["q", "Q", "s", "q"], "Several columns of the source are called 'q'. Rename all but one."),
    ],
    ids=str,
)
def test_columns_of_one_name_and_of_names_that_differ_in_case(refuse: Refuse, tmp_path: Path, names: list[str], sentence: str) -> None:
    table = pa.Table.from_arrays([pa.array(["a"] * 6)] * len(names), names=names)
    assert refuse(two_column_job(tmp_path, table, TREE)) == sentence


@pytest.mark.parametrize(
    ("name", "hierarchy", "sentence"),
    [
        (
            "zip",
            {"widths": [1, 10]},
            "Column 'zip': a hierarchy of widths needs integers, floats or decimals, but the column is of type string",
        ),
        ("smoker", {"date": ["year"]}, "Column 'smoker': a hierarchy of "),
    ],
)
def test_a_hierarchy_that_does_not_fit_the_type(refuse: Refuse, tmp_path: Path, name: str, hierarchy: Any, sentence: str) -> None:
    assert sentence in refuse(people_job(tmp_path, TABLE, columns=with_qid(name, hierarchy)))


def test_values_that_a_hierarchy_lacks_are_counted(refuse: Refuse, tmp_path: Path) -> None:
    said = refuse(people_job(tmp_path, TABLE, columns=with_qid("sex", {"tree": {"*": ["f"]}})))
    assert said.startswith("Column 'sex': 2 of 3 values are not in its tree")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ("f;A;T\nm;A;U\nx;B;U\n", "the hierarchy does not nest: 1 label of level 1 lies under several labels of level 2"),
        ("f;A;T\nm;A\nx;B;U\n", "have another depth than|has another depth than"),
        ("f;A\nf;B\nx;B\n", "1 value occurs more than once"),
    ],
)
def test_a_wrong_hierarchy_is_refused_before_anything_is_read(refuse: Refuse, tmp_path: Path, rows: str, fault: str) -> None:
    (tmp_path / "sex.csv").write_text(rows)
    said = refuse(people_job(tmp_path, TABLE, columns=with_qid("sex", {"csv": "sex.csv"})))
    assert said.startswith("Column 'sex': ")
    assert any(one in said for one in fault.split("|"))
    assert not (tmp_path / ".skald").exists()


def test_a_missing_hierarchy_file_is_named(refuse: Refuse, tmp_path: Path) -> None:
    assert "'nowhere.csv'" in refuse(people_job(tmp_path, TABLE, columns=with_qid("sex", {"csv": "nowhere.csv"})))


def test_k_larger_than_the_number_of_records(refuse: Refuse, tmp_path: Path) -> None:
    said = refuse(people_job(tmp_path, TABLE), "privacy.k=61", code=3)
    assert said == "k = 61 cannot be met by 60 records. Lower privacy.k or add data; nothing was published."


@pytest.mark.parametrize("setting", ["suppression.limit=1.5", "suppression.limit=-0.1", "suppression.limit=.nan"])
def test_a_limit_that_is_no_share(refuse: Refuse, tmp_path: Path, setting: str) -> None:
    assert "suppression.limit" in refuse(people_job(tmp_path, TABLE), setting)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [("privacy.kk=3", "'k'"), ("supression.limit=0", "'suppression'"), ("memory=1MB", "at least 64MB"), ("method.name=skal", "'skald'")],
)
def test_unknown_keys_come_with_the_nearest_right_one(refuse: Refuse, tmp_path: Path, setting: str, hint: str) -> None:
    assert hint in refuse(people_job(tmp_path, TABLE), setting)


def test_all_faults_of_a_job_are_told_at_once(refuse: Refuse, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, privacy={"k": 0}, memory="much", targett="x", target=None)
    assert sum(line.startswith("  - ") for line in refuse(job).splitlines()) == 4


@pytest.mark.parametrize("content", [None, "", "a: [", "- 1\n", "\xff"])
def test_a_file_that_is_no_job(refuse: Refuse, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "job.yaml").write_bytes(content.encode("latin-1"))
    assert "job.yaml: 1 fault in the job" in refuse(tmp_path / "job.yaml")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_an_empty_source(refuse: Refuse, tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        job = people_job(tmp_path, TABLE.slice(0, 0), files=2)
    else:
        write_csv(tmp_path / "people.csv", TABLE.slice(0, 0))
        job = write_job(tmp_path, job_of(source={"path": "people.csv", "types": CSV_TYPES}))
    assert "The source is empty: " in refuse(job)


def test_a_pattern_that_matches_no_file(refuse: Refuse, tmp_path: Path) -> None:
    said = refuse(people_job(tmp_path, TABLE, source={"path": ["people/*.parquet", "peple/*.parquet"]}))
    assert said.startswith("No file matches 'peple/*.parquet'.")


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop_columns(["visits"]),
        lambda table: table.append_column("more", table["visits"]),
        lambda table: table.set_column(table.column_names.index("visits"), "visits", table["visits"].cast(pa.float64())),
    ],
)
def test_files_whose_columns_differ(refuse: Refuse, tmp_path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    pq.write_table(change(TABLE), tmp_path / "people" / "001.parquet")
    said = refuse(job)
    assert "001.parquet' and '" in said
    assert "000.parquet' differ in '" in said
    assert "'visits'" in said or "'more'" in said


@pytest.mark.parametrize("damage", ["no footer", "empty", "text", "pages zeroed"])
def test_damaged_parquet(refuse: Refuse, tmp_path: Path, damage: str) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    path = tmp_path / "people" / "001.parquet"
    content = path.read_bytes()
    ends = {"no footer": content[:-50], "empty": b"", "text": b"sex,age\n", "pages zeroed": b"PAR1" + bytes(2000) + content[2004:]}
    path.write_bytes(ends[damage])
    assert "001.parquet' cannot be read as parquet" in refuse(job)


def test_ragged_rows_and_wrong_fields_of_csv_are_counted(refuse: Refuse, tmp_path: Path) -> None:
    job = write_job(tmp_path, job_of(source={"path": "people.csv", "types": CSV_TYPES}))
    write_csv(tmp_path / "people.csv", TABLE)
    with (tmp_path / "people.csv").open("a") as file:
        file.write("1,f\r\n2,m\r\n" + "3" + ",1" * 12 + "\r\n" + "x,f" + "," * 9 + "\r\n")
    said = refuse(job)
    assert "people.csv' cannot be read as it is: " in said
    assert "2 rows with too few fields" in said
    assert "1 row with too many fields" in said
    assert '1 row with a "person" not of the type that source.types gives' in said


def test_csv_lines_that_end_in_different_ways(refuse: Refuse, tmp_path: Path) -> None:
    job = write_job(tmp_path, job_of(source={"path": "people.csv", "types": CSV_TYPES}))
    write_csv(tmp_path / "people.csv", TABLE)
    (tmp_path / "people.csv").write_bytes((tmp_path / "people.csv").read_bytes().replace(b"\r\n", b"\n", 30))
    assert "lines that do not all end alike" in refuse(job)


def test_truncated_gzip(refuse: Refuse, tmp_path: Path) -> None:
    write_csv(tmp_path / "plain.csv", TABLE)
    content = gzip.compress((tmp_path / "plain.csv").read_bytes())
    (tmp_path / "people.csv.gz").write_bytes(content[: len(content) // 2])
    job = write_job(tmp_path, job_of(source={"path": "people.csv.gz", "types": CSV_TYPES}))
    assert "people.csv.gz'" in refuse(job)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_in_a_qid_are_counted(refuse: Refuse, tmp_path: Path, value: float) -> None:
    table = pa.table({"q": [1.0, value, 2.0, value] * 3, "s": [1] * 12})
    said = refuse(two_column_job(tmp_path, table, {"widths": [1]}))
    assert said == "Column 'q' holds NaN or infinity in 6 records. Make them null or give them a number."


def test_a_value_of_a_quasi_identifier_takes_at_most_100_kb(refuse: Refuse, tmp_path: Path) -> None:
    long = pa.table({"q": ["a" * 100_001] * 6, "s": ["a"] * 6})
    said = refuse(two_column_job(tmp_path, long, TREE))
    assert said.startswith("Column 'q' holds values of more than 100 kB, which no quasi-identifier may have, and no column")


@pytest.mark.parametrize(("column", "role"), [("q", "a quasi-identifier"), ("s", "published")])
@pytest.mark.parametrize("value", [[1], {"a": 1}], ids=["list", "struct"])
def test_nested_columns(refuse: Refuse, tmp_path: Path, column: str, role: str, value: Any) -> None:
    table = pa.table({"q": ["a"] * 6, "s": ["a"] * 6} | {column: [value] * 6})
    said = refuse(two_column_job(tmp_path, table, TREE))
    assert said.startswith(f"Column '{column}' is of type ")
    assert f"cannot be {role}" in said


def test_a_column_whose_name_bounds_need(refuse: Refuse, tmp_path: Path) -> None:
    table = pa.table({"q": [1] * 6, "q_low": [1] * 6})
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [1]}}], "insensitive": ["q_low"]}
    assert "Column 'q_low'" in refuse(people_job(tmp_path, table, columns=columns, intervals="bounds"))


def test_a_file_that_the_system_does_not_let_us_read(refuse: Refuse, tmp_path: Path) -> None:
    # Reading the start of this file fails for everybody, root included.
    job = people_job(tmp_path, TABLE)
    (tmp_path / "people" / "001.parquet").symlink_to("/proc/self/mem")
    assert "001.parquet' cannot be read as parquet" in refuse(job)


def test_a_target_that_is_no_folder(refuse: Refuse, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    (tmp_path / "releases").write_text("in the way")
    said = refuse(job)
    assert "releases' cannot be written (" in said
    assert (tmp_path / "releases").read_text() == "in the way"


def test_a_work_folder_that_is_no_folder(refuse: Refuse, tmp_path: Path) -> None:
    (tmp_path / "work").write_text("in the way")
    assert "cannot be written" in refuse(people_job(tmp_path, TABLE, work="work"))


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("kilobytes", [0, 1, 3, 6])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_disk_that_is_full(direct: CommandLine, kilobytes: int, kind: str) -> None:
    fails_on_a_full_disk(direct, kilobytes, kind)


@pytest.mark.slow
def test_a_disk_that_is_full_under_prefect(prefect: CommandLine) -> None:
    fails_on_a_full_disk(prefect, 3, "parquet")


@contextmanager
def full_disk(kilobytes: int) -> Iterator[None]:
    """A limit to the size of files fails a write at the place where a full disk would; processes that are begun inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fails_on_a_full_disk(skald: CommandLine, kilobytes: int, kind: str) -> None:
    folder = skald.folder
    assert skald.home.is_dir()
    table = people(3000)
    if kind == "csv":
        write_csv(folder / "people.csv", table)
        write_job(folder, job_of(source={"path": "people.csv", "types": CSV_TYPES}))
    else:
        people_job(folder, table)
    with full_disk(kilobytes):
        done = skald("run", "job.yaml")
    assert done.returncode == 2, done.stderr
    assert "cannot be written (" in done.stderr
    assert "File too large" in done.stderr
    nothing_left(folder)
    after = skald("run", "job.yaml")
    assert after.returncode == 0, after.stderr


def test_a_second_run_while_one_is_at_work(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    work = direct.folder / ".skald" / "people"
    work.mkdir(parents=True)
    with (work / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in ("run", "plan", "clean"):
            done = direct(command, "job.yaml")
            assert (done.returncode, done.stdout) == (2, "")
            assert "Another run is at work in '" in done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert direct("run", "job.yaml").returncode == 0
    page = (ROOT / "docs" / "howto" / "several-releases.md").read_text("utf-8")
    assert f"of one it ends with exit code {done.returncode}" in page


SAID = {
    "k": (["privacy.k=1000"], 3, "k = 1,000 cannot be met by 60 records."),
    "name": (["columns.sensitive=[deseases]"], 2, "(did you mean 'disease'?)"),
    "key": (["privacy.kay=1000"], 2, "privacy"),
    "limit": (["suppression.limit=0.5", "privacy.k=61"], 3, "k = 61 cannot be met by 60 records"),
}


def assert_said_once(line: CommandLine, settings: list[str], code: int, sentence: str) -> None:
    people_job(line.folder, TABLE)
    done = line("run", "job.yaml", *(part for setting in settings for part in ("--set", setting)))
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    nothing_left(line.folder)


@pytest.mark.parametrize("what", SAID)
def test_the_command_line_says_it_once_on_standard_error(direct: CommandLine, what: str) -> None:
    assert_said_once(direct, *SAID[what])


@pytest.mark.slow
def test_under_prefect_too_what_a_step_refuses_is_said_once_on_standard_error(prefect: CommandLine) -> None:
    """What is wrong with a job itself is found before Prefect is imported."""
    assert_said_once(prefect, *SAID["limit"])


@pytest.mark.ci
def test_the_job_of_these_tests_is_sound(anonymise: Anonymise, tmp_path: Path) -> None:
    """Else each of them might be refused for another reason."""
    assert yaml.safe_load(people_job(tmp_path, TABLE).read_text()) == JOB
    assert anonymise(tmp_path / "job.yaml").new
