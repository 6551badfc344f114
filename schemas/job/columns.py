"""Roles of the source's columns in a job: every column has exactly one role."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, PrivateAttr, TypeAdapter, WithJsonSchema, model_validator

from schemas.errors.base import listed
from schemas.job.identifiers import EXACT, SHARED, Entry, Identifier, Publish, Way, canonical_way, checked_identifiers, counts_people
from schemas.job.source import Paths
from schemas.reading.model import EntriesOf, LaterJsonSchema, StrictModel, fault, part_of
from schemas.registry.hierarchy_kinds import Hierarchy
from schemas.registry.treatment_kinds import treatment_kind

NONE = "none"
"""Says that every record is a person of its own: nothing is counted, and nothing warned of."""


def person_columns(value: object) -> list[str]:
    """Return a job's person columns as a list, empty for the word ``none``; raise for other values."""
    return [] if value == NONE else one_or_several(value, wanted="the name of a column, a list of names, or the word none")


def one_or_several(value: object, *, wanted: str = "the name of a column, or a list of names") -> list[str]:
    """Return one column name, or a list of distinct names, as a list; raise for other values.

    Args:
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
    """A table of the population with one row per person, such as a register or a census."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"path"})
    path: Paths
    """Parquet files: a path or pattern relative to the job file, or a list of them. They have the quasi-identifiers under the names and in
    the types that the source has; other columns are not read."""

    def canonical(self) -> dict[str, Any]:
        """Return an empty dict: no byte of the released data depends on the population."""
        return {}


ROLES = ("identifiers", "withheld", "quasi_identifiers", "sensitive", "insensitive")
REST = "rest"


def column_name(value: object) -> str:
    """Return a column name; raise if it is empty or no text."""
    if not isinstance(value, str):
        raise fault("must be a column's name as text; put it in quotes")
    if not value:
        raise fault("must be a column's name, but is empty")
    return value


def column_names(value: object) -> list[str]:
    """Return a list of column names; raise if it is no list, or an entry is empty or no text."""
    if not isinstance(value, list):
        raise fault("must be a list of column names")
    if wrong := [str(position) for position, name in enumerate(value) if not isinstance(name, str) or not name]:
        raise fault(f"must be a list of column names; empty or not text (put it in quotes): entry {', '.join(wrong)}, counted from 0")
    return value


def column_names_or_rest(value: object) -> object:
    """Return the names of a list of names and entries, or the word ``rest``; raise for other values.

    Each entry with more than a name is validated.
    """
    if isinstance(value, str) and value == REST:
        return value
    if not isinstance(value, list):
        raise fault("must be a list of column names or the word rest; an entry of the list may be {name: income, publish: shared}")
    published_entries(value)
    return column_names(_only_names(value))


def checked_distinct(value: object) -> object:
    """Return a list unchanged; raise if it is no list, or has a value twice."""
    if not isinstance(value, list):
        raise fault("must be a list, of case, space and empty")
    if len(set(map(str, value))) < len(value):
        raise fault("lists something twice; list it once")
    return value


NAMES_SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}}
# What a validator takes cannot be seen from it, so that editors are told by a JSON schema of its own.
ColumnName = Annotated[str, BeforeValidator(column_name), WithJsonSchema({"type": "string", "minLength": 1})]
ColumnNames = Annotated[list[str], BeforeValidator(column_names), WithJsonSchema(NAMES_SCHEMA)]
Residual: TypeAlias = Literal["rest"]


Normalise = Annotated[list[Literal["case", "space", "empty"]], BeforeValidator(checked_distinct)]
"""What the texts of a column are read without."""


class PublishedEntry(StrictModel):
    """A column with the form in which it is published."""

    name: ColumnName
    """The column."""
    publish: Publish = EXACT
    """How: exact, shared (every value is that of at least k people; other numbers go to a grid, other texts to one word), {round: …},
    {top: …, bottom: …}, or {microaggregate: …}."""


