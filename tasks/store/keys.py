"""Keys of steps, and the secret of a work folder, which keys all digests that leave the folder.

Each step says once what it depends on; the store and Prefect's records know its result by that one key. The code is the
source of the step's module and of all modules of ours that it reaches by imports, found without running or importing any of them; code
that a registry names by its path is reached by those who ask the registry for it. So a changed search searches again, and what it had
read stays; what other code left behind is not found, and so never misread.

A digest of something that can be guessed confirms the guess: of a file with one unknown record there are as many candidates as values, and
all of them are tried in a second. Within the work folder digests are plain, so that equal content is known again, whoever made it. What a
release or Prefect's server is told is keyed: it is the same for the same content and the same secret, and tells nobody else anything.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import get_data
from typing import Any, NamedTuple, NewType

from schemas.errors.values import SecretError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from schemas.registry.treatments import is_strong
from tasks.store.files import flush, write_atomically

VARIABLE = "SKALD_SECRET"
"""The variable that holds the secret where ids must agree between machines; it goes before the file."""
FILE = "secret"
DIGITS = 64


class FolderSecret:
    """Key of the keyed digests of a work folder."""

    def __init__(self, text: bytes) -> None:
        # Set apart, so that a secret which is also the key of pseudonyms shares nothing with them.
        self._key = hmac.digest(text, b"\xffskald digests of releases", "sha256")

    def keyed(self, *parts: object) -> str:
        """Return the HMAC-SHA-256 of JSON values, as 64 hexadecimal digits."""
        return hmac.digest(self._key, json.dumps(parts, sort_keys=True).encode(), "sha256").hex()

    def keyed_numbers(self, kind: str, numbers: Sequence[int]) -> list[int]:
        """Return the first 64 bits of the HMAC-SHA-256 of each of some 64-bit numbers."""
        before = f"\xff{kind}\xff".encode()
        return [int.from_bytes(hmac.digest(self._key, before + one.to_bytes(8, "big"), "sha256")[:8], "big") for one in numbers]


def secret_of(job: Job) -> FolderSecret:
    """Return the secret from the environment or the job's locked work folder, created if missing."""
    return read_secret(job) or create_secret(job.work_path / FILE)


def create_secret(path: Path) -> FolderSecret:
    """Return the secret in a file, created if missing; raise ``SecretError`` if it is damaged."""
    if os.path.lexists(path):
        return _read_secret(path)

    def write(part: Path) -> int:
        part.write_text(f"{secrets.token_hex(DIGITS // 2)}\n")
        # Without it the same job on the same data would be another release, so it is on the disk before anything is made with it.
        flush(part)
        return 0

    write_atomically(path, write)
    return _read_secret(path)


def read_secret(job: Job) -> FolderSecret | None:
    """Return the secret from environment or work folder, None if absent; raise ``SecretError`` if unfit."""
    if (text := os.environ.get(VARIABLE)) is not None:
        secret = text.strip().encode()
        if not is_strong(secret):
            raise SecretError.weak(VARIABLE)
        return FolderSecret(secret)
    path = job.work_path / FILE
    return _read_secret(path) if os.path.lexists(path) else None


def read_secrets(job: Job) -> list[FolderSecret]:
    """Return the secrets of a job and of other jobs beside it; skip damaged ones of others."""
    own, others = read_secret(job), []
    for path in sorted((job.folder / ".skald").glob(f"*/{FILE}")):
        try:
            others.append(_read_secret(path))
        except SecretError:
            continue
    return [*([own] if own else []), *others]


def _read_secret(path: Path) -> FolderSecret:
    try:
        text = content_of(path, DIGITS + 1).removesuffix(b"\n")
    except OSError:
        raise SecretError.damaged(str(path)) from None
    # A power cut may have left an empty file, with which everybody could make the same digests.
    if len(text) != DIGITS or not is_strong(text):
        raise SecretError.damaged(str(path))
    return FolderSecret(text)


def json_with_digest(content: Any) -> str:
    """Return JSON text of a value with its SHA-256, to be read by ``values_with_digest``."""
    return json.dumps([content, _digest(content)])


def values_with_digest(path: Path) -> Any:
    """Return the values of a file of ``json_with_digest``; None if it is gone, cut off or altered."""
    try:
        return unsealed_text(content_of(path, may_be_link=False))
    except OSError:
        return None


def unsealed_text(text: bytes) -> Any:
    """Return the values of a text of ``json_with_digest``; None if it is cut off or altered."""
    try:
        content, digest = json.loads(text)
    except (ValueError, TypeError):
        return None
    return content if digest == _digest(content) else None


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


