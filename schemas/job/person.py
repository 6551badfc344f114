"""Whose record a record is: one column or several that name a person."""

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from schemas.reading.model import fault

NONE = "none"
"""Says that every record is a person of its own: nothing is counted, and nothing warned of."""


def person_columns(value: object) -> list[str]:
    """Returns the columns that name a person, from one name or a list of them, which may be empty; none for the word ``none``.

    Raises:
        PydanticCustomError: neither, or a name twice.
    """
    if isinstance(value, str) and value == NONE:
        return []
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not all(isinstance(name, str) and name for name in columns):
        raise fault("must be the name of a column, a list of names, or the word none; put names in quotes")
    if len(set(columns)) < len(columns):
        raise fault("names a column twice; list it once")
    return columns


NAME = {"type": "string", "minLength": 1}
Person = Annotated[
    list[str], BeforeValidator(person_columns), WithJsonSchema({"anyOf": [NAME, {"type": "array", "items": NAME}, {"const": NONE}]})
]
