"""A label that lists values covers those of every way to part it into values, which may hold commas themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.labels.label_readers import label_axis
from core.recount.labels.label_spans import read_labels
from tests.laws import tried
from tests.oracles.hierarchies import quasi_identifier

KNOWN = ["", "a", "a, b", "a, b, c", "b", "b, c", "c"]


def parted(pieces: Sequence[str], known: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield every way in which pieces, put together in their order, are values that are known."""
    if not pieces:
        yield ()
    for last in range(1, len(pieces) + 1):
        if (value := ", ".join(pieces[:last])) in known:
            yield from ((value, *others) for others in parted(pieces[last:], known))


@example({"a", "b, c"}, ["a", "b", "c"], "{", "}")
@example({"a, b", "c"}, ["a", "b"], "{", "}")
@example({"a", "b"}, ["a", "c", "b"], "{", "}")
@example({"a, b", "b", "b, c", "a"}, ["a", "b", "c"], "{", "}")
@example({"a", "b"}, ["a", "b"], "{", "]")
@example({"a", "b"}, ["a", "b"], "[", "}")
@example({"a", "b", "c"}, ["a", "b", "c"], "{", "}")
@example({"a", "b", "a, b, c"}, ["a", "b", "c"], "{", "}")
@example({"a, b, c", "c"}, ["a", "b", "c"], "{", "}")
@example({"a, b, c", "b", "c"}, ["a", "b", "c"], "{", "}")
@example({"", "a", "b"}, ["a", "b"], "{", "}")
@example({"", "a", "b"}, ["a", "", "b"], "{", "}")
@example({"a", "b"}, ["a", "b"], "", "}")
@given(
    st.sets(st.sampled_from(KNOWN), min_size=1),
    st.lists(st.sampled_from(["a", "b", "c", "d", ""]), min_size=1, max_size=4),
    st.just("{"),
    st.just("}"),
)
@tried(60)
def test_a_list_of_values_covers_those_of_each_way_to_read_it(values: set[str], pieces: list[str], begin: str, end: str) -> None:
    known = sorted(values)
    axis = label_axis(quasi_identifier({"prefix": [1]}), pa.array(known), Path(), ranges=False, prefixes=False)
    assert axis.pieces == max(value.count(", ") + 1 for value in known)
    found = read_labels(axis, [f"{begin}{', '.join(pieces)}{end}"]).covered(0).tolist()
    covered = {value for way in parted(pieces, known) for value in way} if (begin, end) == ("{", "}") else set()
    places = {position: value for value, position in zip(known, axis.positions.tolist(), strict=True)}
    assert {places[position] for position in found} == covered
