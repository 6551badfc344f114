"""Where the records are and, for CSV, how they are written."""

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from schemas.errors import listed, nearest
from schemas.strict import Character, StrictModel, alternatives, fault

TYPES = ("text", "integer", "double", "decimal(p,s)", "boolean", "date", "timestamp")
CSV_KEYS = ("delimiter", "null_values", "types")
_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}), *([0-9]{1,2})\)")
_TYPE_PATTERN = r"^(text|integer|double|boolean|date|timestamp|decimal\([0-9]{1,2}, *[0-9]{1,2}\))$"
_COMPRESSION = (".gz", ".zst")
_MOST_PRECISION = 38


def column_type(value: object) -> str:
    """Returns a type's name as DuckDB-like text without blanks, such as ``integer`` or ``decimal(10,2)``.

    Raises:
        PydanticCustomError: not one of the known types, or a decimal outside 1 ≤ p ≤ 38, 0 ≤ s ≤ p.
    """
    words = alternatives(TYPES)
    if not isinstance(value, str):
        raise fault(f"must be {words}")
    if value in TYPES and "(" not in value:
        return value
    if found := _DECIMAL.fullmatch(value):
        precision, scale = int(found[1]), int(found[2])
        if not (1 <= precision <= _MOST_PRECISION and scale <= precision):
            raise fault(f"decimal(p,s) needs p from 1 to {_MOST_PRECISION} and s from 0 to p")
        return f"decimal({precision},{scale})"
    if value.startswith("decimal"):
        raise fault("must be written decimal(p,s), and inside { } in quotes, because a comma ends an entry there")
    raise fault(f"must be {words}{nearest(value, TYPES)}")


def path_list(value: object) -> object:
    """Returns one path or several as a list.

    Raises:
        PydanticCustomError: not text, not a list of text, or an empty list.
    """
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path.strip() and "\0" not in path for path in paths):
        raise fault("must be a path, a pattern such as data/*.parquet, or a list of these")
    return paths


def null_texts(values: list[str]) -> list[str]:
    """Returns the texts that stand for null.

    Raises:
        PydanticCustomError: a text is listed twice.
    """
    if len(set(values)) < len(values):
        raise fault("lists a text twice; list it once")
    return values


def suffix(path: str) -> str:
    """Returns the last suffix of a path in lower case, compression apart: ``.csv`` for ``a/B.CSV.gz``."""
    name = path.lower().rsplit("/", 1)[-1]
    for ending in _COMPRESSION:
        name = name.removesuffix(ending)
    return "." + name.rsplit(".", 1)[-1] if "." in name else ""


def inferred_format(read: dict[str, Any]) -> Literal["parquet", "csv"]:
    """Returns the format that the first path's suffix tells; Parquet where it tells none."""
    return "csv" if suffix(read["path"][0]) in {".csv", ".tsv"} else "parquet"


def inferred_delimiter(read: dict[str, Any]) -> str:
    """Returns a tab for ``.tsv`` and a comma for everything else."""
    return "\t" if suffix(read["path"][0]) == ".tsv" else ","


PATHS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
Paths = Annotated[list[str], BeforeValidator(path_list), WithJsonSchema(PATHS_SCHEMA)]
ColumnType = Annotated[str, BeforeValidator(column_type), WithJsonSchema({"type": "string", "pattern": _TYPE_PATTERN})]


class Source(StrictModel):
    """The files that hold the records."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"path"})
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"drift"})
    path: Paths
    """A path or pattern relative to the job file, or a list of them; always a list once it is read."""
    format: Literal["parquet", "csv"] = Field(default_factory=inferred_format)
    """Known from the suffix unless it is said: .csv and .tsv, also with .gz or .zst, are CSV, all else is Parquet."""
    delimiter: Character = Field(default_factory=inferred_delimiter)
    """What separates the fields of a CSV file; a tab for .tsv."""
    null_values: Annotated[list[str], AfterValidator(null_texts)] = Field(default_factory=lambda: [""])
    """What stands for null in a CSV file, as it is written there."""
    types: dict[str, ColumnType] = Field(default_factory=dict)
    """Types of a CSV file's columns: text, integer, double, decimal(p,s), boolean, date, timestamp."""
    drift: Literal["freeze", "evolve"] = Field(default="freeze", alias="schema")
    """Whether files whose columns differ are refused, or read alike: what a file lacks is null there, narrower types are widened."""

    @model_validator(mode="after")
    def _keys_fit_the_format(self) -> Self:
        faults = []
        told = {suffix(path) for path in self.path}
        if "format" not in self.model_fields_set and told & {".csv", ".tsv"} and told - {".csv", ".tsv"}:
            faults.append("the paths are of different formats; give one format, or make a job for each")
        if "delimiter" not in self.model_fields_set and ".tsv" in told and len(told) > 1:
            faults.append("the paths differ in their delimiter (.tsv has tabs); give the delimiter, or make a job for each")
        given = [key for key in CSV_KEYS if key in self.model_fields_set]
        if self.format == "parquet" and given:
            faults.append(f"{listed(given)} only fit CSV files, but the format is parquet; remove them or say format: csv")
        if faults:
            raise fault(*faults)
        return self
