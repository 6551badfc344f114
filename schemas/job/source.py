"""Source of the records: files of several formats, local or in an object store, or a database query."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from schemas.errors.base import listed, nearest
from schemas.job.formats import FORMATS, ROWS, format_of_connection, format_of_suffix, unsupported_format_sentence, unused_format_keys
from schemas.reading.model import Character, PathText, StrictModel, Title, alternatives, as_path, fault
from schemas.reading.registry import OneOf
from schemas.reading.typed_texts import DATE_ORDER, ISO, Spelling

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
"""Object stores, as fsspec calls them."""

# Job files are kept under version control and handed on, so that whatever looks like a credential is refused.
_SECRETS = (
    re.compile(r"^[a-z0-9+.-]+://[^/?#@]*:[^/?#]*@", re.IGNORECASE),
    # A password of PostgreSQL may have these, and one with '/' is a mistake that shows it all the same.
    re.compile(r"^postgres(ql)?://[^/@]*:(?!\d+[/?,])[^@]*@", re.IGNORECASE),
    re.compile(r"(^|[?&;\s])\w*(password|passwd|pwd|secret|token|sig|signature|access_?key)\s*=", re.IGNORECASE),
    re.compile(r"[?&]x-amz-(credential|signature|security-token)=", re.IGNORECASE),
)
# An access key may stand before the bucket without any secret behind it.
_KEY_IN_BUCKET = re.compile(r"^(s3a?|gc?s)://[^/]*@", re.IGNORECASE)
_PREFIX = re.compile(r"s3a?://[^/?#*\[\]]+(/[^/?#*\[\]]+)+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_address(text: str) -> bool:
    """Return whether a path is an address in an object store and not a local path."""
    return "://" in text


def holds_secret(text: str) -> bool:
    """Return whether an address contains a password or a key."""
    return any(pattern.search(text) for pattern in (*_SECRETS, _KEY_IN_BUCKET))


def address_faults(text: str) -> list[str]:
    """Return at most one fault of an address, a secret or else its scheme; empty for a local path."""
    if not is_address(text):
        return []
    if holds_secret(text):
        return [
            "holds a password or a key, which a job file must not: remove it from the address, and let the environment "
            "(AWS_ACCESS_KEY_ID, AWS_PROFILE and the like) or the store's own credentials file say it"
        ]
    if (scheme := text.split("://", 1)[0].lower()) == "file":
        return ["is an address of a file of this machine: write its path alone, without file://"]
    if scheme not in SCHEMES:
        return [f"is an address of a kind that is not known; known are {', '.join(f'{scheme}://' for scheme in SCHEMES)}"]
    return []


def as_target(value: object) -> Path | str:
    """Return a target as path, or as object store address without a trailing slash; raise for others."""
    if isinstance(value, str) and is_address(value):
        if faults := address_faults(value):
            raise fault(*faults)
        return value.rstrip("/")
    return as_path(value)


def as_work(value: object) -> Path | str:
    """Return a work folder as path, or as bucket prefix without a trailing slash; raise for others."""
    work = as_target(value)
    if isinstance(work, str) and not _PREFIX.fullmatch(work):
        # A lease needs puts that are refused if an object changed meanwhile, and of other stores fsspec has none.
        raise fault("must be a folder, or a prefix of a bucket such as s3://bucket/prefix; of object stores only S3's can hold the work")
    return work


def database_address(value: object) -> object:
    """Return a PostgreSQL address; raise if it is none, or holds a password."""
    if not isinstance(value, str) or not value.startswith(("postgresql://", "postgres://")):
        raise fault("must be an address such as postgresql://reader@host/database, written as text")
    if holds_secret(value):
        raise fault(
            "holds a password, which a job file must not: remove it, and use PGPASSWORD, ~/.pgpass or PGSERVICE, or give the whole "
            "address as connection: {env: VARIABLE} or connection: {file: PATH}"
        )
    return value


def variable(value: str) -> str:
    """Return the name of an environment variable; raise if the text cannot be one."""
    # What stands here instead may be the address itself with its password, and is not repeated.
    if not _VARIABLE.fullmatch(value):
        raise fault("must be the name of an environment variable, not what it holds")
    return value


Target = Annotated[Path | str, BeforeValidator(as_target), WithJsonSchema({"type": "string", "minLength": 1})]

Work = Annotated[Path | str, BeforeValidator(as_work), WithJsonSchema({"type": "string", "minLength": 1})]


@dataclass
class WorkAtHand:
    """Holder of the local folder of work in a bucket, shared by the jobs of all tables of a run.

    Attributes:
        folder: On this machine; None while no run holds the lease.
    """

    folder: Path | None = None


class Connection(StrictModel):
    """Address of a database, without a password.

    Or the variable or file that holds the complete address.
    """

    uri: Annotated[str, BeforeValidator(database_address), WithJsonSchema({"type": "string"})] | None = None
    """postgresql://reader@host:5432/database; what it leaves out, libpq's variables and files say (PGPASSWORD, ~/.pgpass, PGSERVICE)."""
    env: Annotated[str, AfterValidator(variable)] | None = None
    """The environment variable that holds the address."""
    file: PathText | None = Field(default=None)
    """A file that holds the address in its first line; relative to the job file."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Check that exactly one of uri, env and file is set."""
        if sum(way is not None for way in (self.uri, self.env, self.file)) != 1:
            raise fault("needs one of uri, env and file")
        return self


