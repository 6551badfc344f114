"""What ``skald init`` drafts publishes something useful at once, from every source that a run reads."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from schemas.job.job import load_job
from tests.conftest import CommandLine
from tests.jobs import people, write_csv, write_parquet
from tests.servers import objects, postgresql, s3_bucket

CANARY = "CANARY"
BANDS = ["[0-10)", "[10-20)", "[20-30)", "[30-40)", "[40-50)", "[50-60)", "[60-70)"]


def adult(rows: int) -> pa.Table:
    """Columns as the census has them, with what goes together going together."""
    random = np.random.default_rng(1)
    age = random.integers(17, 91, rows)
    years = np.clip(random.normal(10, 2.5, rows).round().astype(int), 1, 16)
    upper = ["HS-grad", "Some-college", "Assoc-voc", "Bachelors", "Masters", "Doctorate", "Prof-school", "Other"]
    schools = np.array([*(f"{number}th" for number in range(1, 9)), *upper])
    works = ["Private", "Self-emp-not-inc", "Local-gov", "State-gov", "Federal-gov"]
    married = random.choice(["Married-civ-spouse", "Divorced", "Widowed"], rows, p=[0.7, 0.2, 0.1])
    return pa.table(
        {
            "age": age,
            "workclass": random.choice(works, rows, p=[0.7, 0.1, 0.1, 0.05, 0.05]),
            "fnlwgt": random.integers(12_000, 1_500_000, rows),
            "education": schools[years - 1],
            "education-num": years,
            "marital-status": np.where(age < 26, "Never-married", married),
            "race": random.choice(["White", "Black", "Asian-Pac-Islander", "Other"], rows, p=[0.85, 0.1, 0.03, 0.02]),
            "sex": random.choice(["Male", "Female"], rows),
            "capital-gain": np.where(random.random(rows) < 0.9, 0, random.integers(100, 99_999, rows)),
            "hours-per-week": np.where(random.random(rows) < 0.5, 40, random.integers(1, 99, rows)),
            "native-country": random.choice(["United-States", "Mexico", "Germany", "Canada"], rows, p=[0.9, 0.05, 0.03, 0.02]),
            "class": np.where(years + random.normal(0, 3, rows) > 12, ">50K", "<=50K"),
        }
    )  # fmt: skip


def nameless(rows: int) -> pa.Table:
    """Columns whose names tell nothing: bands, codes, words, measures, few values, one for each record."""
    random = np.random.default_rng(2)
    return pa.table(
        {
            "c1": random.choice(BANDS, rows),
            "c2": random.choice(["A00.1", "A01.0", "B20.1", "B20.2", "C34.9", "E11.65"], rows),
            "c3": random.normal(0, 1, rows),
            "c4": random.integers(0, 5, rows),
            "c5": [f"{CANARY}{row}" for row in range(rows)],
            "c6": random.choice([f"{color} {thing}" for color in ("red", "blue") for thing in ("ball", "cube", "cone")], rows),
        }
    )


def wide(rows: int) -> pa.Table:
    """Forty columns of figures, one that is empty, one of nulls and two letters."""
    random = np.random.default_rng(3)
    figures = {f"v{number}": random.integers(0, 10 ** (number % 4 + 1), rows) for number in range(40)}
    return pa.table(figures | {"empty": pa.nulls(rows, pa.string()), "k": pa.array(random.choice(["a", "b", None], rows))})


def published(line: CommandLine, job: str = "job.yaml") -> dict[str, Any]:
    done = line("run", job, "--json")
    assert done.returncode == 0, done.stderr
    manifest: dict[str, Any] = json.loads(done.stdout)
    return manifest


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("table", "most"), [(nameless, 0.5), (adult, 0.6), (wide, 0.6)], ids=["nameless", "adult", "wide"])
def test_a_draft_publishes_something_useful_at_once(direct: CommandLine, table: Callable[[int], pa.Table], most: float) -> None:
    write_csv(direct.folder / "in" / "one.csv", table(2000))
    drafted = direct("init", "in")
    assert drafted.returncode == 0, drafted.stderr
    assert CANARY not in drafted.stdout + (direct.folder / "job.yaml").read_text()
    manifest = published(direct)
    assert manifest["loss"]["gcp"] < most
    # What was told of a sample is about what came out.
    [told] = re.findall(r"It would lose (\d+)%", drafted.stdout)
    assert manifest["loss"]["gcp"] == pytest.approx(int(told) / 100, abs=0.15)
    assert manifest["suppressed"] <= 0.01 * 2000


@pytest.mark.slow
@pytest.mark.parametrize(("name", "person"), [("medical", []), ("visits", ["patient_id"])])
def test_the_draft_of_the_example_data_publishes_something_useful_at_once(direct: CommandLine, name: str, person: list[str]) -> None:
    assert direct("make-data", name, "--rows", 20_000, "--out", name).returncode == 0
    assert direct("init", name).returncode == 0
    assert load_job(direct.folder / "job.yaml").columns.person == person
    assert published(direct)["loss"]["gcp"] < 0.6


@pytest.mark.ci
def test_bands_codes_and_words_get_ladders_in_private_files_and_empty_columns_none(direct: CommandLine) -> None:
    write_parquet(direct.folder / "in", nameless(1500).append_column("empty", pa.nulls(1500, pa.string())))
    drafted = direct("init", "in")
    assert drafted.returncode == 0, drafted.stderr
    columns = load_job(direct.folder / "job.yaml").columns
    kinds: dict[str, Any] = {qid.name: qid.hierarchy for qid in columns.quasi_identifiers}
    ladder = [line.split(";") for line in (direct.folder / str(kinds["c1"].csv)).read_text().splitlines()]
    assert sorted(line[0] for line in ladder) == BANDS
    assert {"[0 - 20)", "[20 - 40)", "[40 - 60)"} <= {line[1] for line in ladder}
    words = [line.split(";") for line in (direct.folder / str(kinds["c6"].csv)).read_text().splitlines()]
    assert {line[1] for line in words} == {"red …", "blue …"}
    assert kinds["c2"].prefix == [6, 5, 4, 3, 2, 1]
    # One for each record, or nothing at all; measures are coarsened.
    assert (columns.identifiers, columns.withheld) == (["c5"], ["empty"])
    written = list((direct.folder / "hierarchies").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    assert "2 hierarchy files" in drafted.stdout


@pytest.mark.ci
def test_bands_that_look_like_codes_are_joined_with_their_neighbours(direct: CommandLine) -> None:
    bands = ["0-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60+"]
    write_parquet(direct.folder / "in", pa.table({"age": bands * 100, "sex": ["f", "m"] * 350}))
    assert direct("init", "in").returncode == 0
    assert "0-9;0 - 19;0 - 39;*" in (direct.folder / "hierarchies" / "age.csv").read_text()
    assert published(direct)["loss"]["gcp"] == 0


@pytest.mark.ci
def test_a_hierarchy_that_lies_beside_the_data_is_used_if_it_has_every_value_and_never_written_over(direct: CommandLine) -> None:
    folder = direct.folder
    write_csv(folder / "in" / "one.csv", nameless(1500).drop_columns(["c3"]))
    (folder / "in" / "nameless_hierarchy_c6.csv").write_text(
        "\n".join(f"{c} {t},{t},*" for c in ("red", "blue") for t in ("ball", "cube", "cone"))
    )
    (folder / "hierarchies").mkdir()
    (folder / "hierarchies" / "c1.csv").write_text("[0-10);young;*\n")
    assert direct("init", "in").returncode == 0
    job = load_job(folder / "job.yaml")
    kinds: dict[str, Any] = {qid.name: qid.hierarchy for qid in job.columns.quasi_identifiers}
    assert (str(kinds["c6"].csv), kinds["c6"].delimiter) == ("in/nameless_hierarchy_c6.csv", ",")
    assert str(kinds["c1"].csv) == "hierarchies/c1-2.csv"
    assert (folder / "hierarchies" / "c1.csv").read_text() == "[0-10);young;*\n"
    assert published(direct)["records"] == 1500


def test_a_draft_says_what_each_column_gives_away(direct: CommandLine) -> None:
    write_parquet(direct.folder / "in", nameless(1500))
    assert direct("init", "in").returncode == 0
    text = (direct.folder / "job.yaml").read_text()
    figures = [float(found) for found in re.findall(r"alone by it ([\d.]+)% of the records", text)]
    names = re.findall(r"^    - (?:\{name: )?(c\d)\b.*alone by it", text, re.MULTILINE)
    assert sorted(names) == ["c1", "c2", "c3", "c4", "c6"]
    told = dict(zip(names, figures, strict=True))
    assert told.pop("c3") > 90
    assert max(told.values()) < 1


@pytest.mark.slow
@pytest.mark.parametrize(("share", "asked"), [(0.4, 3), (0.7, 2), (0.9, None)])
def test_l_is_what_the_data_can_keep(direct: CommandLine, share: float, asked: int | None) -> None:
    random = np.random.default_rng(4)
    rest = (1 - share) / 4
    diagnosis = random.choice(["a", "b", "c", "d", "e"], 800, p=[share, *[rest] * 4])
    write_parquet(direct.folder / "in", pa.table({"age": random.integers(18, 90, 800), "diagnosis": diagnosis}))
    assert direct("init", "in").returncode == 0
    models = load_job(direct.folder / "job.yaml").privacy.l
    assert (models["diagnosis"].distinct if asked else models) == (asked or {})
    published(direct)


def as_arrow(folder: Path, table: pa.Table) -> list[str]:
    feather.write_feather(table, str(folder / "people.feather"))
    return ["people.feather"]


def as_duckdb(folder: Path, table: pa.Table) -> list[str]:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return ["people.duckdb", "--table", "people"]


def as_query(folder: Path, table: pa.Table) -> list[str]:
    return [*as_duckdb(folder, table)[:1], "--query", "SELECT * FROM people WHERE zip IS NOT NULL OR zip IS NULL"]


def as_pattern(folder: Path, table: pa.Table) -> list[str]:
    write_parquet(folder / "deep" / "er", table, files=3)
    return ["deep/**/*.parquet"]


def as_partitions(folder: Path, table: pa.Table) -> list[str]:
    pq.write_to_dataset(
        table.append_column("region", pa.array(["North", "South"] * (len(table) // 2))), folder / "parts", partition_cols=["region"]
    )
    return ["parts"]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("written", [as_arrow, as_duckdb, as_pattern, as_query, as_partitions], ids=lambda one: one.__name__)
def test_every_source_here_that_a_run_reads_is_drafted_from(direct: CommandLine, written: Callable[[Path, pa.Table], list[str]]) -> None:
    given = written(direct.folder, people(400))
    (direct.folder / "jobs").mkdir()
    drafted = direct("init", *given, "--out", "jobs/first.yaml")
    assert drafted.returncode == 0, drafted.stderr
    assert published(direct, "jobs/first.yaml")["records"] == 400


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_bucket_is_drafted_from(direct: CommandLine, kind: str) -> None:
    with s3_bucket() as environment:
        write = write_parquet if kind == "parquet" else (lambda folder, table: write_csv(folder / "one.csv", table))
        write(direct.folder / "in", people(400))
        for path in (direct.folder / "in").iterdir():
            objects().put(str(path), f"bucket/in/{path.name}")
        drafted = direct("init", f"s3://bucket/in/*.{kind}", **environment)
        assert drafted.returncode == 0, drafted.stderr
        assert not copies_in(direct.folder)
        done = direct("run", "job.yaml", "--json", **environment)
        assert done.returncode == 0, done.stderr


def copies_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "fetched" in path.parts]


@pytest.mark.slow
def test_a_draft_that_fails_leaves_no_copy_of_an_object(direct: CommandLine) -> None:
    (direct.folder / "broken.csv").write_bytes(b'a,b\n"1,2\n' * 3 + b"\xff\xfe\n")
    with s3_bucket() as environment:
        objects().put(str(direct.folder / "broken.csv"), "bucket/in/broken.csv")
        refused = direct("init", "s3://bucket/in/broken.csv", **environment)
    assert refused.returncode == 2, refused.stderr
    assert not copies_in(direct.folder)


@pytest.mark.slow
def test_a_server_is_drafted_from_and_its_password_never_written(direct: CommandLine) -> None:
    with postgresql() as address:
        import adbc_driver_postgresql.dbapi as driver

        with driver.connect(address) as server, server.cursor() as cursor:
            cursor.adbc_ingest("people", people(400))
            server.commit()
        untyped = direct("init", address, "--table", "people")
        assert (untyped.returncode, "'height' is numeric in PostgreSQL" in untyped.stderr) == (2, True)
        drafted = direct("init", address, "--table", "people", "--type", "height=decimal(4,1)")
        assert drafted.returncode == 0, drafted.stderr
        assert published(direct)["records"] == 400
    refused = direct("init", "postgresql://reader:CANARY@host/shop", "--table", "people", "--out", "other.yaml")
    assert refused.returncode == 2
    assert CANARY not in refused.stderr
    assert not (direct.folder / "other.yaml").exists()


def test_a_database_without_a_table_and_no_source_at_all_are_told(direct: CommandLine) -> None:
    as_duckdb(direct.folder, people(20))
    for arguments, sentence in ((["people.duckdb"], "one of its tables with --table"), ([], "name a source")):
        done = direct("init", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
