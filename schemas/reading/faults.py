"""Error messages for the faults that Pydantic found in a job, without any value of the input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from schemas.errors.base import listed, nearest
from schemas.reading.model import StrictModel, alternatives
from schemas.reading.model_fields import Loc, file_location, locations_of_key

_QIDS: Loc = ("columns", "quasi_identifiers")
_TREE: Loc = ("hierarchy", "tree")
_TREE_AT = 3
"""Steps to the hierarchy of a quasi-identifier: columns, quasi_identifiers, position."""

_SENTENCES = {
    "missing": "is missing; add it",
    "int_type": "must be a whole number, without quotes",
    "string_type": "must be text; put it in quotes",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "model_attributes_type": "must be a mapping (key: value)",
    "union_tag_not_found": "has no name; give one",
}
_BOUNDS = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "too_short": "needs at least {min_length} entry",
}
_ALIKE = 0.85
_OF_FORM = _BOUNDS.keys() | {"list_type", "dict_type", "model_type", "model_attributes_type"}
"""Faults of a value's form, whose messages end in an example if the model has one."""
# A default that is made of other fields cannot be made where these are wrong, which is told of them.
_PASSED_OVER = frozenset({"default_factory_not_called"})


def in_qid(loc: Loc) -> bool:
    """Return whether a location of the job file lies inside a quasi-identifier.

    A tree at the wrong depth makes cell values keys there.
    """
    return loc[: len(_QIDS)] == _QIDS and len(loc) > len(_QIDS)


def in_tree(loc: Loc) -> bool:
    """Return whether a location of the job file lies inside a tree, where keys are cell values."""
    return in_qid(loc) and loc[_TREE_AT : _TREE_AT + len(_TREE)] == _TREE


def key_path(loc: Loc, data: object = None) -> str:
    """Return a location as a dotted path, ``columns.quasi_identifiers[2]``, with positions from 0.

    The path never has a key of a tree.

    Where the job's ``data`` is at hand a quasi-identifier is called by its name: ``quasi_identifiers[2] 'age': hierarchy.widths``.
    """
    # Before anything is spelt: all keys below are cell values.
    if in_tree(loc):
        loc = loc[: _TREE_AT + len(_TREE)]
    steps = len(_QIDS)
    name = qid_name(loc[steps], data) if in_qid(loc) else None
    if name is not None:
        head = f"quasi_identifiers[{loc[steps]}] '{name}'"
        return ": ".join(part for part in (head, key_path(loc[steps + 1 :])) if part)
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def qid_name(position: str | int, data: object) -> str | None:
    """Return the name of the quasi-identifier at a position of unchecked job data; None if it has no name."""
    found: Any = data
    for key in (*_QIDS, position, "name"):
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and isinstance(key, int) and key < len(found):
            found = found[key]
        else:
            return None
    return found if isinstance(found, str) else None


def fault_lines(errors: Iterable[ErrorDetails], root: type[StrictModel], data: object) -> list[str]:
    """Return one message line per Pydantic error, each beginning with its location in the job.

    Args:
        errors: of one validation, with their input, which is looked at and never shown.
        root: the model that was validated.
        data: what it was validated from, for the names of quasi-identifiers.
    """
    lines: list[str] = []
    for error in errors:
        if error["type"] in _PASSED_OVER:
            continue
        loc, owner = file_location(error["loc"], root)
        if error["type"] == "extra_forbidden":
            lines.append(unknown_key(loc, owner, root, data))
            continue
        where = key_path(loc, data)
        example = example_of(loc, owner) if error["type"] in _OF_FORM and error.get("input") is not None else ""
        lines += [f"{where}: {sentence}{example}" if where else sentence for sentence in error_sentences(error)]
    return lines


def example_of(loc: Loc, owner: type[StrictModel] | None) -> str:
    """Return ``, as in l: {…}`` for the field at a location or above it; empty without an example."""
    examples = owner.examples if owner else {}
    return next((f", as in {examples[part]}" for part in reversed(loc) if isinstance(part, str) and part in examples), "")


def unknown_key(loc: Loc, owner: type[StrictModel] | None, root: type[StrictModel], data: object) -> str:
    """Return the message for an unknown key, with the place where it belongs or a similar known key.

    Inside a quasi-identifier a key that is known nowhere, and resembles none, is not shown.
    """
    known = [field.alias or name for name, field in owner.model_fields.items()] if owner else []
    key = str(loc[-1])
    # A letter too many is likelier than a key of another place.
    if not nearest(key, known, _ALIKE) and (places := locations_of_key(key, loc[:-1], root)):
        return f"{key_path(loc, data)}: unknown key here; it belongs {' or '.join(places)}"
    hint = nearest(key, known)
    if hint or not in_qid(loc[:-1]):
        return f"{key_path(loc, data)}: unknown key{hint}" + ("" if hint else f"; known here: {listed(known, most=len(known))}")
    return f"{key_path(loc[:-1], data)}: a key that is not known; known here: {listed(known, most=len(known))}"


def error_sentences(error: ErrorDetails) -> list[str]:
    """Return the messages of one Pydantic error, without the location."""
    kind, given, context = error["type"], error.get("input"), error.get("ctx", {})
    # YAML has null where nothing stands behind a key; whatever type Pydantic misses, that is what its author should hear.
    if given is None and kind != "missing":
        return ["is empty; give a value or remove the key"]
    if kind == "fault":
        return list(context["sentences"])
    if kind == "literal_error":
        # What was written is looked at for a resemblance and never shown, here and below.
        return [one_of(context["expected"], str(given), "must be")]
    if kind == "union_tag_invalid":
        return [one_of(context["expected_tags"], context["tag"], "has an unknown name; it must be")]
    # Kinds that have no sentence here get a general one: Pydantic's own may quote the input.
    return [_BOUNDS[kind].format_map(context) if kind in _BOUNDS else _SENTENCES.get(kind, "has a wrong value")]


def one_of(expected: str, given: str, claim: str) -> str:
    """Return the message ``must be 'drop' or 'mask' (did you mean 'drop'?)`` for a wrong word."""
    words = re.findall(r"'([^']*)'", expected) or [expected]
    return f"{claim} {alternatives(words)}{nearest(given, words)}"
