"""Ranges of CSV are cut where a reader of the whole file has records end, or not at all."""

from __future__ import annotations

import csv
import io

from hypothesis import example, given
from hypothesis import strategies as st

from core.formats.record_ends import ScannedRange, record_starts, records_of, scan_range

FIELDS = st.text(alphabet='a,\n"é', max_size=4)
ROWS = st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8)


def cut(content: bytes, ranges: int, block: int) -> list[int] | None:
    return record_starts(looked_through(content, ranges, block))


def looked_through(content: bytes, ranges: int, block: int) -> list[tuple[int, ScannedRange]]:
    starts = [len(content) * number // ranges for number in range(ranges)]
    found = []
    for first, last in zip(starts, [*starts[1:], len(content)], strict=True):
        blocks = [content[place : min(place + block, last)] for place in range(first, last, block)]
        found.append((first, scan_range(blocks, content[max(first - 2, 0) : first], content[last : last + 1], ",")))
    return found


def read(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


@given(ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 6), st.integers(1, 5))
@example([('a"b', "\n"), ("", '"')], "\r\n", False, 3, 2)
def test_parts_read_one_after_the_other_are_the_whole(rows: list[tuple[str, str]], end: str, always: bool, ranges: int, block: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL).writerows(rows)
    content = text.getvalue().encode()
    found = cut(content, ranges, block)
    assert found is not None
    looked = [one for _, one in looked_through(content, ranges, block)]
    assert records_of(looked) == len(read(content))
    open_ended = looked_through(content.removesuffix(end.encode()), ranges, block)
    assert records_of([one for _, one in open_ended]) == len(read(content))
    assert read(content[: found[0]]) == read(content)[:1]
    assert found == sorted(set(found))
    parts = [content[first:last] for first, last in zip([0, *found], [*found, len(content)], strict=True)]
    assert [row for part in parts for row in read(part)] == read(content)


@given(st.text(alphabet='ab,\n\r"', max_size=30).map(str.encode), st.integers(1, 6), st.integers(1, 5))
def test_whatever_stands_in_a_file_the_cuts_do_not_depend_on_how_it_is_looked_through(content: bytes, ranges: int, block: int) -> None:
    whole, found = cut(content, 1, len(content) + 1), cut(content, ranges, block)
    assert (whole is None) == (found is None)
    if whole and found:
        assert whole == found[:1]
        assert read(content) == [
            row for first, last in zip([0, *found], [*found, len(content)], strict=True) for row in read(content[first:last])
        ]


def test_what_quotes_do_not_decide_is_not_cut() -> None:
    for content in (b'q,b\n1,"2\n', b'q,b\n3"4",5\n', b'q,b\n"3"4,5\n', b"q,b\n\n1,2\n", b"q,b\r\n1,2\n", b"q,b\r1,2\r", b"q,b", b""):
        assert cut(content, 1, 100) is None