Key = NewType("Key", str)
"""What tells a step's result from every other; made here alone."""

OURS = ("core.", "schemas.", "tasks.")
IGNORED_MODULES = (
    "core.columns.data_parallel",
    "schemas.errors.",
    "tasks.engine.",
    "tasks.store.files",
    "tasks.store.keys",
    "tasks.store.place",
    "tasks.store.keys",
    "tasks.store.step",
    "tasks.store.store",
)
"""What cannot change a result: how faults are worded, who calls a step, when and on how many threads, and how a file is kept and found."""

MARK = 8
"""Digits of a key that tell the code alone, so that it can be asked who made something; the others tell the code too."""

_IMPORT = re.compile(r"import[ \t]+(\([^)]*\)|[^\n;#]+)")
_NAMED = re.compile(r'(?:(\w+)=)?\bCode\("([\w.]+):')
_NAME = re.compile(r"(?:^|,)[\s(]*([\w.]+)")


@dataclass(frozen=True)
class StepCode:
    """Name of a step and module whose code, imports included, enters each of the step's keys."""

    name: str
    module: str

    def key(self, *parts: object) -> Key:
        """Return the key of a result from JSON values (what was read, settings) and the step's code.

        Args:
            *parts: What was read and which settings were used: anything that JSON can say.
        """
        code = code_of(self.module)
        return Key(code[:MARK] + fingerprint_of(self.name, code, *parts))

    def once(self) -> Key:
        """Return a random key, so that no later run finds the result."""
        return self.key(secrets.token_hex(16))

    def made_by_this_code(self, key: Key) -> bool:
        """Return whether a key was made by the step's present code, not by an earlier version."""
        return key.startswith(code_of(self.module)[:MARK])


def key_of_all(keys: Sequence[Key]) -> Key:
    """Return the joint key of several results; that of a single result is its own key."""
    return keys[0] if len(keys) == 1 else Key(fingerprint_of(*keys))


def key_in_name(name: str) -> Key:
    """Return the key in the name of a stored file: the part before the first dot."""
    return Key(name.partition(".")[0])


def fingerprint_of(*parts: object) -> str:
    """Return the fingerprint of JSON values, as 32 hexadecimal digits."""
    # Sorted, because the same settings in another order are the same.
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def code_of(module: str) -> str:
    """Return the fingerprint of a module and all imports that can change a result, cached."""
    return fingerprint_of([(name, _read(name).digest) for name in sorted(module_with_imports(module))])


def module_with_imports(module: str) -> set[str]:
    """Return the names of a module and of our modules it imports, directly or not, that affect results."""
    found, waiting = {module}, [module]
    while waiting:
        new = {name for name in _read(waiting.pop()).imports if not name.startswith(IGNORED_MODULES)} - found
        found |= new
        waiting += new
    return found


class _Module(NamedTuple):
    digest: str
    imports: frozenset[str]


@cache
def _read(module: str) -> _Module:
    source = _source(module)
    if source is None:
        msg = f"the source of {module} is not installed"
        raise ModuleNotFoundError(msg)
    imports = {name for name in _imports(source) if name.startswith(OURS)}
    if not module.startswith("schemas."):
        imports |= {code for name in imports for field, code in _registered(name) if f".{field}" in source}
    return _Module(hashlib.sha256(source.encode()).hexdigest(), frozenset(imports))


def _imports(source: str) -> Iterator[str]:
    # A syntax tree of each module would take twenty times as long as all the rest; a test compares the two.
    for found in _IMPORT.finditer(source):
        before, listed = source[source.rfind("\n", 0, found.start()) + 1 : found.start()].split(), _NAME.findall(found[1])
        match before:
            case []:
                yield from listed
            case ["from", origin] if f"{origin}.".startswith(OURS):
                yield from [f"{origin}.{name}" for name in listed] if _source(origin) is None else [origin]


@cache
def _registered(module: str) -> tuple[tuple[str, str], ...]:
    """Return the modules that a registry names, each with the name of its field."""
    source = _source(module) if module.startswith("schemas.") else None
    named = _NAMED.findall(source) if source and 'Code("' in source else []
    return tuple((field, code) for field, code in named if code.startswith(OURS))


@cache
def _source(module: str) -> str | None:
    """Return the source text of a module, from a folder or an archive; None if there is no such module."""
    package, _, path = module.partition(".")
    try:
        source = get_data(package, f"{path.replace('.', '/')}.py")
    except OSError:
        return None
    return None if source is None else source.decode()
