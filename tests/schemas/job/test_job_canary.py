"""No message about a job shows what stands in it, names of columns and keys apart."""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import JobError
from schemas.job.job import load_job
from tests.laws import tried
from tests.schemas.job.test_job import CONTRACT, write

CANARY = "xq7canary"
_QIDS = ("columns", "quasi_identifiers")

Step = str | int


def steps(value: object, at: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield every place of nested data."""
    yield at
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from steps(entry, (*at, key))


def good() -> Any:
    """Return the contract's job, a CSV one with all options, as fresh data of JSON types."""
    data = yaml.safe_load(CONTRACT)
    data["source"] = {"path": ["a.csv"], "format": "csv", "delimiter": ";", "null_values": ["", "NA"]}
    data["source"]["types"] = {"age": "integer", "zip": "text"}
    data |= {"chunk_rows": 1000, "threads": 2, "work": "w"}
    return data


PLACES = list(steps(good()))[1:]


def holds_a_name(at: tuple[Step, ...]) -> bool:
    """Return whether a value at this place is, or holds, the name of a column."""
    return (at[0] == "columns" and len(at) in (2, 3)) or (at[:2] == _QIDS and at[3:] == ("name",))


def message(data: object, overrides: list[str]) -> str:
    """Return all that can be seen of the error of a job, its traceback too; nothing if it loads."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            load_job(write(Path(folder), data if isinstance(data, str) else json.dumps(data)), overrides)
        except JobError as error:
            return str(error) + repr(error) + "".join(traceback.format_exception(error))
    return ""


def parent_of(data: Any, at: tuple[Step, ...]) -> Any:
    """Return the mapping or list that holds a place."""
    for key in at[:-1]:
        data = data[key]
    return data


CANARY_TEXTS = [CANARY, f"decimal({CANARY})", f"1{CANARY}", f" {CANARY}\n"]
CANARIES: list[object] = [*CANARY_TEXTS, [CANARY], [[CANARY]], [CANARY, CANARY], [1, CANARY, None]]
INNER = [at for at in PLACES if at[:2] == _QIDS and len(at) > 3]


VALUES = [at for at in PLACES if not holds_a_name(at)]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("canary", CANARIES, ids=range(len(CANARIES)))
def test_a_wrong_value_is_never_shown_wherever_it_stands(canary: object) -> None:
    failed = 0
    for at in VALUES:
        data = good()
        parent_of(data, at)[at[-1]] = canary
        told = message(data, [])
        failed += bool(told)
        assert CANARY not in told, at
    assert failed > len(VALUES) / 2


@tried(150)
@given(st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(CANARIES)), min_size=2, max_size=6))
def test_wrong_values_in_several_places_are_never_shown(wrong: list[tuple[tuple[Step, ...], object]]) -> None:
    data = good()
    for at, canary in sorted(wrong, key=lambda one: -len(one[0])):
        parent_of(data, at)[at[-1]] = canary
    told = message(data, ["privacy.k=0"])
    assert "fault" in told
    assert CANARY not in told


@tried(300)
@given(st.sampled_from(INNER), st.sampled_from([CANARY, [CANARY], {CANARY: [CANARY]}, {CANARY: {CANARY: 1}}, 7]))
def test_a_key_inside_a_quasi_identifier_is_never_shown(at: tuple[Step, ...], value: object) -> None:
    data = good()
    holder = parent_of(data, at)
    if isinstance(holder, dict):
        holder[CANARY] = value
    else:
        holder.append({CANARY: value})
    assert CANARY not in message(data, ["privacy.k=0"])


@tried(200)
@given(st.sampled_from([at for at in PLACES if isinstance(at[-1], str)]))
def test_a_renamed_key_is_shown_only_where_it_is_no_cell_value(at: tuple[Step, ...]) -> None:
    data = good()
    holder = parent_of(data, at)
    holder[CANARY] = holder.pop(at[-1])
    told = message(data, ["privacy.k=0"])
    assert CANARY not in told or at[:2] != _QIDS or len(at) <= 3


TREES = {
    "ragged": {"a": {CANARY: [CANARY + "1"]}, CANARY + "2": [CANARY + "3"]},
    "repeated": {CANARY: [CANARY, CANARY]},
    "null": {CANARY: [None, CANARY]},
    "loose": {CANARY: CANARY},
    "nested": {CANARY: [[CANARY]]},
    "not nesting": {"a": {CANARY: ["x"]}, "b": {CANARY: ["y"]}},
    "a list": [CANARY],
    "a word": CANARY,
}


@pytest.mark.parametrize("case", TREES)
def test_a_faulty_tree_is_told_in_counts(case: str) -> None:
    data = good()
    data["columns"]["quasi_identifiers"][1]["hierarchy"] = {"tree": TREES[case]}
    told = message(data, [])
    assert "'profession': hierarchy.tree: " in told
    assert CANARY not in told


TEXTS = {
    "open bracket": CONTRACT.replace("[Teaching]", f"[{CANARY}"),
    "open quote": CONTRACT.replace("Teaching", f'"{CANARY}'),
    "unknown alias": CONTRACT.replace("Teaching", f"*{CANARY}"),
    "unknown tag": CONTRACT.replace("Teaching", f"!{CANARY} x"),
    "unknown tag handle": CONTRACT.replace("Teaching", f"!{CANARY}!x y"),
    "key twice in a tree": CONTRACT.replace("Crafts: [Baking]", f"{CANARY}: [a], {CANARY}: [b]"),
    "key twice in a tree without its key": CONTRACT.replace("{tree: {", "{" + f"{CANARY}: [a], {CANARY}: [b], X: " + "{"),
    "control character": CONTRACT.replace("Teaching", f"{CANARY}\x07"),
    "half a character": CONTRACT.replace("Teaching", f'"{CANARY}\\ud800"'),
    "no character": CONTRACT.replace("Teaching", f'"{CANARY}\\UFFFFFFFF"'),
    "only a word": CANARY,
    "directive": f"%{CANARY} 1\n---\n{CONTRACT}x: 1\n",
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_what_the_parser_stumbles_over_is_never_shown(case: str) -> None:
    told = message(TEXTS[case], [])
    assert "fault" in told
    assert CANARY not in told


@pytest.mark.parametrize(
    "override",
    [
        f"privacy.k={CANARY}",
        f"privacy.k=[{CANARY}",
        f"memory={CANARY}",
        f"method.name={CANARY}",
        f"{CANARY}",
        f"columns.quasi_identifiers.1.hierarchy.tree.{CANARY}=x",
        f"columns.quasi_identifiers.1.hierarchy.tree.{CANARY}.{CANARY}=[",
        f"columns.quasi_identifiers.1.hierarchy.tree.{CANARY}.0.0=x",
        f"columns.quasi_identifiers.9.hierarchy.tree.{CANARY}=x",
        f"columns.quasi_identifiers.1.hierarchy.tree.Service.Education.{CANARY}=x",
        f"columns.quasi_identifiers.1.hierarchy.tree={{a: {{{CANARY}: [x]}}, b: {{{CANARY}: [y]}}}}",
    ],
)
def test_the_value_of_an_override_is_never_shown(override: str) -> None:
    told = message(CONTRACT, [override])
    assert "fault" in told
    assert CANARY not in told
