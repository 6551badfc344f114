"""Fields of job models: where a key of a job file leads, and where a misplaced key belongs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, get_args, get_origin

from pydantic.fields import FieldInfo

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


def key_locations(model: type[StrictModel], at: KeyLocation = KeyLocation()) -> Iterator[tuple[str, KeyLocation]]:
    """Yield each key of a model and of the models in it, with its place."""
    for name, field in model.model_fields.items():
        key = field.alias or name
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
