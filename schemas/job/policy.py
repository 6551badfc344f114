"""The policy: minimum requirements for all jobs, read from a file that the environment names.

Data owners write it. The person who starts a run chooses the job, its overrides and Prefect's parameters, but not the environment of the
process that does the work. So the policy is read in the process that runs the flow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from unicodedata import category, normalize

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError

from schemas.errors.refusals import PolicyError
from schemas.job.columns import REST, ColumnNames
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.privacy import SAMPLE, share_of_records
from schemas.reading.faults import fault_lines
from schemas.reading.job_files import parse
from schemas.reading.model import ExactDecimal, PolicyVersion, StrictModel, plain
from schemas.reading.registry import OneOf, call_on_change
from schemas.reading.regular_files import content_of

Syntax = Mapping[str, Any]
UNTOLD = "what could not be read as a SELECT statement"


class Origins(NamedTuple):
    """Never-published columns that a query renames, and parts of it whose columns cannot be traced."""

    renamed: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


def origins(syntax: Syntax | None, banned: Callable[[Iterable[str]], list[str]]) -> Origins:
    """Return the never-published columns that a query renames, and its parts that cannot be traced.

    Args:
        syntax: The statement as DuckDB's ``json_serialize_sql`` tells it; None where it cannot be read.
        banned: Returns those of some names that are never published.
    """
    if syntax is None or len(syntax.get("statements", ())) != 1:
        return Origins(untold=(UNTOLD,))
    reading = _Reading(banned, {name.casefold() for name in _table_names(syntax)})
    reading.read(syntax)
    return Origins(tuple(dict.fromkeys(reading.renamed)), tuple(dict.fromkeys(reading.untold)))


class _Reading:
    """Search of a parsed SQL query for renamed or untraceable columns."""

    def __init__(self, banned: Callable[[Iterable[str]], list[str]], tables: set[str]):
        self.banned, self.tables = banned, tables
        self.renamed: list[str] = []
        self.untold: list[str] = []

    def read(self, syntax: Syntax) -> None:
        """Record the faults of all parts of a statement."""
        for part in _parts(syntax):
            kind = part.get("type")
            if kind == "SELECT_NODE":
                self._select(part["select_list"])
                self._table(part.get("from_table"))
            elif kind == "SET_OPERATION_NODE":
                self._union(part)
            elif isinstance(kind, str) and kind.endswith("_NODE"):
                self.untold.append("a recursive query")
            if part.get("aliases") and "query_node" in part:
                self.untold.append("a list of columns after the name of a subquery")

    def _select(self, items: list[Syntax]) -> None:
        """Record the faults of the expressions in a SELECT list."""
        for item in items:
            if item.get("class") == "COLUMN_REF":
                *path, name = item["column_names"]
                self._whole_row(item)
                self.renamed += self.banned(path)
                if item.get("alias", "").casefold() not in {"", name.casefold()}:
                    self.renamed += self.banned([name])
            elif item.get("class") == "STAR" and not any(item.get(key) for key in ("replace_list", "rename_list", "columns", "expr")):
                continue
            else:
                self._made_of(item)

    def _made_of(self, syntax: Any) -> None:
        """Record the never-published columns that an expression uses."""
        for part in _parts(syntax):
            if part.get("class") == "COLUMN_REF":
                self._whole_row(part)
                self.renamed += self.banned(part["column_names"])
            elif part.get("class") == "STAR":
                self.untold.append("COLUMNS, or * with REPLACE or RENAME")

    def _whole_row(self, reference: Syntax) -> None:
        """Record a fault if a column reference is the name of a table."""
        if len(reference["column_names"]) == 1 and reference["column_names"][0].casefold() in self.tables:
            self.untold.append("the name of a table in the place of a column")

    def _table(self, table: Syntax | None) -> None:
        """Record the faults of a FROM clause."""
        if table is None:
            return
        if table.get("column_name_alias"):
            self.untold.append("a list of columns after the name of a table")
        match table.get("type"):
            case "JOIN":
                self._table(table["left"])
                self._table(table["right"])
            case "EXPRESSION_LIST":
                self._made_of(table["values"])
            case "BASE_TABLE" | "SUBQUERY" | "EMPTY":
                # What is in a subquery is met as a part.
                pass
            case _:
                self.untold.append("a function, PIVOT or UNPIVOT in the place of a table")

    def _union(self, node: Syntax) -> None:
        """Record the never-published columns of a set operation that its first part renames."""
        lists = [child.get("select_list") for child in node["children"]]
        if not all(lists) or any(item.get("class") == "STAR" for items in lists for item in items):
            self.untold.append("UNION, INTERSECT or EXCEPT of parts whose columns are not listed")
            return
        first, *others = ([_name(item) for item in items] for items in lists)
        for names in others:
            self.renamed += self.banned([name for own, name in zip(first, names, strict=False) if own.casefold() != name.casefold()])


def _name(item: Syntax) -> str:
    """Return the output name of an expression in a SELECT list, or an empty text."""
    return str(item.get("alias") or (item.get("column_names") or [""])[-1])


def _parts(syntax: Any) -> Iterator[Syntax]:
    """Yield all objects of a parsed statement, outer ones first."""
    if isinstance(syntax, Mapping):
        yield syntax
    for inner in syntax.values() if isinstance(syntax, Mapping) else syntax if isinstance(syntax, list) else ():
        yield from _parts(inner)


def _table_names(syntax: Syntax) -> Iterator[str]:
    """Yield the names and aliases of the tables in a parsed statement."""
    for part in _parts(syntax):
        if "class" not in part and part.get("type") in {"BASE_TABLE", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "JOIN", "PIVOT"}:
            yield from (str(part[key]) for key in ("alias", "table_name") if part.get(key))


MOST_BYTES = 1_000_000


def _folded(name: str) -> str:
    """Return a column's name without capitals, Unicode forms, invisible characters and blanks around it."""
    folded = normalize("NFKC", normalize("NFKC", name).casefold())
    return "".join(character for character in folded if category(character) != "Cf").strip()


