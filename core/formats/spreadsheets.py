"""CSV that a spreadsheet opens without running anything: which text is set apart, and how it is read back.

A spreadsheet takes a cell for a formula by its first characters, quoted or not, so text of the source could call programs on the machine
of whoever opens the file. And a cell is what *that* spreadsheet takes for one: in another country lists are separated by another mark, so
that quotes begin in the middle of a cell, where they mean nothing, and text goes on in the next cell after each such mark and each end of a
line. Two rules therefore, for columns of text and for names of columns; numbers, dates and truth values stay as they are.

- Within: after a comma, a semicolon, a tab, a bar or an end of a line stands one ``'`` if, blanks, quotes and ``'`` apart, ``=``, ``+``,
  ``-`` or ``@`` follows (full width too).
- In front: text that begins with one of these four (blanks before it or not), with a tab or the end of a line, or with ``'``, has one.

To read it back, take one ``'`` from the front of text that has it, then one after each such mark where what follows is as above. Both rules
count what they add among what may stand between, so that nothing is ever taken away that was not added.
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
    """Return a text as it stands in a CSV file."""
    within = _WITHIN_HERE.sub(_APART, text)
    return MARK + within if _FRONT_HERE.match(text) else within


def read_back(text: str) -> str:
    """Inverse of ``escape_csv_text``."""
    return _BACK_HERE.sub(_BARE, text.removeprefix(MARK))


def escaped_csv_sql(column: str) -> str:
    """Return the expression that sets apart the text of a column, which is given as quoted."""
    within = f"regexp_replace({column}, {_literal(_AFTER + _THEN)}, {_literal(_APART)}, 'g')"
    return f"CASE WHEN regexp_matches({column}, {_literal(_FRONT)}) THEN '''' || {within} ELSE {within} END"


def read_back_sql(column: str) -> str:
    """Return the expression that undoes it."""
    bare = f"CASE WHEN {column}[1] = '''' THEN {column}[2:] ELSE {column} END"
    return f"regexp_replace({bare}, {_literal(_AFTER + MARK + _THEN)}, {_literal(_BARE)}, 'g')"


def header(names: Sequence[str], delimiter: str) -> str:
    """Return the first line of a CSV file; a name that could fall apart under any delimiter stands in quotes."""
    special = {*CELL_SEPARATORS, *"\r\n'\"", delimiter}
    texts = [escape_csv_text(name) for name in names]
    # A single empty name would be an empty line.
    quoted = ['"' + text.replace('"', '""') + '"' if special.intersection(text) or not text else text for text in texts]
    return delimiter.join(quoted) + "\n"


def _literal(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"
