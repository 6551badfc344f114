"""Texts are in the order of their bytes, however many of these they have in common."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.order import release_order as order

TEXTS = st.lists(st.text(alphabet="ab\0é€", max_size=20) | st.text(max_size=3), max_size=40)


@pytest.mark.parametrize("few", [1, 1024])
@example(texts=["abcd", "abca"], shared="", skipped=0, more=0)  # as many bytes as a word has
@example(texts=["abd", "abca"], shared="", skipped=0, more=0)  # and one fewer
@given(texts=TEXTS, shared=st.sampled_from(["", "note ", "€" * 9]), skipped=st.integers(0, 3), more=st.integers(0, 3))
def test_texts_are_sorted_by_their_bytes_and_told_apart(few: int, texts: list[str], shared: str, skipped: int, more: int) -> None:
    found = [shared + text for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "FEW", few)
        all_texts = pa.array(["x" * 9] * skipped + found + ["y" * 9] * more, pa.string())
        places, distinct = order.text_order(all_texts.slice(skipped, len(found)))
    assert sorted(places.tolist()) == list(range(len(found)))
    assert [found[place] for place in places] == sorted(found, key=str.encode)
    assert distinct == (len(set(found)) == len(found))
