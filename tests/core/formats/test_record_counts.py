"""Records of CSV are counted from the bytes as DuckDB and Python read them, however the file is cut into blocks."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.formats.record_counts import RecordCount, count_records

PIECES = st.lists(st.sampled_from(["x", ",", '"', "\n", " ", 'x,"y"\n', '"a""b"', ',"\n"', "1,2\n"]), max_size=9).map("".join)


def counted(content: bytes, block: int = 1 << 20, delimiter: str = ",", columns: int = 2) -> RecordCount:
    return count_records([content[place : place + block] for place in range(0, len(content), block)], delimiter, columns)


def read_by_duckdb(path: Path, columns: int) -> int | None:
    """Records without the header; None where DuckDB refuses some."""
    struct = ", ".join(f"'{name}': 'VARCHAR'" for name in "ab"[:columns])
    with duckdb.connect() as connection:
        try:
            rows = connection.execute(
                f"FROM read_csv('{path}', auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
                f"columns = {{{struct}}}, nullstr = [''], store_rejects = true, rejects_limit = 0)"
            ).fetchall()
            if connection.execute("SELECT count(*) FROM reject_errors").fetchall() != [(0,)]:
                return None
        except duckdb.CatalogException:
            return len(rows)
        except duckdb.Error:
            return None
    return len(rows)


@pytest.mark.ci
@given(PIECES, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from([1, 2]), st.integers(1, 9), st.booleans())
@settings(max_examples=60, deadline=None)
@example('x,5" y\n', "\n", 2, 1, False)
@example('x, "y\nz"\n\n', "\r\n", 2, 2, True)
@example("x\n\n\ny", "\n", 1, 3, False)
def test_what_duckdb_reads_without_a_complaint_has_as_many_records(
    tmp_path_factory: pytest.TempPathFactory, text: str, end: str, columns: int, block: int, mark: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "counted.csv"
    header = "a,b\n" if columns == 2 else "a\n"
    content = (b"\xef\xbb\xbf" if mark else b"") + (header + text).replace("\n", end).encode()
    # A quote that opens after spaces and never closes DuckDB takes for letters: such a file is refused.
    closes = text.count('"') % 2 == 0
    path.write_bytes(content)
    read = read_by_duckdb(path, columns)
    if read is not None and closes:
        assert counted(content, block, columns=columns).records == 1 + read


@given(
    st.lists(st.tuples(st.text('a,;é¦\n"\r ', max_size=5), st.text('a,;é¦\n"', max_size=5)), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t", " ", "¦", "→"]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 7),
)
def test_what_python_writes_has_as_many_records_and_the_longest_is_that_long(
    rows: list[tuple[str, str]], delimiter: str, end: str, block: int
) -> None:
    lines = []
    for row in rows:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerow(row)
        lines.append(text.getvalue().encode())
    found = counted(b"".join(lines), block, delimiter)
    assert found == (len(rows), max(len(line) for line in lines) - len(end))
    assert counted(b"".join(lines).removesuffix(end.encode()), block, delimiter) == found


def test_an_empty_file_has_no_record() -> None:
    assert counted(b"") == counted(b"\xef\xbb\xbf") == counted(b"\n\r\n\n") == (0, 0)
