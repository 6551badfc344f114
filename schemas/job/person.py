"""Columns that a job names by one name or several: whose record a record is, and which pseudonyms may link."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, WithJsonSchema

from schemas.job.source import Paths
from schemas.reading.model import StrictModel, fault

NONE = "none"
"""Says that every record is a person of its own: nothing is counted, and nothing warned of."""


def person_columns(value: object) -> list[str]:
    """Returns the columns that name a person, as ``one_or_several``; none for the word ``none``."""
    return [] if value == NONE else one_or_several(value, wanted="the name of a column, a list of names, or the word none")


def one_or_several(value: object, *, wanted: str = "the name of a column, or a list of names") -> list[str]:
    """Returns columns from one name or a list of them, which may be empty.

    Args:
        value: What the job has there.
        wanted: What it should be.
    """
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not all(isinstance(name, str) and name for name in columns):
        raise fault(f"must be {wanted}; put names in quotes")
    if len(set(columns)) < len(columns):
        raise fault("names a column twice; list it once")
    return columns


NAME = {"type": "string", "minLength": 1}
Names = Annotated[list[str], BeforeValidator(one_or_several), WithJsonSchema({"anyOf": [NAME, {"type": "array", "items": NAME}]})]
Person = Annotated[
    list[str], BeforeValidator(person_columns), WithJsonSchema({"anyOf": [NAME, {"type": "array", "items": NAME}, {"const": NONE}]})
]


class Population(StrictModel):
    """A table of the population, a row a person, such as a register or a census."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"path"})
    path: Paths
    """Parquet files: a path or pattern relative to the job file, or a list of them. They have the quasi-identifiers under the names and in
    the types that the source has; other columns are not read."""

    def canonical(self) -> dict[str, Any]:
        """Returns nothing but that there is one: no byte of the data depends on it."""
        return {}
