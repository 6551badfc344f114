"""Compiled templates, kept beside compiled loops: to compile one costs more than a small release takes otherwise."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from core.compiling.compiled import kept_home
from schemas.errors.base import StorageError
from tasks.store.files import write_whole

DIGEST = hashlib.sha256().digest_size


class KeptTemplates(BytecodeCache):
    """Compiled templates in a folder, each after a digest of it; what is damaged is compiled anew, and no page fails for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        """Reads a template that was compiled; what a file holds that is not as it was written is not looked at."""
        try:
            kept = self._file(bucket).read_bytes()
        except OSError:
            return
        code = kept[DIGEST:]
        if hashlib.sha256(code).digest() == kept[:DIGEST]:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Writes a template that was compiled; where that cannot be, it is compiled again by the next process."""
        code = bucket.bytecode_to_string()
        try:
            write_whole(self._file(bucket), lambda path: path.write_bytes(hashlib.sha256(code).digest() + code))
        except StorageError:
            return

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.cache"


def kept_templates(made_by: Path) -> KeptTemplates | None:
    """Returns where compiled templates are kept, None where nothing can be: apart for each Jinja and each way in which they are compiled.

    Args:
        made_by: The file that says how.
    """
    home = kept_home()
    if home is None:
        return None
    folder = home / "templates" / hashlib.sha256(version("jinja2").encode() + made_by.read_bytes()).hexdigest()[:16]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return KeptTemplates(folder)
