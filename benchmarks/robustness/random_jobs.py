"""Random jobs over random small sources: each ends as a job may end.

Plain Python counts again what it published.

A source has records of persons, quasi-identifiers of every kind, nulls, rare values and a column that numbers the records. That column is
published, so that a reader of the release who has the source knows whose each record is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.robustness.cases import releases
from benchmarks.robustness.commands import Commands, Ended
from benchmarks.robustness.counted_again import faults_of
from benchmarks.robustness.tally import Tally

Table = dict[str, list[Any]]

CITIES = {"north": ["Arle", "Boden"], "south": ["Cray", "Dorn", "Esk"]}
GRADES = "a;low;any\nb;low;any\nc;high;any\nd;high;any\n"
QIDS: dict[str, dict[str, Any]] = {
    "age": {"widths": [1, 5, 10, 40]},
    "height": {"widths": [0.5, 10, 50]},
    "city": {"tree": {"*": CITIES}},
    "zip": {"prefix": [5, 3, 1]},
    "born": {"date": ["day", "month", "year", "decade"]},
    "grade": {"csv": "grade.csv"},
}


def random_jobs(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Draw a job and its source, run and verify it, and count its release again; yield after each."""
    number = 0
    while True:
        number += 1
        here = folder / f"job-{number}"
        here.mkdir(parents=True)
        table = source(random)
        job = job_for(random, table)
        write(here, table, job, random)
        ended = commands(here, "run", "job.yaml")
        fault = wrong_end(ended) or (_wrong_release(commands, here, table, job) if ended.code == 0 else "")
        kind = {0: "released and counted again", 3: "refused: the promise", 2: "refused: the job or its data"}.get(ended.code, "broken")
        tally.add("jobs", kind, f"{here.name}, {job['method']['name']}: {fault}" if fault else "")
        yield


def source(random: Random) -> Table:
    """Return the columns of a source of some tens or hundreds of records, by name."""
    rows = random.choice([random.randint(20, 80), random.randint(80, 400)])
    persons = max(1, int(rows * random.choice([0.4, 0.7, 1])))
    nulls = random.choice([0, 0, 0.05, 0.3])

    def drawn(value: Any) -> Any:
        return None if random.random() < nulls else value

    many = random.choice([4, 20, 90])
    table: Table = {"number": random.sample(range(rows * 3), rows), "person": [f"P{random.randrange(persons):04}" for _ in range(rows)]}
    table["name"] = [f"{person} of {random.choice('xyz')}" for person in table["person"]]
    if random.random() < 0.3:
        table["person"] = [drawn(person) for person in table["person"]]
    table["age"] = [drawn(min(110, int(random.gauss(40, many / 4)))) for _ in range(rows)]
    table["height"] = [drawn(round(random.gauss(170, many / 9), 1)) for _ in range(rows)]
    table["city"] = [drawn(random.choice(["Arle", "Arle", "Boden", "Cray", "Dorn", "Esk"])) for _ in range(rows)]
    table["zip"] = [drawn(f"{random.choice('12')}{random.randrange(many):04}") for _ in range(rows)]
    table["born"] = [drawn(date(1960, 1, 1) + timedelta(days=int(random.random() ** 2 * many * 200))) for _ in range(rows)]
    table["grade"] = [drawn(random.choice("aabcd")) for _ in range(rows)]
    table["illness"] = [drawn(f"illness {int(random.expovariate(0.5))}") for _ in range(rows)]
    table["income"] = [drawn(round(random.lognormvariate(8, 1))) for _ in range(rows)]
    return table


def job_for(random: Random, table: Table) -> dict[str, Any]:
    """Return a job for a source, some of whose settings are drawn."""
    qids = random.sample(sorted(QIDS), random.randint(1, 4))
    columns: dict[str, Any] = {"quasi_identifiers": [{"name": name, "hierarchy": QIDS[name]} for name in qids], "insensitive": ["number"]}
    if random.random() < 0.15:
        columns["quasi_identifiers"][0]["exact"] = False
    if of_persons := random.random() < 0.5:
        columns["person"] = "person"
        if random.random() < 0.2:
            columns["most_records"] = random.randint(1, 3)
    identifiers: list[Any] = ["name"] if of_persons else ["name", "person"]
    if random.random() < 0.25:
        identifiers[-1] = {"name": identifiers[-1], "treatment": {"hash": {"key": {"file": "key"}}}}
        columns["linkable"] = [identifiers[-1]["name"]]
    columns["identifiers"] = identifiers
    columns["sensitive"] = [_published(random, name) for name in random.sample(["illness", "income"], random.randint(0, 2))]
    named = {one if isinstance(one, str) else one["name"] for one in columns["sensitive"]}
    columns["withheld"] = [name for name in table if name not in {*qids, *named, "number", "name", "person"}]
    method = _method(random, qids, of_persons=of_persons)
    exact = all(qid.get("exact", True) for qid in columns["quasi_identifiers"])
    return {
        "version": 1,
        "name": "people",
        "source": {"path": "people/*.parquet"},
        "columns": columns,
        "privacy": _privacy(random, named),
        "suppression": (suppression := _suppression(random, method)),
        "method": method,
        "memory": "256MB",
        "chunk_rows": random.choice([37, 100_000]),
        "threads": random.choice([1, 2]),
        "endpoints": random.choice(["shared", "shared", "observed"]),
        "intervals": "bounds" if exact and _takes_bounds(method, suppression) and random.random() < 0.3 else "text",
        "overlaps": random.choice(["warn", "refuse"]),
        "attacks": random.choice(["sample", "off"]),
        "target": "releases",
    }