class PrivacyFloor(StrictModel):
    """Minimum privacy of every class in every release."""

    k: Annotated[int, Field(ge=1)] = 1
    """Least k of a job."""


class SuppressionCeiling(StrictModel):
    """Maximum suppression that a job may allow."""

    limit: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(1)
    """Greatest suppression limit of a job, a share of all records; of several tables that of persons, and of rows withheld."""


class Policy(StrictModel):
    """Minimum requirements for all jobs, as a data owner writes them.

    Settings that they do not name are free for the jobs.
    """

    version: PolicyVersion
    """The version of the format: 1."""
    privacy: PrivacyFloor = Field(default_factory=PrivacyFloor)
    """What every class must keep at least."""
    suppression: SuppressionCeiling = Field(default_factory=SuppressionCeiling)
    """How many records may be taken out at most."""
    person: Literal["required"] | None = None
    """The word required: a job names who its records belong to in columns.person, or says none: every record is a person of its own."""
    never_published: ColumnNames = Field(default_factory=list)
    """Columns that no release may hold in any form, not as quasi-identifiers or pseudonyms either: names, or patterns with * and ?, in
    capitals or not. Pseudonyms of several tables that are new in each release hold nothing of a column."""
    accept_untreated: bool = True
    """Whether a job may accept that fewer than k share what its untreated columns publish together (columns.accept_untreated). If it is
    false, such a job is refused, and so is every release in which that is so."""
    attacks: Literal["refuse"] | None = None
    """The word refuse: a release that an attack breaks is refused, whatever its job says, and so is a job that turns attacks off or plays
    them against fewer people than by default."""
    methods: Annotated[list[Annotated[str, OneOf(METHODS)]], Field(min_length=1)] | None = None
    """The only methods that a job may use; any if left out."""
    _path: str = PrivateAttr(default="")
    _digest: str = PrivateAttr(default="")

    @property
    def path(self) -> str:
        """Path of the policy's file."""
        return self._path

    @property
    def digest(self) -> str:
        """SHA-256 of the policy's file, in hex."""
        return self._digest

    @property
    def least_attacked(self) -> int:
        """People whom attacks must be played against at least; 0 where the policy asks for no attacks."""
        return SAMPLE if self.attacks else 0

    def banned(self, columns: Iterable[str]) -> list[str]:
        """Return the column names that may never be published, in order, ignoring spelling."""
        # A bracket in a pattern is one of a name.
        patterns = [_folded(pattern).replace("[", "[[]") for pattern in self.never_published]
        return [name for name in columns if any(fnmatchcase(_folded(name), pattern) for pattern in patterns)]


