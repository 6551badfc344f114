"""CSV that a spreadsheet opens without running anything: which text is set apart, and how it is read back.

A spreadsheet takes a cell for a formula by its first characters, quoted or not, so text of the source could call programs on the machine
of whoever opens the file. The rule: text that begins with ``=``, ``+``, ``-`` or ``@`` (full width too, white space before it or not), with
a tab or the end of a line, or with ``'``, gets one ``'`` in front. To read it back, take one ``'`` from the front of text that has it. It
is only for columns of text, and for their names; numbers, dates and truth values stay as they are.
"""

from __future__ import annotations

import re

MARK = "'"
_RISKY = r"^(?:[\t\r\n]|[\s\x0b\x{00a0}\x{feff}]*[=+\-@＝＋－＠]|')"
_RISKY_HERE = re.compile(r"(?:[\t\r\n]|[\s\x0b\u00a0\ufeff]*[=+\-@＝＋－＠]|')")


def set_apart(text: str) -> str:
    """Returns a text as it stands in a CSV file."""
    return MARK + text if _RISKY_HERE.match(text) else text


def read_back(text: str) -> str:
    """Inverse of ``set_apart``."""
    return text.removeprefix(MARK)


def set_apart_sql(column: str) -> str:
    """Returns the expression that sets apart the text of a column, which is given as quoted."""
    quoted = _RISKY.replace("'", "''")
    return f"CASE WHEN regexp_matches({column}, '{quoted}') THEN '''' || {column} ELSE {column} END"


def read_back_sql(column: str) -> str:
    """Returns the expression that undoes it."""
    return f"CASE WHEN {column}[1] = '''' THEN {column}[2:] ELSE {column} END"
