"""Random tables of everyday kinds: each is drafted, planned, run, verified and counted again.

Nobody edits the draft.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import yaml
from pyarrow import csv as arrow_csv

from benchmarks.robustness.commands import Commands
from benchmarks.robustness.counted_again import labels_of, released_rows
from benchmarks.robustness.random_jobs import wrong_end
from benchmarks.robustness.tally import Tally

FIRST = ("Anna", "Ben", "Carl", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana", "Karl", "Lea", "Max", "Nora", "Otto", "Quin")
LAST = ("Adler", "Berg", "Cole", "Dietz", "Evans", "Falk", "Gray", "Huber", "Irving", "Jung", "Klein", "Lang", "Moser", "Nagel")


def random_drafts(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Draw a table, and take the way of a new user with it; yield after each."""
    number = 0
    while True:
        number += 1
        here = folder / f"draft-{number}"
        here.mkdir(parents=True)
        source = write_table(here, random)
        fault = drafted_and_run(commands, here, source)
        tally.add("drafts", source.suffix[1:], f"{here.name}: {fault}" if fault else "")
        yield


def drafted_and_run(commands: Commands, folder: Path, source: Path) -> str:
    """Return what is wrong with a draft or with what comes of it."""
    for command in (
        ("init", source.name, "--out", "job.yaml", "--accept"),
        ("plan", "job.yaml"),
        ("run", "job.yaml"),
    ):
        ended = commands(folder, *command)
        if ended.code or (fault := wrong_end(ended)):
            return f"{command[0]} ended with {ended.code}: {fault or ' '.join(ended.said.split())[-300:]}"
    [manifest] = folder.glob("releases/*/*/manifest.json")
    verified = commands(folder, "verify", manifest.parent, "--job", "job.yaml")
    return f"verify ended with {verified.code}" if verified.code else "; ".join(faults_of_draft(manifest, folder / "job.yaml"))


def faults_of_draft(manifest: Path, job_file: Path) -> Iterator[str]:
    """Yield which promises of its draft a release breaks.

    Faults are small classes, identifiers, and hardly a record left.
    """
    job = yaml.safe_load(job_file.read_text(encoding="utf-8"))
    rows, columns = released_rows(manifest.parent), job["columns"]
    classes = Counter(labels_of(row, columns) for row in rows)
    if columns["quasi_identifiers"] and min(classes.values()) < job["privacy"]["k"]:
        yield "a class of fewer than k"
    if [name for name in columns["identifiers"] if isinstance(name, str) and name in rows[0]]:
        yield "an identifier is published"
    if len(rows) < json.loads(manifest.read_text(encoding="utf-8"))["records"] / 2:
        yield "more than half of the records are suppressed"


def write_table(folder: Path, random: Random) -> Path:
    """Write a table of everyday columns about people, as CSV or Parquet, and return its path."""
    rows, able = random.choice([60, 300, 1500]), columns(random)
    names = random.sample(sorted(able), random.randint(3, 10))
    nulls = {name: random.choice([0, 0, 0, 0.03, 0.4]) for name in names}
    delimiter = random.choice([",", ";", "\t"])
    path = folder / ("table.tsv" if delimiter == "\t" else "table.csv")
    spelled, encoding = random.choice(SPELLINGS)
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(names)
        writer.writerows([["" if random.random() < nulls[name] else spelled(able[name]()) for name in names] for _ in range(rows)])
    if spelled is not as_it_is or encoding != "utf-8" or random.random() < 0.7:
        return path
    pq.write_table(arrow_csv.read_csv(path, parse_options=arrow_csv.ParseOptions(delimiter=delimiter)), path.with_suffix(".parquet"))
    path.unlink()
    return path.with_suffix(".parquet")


def as_it_is(value: Any) -> Any:
    """Return a value as Python writes it."""
    return value


def as_in_germany(value: Any) -> Any:
    """Return a value with a decimal comma and parted thousands, or a day as 31.01.2024."""
    if isinstance(value, float):
        return f"{value:,.2f}".translate({ord(","): ".", ord("."): ","})
    return re.sub(ISO_DAY, r"\3.\2.\1", value) if isinstance(value, str) else value