TYPES = ("text", "integer", "double", "decimal(p,s)", "boolean", "date", "timestamp", "timestamptz")
_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}), *([0-9]{1,2})\)")
_TYPE_PATTERN = r"^(text|integer|double|boolean|date|timestamp|timestamptz|decimal\([0-9]{1,2}, *[0-9]{1,2}\))$"
UTF8 = "utf-8"
COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
"""How a text file is packed, by the ending of its name."""
_MOST_PRECISION = 38


def column_type(value: object) -> str:
    """Return a type name without blanks, such as ``decimal(10,2)``; raise if it is unknown."""
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
    """Return one path or a list of paths as a list; raise for empty ones and wrong addresses."""
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path.strip() and "\0" not in path for path in paths):
        raise fault("must be a path, a pattern such as data/*.parquet, or a list of these")
    if faults := [sentence for path in paths for sentence in address_faults(path)]:
        raise fault(*dict.fromkeys(faults))
    return paths


def null_texts(values: list[str]) -> list[str]:
    """Return the texts that stand for null; raise if one is listed twice."""
    if len(set(values)) < len(values):
        raise fault("lists a text twice; list it once")
    return values


def text_encoding(value: str) -> str:
    """Return the standard name of a text encoding; raise if it is unknown."""
    try:
        # Whatever has no text on one side, such as base64, ends in a LookupError here.
        "".encode(value)
        return codecs.lookup(value).name
    except (LookupError, ValueError):
        raise fault("must be the name of an encoding of text, such as utf-8, windows-1252 or iso-8859-2") from None


def date_order(value: str) -> str:
    """Return the order of day, month and year in a file's dates; raise if it is none."""
    if not DATE_ORDER.fullmatch(value):
        raise fault("must be dd, mm and yyyy in their order, with '.', '/', '-', a blank or nothing between them, such as dd.mm.yyyy")
    return value


def suffix(path: str) -> str:
    """Return a path's suffix in lower case without compression: ``.csv`` for ``a/B.CSV.gz``."""
    name = path.lower().rsplit("/", 1)[-1]
    for ending in COMPRESSION:
        name = name.removesuffix(ending)
    return "." + name.rsplit(".", 1)[-1] if "." in name else ""


def readable_format(value: object) -> object:
    """Return a format's name unchanged; raise if it is a known but unsupported format."""
    if isinstance(value, str) and value not in FORMATS and (words := unsupported_format_sentence(f".{value.lower()}")):
        raise fault(f"must be {alternatives(FORMATS)}; this is {words}")
    return value


def inferred_format(source: dict[str, Any]) -> str:
    """Return the name of the source format that the first path's suffix shows.

    Parquet for unknown suffixes, PostgreSQL for a connection without a path.
    """
    if not source["path"] and source.get("connection"):
        return format_of_connection().name
    return format_of_suffix(suffix(source["path"][0]) if source["path"] else "").name


def inferred_delimiter(source: dict[str, Any]) -> str:
    """Return the default delimiter: a tab for ``.tsv``, a comma for everything else."""
    return "\t" if source["path"] and suffix(source["path"][0]) == ".tsv" else ","


_TOKEN = re.compile(r"""\s+|--[^\n]*|/\*.*?\*/|('(?:[^']|'')*'|"[^"]*"|\$(\w*)\$.*?\$\2\$|.)""", re.DOTALL)
"""Of SQL: spaces and comments, and as the first group all else."""


def statement_text(value: str) -> str:
    """Return a table or SQL statement without its final semicolon and what follows; raise if empty."""
    text = value.strip()
    said = [token for token in _TOKEN.finditer(text) if token[1]]
    if said and said[-1][1] == ";":
        text = text[: said.pop().start()].rstrip()
    if not said or "\0" in text:
        raise fault("must be a table or a SELECT statement, but is empty")
    return text


PATHS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
Paths = Annotated[list[str], BeforeValidator(path_list), WithJsonSchema(PATHS_SCHEMA)]
ColumnType = Annotated[str, BeforeValidator(column_type), WithJsonSchema({"type": "string", "pattern": _TYPE_PATTERN})]


