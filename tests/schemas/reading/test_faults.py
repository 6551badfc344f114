"""Every fault of a job file is told in one sentence, all at once, with its place and what to do."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from schemas.errors.base import JobError, nearest
from schemas.job.job import Job, load_job
from tests.schemas.job.test_job import CONTRACT, SHORT, write


def faults_of(folder: Path, text: str, *overrides: str) -> tuple[str, ...]:
    """Return the faults of a job that must not load."""
    with pytest.raises(JobError) as caught:
        load_job(write(folder, text), overrides)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value.faults


def with_hierarchy(hierarchy: str) -> str:
    """Return a job whose only quasi-identifier has this hierarchy."""
    return SHORT.replace("{widths: [5, 10]}", hierarchy)


def with_source(source: str) -> str:
    """Return a job with this path, and what may follow it in the source."""
    return SHORT.replace("people.csv", source)


def with_role(role: str) -> str:
    """Return a job with one more role."""
    return SHORT.replace("columns:", f"columns:\n  {role}")


_ONE_QID = "\n    - {name: age, hierarchy: {widths: [5, 10]}}"
SINGLE_FAULTS = {
    "unknown key": (SHORT + "treshold: 3\n", "treshold: unknown key; known here: 'version'"),
    "misspelt key": (SHORT + "chunk_row: 3\n", "chunk_row: unknown key (did you mean 'chunk_rows'?)"),
    "misspelt key inside": (SHORT.replace("{k: 2}", "{k: 2, kk: 3}"), "privacy.kk: unknown key (did you mean 'k'?)"),
    "key in capitals": (SHORT + "CHUNK_Rows: 3\n", "CHUNK_Rows: unknown key (did you mean 'chunk_rows'?)"),
    "missing key": (SHORT.replace("memory: 64MB\n", ""), "memory: is missing"),
    "missing key inside": (SHORT.replace("{k: 2}", "{}"), "privacy.k: is missing"),
    "empty value": (SHORT.replace("memory: 64MB", "memory:"), "memory: is empty"),
    "empty section": (SHORT + "suppression:\n", "suppression: is empty"),
    "scalar for a mapping": (SHORT.replace("{k: 2}", "2"), "privacy: must be a mapping"),
    "method as a word": (SHORT.replace("{name: skald}", "skald"), "method: must be a mapping"),
    "method without name": (SHORT.replace("{name: skald}", "{root: dense}"), "method: has no name"),
    "unknown method": (SHORT.replace("{name: skald}", "{name: scald}"), "(did you mean 'skald'?)"),
    "method's option": (SHORT.replace("{name: skald}", "{name: skald, root: dence}"), "method.root: must be 'occupied' or 'dense' (did"),
    "version": (SHORT.replace("version: 1", "version: 2"), "version: 2 is for jobs of several tables, and this one has no 'tables'"),
    "version 3": (SHORT.replace("version: 1", "version: 3"), "version: must be 1 (one table) or 2 (several tables), without quotes"),
    "version true": (SHORT.replace("version: 1", "version: true"), "version: must be 1"),
    "version 1.0": (SHORT.replace("version: 1", "version: 1.0"), "version: must be 1"),
    "hidden name": (SHORT.replace("name: short", "name: .short"), "name: must be 1 to 100 letters"),
    "name with a slash": (SHORT.replace("name: short", "name: a/b"), "name: must be 1 to 100 letters"),
    "name as a number": (SHORT.replace("name: short", "name: 2024"), "name: must be text; put it in quotes"),
    "number in quotes": (SHORT.replace("{k: 2}", "{k: '2'}"), "privacy.k: must be a whole number, without quotes"),
    "fraction": (SHORT.replace("{k: 2}", "{k: 2.0}"), "privacy.k: must be a whole number"),
    "truth for a number": (SHORT.replace("{k: 2}", "{k: true}"), "privacy.k: must be a whole number"),
    "leading zero": (SHORT.replace("{k: 2}", "{k: 010}"), "privacy.k: must be a whole number"),
    "k too low": (SHORT.replace("{k: 2}", "{k: 0}"), "privacy.k: must be at least 1"),
    "limit too high": (SHORT + "suppression: {limit: 1.01}\n", "suppression.limit: must be a share of the records, from 0 to 1"),
    "limit negative": (SHORT + "suppression: {limit: -0.1}\n", "suppression.limit: must be a share"),
    "limit in percent": (SHORT + "suppression: {limit: 1%}\n", "suppression.limit: must be a number: write 2 % as 0.02, without quotes"),
    "limit too fine": (SHORT + "suppression: {limit: 1e-999}\n", "suppression.limit: has more than 18 digits"),
    "treatment": (SHORT + "suppression: {treatment: dorp}\n", "suppression.treatment: must be 'drop', 'mask' or 'cell' (did you mean"),
    "masked bounds": (SHORT + "suppression: {treatment: mask}\nintervals: bounds\n", "bounds cannot tell a masked record from a null"),
    "starred bounds": (SHORT + "suppression: {treatment: cell}\nintervals: bounds\n", "bounds cannot tell a starred value from a null"),
    "rounds of bounds": (SHORT + "suppression: {rounds: 2}\nintervals: bounds\n", "suppression.rounds: bounds cannot tell a value"),
    "rounds by feeling": (SHORT + "suppression: {rounds: many}\n", "suppression.rounds: must be a whole number"),
    "little memory": (SHORT.replace("64MB", "63MB"), "memory: must be at least 64MB"),
    "memory by feeling": (SHORT.replace("64MB", "lots"), "memory: must be an amount of memory such as 1GB"),
    "memory as text": (SHORT.replace("64MB", "'640000000'"), "memory: must be an amount of memory"),
    "memory without end": (SHORT.replace("64MB", "99999999999TB"), "memory: is more memory than"),
    "no rows": (SHORT + "chunk_rows: 0\n", "chunk_rows: must be at least 1"),
    "no threads": (SHORT + "threads: 0\n", "threads: must be at least 1"),
    "empty path": (SHORT.replace("target: out", "target: ''"), "target: must be a path"),
    "no source paths": (with_source("[]"), "source.path: must be a path, a pattern"),
    "paths of two formats": (with_source("[a.csv, b.parquet]"), "source: the paths are of different formats"),
    "paths of two delimiters": (with_source("[a.csv, b.tsv]"), "source: the paths differ in their delimiter"),
    "format": (with_source("a, format: orc"), "source.format: must be 'parquet', 'csv', 'arrow', 'duckdb' or 'postgresql'"),
    "csv key for parquet": (with_source("a, delimiter: ';'"), "source: 'delimiter' only fit CSV files"),
    "long delimiter": (with_source("a.csv, delimiter: ';;'"), "source.delimiter: must be a single character"),
    "null text twice": (with_source("a.csv, null_values: [NA, NA]"), "source.null_values: lists a text twice"),
    "type": (with_source("a.csv, types: {age: interger}"), "source.types.age: must be 'text', 'integer'"),
    "type with a size": (with_source("a.csv, types: {age: 'decimal(2,3)'}"), "source.types.age: decimal(p,s) needs p"),
    "column in capitals": (with_source("a.csv, types: {AGE: text}"), "column 'AGE' has no role in columns (did you mean 'age'?)"),
    "type of no column": (with_source("a.csv, types: {aeg: text}"), "column 'aeg' has no role in columns (did you mean 'age'?)"),
    "no quasi-identifiers": (SHORT.replace(_ONE_QID, " []"), "quasi_identifiers: needs at least 1 entry"),
    "role as a word": (with_role("sensitive: age2"), "columns.sensitive: must be a list of column names"),
    "number as a name": (with_role("sensitive: [a, 7]"), "columns.sensitive: must be a list of column names; empty"),
    "rest elsewhere": (with_role("insensitive: rset"), "columns.insensitive: must be a list of column names or the word rest"),
    "two roles": (with_role("sensitive: [age]"), "'age' has 2 roles, 'quasi_identifiers' and 'sensitive'"),
    "one role twice": (with_role("sensitive: [a, a]"), "'a' is listed 2 times in 'sensitive'"),
    "no hierarchy": (with_hierarchy("{}"), "'age': hierarchy: names no kind of hierarchy; give it the key 'csv', 'tree',"),
    "misspelt kind": (with_hierarchy("{width: [1]}"), "names no kind of hierarchy (did you mean 'widths'?)"),
    "two kinds": (with_hierarchy("{widths: [1], prefix: [1]}"), "names 2 kinds of hierarchy at once, 'widths' and 'prefix'"),
    "hierarchy as a list": (with_hierarchy("[1, 2]"), "hierarchy: must be a mapping with the key"),
    "misspelt hierarchy key": (with_hierarchy("{widths: [1], orgin: 2}"), "'age': hierarchy.orgin: unknown key (did you mean 'origin'?)"),
    "no widths": (with_hierarchy("{widths: []}"), "hierarchy.widths: needs at least 1 entry"),
    "width as text": (with_hierarchy("{widths: [1, '2']}"), "hierarchy.widths[1]: must be a number, without quotes"),
    "width not positive": (with_hierarchy("{widths: [0, 1]}"), "widths must be positive; at fault: widths[0]"),
    "width falling": (with_hierarchy("{widths: [1, 4, 4]}"), "widths must grow from level to level; at fault: widths[2]"),
    "width not a multiple": (with_hierarchy("{widths: [0.1, 0.2, 0.3]}"), "each width must be a multiple of the one before, or"),
    "width nearly a multiple": (with_hierarchy("{widths: [1, 3.000000000000001]}"), "each width must be a multiple"),
    "width endless": (with_hierarchy("{widths: [1, 1e40]}"), "hierarchy.widths[1]: has more than 18 digits"),
    "widths too far apart": (with_hierarchy("{widths: [1e-12, 1e12]}"), "span more than 18 digits"),
    "origin as a date": (with_hierarchy("{widths: [1], origin: 2020-01-01}"), "hierarchy.origin: must be a number"),
    "ranks in tenths": (with_hierarchy("{widths: [0.5, 1], encode: true}"), "encode: true counts ranks, so widths and origin must be"),
    "encode as a word": (with_hierarchy("{widths: [1], encode: yes}"), "hierarchy.encode: must be true or false"),
    "prefix growing": (with_hierarchy("{prefix: [2, 3]}"), "numbers of kept characters must fall from level to level"),
    "prefix of nothing": (with_hierarchy("{prefix: [2, 0]}"), "every number of kept characters must be at least 1"),
    "long mask": (with_hierarchy("{prefix: [2], mask: '**'}"), "hierarchy.mask: must be a single character"),
    "date unit": (with_hierarchy("{date: [day, week]}"), "hierarchy.date[1]: must be 'day', 'month', 'quarter', 'year' or 'decade'"),
    "date order": (with_hierarchy("{date: [month, day]}"), "units must grow coarser from level to level"),
    "tree as a list": (with_hierarchy("{tree: [a, b]}"), "hierarchy.tree: must be a mapping of groups that ends in lists of values"),
    "tree without lists": (with_hierarchy("{tree: {a: b, c: d, e: [f]}}"), "2 groups of the tree must hold a list of values"),
    "tree with gaps": (with_hierarchy("{tree: {a: [], c: {}, e: [f]}}"), "2 groups of the tree are empty"),
    "tree with nulls": (with_hierarchy("{tree: {a: [b, null, ~], c: [d]}}"), "2 leaves of the tree are null"),
    "tree with mappings": (with_hierarchy("{tree: {a: [b, c: d]}}"), "1 leaf of the tree is a list or mapping"),
    "ragged tree": (with_hierarchy("{tree: {a: {b: [c, d]}, e: [f]}}"), "1 of 3 leaves is at another depth than the rest"),
    "leaf twice": (with_hierarchy("{tree: {a: [b, c], d: [c, b, e]}}"), "2 leaves repeat another one"),
    "tree that does not nest": (
        with_hierarchy("{tree: {N: {other: [a], x: [b]}, S: {other: [c]}}}"),
        "1 group name of level 1 is used under different groups of level 2",
    ),
    "key twice": (SHORT + "memory: 1GB\n", "memory: given twice (lines 9 and 11); keep one"),
    "key of a tree twice": (with_hierarchy("{tree: {a: [b], a: [c]}}"), "hierarchy.tree: a key is given twice (lines 6"),
    "list as a key": (SHORT + "? [a, b]\n: 3\n", "a key must be a single word (line 11)"),
    "half a character": (with_source('"people\\ud800.csv"'), "stands for half a character (line 3)"),
    "tag": (SHORT.replace("name: short", "name: !!python/name:os.system short"), "a tag (!) is not allowed (line 2)"),
}  # fmt: skip


@pytest.mark.parametrize("case", SINGLE_FAULTS)
def test_one_fault_is_told_once_with_its_place(tmp_path: Path, case: str) -> None:
    text, expected = SINGLE_FAULTS[case]
    [told] = faults_of(tmp_path, text)
    assert expected in told


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("Age", ["age", "wage"], "age"),
        ("K", ["k", "l", "t"], "k"),
        ("PRIVCY", ["privacy", "name"], "privacy"),
        ("AGES", ["ages", "AGE", "AGEs"], "AGEs"),
        ("aGE", ["age", "AGE"], "AGE"),
        ("STRASSE", ["straße"], "straße"),
        ("height", ["weight_of_all", "age"], None),
    ],
)
def test_names_resemble_each_other_whatever_their_case_and_that_decides_between_equal_ones(
    name: str, known: list[str], meant: str | None
) -> None:
    assert nearest(name, known) == (f" (did you mean '{meant}'?)" if meant else "")


_BOMB = "a: &a [x]\n" + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in pairwise("abcdefgh"))
UNREADABLE = {
    "empty": ("", "the file is empty"),
    "only comments": ("# nothing\n", "the file is empty"),
    "a list": ("- version: 1\n", "the job must be a mapping"),
    "a word": ("version 1\n", "the job must be a mapping"),
    "null": ("~\n", "the job must be a mapping"),
    "open bracket": ("version: 1\nname: [short\n", "not valid YAML at line 3, column 1"),
    "tab": ("version: 1\nsource:\n\tpath: a\n", "not valid YAML at line 3, column 1"),
    "two documents": ("version: 1\n---\nversion: 1\n", "not valid YAML at line 2"),
    "unknown alias": ("version: *one\n", "not valid YAML at line 1"),
    "control character": ("version: 1\nname: a\x07b\n", "a control character in line 2"),
    "half a character in a key": (SHORT.replace("{k: 2}", '{k: 2, l: {"\\udc00": {distinct: 2}}}'), "half a character (line 7)"),
    "no character": ('version: 1\nname: "\\U00110000"\n', "an escape stands for no character"),
    "no number of a character": ('version: 1\nname: "\\UFFFFFFFF"\n', "an escape stands for no character"),
    "deep": ("[" * 5000, "nested too deeply"),
    "endless alias": ("version: &a [*a]\n", "an alias makes the job endless or too large (line 1)"),
    "exploding alias": (_BOMB, "an alias makes the job endless or too large"),
}  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_job_at_all_is_told_without_its_text(tmp_path: Path, case: str) -> None:
    text, expected = UNREADABLE[case]
    assert any(expected in told for told in faults_of(tmp_path, text))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: Müller".encode("latin-1"))
    for path, expected in ((tmp_path / "absent.yaml", "no such file"), (tmp_path, "is a folder"), (latin, "not UTF-8 text (byte 7)")):
        with pytest.raises(JobError, match="1 fault") as caught:
            load_job(path)
        assert expected in caught.value.faults[0]
        assert str(path) in str(caught.value)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SHORT.encode())
    assert load_job(path).name == "short"


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    text = (
        CONTRACT.replace("version: 1", "version: 3")
        .replace("k: 50", "k: 0")
        .replace("  identifiers: [patient_id]", "  identifiers: [patient_id, age]")
        .replace("origin: 0", "orgin: 0")
        .replace("[5, 4, 3, 2]", "[5, 5]")
        .replace("quarter, year", "quater, year")
        .replace("memory: 1GB", "memory: 1MB\nmemory: 2GB")
        .replace("treatment: drop", "treatment: mask")
        .replace("intervals: text", "intervals: bounds")
        .replace("target: releases/medical\n", "")
        + "colums: 3\n"
    )
    told = faults_of(tmp_path, text, "privacy.l=3")
    expected = [
        "memory: given twice",
        "version:",
        "privacy.k:",
        "privacy.l:",
        "'age' has 2 roles",
        "'bmi': hierarchy.orgin",
        "'zip': hierarchy.prefix",
        "'admitted': hierarchy.date[2]",
        "memory: must be",
        "suppression.treatment: bounds",
        "target: is missing",
        "colums: unknown key (did",
    ]
    assert len(told) == len(expected)
    for part in expected:
        assert sum(part in fault for fault in told) == 1, part


def test_a_quasi_identifier_without_a_name_is_called_by_its_position(tmp_path: Path) -> None:
    assert faults_of(tmp_path, SHORT.replace("name: age, ", "")) == ("columns.quasi_identifiers[0].name: is missing; add it",)


def test_a_job_made_in_python_is_held_to_the_same_rules(tmp_path: Path) -> None:
    data = load_job(write(tmp_path, SHORT)).model_dump()
    data["suppression"]["treatment"], data["intervals"] = "mask", "bounds"
    with pytest.raises(ValueError, match="bounds cannot tell"):
        Job.model_validate(data)
    data = load_job(write(tmp_path, SHORT)).model_dump()
    data["columns"]["sensitive"] = ["age"]
    with pytest.raises(ValueError, match="2 roles"):
        Job.model_validate(data)
