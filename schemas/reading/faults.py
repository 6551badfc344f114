"""Messages for the faults that Pydantic found in a job, and where a misplaced key belongs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from schemas.errors.base import listed, nearest
from schemas.reading.model import Choice, EntriesOf, StrictModel, alternatives

Loc: TypeAlias = tuple[str | int, ...]
"""Keys and positions that lead to a place in the job file."""
NAMED, ENTRY = "NAME", "[]"
"""Steps to what has a name that the job chose, such as a table, and to an entry of a list."""
_MOST_PLACES = 3


def file_location(loc: Loc, root: type[StrictModel]) -> tuple[Loc, type[StrictModel] | None]:
    """Return an error's location without Pydantic's union tags, and the model of its field, if known."""
    kept: list[str | int] = []
    model: type[StrictModel] | None = root
    owner = model
    choice: Choice | None = None
    named = 0
    for part in loc:
        if named:
            # The name of a table or column, say, which leads to what the mapping holds for it.
            kept.append(part)
            named -= 1
            continue
        if choice is not None and part in choice.models:
            model, choice = choice.models[str(part)], None
            continue
        kept.append(part)
        if isinstance(part, str):
            owner = model
            model, choice, named = field_model(model.model_fields.get(part) if model else None)
    return tuple(kept), owner


def field_model(field: FieldInfo | None) -> tuple[type[StrictModel] | None, Choice | None, int]:
    """Return the model or the choice of models of a field, and how many names lead to one.

    One name leads to it in a dict, two in a dict of dicts.
    """
    if field is None:
        return None, None, 0
    if entries := next((entry.model for entry in field.metadata if isinstance(entry, EntriesOf)), None):
        return entries, None, 0
    choice = next((entry for entry in field.metadata if isinstance(entry, Choice)), None) or chosen_variant(field.annotation)
    return None if choice else variant_model(field.annotation), choice, wildcards(field.annotation).count(NAMED)


def chosen_variant(annotation: Any) -> Choice | None:
    """Return the Choice in an annotation, such as ``dict[str, Annotated[…, Choice(…)]]``; None if none."""
    if isinstance(annotation, Choice):
        return annotation
    return next((choice for choice in map(chosen_variant, get_args(annotation)) if choice), None)


def variant_model(annotation: Any) -> type[StrictModel] | None:
    """Return the model class inside an annotation, such as ``list[QuasiIdentifier]``; None without one."""
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return annotation
    return next((model for model in map(variant_model, get_args(annotation)) if model), None)


def wildcards(annotation: Any) -> tuple[str, ...]:
    """Return the steps from a field to a model in its annotation.

    A step is a name for each dict and an entry for each list.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return (NAMED, *wildcards(inner[1]))
    if origin is list:
        return (ENTRY, *wildcards(inner[0]))
    if origin is Annotated:
        return wildcards(inner[0])
    return next((wildcards(one) for one in inner if variant_model(one) or chosen_variant(one)), ())


@dataclass(frozen=True)
class KeyLocation:
    """Place in a job file where a key is known, and the method or kind that has the key there.

    Attributes:
        steps: Keys that lead there; ``NAMED`` and ``ENTRY`` for what the job names and for entries of a list.
        kind: The method that has it there, or another kind of what stands there; empty if all have it.
        named: Whether the kind stands there as a name, and does not show in the keys.
    """

    steps: tuple[str, ...] = ()
    kind: str = ""
    named: bool = False


def _keys(model: type[StrictModel]) -> list[tuple[str, FieldInfo]]:
    """Return the keys that a model takes, with their fields."""
    keys = ((field.alias or name, field) for name, field in model.model_fields.items())
    return [(key, field) for key, field in keys if key not in model.keys_elsewhere]


def key_locations(model: type[StrictModel], at: KeyLocation = KeyLocation()) -> Iterator[tuple[str, KeyLocation]]:
    """Yield each key of a model and of the models in it, with its place."""
    for key, field in _keys(model):
        yield key, at
        inner, choice, _ = field_model(field)
        entries = any(isinstance(entry, EntriesOf) for entry in field.metadata)
        steps = (*at.steps, key, *((ENTRY,) if entries else wildcards(field.annotation)))
        if inner is not None:
            yield from key_locations(inner, replace(at, steps=steps))
        for kind, variant in choice.models.items() if choice else ():
            yield from key_locations(variant, KeyLocation(steps, kind, named=choice is not None and choice.tag == "name"))


def locations_of_key(key: str, loc: Loc, root: type[StrictModel]) -> list[str]:
    """Return in words the nearest places where a key is known; empty if there are more than three.

    Args:
        key: The key, as it is written.
        loc: The location that has it, without the key.
        root: The model of the file.
    """
    near: dict[tuple[str, ...], list[KeyLocation]] = {}
    for place in (place for known, place in key_locations(root) if known == key):
        near.setdefault(place.steps, []).append(place)
    least = min((_distance(steps, loc) for steps in near), default=0)
    found = [_place_words(places, loc) for steps, places in near.items() if _distance(steps, loc) == least]
    return found if len(found) <= _MOST_PLACES else []


def _shared(steps: tuple[str, ...], loc: Loc) -> int:
    """Return how many steps a place and a location share from the top."""
    alike = [step in (NAMED, ENTRY) or step == part for step, part in zip(steps, loc, strict=False)]
    return alike.index(False) if False in alike else len(alike)


def _distance(steps: tuple[str, ...], loc: Loc) -> int:
    """Return how many steps lead from a location to a place, up and down."""
    return len(steps) + len(loc) - 2 * _shared(steps, loc)


def _place_words(places: Sequence[KeyLocation], loc: Loc) -> str:
    """Return in words the places of a key, which differ in their kind alone.

    Names that they share with a location are written out.
    """
    steps = places[0].steps
    kinds = alternatives(dict.fromkeys(place.kind for place in places)) if all(place.kind for place in places) else ""
    if _distance(steps, loc) == 0:
        return f"to {kinds}"
    if not steps:
        return "at the top level, beside 'version'"
    shared = _shared(steps, loc)
    named = [str(part) if step == NAMED else step for step, part in zip(steps[:shared], loc, strict=False)] + list(steps[shared:])
    entry = named[-1] == ENTRY
    path = ".".join(named[:-1] if entry else named).replace(f".{ENTRY}", ENTRY)
    of_kinds = f" of {kinds}" if kinds and places[0].named else ""
    return f"in an entry of '{path}'" if entry else f"under '{path}'{of_kinds}"


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
    known = [name for name, _ in _keys(owner)] if owner else []
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
