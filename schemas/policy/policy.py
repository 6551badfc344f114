"""The policy: floors that no job may pass under, written by those who answer for the data and read from the environment.

Whoever starts a run chooses the job, its overrides and Prefect's parameters; the environment of the process that does the work is not
theirs. So the policy is asked for there, in the process that runs the flow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError

from schemas.errors.policy import PolicyError
from schemas.job.columns import REST, ColumnNames
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.suppression import share_of_records
from schemas.policy.query_origins import origins
from schemas.reading.faults import fault_lines
from schemas.reading.model import ExactDecimal, FormatVersion, StrictModel, plain
from schemas.reading.registry import OneOf, watch
from schemas.reading.regular_files import content_of
from schemas.reading.yaml_reading import parse

MOST_BYTES = 1_000_000


class PrivacyFloor(StrictModel):
    """What every class of every release must keep at least."""

    k: Annotated[int, Field(ge=1)] = 1
    """Least k of a job."""


class SuppressionCeiling(StrictModel):
    """How much of the data a job may give up."""

    limit: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(1)
    """Greatest suppression limit of a job, a share of all records."""


class Policy(StrictModel):
    """A whole policy. What it does not name is left to the jobs."""

    version: FormatVersion
    """The version of the format: 1."""
    privacy: PrivacyFloor = Field(default_factory=PrivacyFloor)
    """What every class must keep at least."""
    suppression: SuppressionCeiling = Field(default_factory=SuppressionCeiling)
    """How many records may be taken out at most."""
    person: Literal["required"] | None = None
    """The word required: a job names who its records belong to in columns.person, or says none: every record is a person of its own."""
    never_published: ColumnNames = Field(default_factory=list)
    """Columns that no release may hold in any form, not as quasi-identifiers or pseudonyms either: names, or patterns with * and ?, in
    capitals or not."""
    accept_untreated: bool = True
    """Whether a job may accept that fewer than k share what its untreated columns publish together (columns.accept_untreated). If it is
    false, such a job is refused, and so is every release in which that is so."""
    attacks: Literal["refuse"] | None = None
    """The word refuse: a release that an attack breaks is refused, whatever its job says, and so is a job that turns attacks off."""
    methods: Annotated[list[Annotated[str, OneOf(METHODS)]], Field(min_length=1)] | None = None
    """The only methods that a job may use; any if left out."""
    _path: str = PrivateAttr(default="")
    _digest: str = PrivateAttr(default="")

    @property
    def path(self) -> str:
        """Where it was read from."""
        return self._path

    @property
    def digest(self) -> str:
        """SHA-256 of the file, in hex."""
        return self._digest

    def banned(self, columns: Iterable[str]) -> list[str]:
        """Returns those of the columns that may never be published, in their order, however their names are written."""
        patterns = [pattern.casefold() for pattern in self.never_published]
        return [name for name in columns if any(fnmatchcase(name.casefold(), pattern) for pattern in patterns)]


def read_policy(path: str) -> Policy:
    """Returns the policy of a YAML file.

    Raises:
        PolicyError: there is none, or something in it is wrong; all faults at once.
    """
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
    """Returns what a job asks less of than the policy does, a sentence each; columns that only the source names are not among them."""
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
    if policy.methods is not None and job.asked_method not in policy.methods:
        allowed = ", ".join(f"'{name}'" for name in policy.methods)
        faults.append(f"method.name is '{job.asked_method}', and the policy allows {allowed}")
    return faults + banned_faults(policy, named_columns(job))


def named_columns(job: Job) -> list[str]:
    """Returns the columns that a release of a job would hold in some form, as far as the job names them."""
    columns = job.columns
    insensitive = [] if columns.insensitive == REST else columns.insensitive
    qids = [qid.name for qid in columns.quasi_identifiers]
    return [*(one.name for one in columns.pseudonyms), *qids, *columns.sensitive, *insensitive]


def origin_faults(policy: Policy, syntax: Mapping[str, Any] | None) -> list[str]:
    """Returns why a query does not tell that nothing goes out which the policy never lets out, a sentence each.

    Args:
        policy: The policy.
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
    """Returns a sentence for each published column that the policy never lets out."""
    return [
        f"column '{name}' is never to be published; list it under withheld, or under identifiers by its name alone"
        for name in policy.banned(published)
    ]


def _rebuild() -> None:
    """Makes the model anew, with the methods that there are."""
    Policy.model_rebuild(force=True)


watch(_rebuild)
