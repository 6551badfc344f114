"""Texts without what matters to nobody: case, blanks, and the ways of writing that nothing is known (`normalise` of a column)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from core.columns.column_types import is_text

ALL = ("case", "space", "empty")
_BLANKS = r"[\s\x{85}\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]+"
MISSING = ("", "na", "n/a", "n.a.", "nan", "null", "#n/a", "<na>", "-", "--", ".", "?")
"""What says, in any case and between blanks, that nothing is known."""


def normalised(column: pa.Array, steps: Sequence[str]) -> pa.Array:
    """Return texts without case (in lower case), without blanks at the ends and repeated ones, or null where nothing is known.

    Args:
        column: Shape (n,), text, or a dictionary of it; anything else stays as it is.
        steps: Among ``case``, ``space`` and ``empty``.
    """
    if isinstance(column, pa.DictionaryArray):
        if not is_text(column.type.value_type):
            return column
        # Entries that become one are one entry, and those that become null none.
        entries = normalised(column.dictionary, steps).dictionary_encode()
        return pa.DictionaryArray.from_arrays(entries.indices.take(column.indices), entries.dictionary)
    if not is_text(column.type) or not steps:
        return column
    spaced = pc.utf8_trim(pc.replace_substring_regex(column, _BLANKS, " "), " ")
    made = spaced if "space" in steps else column
    made = pc.utf8_lower(made) if "case" in steps else made
    if "empty" in steps:
        made = pc.if_else(pc.is_in(pc.utf8_lower(spaced), pa.array(MISSING, column.type)), None, made)
    return made


def spelling_counts(values: pa.Array) -> tuple[int, int]:
    """Return how many different texts are another one but for case and blanks, and how many say that nothing is known.

    Args:
        values: Shape (m,), different from one another, without null.
    """
    if not is_text(values.type):
        return 0, 0
    folded = normalised(values, ALL)
    missing = folded.null_count
    return len(values) - missing - len(pc.unique(folded.drop_null())), missing
