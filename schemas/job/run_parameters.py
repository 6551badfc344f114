"""Parameters of a run through Prefect: a form in its UI, checked by its API before a run begins.

Prefect keeps parameters in its database and shows them to every person who sees the run. So they hold no cell value and no secret: only
the path of a job, figures and names of columns. A tree of values, or texts that mean null, belong in the job file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from schemas.errors.base import JobError, listed
from schemas.reading.job_files import parse
from schemas.reading.model import PATTERN as MEMORY_PATTERN

_KEYS = (
    r"name|memory|worker_memory|threads|chunk_rows|rows_per_file|intervals|endpoints|artifacts|replay|overlaps|orphans|run_by|source\.name",
    r"output(\.[^=]+)?|attacks(\.[^=]+)?",
    r"method(\.[^=]+)?|suppression(\.[^=]+)?",
    r"privacy\.k|privacy\.knows(\.rows)?|privacy\.l(\.[^=]+)?|privacy\.t\.[^=]+\.(t|distance)",
    r"source\.(format|delimiter|types|schema)(\.[^=]+)?",
    r"columns\.quasi_identifiers\.[0-9]+\.(name|exact|hierarchy\.(widths|origin|encode|prefix|mask|date|csv|delimiter)(\.[0-9]+)?)",
)
"""Settings of the job that may be Prefect parameters. A new one is kept out until it is named here."""

# No mapping: a treatment could hold a key that somebody wrote there by mistake, or text of cells in a pattern, and `publish` a top.
_ROLES = r"columns\.(identifiers|withheld|sensitive|insensitive|person|linkable)(\.[0-9]+)?"
_WAYS = r"columns\.(sensitive|insensitive)\.[0-9]+\.(name|publish(\.(round|microaggregate))?)"
_NAMES = rf"({_ROLES}|{_WAYS}) *=[^\r\n{{}}:]*"
# No user and password before an address, and no key after it: of what has a "=" only folders, as in /year=2026/.
_LOCATIONS = r"(target|work|source\.path(\.[0-9]+)?) *=[^\r\n@=]*(/[^\r\n@=?&;\s/]+=[^\r\n@=]*)*"
Setting = Annotated[str, StringConstraints(pattern=rf"^ *(({'|'.join(_KEYS)}) *=[^\r\n]*|{_NAMES}|{_LOCATIONS})$", max_length=2000)]
_SETTING = re.compile(rf"({'|'.join((*_KEYS, _ROLES, _WAYS))}|target|work|source\.path)")
_COLUMN = re.compile(r"^(privacy\.t)\.[^=]+\.(t|distance)$")
JobPath = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$", max_length=4096)]


def _optional(schema: dict[str, Any]) -> None:
    """Change the JSON Schema of an optional field to the plain type.

    Prefect's form would ask for the type first.
    """
    schema.pop("default", None)
    schema |= next(choice for choice in schema.pop("anyOf") if choice["type"] != "null")


class RunParameters(BaseModel):
    """Job file of a run, with the settings that this run replaces."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True, title="Job")

    job_file: Annotated[JobPath, Field(title="Job file", json_schema_extra={"pattern": "^/[^\\r\\n]+$"})]
    """Absolute path of the YAML file, as the worker sees it."""
    k: Annotated[int, Field(ge=1, strict=True)] | None = Field(default=None, title="k", json_schema_extra=_optional)
    """Least number of records that share a published combination; the job's own if left out."""
    limit: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, title="Suppression limit", json_schema_extra=_optional)
    """Greatest share of records that may be suppressed; the job's own if left out."""
    memory: Annotated[str, Field(pattern=MEMORY_PATTERN)] | None = Field(default=None, title="Memory", json_schema_extra=_optional)
    """Memory budget, such as 1GB; the job's own if left out."""
    settings: Annotated[list[Setting], Field(title="Other settings", max_length=100, examples=[["method.roots=5"]])] = []
    """Settings that replace those of the job file, as in method.roots=5. Those that could hold values of cells are refused."""

    @property
    def overrides(self) -> tuple[str, ...]:
        """All replaced settings of the job file, as texts for ``--set``."""
        named = {"privacy.k": self.k, "suppression.limit": self.limit, "memory": self.memory}
        # Last, because of two settings of one key the later one stays.
        return (*self.settings, *(f"{key}={value}" for key, value in named.items() if value is not None))

    @classmethod
    def of(cls, job_file: Path, settings: Sequence[str] = ()) -> Self:
        """Make parameters from job file and settings; raise ``JobError`` for what Prefect must not keep."""
        try:
            return cls(job_file=str(job_file), settings=list(settings))
        except ValidationError as error:
            # The place alone: input and context would hold what was not to be kept.
            places = [fault["loc"] for fault in error.errors(include_url=False, include_input=False, include_context=False)]
        named = [f"--set {int(place[1]) + 1}" if len(place) > 1 else str(place[0]) for place in places]
        forms = {f"--set {at}": dotted_forms(setting) for at, setting in enumerate(settings, 1)}
        faults = [
            f"{name} gives a mapping; --set takes a dotted path and its value: write {' '.join(f'--set {path}=…' for path in forms[name])}"
            for name in named
            if forms.get(name)
        ]
        if others := [name for name in named if not forms.get(name)]:
            sentence = "Prefect keeps the parameters of a run, and there could be values of cells in these, or they are not settings"
            example = "--set takes a dotted path and its value, as in --set privacy.k=12"
            faults.append(f"{sentence}: {listed(others)}; write them into the job file, or run with --direct; {example}")
        raise JobError(str(job_file), faults)


def dotted_forms(setting: str) -> list[str]:
    """Return the dotted paths that say the same as a mapping; none if one could hold cell values.

    Names in it that somebody chose are not repeated.
    """
    key, _, text = setting.partition("=")
    given, _ = parse(text, (key.strip(),))
    paths = list(_paths_in(key.strip(), given)) if isinstance(given, Mapping) else []
    return list(dict.fromkeys(_COLUMN.sub(r"\1.COLUMN.\2", path) for path in paths)) if all(map(_SETTING.fullmatch, paths)) else []


def _paths_in(key: str, given: Mapping[str, object]) -> Iterator[str]:
    """Yield the dotted paths in a mapping, each as short as may be a parameter."""
    for name, value in given.items():
        path = f"{key}.{name}"
        if isinstance(value, Mapping) and value and not _SETTING.fullmatch(path):
            yield from _paths_in(path, value)
        else:
            yield path
