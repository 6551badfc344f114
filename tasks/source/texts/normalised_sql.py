"""What a column that is normalised holds, as the recount has it: a statement of its own, which shares nothing with what the writer does."""

from __future__ import annotations

from collections.abc import Collection

_BLANKS = r"[\s\x{85}\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]+"
_NOTHING = "'', 'na', 'n/a', 'n.a.', 'nan', 'null', '#n/a', '<na>', '-', '--', '.', '?'"


def normalised_sql(column: str, steps: Collection[str]) -> str:
    """Return the SQL of a text column without case, blanks around it, or texts that say that nothing is known.

    Args:
        column: A quoted name.
        steps: Among ``case``, ``space`` and ``empty``.
    """
    spaced = f"trim(regexp_replace({column}, '{_BLANKS}', ' ', 'g'), ' ')"
    made = spaced if "space" in steps else column
    made = f"lower({made})" if "case" in steps else made
    return f"CASE WHEN lower({spaced}) NOT IN ({_NOTHING}) THEN {made} END" if "empty" in steps else made
