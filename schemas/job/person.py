"""Columns that a job names by one name or several: whose record a record is, and which pseudonyms may link."""

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from schemas.reading.model import fault


def one_or_several(value: object) -> list[str]:
    """Returns columns from one name or a list of them, which may be empty.

    Raises:
        PydanticCustomError: neither, or a name twice.
    """
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not all(isinstance(name, str) and name for name in columns):
        raise fault("must be the name of a column, or a list of names; put them in quotes")
    if len(set(columns)) < len(columns):
        raise fault("names a column twice; list it once")
    return columns


NAME = {"type": "string", "minLength": 1}
Names = Annotated[list[str], BeforeValidator(one_or_several), WithJsonSchema({"anyOf": [NAME, {"type": "array", "items": NAME}]})]
