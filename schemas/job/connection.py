"""How a job says where a database or an object store is, without the secret that opens it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from schemas.reading.model import PathText, StrictModel, as_path, fault

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
"""Object stores, as fsspec calls them."""

# Job files are kept under version control and handed on, so that whatever looks like a credential is refused.
_SECRETS = (
    re.compile(r"^[a-z0-9+.-]+://[^/?#@]*:[^/?#]*@", re.IGNORECASE),
    re.compile(r"(^|[?&;\s])(password|passwd|pwd|secret|token|sig|signature|access_?key|sslpassword)\s*=", re.IGNORECASE),
    re.compile(r"[?&]x-amz-(credential|signature|security-token)=", re.IGNORECASE),
)
# An access key may stand before the bucket without any secret behind it.
_KEY_IN_BUCKET = re.compile(r"^(s3a?|gc?s)://[^/]*@", re.IGNORECASE)
_PREFIX = re.compile(r"s3a?://[^/?#*\[\]]+(/[^/?#*\[\]]+)+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_address(text: str) -> bool:
    """Tells whether a path is an address in an object store and not a path of this machine."""
    return "://" in text


def holds_secret(text: str) -> bool:
    """Tells whether an address carries a password or a key."""
    return any(pattern.search(text) for pattern in (*_SECRETS, _KEY_IN_BUCKET))


def address_faults(text: str) -> list[str]:
    """Returns what is wrong with a path where it is an address; nothing for a path of this machine."""
    if not is_address(text):
        return []
    if holds_secret(text):
        return [
            "holds a password or a key, which a job file must not: remove it from the address, and let the environment "
            "(AWS_ACCESS_KEY_ID, AWS_PROFILE and the like) or the store's own credentials file say it"
        ]
    if text.split("://", 1)[0].lower() not in SCHEMES:
        return [f"is an address of a kind that is not known; known are {', '.join(f'{scheme}://' for scheme in SCHEMES)}"]
    return []


def as_target(value: object) -> Path | str:
    """Returns a folder as a path, or an address in an object store as text, without a slash at its end."""
    if isinstance(value, str) and is_address(value):
        if faults := address_faults(value):
            raise fault(*faults)
        return value.rstrip("/")
    return as_path(value)


def as_work(value: object) -> Path | str:
    """Returns a folder as a path, or a prefix of a bucket as an address, without a slash at its end."""
    work = as_target(value)
    if isinstance(work, str) and not _PREFIX.fullmatch(work):
        # A lease needs puts that are refused if an object changed meanwhile, and of other stores fsspec has none.
        raise fault("must be a folder, or a prefix of a bucket such as s3://bucket/prefix; of object stores only S3's can hold the work")
    return work


def database_address(value: object) -> object:
    """Returns the address of a database."""
    if not isinstance(value, str) or not value.startswith(("postgresql://", "postgres://")):
        raise fault("must be an address such as postgresql://reader@host/database, written as text")
    if holds_secret(value):
        raise fault(
            "holds a password, which a job file must not: remove it, and use PGPASSWORD, ~/.pgpass or PGSERVICE, or give the whole "
            "address as connection: {env: VARIABLE} or connection: {file: PATH}"
        )
    return value


def variable(value: str) -> str:
    """Returns the name of an environment variable."""
    # What stands here instead may be the address itself with its password, and is not repeated.
    if not _VARIABLE.fullmatch(value):
        raise fault("must be the name of an environment variable, not what it holds")
    return value


Target = Annotated[Path | str, BeforeValidator(as_target), WithJsonSchema({"type": "string", "minLength": 1})]

Work = Annotated[Path | str, BeforeValidator(as_work), WithJsonSchema({"type": "string", "minLength": 1})]


@dataclass
class WorkAtHand:
    """Where work that lies in a bucket is at hand; the jobs of the tables of one run share it.

    Attributes:
        folder: On this machine; None while no run holds the lease.
    """

    folder: Path | None = None


class Connection(StrictModel):
    """Where a database is: an address without a password, or the variable or the file that holds the whole address."""

    uri: Annotated[str, BeforeValidator(database_address), WithJsonSchema({"type": "string"})] | None = None
    """postgresql://reader@host:5432/database; what it leaves out, libpq's variables and files say (PGPASSWORD, ~/.pgpass, PGSERVICE)."""
    env: Annotated[str, AfterValidator(variable)] | None = None
    """The environment variable that holds the address."""
    file: PathText | None = Field(default=None)
    """A file that holds the address in its first line; relative to the job file."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(way is not None for way in (self.uri, self.env, self.file)) != 1:
            raise fault("needs one of uri, env and file")
        return self

    def identity_without_secret(self, folder: Path) -> str:
        """Returns what tells connections apart without a secret: the address, or where it is kept."""
        return f"uri {self.uri}" if self.uri else f"env {self.env}" if self.env else f"file {folder / (self.file or '')}"
