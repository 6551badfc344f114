"""Error messages for the faults that Pydantic found in a job, without any value of the input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from schemas.errors.base import listed, nearest
from schemas.reading.model import Choice, StrictModel, alternatives

Loc: TypeAlias = tuple[str | int, ...]
"""Keys and positions that lead to a place in the job file."""

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
    """Return the name of the quasi-identifier at a position of unchecked job data, or None."""
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
            lines.append(unknown_key(loc, owner, data))
            continue
        where = key_path(loc, data)
        lines += [f"{where}: {sentence}" if where else sentence for sentence in error_sentences(error)]
    return lines


def file_location(loc: Loc, root: type[StrictModel]) -> tuple[Loc, type[StrictModel] | None]:
    """Return an error's location without Pydantic's union tags, and the model with that field."""
    kept: list[str | int] = []
    model: type[StrictModel] | None = root
    owner = model
    choice: Choice | None = None
    named = False
    for part in loc:
        if named:
            # The name of a column, say, which leads to what the mapping holds for it.
            kept.append(part)
            named = False
            continue
        if choice is not None and part in choice.models:
            model, choice = choice.models[str(part)], None
            continue
        kept.append(part)
        if isinstance(part, str):
            owner = model
            model, choice, named = field_model(model.model_fields.get(part) if model else None)
    return tuple(kept), owner


def field_model(field: FieldInfo | None) -> tuple[type[StrictModel] | None, Choice | None, bool]:
    """Return the model or the choice of models of a field, and whether the field is a dict of them."""
    if field is None:
        return None, None, False
    choice = next((entry for entry in field.metadata if isinstance(entry, Choice)), None) or chosen_variant(field.annotation)
    return None if choice else variant_model(field.annotation), choice, get_origin(field.annotation) is dict


def chosen_variant(annotation: Any) -> Choice | None:
    """Return the Choice in a type annotation, such as ``dict[str, Annotated[…, Choice(…)]]``, or None."""
    if isinstance(annotation, Choice):
        return annotation
    return next((choice for choice in map(chosen_variant, get_args(annotation)) if choice), None)


def variant_model(annotation: Any) -> type[StrictModel] | None:
    """Return the model class inside a type annotation, such as ``list[QuasiIdentifier]``, or None."""
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return annotation
    return next((model for model in map(variant_model, get_args(annotation)) if model), None)


def unknown_key(loc: Loc, owner: type[StrictModel] | None, data: object) -> str:
    """Return the message for an unknown key, with the known key that resembles it.

    Inside a quasi-identifier a key that resembles none is not shown.
    """
    known = [field.alias or name for name, field in owner.model_fields.items()] if owner else []
    key = str(loc[-1])
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
    bounds = {"greater_than_equal": "must be at least {ge}", "too_short": "needs at least {min_length} entry"}
    return [bounds[kind].format_map(context) if kind in bounds else _SENTENCES.get(kind, "has a wrong value")]


def one_of(expected: str, given: str, claim: str) -> str:
    """Return the message ``must be 'drop' or 'mask' (did you mean 'drop'?)`` for a wrong word."""
    words = re.findall(r"'([^']*)'", expected)
    return f"{claim} {alternatives(words)}{nearest(given, words)}"
