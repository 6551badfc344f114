"""Changes of a job's text: the data are those that were asked for, and every line that has nothing to do with it stays."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from schemas.errors.base import JobError
from schemas.reading.job_files import parse
from tasks.studio.job_text import flow_text, read_data, with_entry, with_value, without_value

TEXT = """\
# A job.
version: 1   # of the format
name: people

columns:
  # Whose record it is.
  person: none
  identifiers: []   # never
  quasi_identifiers:
    # coarsened
    - {name: age, hierarchy: {widths: [1, 5]}}  # because
    - name: zip   # a code
      hierarchy:
        prefix: [5, 3]
  sensitive: [ill, "other, one"]

# The promise.
privacy: {k: 5, l: {ill: {distinct: 2}}}
method:
  name: skald
"""


def lines_kept(before: str, after: str) -> int:
    return len(set(before.splitlines()) & set(after.splitlines()))


def test_a_value_is_replaced_and_nothing_else() -> None:
    assert with_value(TEXT, ("privacy", "k"), 12) == TEXT.replace("k: 5", "k: 12")
    assert with_value(TEXT, ("version",), 2) == TEXT.replace("version: 1", "version: 2")
    assert with_value(TEXT, ("columns", "person"), "who") == TEXT.replace("person: none", "person: who")


def test_a_block_is_replaced_by_one_line() -> None:
    changed = with_value(TEXT, ("columns", "quasi_identifiers", 1, "hierarchy"), {"prefix": [4]})
    assert "      hierarchy: {prefix: [4]}\n  sensitive" in changed
    assert with_value(TEXT, ("method",), {"name": "mondrian"}).endswith("method: {name: mondrian}\n")


def test_what_is_missing_is_added_where_it_belongs() -> None:
    assert with_value(TEXT, ("suppression", "limit"), 1).endswith("  name: skald\nsuppression: {limit: 1}\n")
    assert "  name: skald\n  score: ncp\n" in with_value(TEXT, ("method", "score"), "ncp")
    assert "distinct: 2}, other: {distinct: 3}}}" in with_value(TEXT, ("privacy", "l", "other"), {"distinct": 3})


def test_an_entry_takes_its_comment_along() -> None:
    moved = with_entry(without_value(TEXT, ("columns", "quasi_identifiers", 0)), ("columns", "identifiers"), "age", "because")
    assert "  identifiers:  # never\n    - age  # because\n  quasi_identifiers:\n    # coarsened\n    - name: zip" in moved
    assert lines_kept(TEXT, moved) == len(set(TEXT.splitlines())) - 2


def test_the_last_entry_leaves_an_empty_list() -> None:
    one = without_value(without_value(TEXT, ("columns", "quasi_identifiers", 1)), ("columns", "quasi_identifiers", 0))
    assert read_data(one)["columns"]["quasi_identifiers"] == []
    assert "because" not in one and "# coarsened" not in one, "what is said of entries goes with the last of them"
    assert "quasi_identifiers: []" in one


def test_what_an_alias_says_too_is_not_changed_in_place() -> None:
    text = "version: 1\nfirst: &it {k: 1}\nsecond: *it\n"
    with pytest.raises(JobError, match="change its text"):
        with_value(text, ("second", "k"), 2)


DATA = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 99) | some.sampled_from(["age", "no", "a, b", "# x", "{", "it's", "", "ä: b", "1.5"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(["k", "l", "name", "a b", "yes"]), inner, max_size=3),
    max_leaves=8,
)


def block(value: Any, indent: int = 0) -> str:
    """Write data in blocks, as people do, with a comment behind every scalar."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        return "".join(f"\n{pad}{flow_text(key)}:{block(one, indent + 2)}" for key, one in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{pad}-{' ' + flow_text(one) + '  # entry'}" for one in value)
    return f" {flow_text(value)}  # said"


@given(some.dictionaries(some.sampled_from(["k", "l", "name", "rest"]), DATA, min_size=1, max_size=3), DATA, some.data())
def test_any_change_says_what_was_asked(data: dict[str, Any], value: Any, draw: some.DataObject) -> None:
    text = f"# first{block(data)}\n# last\n"
    assert parse(text) == (data, [])
    key = draw.draw(some.sampled_from(["k", "l", "name", "rest", "new"]))
    put = with_value(text, (key,), value)
    assert read_data(put) == {**data, key: value}
    assert put.startswith("# first") and "# last" in put
    if key in data:
        if len(data) > 1:
            left = deepcopy(data)
            del left[key]
            assert read_data(without_value(text, (key,))) == left
        if isinstance(data[key], list):
            more = with_entry(text, (key,), value, "more")
            assert read_data(more) == {**data, key: [*data[key], value]}
            for place in range(len(data[key])):
                shorter = without_value(text, (key, place))
                assert read_data(shorter)[key] == data[key][:place] + data[key][place + 1 :]