def _takes_bounds(method: Mapping[str, Any], suppression: Mapping[str, Any]) -> bool:
    """Return whether bounds of a column can be published.

    They cannot for masked records, later passes, and numbers by another generalisation.
    """
    return suppression.get("treatment", "drop") == "drop" and not suppression.get("rounds") and "generalisation" not in method


def _published(random: Random, name: str) -> Any:
    ways: list[Any] = [None, None, "shared"]
    if name == "income":
        ways += [{"round": 500}, {"top": 6000, "bottom": 1000}, {"microaggregate": 9}]
    way = random.choice(ways)
    return name if way is None else {"name": name, "publish": way}


def _privacy(random: Random, sensitive: set[str]) -> dict[str, Any]:
    privacy: dict[str, Any] = {"k": random.randint(2, 8)}
    if "illness" in sensitive and random.random() < 0.5:
        kinds = ({"distinct": random.randint(2, 3)}, {"entropy": 1.5}, {"recursive": {"c": 3, "l": 2}}, {"distinct": 2, "nulls": "value"})
        privacy["l"] = {"illness": random.choice(kinds)}
    if sensitive and random.random() < 0.3:
        name = random.choice(sorted(sensitive))
        distance = random.choice(["equal", "ordered"]) if name == "income" else "equal"
        privacy["t"] = {name: {"t": random.choice([0.3, 0.6]), "distance": distance}}
    return privacy


def _suppression(random: Random, method: Mapping[str, Any]) -> dict[str, Any]:
    suppression: dict[str, Any] = {"limit": random.choice([0, 0.05, 0.3])}
    if method["name"] == "skald" and suppression["limit"] and method["linked"] == "tell":
        suppression["treatment"] = random.choice(["drop", "mask", "cell"])
        suppression["rounds"] = random.choice([0, 0, 2])
    return suppression


def _method(random: Random, qids: list[str], *, of_persons: bool) -> dict[str, Any]:
    name = random.choice(["skald"] * 4 + ["mondrian"] * 3 + ["kmember", "kmember", "rayden", "canon", "mondrian_cof", "clustering"])
    method: dict[str, Any] = {"name": name}
    if name == "skald":
        method["objective"] = random.choice(["dm_star", "dm_all", "c_avg", "precision", "gcp", "gcp_covered", "entropy"])
        method["linked"] = "keep" if of_persons and random.random() < 0.3 else "tell"
        if random.random() < 0.2:
            method["levels"] = {random.choice(qids): [0, 2]}
        return method
    if name == "mondrian":
        method["score"] = random.choice(["representativity", "entropy", "span", "normalised_span", "ncp"])
        method["mode"] = "strict" if method["score"] == "ncp" else random.choice(["strict", "median", "relaxed"])
    if name in {"mondrian", "kmember"}:
        method["generalisation"] = {qid: random.choice(["hierarchy", "set"]) for qid in qids if random.random() < 0.4}
    elif random.random() < 0.3:
        method["exchange"] = True
    if random.random() < 0.2:
        method["fragments"] = {"count": 2}
    return method


def write(folder: Path, table: Table, job: Mapping[str, Any], random: Random) -> None:
    """Write a job, its hierarchy, its key and its source, in some files."""
    (folder / "job.yaml").write_text(yaml.safe_dump(dict(job), sort_keys=False), encoding="utf-8")
    (folder / "grade.csv").write_text(GRADES, encoding="utf-8")
    (folder / "key").write_text(f"{random.getrandbits(256):064x}", encoding="utf-8")
    (folder / "key").chmod(0o600)
    (folder / "people").mkdir()
    texts = {name: pa.string() for name in ("person", "name", "city", "zip", "grade", "illness")}
    types = texts | {"number": pa.int64(), "age": pa.int64(), "income": pa.int64(), "height": pa.float64(), "born": pa.date32()}
    whole = pa.table({name: pa.array(values, types[name]) for name, values in table.items()})
    files = random.choice([1, 1, 3])
    for number in range(files):
        first, last = (len(whole) * one // files for one in (number, number + 1))
        pq.write_table(whole.slice(first, last - first), folder / "people" / f"{number}.parquet")


def wrong_end(ended: Ended) -> str:
    """Return what is wrong with the end of a job whose form is right."""
    if ended.code not in {0, 2, 3} or "Traceback" in ended.out + ended.said:
        return f"ended with {ended.code}: {' '.join(ended.said.split())[-300:]}"
    return ""


def _wrong_release(commands: Commands, folder: Path, table: Table, job: Mapping[str, Any]) -> str:
    [release] = releases(folder)
    verified = commands(folder, "verify", release, "--job", "job.yaml")
    if verified.code:
        return f"verify ended with {verified.code}: {' '.join(verified.said.split())[-300:]}"
    return "; ".join(faults_of(release, table, job))
