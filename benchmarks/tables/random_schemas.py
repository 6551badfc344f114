"""Releases of random small schemas: no history of published tables may be of fewer than k persons.

DuckDB joins every subset of the published tables to check this.

    python -m benchmarks.tables.random_schemas [--schemas N] [--first SEED]

A schema has one to four tables in a random tree, keys and references of one or two columns under names that a careless statement would take
for its own, nulls, orphans, tables without rows, bounds of rows, both methods, ``knows``, l, t and ``publish``. Every job runs in this
process with its recount. A reader of some of the tables groups their rows by the nearest reference. One database is used for all steps.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

NAMES = (
    "id",
    "person",
    "text",
    "nearest",
    "value",
    "row",
    "status",
    "Key",
    "a0",
    "p0",
    "k0",
    "q0",
    "srow",
    "depth",
    "its text",
    "place",
    "many",
)
_READER = duckdb.connect
TREE = {"*": ["a", "b"], "c": ["c"]}
Draw = np.random.Generator
Found = dict[str, Any]


def quote(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def some_schema(random: Draw) -> tuple[Found, dict[str, pa.Table]]:
    """Return a job, without its sources, and its tables."""
    drawn = Schema(random, [str(name) for name in random.permutation(["person", "visit", "text", "note"])[: int(random.integers(1, 5))]])
    for place in range(len(drawn.names)):
        drawn.add(place)
    return _job(random, drawn.names, drawn.tables), drawn.content


class Schema:
    """Tables as they are drawn, each below an earlier one."""

    def __init__(self, random: Draw, names: list[str]) -> None:
        self.random, self.names = random, names
        self.tables, self.content = dict[str, Any](), dict[str, pa.Table]()
        self.owners = dict[str, list[int]]()

    def add(self, place: int) -> None:
        """Draw a table."""
        random, name, taken = self.random, self.names[place], iter(map(str, self.random.permutation(NAMES)))
        parent = self.names[int(random.integers(0, place))] if place else None
        spec: Found = {"columns": {}}
        above = self._rows_above(parent) if parent else []
        rows = len(above) if parent else int(random.integers(12, 60))
        self.owners[name] = [self.owners[parent][row] for row in above] if parent else list(range(rows))
        columns: dict[str, Any] = {}
        if parent is None or place < len(self.names) - 1 or random.random() < 0.5:
            spec["key"] = [next(taken) for _ in range(int(random.choice([1, 1, 2])))]
            keys = random.permutation(rows)
            columns[spec["key"][0]] = keys
            columns |= {other: np.array([f"x{one % 3}" for one in keys], object) for other in spec["key"][1:]}
        if parent:
            columns |= self._references(name, parent, above, spec, taken)
        columns |= self._quasi_identifiers(rows, spec, taken, least=0 if parent else 1) | self._measure(rows, spec, taken)
        self.content[name], self.tables[name] = pa.table(columns), spec

    def _rows_above(self, parent: str) -> list[int]:
        each = self.random.choice([0, 0, 1, 1, 2, 3], len(self.owners[parent]))
        return [row for row, many in enumerate(each) for _ in range(int(many))] if self.random.random() > 0.05 else []

    def _references(self, name: str, parent: str, above: list[int], spec: Found, taken: Iterator[str]) -> Found:
        """Draw references: to the parent, and now and then to the unit.

        Where the parent's is null, the unit's takes its place; elsewhere the unit's may be null.
        """
        random, rows, unit, columns = self.random, len(above), self.names[0], dict[str, Any]()
        referred = [parent, unit] if parent != unit and random.random() < 0.5 else [parent]
        lone = random.random(rows) < (0.2 if len(referred) > 1 else 0)
        spec["references"] = {}
        for other, whose in zip(referred, (above, self.owners[name]), strict=False):
            mine = [next(taken) for _ in self.tables[other]["key"]]
            spec["references"][", ".join(mine)] = other
            left = lone if other == parent else ~lone & (random.random(rows) < 0.3)
            for column, key in zip(mine, self.tables[other]["key"], strict=True):
                values = self.content[other][key]
                columns[column] = pa.array(values.take(pa.array(whose, pa.int64())).to_pylist(), values.type, mask=left)
        if random.random() < 0.3:
            spec["rows"] = {"most": int(random.integers(1, 4))}
        return columns

    def _quasi_identifiers(self, rows: int, spec: Found, taken: Iterator[str], least: int) -> Found:
        random, columns = self.random, dict[str, Any]()
        spec["columns"]["quasi_identifiers"] = []
        for number in range(int(random.integers(least, 3))):
            qid = next(taken) if random.random() < 0.3 else f"q {number}"
            missing = random.random(rows) < random.choice([0, 0.1])
            if random.random() < 0.5:
                columns[qid] = pa.array(random.integers(0, 20, rows), pa.int64(), mask=missing)
                hierarchy: Found = {"widths": [5, 10]}
            else:
                columns[qid] = pa.array(random.choice(["a", "b", "c"], rows).astype(object), pa.string(), mask=missing)
                hierarchy = {"tree": TREE}
            spec["columns"]["quasi_identifiers"].append({"name": qid, "hierarchy": hierarchy})
        return columns

    def _measure(self, rows: int, spec: Found, taken: Iterator[str]) -> Found:
        random = self.random
        if random.random() < 0.4:
            return {}
        column = next(taken) if random.random() < 0.3 else "measure"
        way = [None, "shared", "shared", {"microaggregate": 3}, {"round": 4}][int(random.integers(0, 5))]
        spec["columns"]["sensitive"] = [column if way is None else {"name": column, "publish": way}]
        if way in (None, "shared") and random.random() < 0.5:
            return {column: pa.array([f"v{abs(round(one))}" for one in random.normal(0, 2, rows)], pa.string())}
        missing = random.random(rows) < random.choice([0, 0.1])
        return {column: pa.array(np.round(random.exponential(4, rows)), pa.float64(), mask=missing)}


def _job(random: Draw, names: list[str], tables: Found) -> Found:
    job: Found = {"version": 2, "name": "random", "tables": {str(name): tables[str(name)] for name in random.permutation(names)}}
    privacy: Found = {"k": int(random.integers(2, 6))}
    job["method"] = {"name": "mondrian" if random.random() < 0.35 else "skald"}
    diverse = [name for name in names if tables[name]["columns"].get("sensitive")]
    if len(names) > 1 and job["method"]["name"] == "skald" and random.random() < 0.15:
        privacy["knows"] = {"rows": int(random.integers(1, 3))}
    elif diverse and random.random() < 0.3:
        name = str(random.choice(diverse))
        [one] = tables[name]["columns"]["sensitive"]
        kind = {"l": {"distinct": 2}, "t": {"distance": "equal", "t": 0.5}}
        section = str(random.choice(list(kind)))
        privacy[section] = {name: {one if isinstance(one, str) else one["name"]: kind[section]}}
    rows = 0.8 if job["method"]["name"] == "mondrian" else float(random.choice([0, 0.3]))
    return job | {
        "privacy": privacy,
        "suppression": {"limit": float(random.choice([0.2, 0.7])), "rows": rows},
        "attacks": "off",
        "memory": "64MB",
    }


def _orphaned(random: Draw, job: Found, content: dict[str, pa.Table]) -> None:
    """Let some references find nobody."""
    for name, spec in job["tables"].items():
        for written in spec.get("references", {}):
            column = written.split(", ")[0]
            table = content[name]
            if len(table) and pa.types.is_integer(table[column].type) and random.random() < 0.5:
                values = table[column].to_pylist()
                values[0] = None if random.random() < 0.3 else 9_999
                content[name] = table.set_column(table.schema.get_field_index(column), column, pa.array(values, table[column].type))


class Reader:
    """Somebody who joins published tables."""

    def __init__(self, job: Found, release: Path) -> None:
        self.job, self.connection = job, _READER()
        self.unit = next(name for name, spec in job["tables"].items() if not spec.get("references"))
        self.order = self._order()
        for name in job["tables"]:
            read = f"SELECT row_number() OVER () AS its_row, * FROM read_parquet('{release}/data/{name}/*.parquet')"
            self.connection.execute(f"CREATE TABLE {quote('t ' + name)} AS {read}")
        for name in self.order:
            self._own(name)

    def _order(self) -> list[str]:
        found = [self.unit]
        while len(found) < len(self.job["tables"]):
            found += [
                name for name, spec in self.job["tables"].items() if name not in found and set(spec["references"].values()) <= {*found}
            ]
        return found

    def references(self, name: str) -> list[tuple[str, list[str]]]:
        """Return the tables that a table refers to, nearest first, and the columns of each."""
        found = [(other, written.split(", ")) for written, other in self.job["tables"][name].get("references", {}).items()]
        return sorted(found, key=lambda one: -self.order.index(one[0]))

    def key(self, name: str) -> str:
        """Return the key of a row as one text."""
        return _text(f"r.{quote(column)}" for column in self.job["tables"][name].get("key", []))

    def _own(self, name: str) -> None:
        """Make the rows of a table with labels, key, person and nearest reference.

        Nothing of the product is used.
        """
        qids = [f"r.{quote(qid['name'])}" for qid in self.job["tables"][name]["columns"]["quasi_identifiers"]]
        near = [(other, _text(f"r.{quote(one)}" for one in columns)) for other, columns in self.references(name)]
        key = self.key(name) if self.job["tables"][name].get("key") else "NULL"
        kind = "CASE " + " ".join(f"WHEN {text} IS NOT NULL THEN '{other}'" for other, text in near) + " END" if near else "NULL"
        which = f"coalesce({', '.join(text for _, text in near)})" if near else "NULL"
        person = "'p' || row_number() OVER ()" if not near else "NULL"
        if near:
            joined = " ".join(f"LEFT JOIN {quote('r ' + other)} AS j{n} ON j{n}.its_key = {text}" for n, (other, text) in enumerate(near))
            person = f"coalesce({', '.join(f'j{n}.its_person' for n in range(len(near)))})"
        else:
            joined = ""
        # A join keeps no order: rows are found again by their numbers.
        own = (
            f"r.its_row, {_labels(qids)} AS its_label, {key} AS its_key, {kind} AS its_kind, {which} AS its_parent, {person} AS its_person"
        )
        self.connection.execute(f"CREATE TABLE {quote('r ' + name)} AS SELECT {own} FROM {quote('t ' + name)} AS r {joined}")

    def _texts(self, some: Sequence[str]) -> dict[str, str]:
        """Return what reads the rows of some tables with the texts of their labels.

        A text includes that of all rows that hang from its row.
        """
        texts, below = dict[str, str](), dict[str, list[str]]()
        for name in [one for one in reversed(self.order) if one in some]:
            parts = ["r.its_label"]
            for child in below.get(name, []):
                hanging = f"FROM {texts[child]} AS c WHERE c.its_kind = '{name}' AND c.its_parent = r.its_key"
                parts.append(f"(SELECT coalesce(string_agg(c.t, ',' ORDER BY c.t), '') {hanging})")
            texts[name] = f"(SELECT r.*, concat_ws('/', {', '.join(parts)}) AS t FROM {quote('r ' + name)} AS r)"
            for other, _ in self.references(name):
                below.setdefault(other, []).append(name)
        return texts

    def rarest(self, some: Sequence[str]) -> int:
        """Return how many persons share what fewest share of some tables."""
        texts, parts = self._texts(some), list[str]()
        if self.unit in some:
            parts.append(f"SELECT '' AS kind, t, its_person FROM {texts[self.unit]}")
        # Of tables that hang from none of these, rows of one owner are one thing: persons, or what their reference names.
        listed = ", ".join(f"'{one}'" for one in some)
        tops = [
            f"SELECT its_kind, its_parent, its_person, '{name}' || string_agg(t, ',' ORDER BY t) AS t FROM {texts[name]} "
            f"WHERE its_kind NOT IN ({listed}) GROUP BY 1, 2, 3"
            for name in some
            if name != self.unit
        ]
        if tops:
            owned = f"({' UNION ALL '.join(tops)}) GROUP BY its_kind, its_parent, its_person"
            parts.append(f"SELECT its_kind AS kind, string_agg(t, ';' ORDER BY t) AS t, its_person FROM {owned}")
        shared = f"SELECT count(DISTINCT its_person) AS n FROM ({' UNION ALL '.join(parts)}) GROUP BY kind, t"
        return self._least(shared)

    def _least(self, counts: str) -> int:
        [(least,)] = self.connection.execute(f"SELECT min(n) FROM ({counts})").fetchall()
        return int(least) if least is not None else sys.maxsize

    def rarest_choice(self, most: int) -> int:
        """Return how many persons share the rarest choice of rows.

        A choice is of at most so many rows of each table right below them.
        """
        label = dict(self.connection.execute(f"SELECT its_person, its_label FROM {quote('r ' + self.unit)}").fetchall())
        rows: dict[str, dict[str, list[str]]] = {}
        for name, texts in self._texts(self.order[1:]).items():
            for person, text in self.connection.execute(f"SELECT its_person, t FROM {texts} WHERE its_kind = '{self.unit}'").fetchall():
                rows.setdefault(name, {}).setdefault(person, []).append(text)
        shared: Counter[Any] = Counter()
        for person, own in label.items():
            choices = [
                {tuple(sorted(one)) for many in range(most + 1) for one in itertools.combinations(of.get(person, []), many)}
                for of in rows.values()
            ]
            shared.update({(own, *choice) for choice in itertools.product(*choices)})
        return min(shared.values(), default=sys.maxsize)

    def rarest_value(self, name: str, column: str) -> int:
        """Return how many persons have the value that fewest have."""
        rows = f"{quote('r ' + name)} AS r JOIN {quote('t ' + name)} AS t ON r.its_row = t.its_row"
        return self._least(f"SELECT count(DISTINCT r.its_person) AS n FROM {rows} GROUP BY t.{quote(column)}")


def _text(columns: Iterable[str]) -> str:
    return " || '|' || ".join(f"{one}::VARCHAR" for one in columns)


def _labels(columns: list[str]) -> str:
    return f"concat_ws(',', ''{''.join(f', coalesce({one}::VARCHAR, chr(0))' for one in columns)})"


def faults_of(job: Found, release: Path) -> Iterator[str]:
    """Yield what a reader of a release finds that its job rules out."""
    reader, k = Reader(job, release), job["privacy"]["k"]
    knows = job["privacy"].get("knows")
    if knows:
        if (least := reader.rarest_choice(knows["rows"])) < k:
            yield f"a choice of {least} persons"
    else:
        for many in range(1, len(job["tables"]) + 1):
            for some in itertools.combinations(job["tables"], many):
                if (least := reader.rarest(some)) < k:
                    yield f"a history of {least} persons in {some}"
    for name, spec in job["tables"].items():
        for one in spec["columns"].get("sensitive", []):
            if isinstance(one, Mapping) and (one["publish"] == "shared" or "microaggregate" in one["publish"]) and (
                least := reader.rarest_value(name, one["name"])
            ) < k:  # fmt: skip
                yield f"a value of {least} persons in {name}"
    reader.connection.close()


def tried(seed: int, folder: Path) -> tuple[str, list[str]]:
    """Run one schema; return what became of it, and what is wrong."""
    from flows.tables import tables
    from schemas.errors.base import InternalError, SkaldError, VerificationError

    random = np.random.default_rng(seed)
    job, content = some_schema(random)
    if random.random() < 0.2:
        _orphaned(random, job, content)
        job["orphans"] = "drop"
    for name, table in content.items():
        (folder / name).mkdir()
        pq.write_table(table.take(pa.array(random.permutation(len(table)))), folder / name / "0.parquet")
        job["tables"][name]["source"] = {"path": f"{name}/*.parquet"}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job | {"target": "releases"}, sort_keys=False))
    try:
        made = tables(path, ())
    except (VerificationError, InternalError) as error:
        return "not verified", [str(error)]
    except SkaldError as error:
        return f"refused: {type(error).__name__}", []
    return "released", list(faults_of(job, made.folder))


def share_database() -> None:
    """Let every step use one database through a connection of its own.

    To open a database takes longer than a small step.
    """
    whole = duckdb.connect()
    duckdb.connect = lambda *_, **__: whole.cursor()


def main() -> None:
    """Print what became of the schemas, and every fault with its seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--schemas", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="ends early after so many")
    asked = parser.parse_args()
    os.environ["SKALD_DIRECT"] = "1"
    share_database()
    became: Counter[str] = Counter()
    began = time.monotonic()
    for seed in range(asked.first, asked.first + asked.schemas):
        if time.monotonic() - began > asked.seconds:
            break
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
            try:
                what, faults = tried(seed, Path(made))
            except Exception as error:
                what, faults = "crashed", [f"{type(error).__name__}: {str(error)[:300]}"]
        became[what] += 1
        for fault in faults:
            print(f"seed {seed}: {fault}", flush=True)
            became["faults"] += 1
        if became.total() % 50 == 0:
            print(f"up to seed {seed}: {dict(became)}", flush=True)
    print(", ".join(f"{what} {many:,}" for what, many in sorted(became.items())))


if __name__ == "__main__":
    main()