def as_in_america(value: Any) -> Any:
    """Return a value with thousands parted by commas, or a day as 01/31/2024."""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return re.sub(ISO_DAY, r"\2/\3/\1", value) if isinstance(value, str) else value


ISO_DAY = r"^(\d{4})-(\d{2})-(\d{2})\b"
SPELLINGS = [(as_it_is, "utf-8")] * 4 + [(as_in_germany, "utf-8"), (as_in_germany, "windows-1252"), (as_in_america, "utf-8-sig")]
"""Spellings of values, and encodings; one is drawn for each table."""


def columns(random: Random) -> dict[str, Callable[[], Any]]:
    """Return by name what draws a value of a column."""
    many, persons = random.choice([5, 30, 200]), random.choice([20, 1000])
    first, began = date(1930, 1, 1), datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    return {
        "name": lambda: f"{random.choice(FIRST)} {random.choice(LAST)}",
        "email": lambda: f"{random.choice(FIRST).lower()}{random.randrange(999)}@example.org",
        "patient_id": lambda: f"P{random.randrange(persons):05}",
        "uuid": lambda: f"{random.getrandbits(128):032x}",
        "age": lambda: max(0, min(101, int(random.gauss(45, 18)))),
        "year_of_birth": lambda: random.randint(1930, 2010),
        "dob": lambda: str(first + timedelta(days=random.randrange(30_000))),
        "zip": lambda: f"{random.choice('012')}{random.randrange(many):04}",
        "postcode": lambda: (
            f"{random.choice('ABC')}{random.randint(1, 20)} {random.randint(1, 9)}{random.choice('XY')}{random.choice('QW')}"
        ),
        "city": lambda: random.choice(["Graz", "Wien", "Linz", "Salzburg", "Köln", "São Paulo"]),
        "Country": lambda: random.choice(["AT", "DE", "CH", "AT", "DE", "IT"]),
        "lat": lambda: round(random.uniform(46, 49), 5),
        "lon": lambda: round(random.uniform(9, 17), 5),
        "sex": lambda: random.choice("mf"),
        "gender": lambda: random.choice(["male", "female", "diverse"]),
        "job title": lambda: random.choice(["nurse", "teacher", "driver", "clerk", "farmer", "judge"]),
        "admitted": lambda: (began + timedelta(minutes=random.randrange(500_000))).isoformat(sep=" "),
        "visits": lambda: int(random.expovariate(0.5)),
        "salary": lambda: round(random.lognormvariate(10, 0.6)),
        "income": lambda: round(random.lognormvariate(10, 0.6), 2),
        "amount €": lambda: f"{random.randint(0, 5000)},{random.randint(0, 99):02}",
        "percent": lambda: f"{random.randint(0, 100)}%",
        "weight": lambda: round(random.gauss(75, 14), 1),
        "height_cm": lambda: int(random.gauss(172, 9)),
        "diagnosis": lambda: random.choice(["flu"] * 9 + ["asthma"] * 4 + ["cancer", "HIV"]),
        "icd10": lambda: f"{random.choice('ABCJK')}{random.randint(0, 20):02}.{random.randint(0, 9)}",
        "smoker": lambda: random.choice(["yes", "no", "Yes", " no"]),
        "score": lambda: random.randint(0, 5),
        "active": lambda: random.choice(["true", "false"]),
        "notes": lambda: " ".join(random.choice(FIRST + LAST) for _ in range(random.randint(3, 12))),
        "phone": lambda: f"+43 {random.randint(600, 699)} {random.randint(100_000, 999_999)}",
        "ip": lambda: f"10.{random.randint(0, 9)}.{random.randint(0, 255)}.{random.randint(1, 254)}",
        "constant": lambda: "x",
        "empty": lambda: "",
        "group by": lambda: random.choice("abc"),
        "select": lambda: random.randint(1, 3),
    }