class SensitiveEntry(PublishedEntry):
    """A sensitive column with the differences in spelling that are ignored when it is read.

    Case, spaces or marks of empty values can be ignored.
    """

    normalise: Normalise = Field(default_factory=list)
    """What its texts are read without: case (they are in lower case then), space (around them, and repeated), empty (N/A and the like)."""


class QuasiIdentifier(StrictModel):
    """A column that can single persons out, with the hierarchy that generalises it."""

    counted_if_set: ClassVar[frozenset[str]] = frozenset({"exact", "normalise"})
    name: ColumnName
    """The column."""
    hierarchy: Hierarchy
    """How its values are grouped: one of csv, tree, widths, prefix and date."""
    normalise: Normalise = Field(default_factory=list)
    """What its texts are read without: case (in lower case, in which its hierarchy must list them), space, empty (N/A and the like)."""
    exact: bool = True
    """Whether the values themselves may be published, where the records allow it; else only levels at which no value keeps its name are."""

    @property
    def hides(self) -> bool:
        """Whether some original values may never be published.

        All of them, or those beyond top and bottom or with a rare prefix.
        """
        return not self.exact or self.hierarchy.hides


EntryModel = TypeVar("EntryModel", bound=PublishedEntry)


@cache
def _by_position(model: type[EntryModel]) -> TypeAdapter[dict[int, EntryModel]]:
    """Return the validator of entries by position, so that a fault names the entry's position."""
    return TypeAdapter(dict[int, model])  # type: ignore[valid-type]


def _entries(value: object, model: type[EntryModel]) -> list[EntryModel]:
    """Validate and return the entries of a role with more than a name; empty for no list."""
    found = {at: one for at, one in enumerate(value) if isinstance(one, Mapping)} if isinstance(value, list) else {}
    return list(_by_position(model).validate_python(found).values()) if found else []


def published_entries(value: object) -> list[PublishedEntry]:
    """Return the validated entries of insensitive columns with more than a name; empty for no list."""
    return _entries(value, PublishedEntry)


def sensitive_entries(value: object) -> list[SensitiveEntry]:
    """Return the validated entries of sensitive columns with more than a name; empty for no list."""
    return _entries(value, SensitiveEntry)


def sensitive_names(value: object) -> list[str]:
    """Return the names in a list of names and entries of sensitive columns; raise for other values."""
    if not isinstance(value, list):
        raise fault("must be a list of column names or of entries, as in [diagnosis, {name: income, publish: shared}]")
    sensitive_entries(value)
    return column_names(_only_names(value))


def _only_names(value: object) -> object:
    """Return the names from a list of names and entries."""
    return [one.get("name") if isinstance(one, Mapping) else one for one in value] if isinstance(value, list) else value


def entries_schema(model: type[StrictModel]) -> dict[str, Any]:
    """Return the JSON Schema of a list of column names or entries of a model."""
    return {"type": "array", "items": {"anyOf": [NAMES_SCHEMA["items"], model.model_json_schema()]}}


SensitiveNames = Annotated[
    list[str], BeforeValidator(sensitive_names), EntriesOf(SensitiveEntry), LaterJsonSchema(lambda: entries_schema(SensitiveEntry))
]
ColumnNamesOrRest = Annotated[
    list[str] | Residual,
    BeforeValidator(column_names_or_rest),
    EntriesOf(PublishedEntry),
    LaterJsonSchema(lambda: {"anyOf": [entries_schema(PublishedEntry), {"const": REST}]}),
]