def read_policy(path: str) -> Policy:
    """Return the validated policy of a YAML file, or raise ``PolicyError``."""
    if not path.strip():
        raise PolicyError.unreadable(path, ["SKALD_POLICY is set and empty; give it the path of a policy, or unset it"])
    try:
        content = content_of(Path(path), MOST_BYTES)
        data, faults = parse(content.decode("utf-8-sig"), ("policy",))
    except UnicodeDecodeError:
        raise PolicyError.unreadable(path, ["the file is not UTF-8 text; save it as UTF-8"]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be read"
        raise PolicyError.unreadable(path, [f"{reason}; check the path"]) from None
    if not faults and not isinstance(data, dict):
        faults = ["the policy must be a mapping (key: value), as in version: 1"]
    policy = None
    if isinstance(data, dict):
        # What has a default would be free for the jobs.
        faults += [f"{key}: is empty; give a value or remove the key" for key, value in data.items() if value is None]
    if not faults:
        try:
            policy = Policy.model_validate(data)
        except ValidationError as error:
            faults = fault_lines(error.errors(include_url=False), Policy, data)
    if policy is None:
        raise PolicyError.unreadable(path, list(dict.fromkeys(faults)))
    policy._path, policy._digest = path, hashlib.sha256(content).hexdigest()
    return policy


def policy_faults(policy: Policy, job: Job) -> list[str]:
    """Return a message for each setting of a job that is weaker than the policy.

    Columns that only the source names are not checked.
    """
    faults = []
    if job.privacy.k < policy.privacy.k:
        faults.append(f"privacy.k is {job.privacy.k:,}, and the policy asks for {policy.privacy.k:,} or more")
    if job.suppression.limit > policy.suppression.limit:
        least, most = plain(job.suppression.limit), plain(policy.suppression.limit)
        faults.append(f"suppression.limit is {least}, and the policy allows {most} at most")
    if policy.person and not (job.columns.person or job.columns.each_a_person or job.is_of_several):
        faults.append("columns.person is not said; name the columns that tell persons apart, or say none if every record is a person")
    if job.columns.accept_untreated and not policy.accept_untreated:
        faults.append("columns.accept_untreated is true, and the policy forbids it; coarsen the insensitive columns or withhold them")
    if policy.attacks and job.attacks is None:
        faults.append("attacks is off, and the policy asks for attacks before a release is published; leave it out, or say sample")
    if job.attacks and isinstance(sample := job.attacks.sample, int) and sample < policy.least_attacked:
        faults.append(f"attacks.sample is {sample:,}, and the policy asks for {SAMPLE:,} people or more; leave it out, or say all")
    if policy.methods is not None and job.method_named not in policy.methods:
        allowed = ", ".join(f"'{name}'" for name in policy.methods)
        faults.append(f"method.name is '{job.method_named}', and the policy allows {allowed}")
    return faults + banned_faults(policy, named_columns(job))


def named_columns(job: Job) -> list[str]:
    """Return the columns that the job names and that a release would publish in some form."""
    columns = job.columns
    insensitive = [] if columns.insensitive == REST else columns.insensitive
    qids = [qid.name for qid in columns.quasi_identifiers]
    return [*(one.name for one in columns.pseudonyms), *qids, *columns.sensitive, *insensitive]


def origin_faults(policy: Policy, syntax: Mapping[str, Any] | None) -> list[str]:
    """Return a message for each part of a query that may hide a never-published column.

    Args:
        syntax: The query, as ``origins`` takes it.
    """
    if not policy.never_published:
        return []
    found = origins(syntax, policy.banned)
    faults = [
        f"source.query makes a column of '{name}' that does not bear its name, and '{name}' is never to be published; select it as it is, "
        "and list it under identifiers"
        for name in found.renamed
    ]
    hidden = "source.query does not tell where its columns come from, and some are never to be published: select columns by name, without"
    return faults + ([f"{hidden} {'; '.join(found.untold)}"] if found.untold else [])


def banned_faults(policy: Policy, published: Sequence[str]) -> list[str]:
    """Return a message for each published column that the policy never allows."""
    return [
        f"column '{name}' is never to be published; list it under withheld, or under identifiers by its name alone"
        for name in policy.banned(published)
    ]


def _rebuild() -> None:
    """Rebuild the policy's model with the registered methods."""
    Policy.model_rebuild(force=True)


call_on_change(_rebuild)
