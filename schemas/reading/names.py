"""Names that a job gives."""

from __future__ import annotations

import re

from schemas.reading.model import fault

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


def job_name(value: str) -> str:
    """Returns a name that is safe as the name of a folder.

    Raises:
        PydanticCustomError: other characters, a dot in front, or more than 100 characters.
    """
    if not _NAME.fullmatch(value):
        raise fault("must be 1 to 100 letters, digits, '_', '.' or '-', without a dot in front")
    return value