class Columns(StrictModel):
    """The columns of a job by role; a column with two roles is refused.

    A column without a role is an error when the source is read.
    """

    examples: ClassVar[Mapping[str, str]] = {
        "quasi_identifiers": "quasi_identifiers: [{name: age, hierarchy: {widths: [5, 10]}}]",
    }
    counted_if_set: ClassVar[frozenset[str]] = frozenset({"person", "linkable", "withheld", "accept_untreated", "most_records"})
    person: Person = Field(default_factory=list)
    """Whose record it is: a column, or several that name a person together. k counts different persons then, and a null is nobody; left
    out, every record counts as a person of its own, and a run warns where identifiers repeat. The word none says that it is one. It is
    published only if it is listed elsewhere too."""
    most_records: Annotated[int, Field(ge=1)] | None = None
    """At most so many records of a person are published; the others are withheld, and drawn by a keyed digest. Left out, all are."""
    identifiers: Annotated[list[Entry], BeforeValidator(checked_identifiers)] = Field(default_factory=list)
    """Columns that name a person; a name alone is not published, an entry with a treatment is as pseudonyms."""
    linkable: Names = Field(default_factory=list)
    """Identifiers whose pseudonyms may show which records belong together even where fewer than k people share the set of combinations that
    their records are in: a name or a list of them; without it such a run ends with exit code 3."""
    withheld: ColumnNames = Field(default_factory=list)
    """Columns that are not published and name nobody: whether their values repeat is not looked at."""
    quasi_identifiers: Annotated[list[QuasiIdentifier], Field(min_length=1)]
    """Columns that are generalised; their order is the order of importance for ties."""
    sensitive: SensitiveNames = Field(default_factory=list)
    """Columns whose values are to be protected; they are published. An entry with a name may say how, and what it is read without."""
    insensitive: ColumnNamesOrRest = Field(default_factory=list)
    """Columns that are published as they are, or as an entry with a name says; or the word rest for all that are not named elsewhere."""
    accept_untreated: bool = False
    """Whether the job accepts that fewer than k share what the insensitive columns together publish; the maximum risk that is claimed is
    then that of the quasi-identifiers alone, and says so."""
    _none: bool = PrivateAttr(default=False)
    _spelled: dict[str, list[str]] = PrivateAttr(default_factory=dict)
    _ways: dict[str, Way] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _as_said(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Store the settings of column entries that the lists of names do not keep."""
        read = handler(data)
        if isinstance(data, Mapping):
            read._none = data.get("person") == NONE
            sensitive, others = sensitive_entries(data.get("sensitive")), published_entries(data.get("insensitive"))
            read._spelled = {one.name: list(one.normalise) for one in sensitive if one.normalise}
            read._ways = {one.name: one.publish for one in (*sensitive, *others) if one.publish != EXACT}
        return read

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        """Check that every column has one role."""
        faults = role_faults({role: getattr(self, role) for role in ROLES})
        if self.most_records is not None and not self.person:
            faults.append("most_records bounds the records of a person, and no person is named; say which column names one (person)")
        if faults:
            raise fault(*faults)
        return self

    @property
    def each_a_person(self) -> bool:
        """Whether the job says that every record belongs to a different person."""
        return self._none

    def canonical(self) -> dict[str, Any]:
        """Return the settings that determine a release's content as JSON data.

        They include ``person: none``, because the report mentions it.
        """
        spelled = {"normalise": {name: sorted(steps) for name, steps in self._spelled.items()}} if self._spelled else {}
        ways = {"publish": self.canonical_ways} if self._ways else {}
        return super().canonical() | ({"person": NONE} if self._none else {}) | spelled | ways

    @property
    def ways(self) -> dict[str, Way]:
        """Form of publication by column, for columns that are not published unchanged."""
        return self._ways

    @property
    def canonical_ways(self) -> dict[str, Any]:
        """Form of publication by column, as JSON data; only columns that are not published unchanged."""
        return {name: canonical_way(way) for name, way in self._ways.items()}

    @property
    def means(self) -> tuple[str, ...]:
        """Columns of which means of groups are published."""
        return tuple(name for name, way in self._ways.items() if way != SHARED and counts_people(way))

    @property
    def recounted_value_columns(self) -> list[str]:
        """Sensitive columns and columns with ``publish``, whose values the recount counts with persons."""
        return list(dict.fromkeys([*self.sensitive, *self._ways]))

    @property
    def normalised(self) -> dict[str, list[str]]:
        """Differences in spelling that are ignored, by column; only columns with this setting."""
        return {**{qid.name: [*map(str, qid.normalise)] for qid in self.quasi_identifiers if qid.normalise}, **self._spelled}

    @property
    def dropped(self) -> list[str]:
        """Names of the identifiers that are not published."""
        return [entry for entry in self.identifiers if isinstance(entry, str)]

    @property
    def columns_withheld(self) -> list[str]:
        """Names of all unpublished columns: identifiers without a treatment, and withheld columns."""
        return [*self.dropped, *self.withheld]

    @property
    def pseudonyms(self) -> list[Identifier]:
        """Identifiers that are published as pseudonyms, in order."""
        return [entry for entry in self.identifiers if not isinstance(entry, str)]

    @property
    def links(self) -> list[tuple[str, ...]]:
        """Groups of columns whose pseudonyms link records.

        A column each, but the columns that name a person together are one group.
        """
        linking = [one.name for one in self.pseudonyms if treatment_kind(one.treatment).links]
        person = tuple(self.person) if self.person and set(self.person) <= set(linking) else ()
        return [*([person] if person else []), *((name,) for name in linking if name not in person)]

    @property
    def joining(self) -> list[tuple[str, ...]]:
        """Groups of columns whose pseudonyms may join releases.

        They are ``links``, then each column of a larger group by itself. Another job may publish it alone, under the same key.
        """
        return [*self.links, *((name,) for columns in self.links if len(columns) > 1 for name in columns)]

    @property
    def linking(self) -> list[str]:
        """Columns whose pseudonyms link records, as one flat list."""
        return [name for columns in self.links for name in columns]

    def roles(self) -> dict[str, str]:
        """Return the role of every column by name, in the order of the job."""
        return {name: role for role in ROLES for name in names(getattr(self, role))}


def named_entries(columns: object) -> Iterator[tuple[str, Any]]:
    """Yield name and entry of the columns of a role, validated or raw; skip entries without a name."""
    for entry in columns if isinstance(columns, list) else []:
        name = entry.get("name") if isinstance(entry, Mapping) else getattr(entry, "name", entry)
        if isinstance(name, str):
            yield name, entry


def names(columns: object) -> Iterator[str]:
    """Yield the column names among the entries of a role, as ``named_entries`` does."""
    return (name for name, _ in named_entries(columns))


def publish_settings(columns: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield name and ``publish`` setting of the columns in a raw job whose setting is not exact."""
    for role in ("sensitive", "insensitive"):
        for name, one in named_entries(columns.get(role)):
            if isinstance(one, Mapping) and one.get("publish", EXACT) != EXACT:
                yield name, one["publish"]


def hidden_qids(quasi_identifiers: object) -> Iterator[str]:
    """Yield the quasi-identifiers, validated or raw, whose original values may not be published."""
    for name, qid in named_entries(quasi_identifiers):
        if isinstance(qid, QuasiIdentifier):
            hides = qid.hides
        else:
            # Not yet read: a job tells all its faults at once, so that parts are compared before each is known to be sound.
            hierarchy = part_of(qid, "hierarchy")
            hides = isinstance(hierarchy, Mapping) and not hierarchy.keys().isdisjoint({"top", "bottom", "sparse"})
        if hides or part_of(qid, "exact") is False:
            yield name


def role_faults(columns: Mapping[str, object]) -> list[str]:
    """Return a message for each column with two roles or listed twice.

    It works also where other parts of ``columns`` are wrong.
    """
    found: dict[str, list[str]] = {}
    for role in ROLES:
        for name in names(columns.get(role)):
            found.setdefault(name, []).append(role)
    faults = []
    for name, roles in found.items():
        distinct = list(dict.fromkeys(roles))
        if len(distinct) > 1:
            faults.append(f"column '{name}' has {len(distinct)} roles, {listed(distinct)}; give it one")
        elif len(roles) > 1:
            faults.append(f"column '{name}' is listed {len(roles)} times in '{roles[0]}'; list it once")
    return faults
