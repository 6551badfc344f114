"""CSV text that is safe to open in a spreadsheet, and how it is read back.

A spreadsheet takes a cell for a formula by its first characters, quoted or not, so text of the source could call programs on the reader's
machine. Spreadsheets also differ in what a cell is. In another country lists are separated by another mark. Quotes then begin in the middle
of a cell, where they mean nothing, and text goes on in the next cell after each such mark and each end of a line. So there are two rules
for columns of text and for names of columns; numbers, dates and truth values stay as they are.

- Within: after a comma, a semicolon, a tab, a bar or an end of a line, one ``'`` is inserted if, blanks, quotes and ``'`` apart, ``=``,
  ``+``, ``-`` or ``@`` follows (full width too).
- In front: text that begins with one of these four (blanks before it or not), with a tab or the end of a line, or with ``'``, gets one
  ``'``.

To read it back, remove one ``'`` from the front of text that has it, then one after each such mark where the following text is as above.
Both rules count the marks they add among the text that may come between, so that nothing is ever removed that was not added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MARK = "'"
CELL_SEPARATORS = ",;\t|"
"""What separates cells in some country; whatever holds one of them stands in quotes."""
# Spelled out, because Python and DuckDB do not agree on what a blank is.
_BLANKS = " \x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
_FORMULA = "[=+\\-@＝＋－＠]"
_FRONT = f"^(?:[\t\r\n]|[\t\r\n{_BLANKS}]*{_FORMULA}|')"
_AFTER, _THEN = f"([{CELL_SEPARATORS}\r\n])", f"([{_BLANKS}'\"]*{_FORMULA})"
_APART, _BARE = rf"\1{MARK}\2", r"\1\2"
_FRONT_HERE, _WITHIN_HERE, _BACK_HERE = re.compile(_FRONT), re.compile(_AFTER + _THEN), re.compile(_AFTER + MARK + _THEN)


def escape_csv_text(text: str) -> str:
    """Escape a text for a CSV file so that no spreadsheet reads it as a formula."""
    within = _WITHIN_HERE.sub(_APART, text)
    return MARK + within if _FRONT_HERE.match(text) else within


def unescape_csv_text(text: str) -> str:
    """Return the original of a text that ``escape_csv_text`` escaped."""
    return _BACK_HERE.sub(_BARE, text.removeprefix(MARK))


def escaped_csv_sql(column: str) -> str:
    """Return the SQL expression that escapes the text of a column, given as a quoted name."""
    within = f"regexp_replace({column}, {_literal(_AFTER + _THEN)}, {_literal(_APART)}, 'g')"
    return f"CASE WHEN regexp_matches({column}, {_literal(_FRONT)}) THEN '''' || {within} ELSE {within} END"


def unescaped_csv_sql(column: str) -> str:
    """Return the SQL expression that removes the formula-guarding ``'`` marks from a quoted CSV column."""
    bare = f"CASE WHEN {column}[1] = '''' THEN {column}[2:] ELSE {column} END"
    return f"regexp_replace({bare}, {_literal(_AFTER + MARK + _THEN)}, {_literal(_BARE)}, 'g')"


def csv_header(names: Sequence[str], delimiter: str) -> str:
    """Return the header line of a CSV file, its names escaped and, where needed, quoted.

    Names that could fall apart under any delimiter are quoted.
    """
    special = {*CELL_SEPARATORS, *"\r\n'\"", delimiter}
    texts = [escape_csv_text(name) for name in names]
    # A single empty name would be an empty line.
    quoted = ['"' + text.replace('"', '""') + '"' if special.intersection(text) or not text else text for text in texts]
    return delimiter.join(quoted) + "\n"


def _literal(pattern: str) -> str:
    """Write a pattern as an SQL string literal."""
    return "'" + pattern.replace("'", "''") + "'"
