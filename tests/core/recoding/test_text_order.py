"""Texts are in the order of their bytes, however many of these they have in common."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recoding import release_order as order

TEXTS = st.lists(st.text(alphabet="ab\0é€", max_size=20) | st.text(max_size=3), max_size=40)


@pytest.mark.parametrize("few", [1, 1024])
@example(texts=["b", "a" * 8 + "b", "a" * 8 + "a"], shared="", skipped=0, more=0)  # two that differ after the bytes of a number
@example(texts=["b", *("a" * 7 + text for text in ("bb", "ba", "ab", "aa"))], shared="", skipped=0, more=0)  # and two pairs of such
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


@example(texts=["abcd", "abca"], first=0, skipped=3)  # as many bytes as a number has
@example(texts=["abd", "abca"], first=0, skipped=0)  # and one fewer
@example(texts=["", ""], first=1, skipped=0)
@given(texts=TEXTS.filter(bool), first=st.integers(0, 3), skipped=st.integers(0, 3))
def test_bytes_of_a_text_are_a_number_of_the_same_order(texts: list[str], first: int, skipped: int) -> None:
    some = texts[first:]
    found = order._words(pa.array(texts, pa.string()).slice(first), skipped)
    assert found.tolist() == [int.from_bytes(text.encode()[skipped : skipped + 8].ljust(8, b"\0"), "big") for text in some]