class Source(StrictModel):
    """The files that hold the records, or the query that returns them."""

    model_config = ConfigDict(serialize_by_alias=True)
    # Neither the place nor the way there counts: content has a digest of its own, of which the release id is made as well.
    uncounted: ClassVar[frozenset[str]] = frozenset({"path", "connection", "table", "query", "hive", "extract", "name"})
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"drift", "encoding", "decimal", "thousands", "dates"})
    examples: ClassVar[Mapping[str, str]] = {
        "connection": "connection: {env: DATABASE_URL}",
        "types": "types: {zip_code: text}",
    }
    path: Paths = Field(default_factory=list)
    """A path or pattern relative to the job file, an address such as s3://bucket/data/*.parquet, or a list of them."""
    connection: Connection | None = None
    """Where the PostgreSQL server is; its own variables and files say so where this is left out."""
    format: Annotated[str, OneOf(FORMATS), BeforeValidator(readable_format)] = Field(default_factory=inferred_format)
    """Known from the suffix unless it is said; Parquet where that tells none, PostgreSQL for a connection without a path."""
    delimiter: Character = Field(default_factory=inferred_delimiter)
    """What separates the fields of a CSV file; a tab for .tsv."""
    null_values: Annotated[list[str], AfterValidator(null_texts)] = Field(default_factory=lambda: [""])
    """What stands for null in a CSV file, as it is written there."""
    types: dict[str, ColumnType] = Field(default_factory=dict)
    """Types of columns of a CSV file, of a query of PostgreSQL or of hive partitions: text, integer, double, decimal(p,s), boolean, …"""
    encoding: Annotated[str, AfterValidator(text_encoding)] = UTF8
    """How a CSV file writes characters as bytes, such as windows-1252."""
    decimal: Literal[".", ","] = "."
    """The decimal separator of a CSV file."""
    thousands: Literal["", ".", ",", " ", "'"] = ""
    """What parts groups of three digits in a CSV file; a blank is one that no line is broken at, too."""
    dates: Annotated[str, AfterValidator(date_order)] = ISO
    """The order in which a CSV file writes days, such as dd.mm.yyyy or mm/dd/yyyy."""
    table: Annotated[str, AfterValidator(statement_text)] | None = None
    """The table of a database, with its schema before a dot if need be."""
    query: Annotated[str, AfterValidator(statement_text)] | None = None
    """A SELECT statement, in the place of a table."""
    hive: bool = False
    """Whether folders such as region=North name columns, as Hive and Spark write them; Parquet only."""
    extract: Literal["each_run", "once"] = "each_run"
    """Whether a query is asked again at every run, or its first answer is kept until skald clean."""
    drift: Literal["freeze", "evolve"] = Field(default="freeze", alias="schema")
    """Whether files whose columns differ are refused, or read alike: what a file lacks is null there, narrower types are widened."""

    name: Title | None = None
    """What the source is called in manifest and report, such as "admissions, 2026"; nothing is called after it unless it is said."""

    @model_validator(mode="after")
    def _keys_fit_the_format(self) -> Self:
        """Check that the source settings fit the format."""
        if faults := self._faults():
            raise fault(*faults)
        return self

    def _faults(self) -> list[str]:
        """Return the conflicts between the format and the given keys."""
        faults, entry = [], FORMATS[self.format]
        told = {suffix(path) for path in self.path}
        if "format" not in self.model_fields_set:
            faults += [f"path is {words}" for words in dict.fromkeys(map(unsupported_format_sentence, sorted(told))) if words]
        if "format" not in self.model_fields_set and len({format_of_suffix(ending).name for ending in told}) > 1:
            faults.append("the paths are of different formats; give one format, or make a job for each")
        if "delimiter" not in self.model_fields_set and ".tsv" in told and len(told) > 1:
            faults.append("the paths differ in their delimiter (.tsv has tabs); give the delimiter, or make a job for each")
        if entry.pathless and self.path:
            faults.append(f"format: {entry.name} has no path; {entry.pathless}")
        if not entry.pathless and not self.path:
            faults.append("path is missing; add it")
        given = {name for name in self.model_fields_set if self._says(name)}
        if self.thousands == self.decimal:
            faults.append("thousands and decimal are the same; give two different separators")
        faults += [f"{listed(names)} {only}" for names, only in unused_format_keys(entry, given, folders=self.hive)]
        if entry.asks and len(given.intersection(ROWS.names)) != 1:
            faults.append(f"format: {entry.name} needs either table or query")
        return faults

    @property
    def spelling(self) -> Spelling:
        """Separators and date order of a CSV file."""
        return Spelling(self.decimal, self.thousands, self.dates)

    def _says(self, name: str) -> bool:
        """Return whether a key in the job differs from its default value."""
        field = type(self).model_fields[name]
        return bool(getattr(self, name) != field.default)
