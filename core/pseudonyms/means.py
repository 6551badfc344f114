"""What pseudonyms are made with beside values; apart from the code that makes them, which is loaded where a job asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Means:
    """What a treatment may need besides values.

    Attributes:
        key: Its key; empty if it has none.
        look_up: Finds what a vault has for each text of an array: its token, or for a token its text.
        subjects: Whose values they are, as long as these; of any type that has texts.
    """

    key: bytes = b""
    look_up: Callable[[pa.Array], pa.Array] | None = None
    subjects: pa.Array | None = None
