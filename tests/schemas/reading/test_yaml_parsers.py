"""A job means the same whichever of the two parsers of YAML reads it, and none of them crashes."""

from __future__ import annotations

from unittest.mock import patch

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.reading.job_files import parse

PIECES = [
    "a", "b: ", "- ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ", ", ": ", "'", '"', " #", "&x ", "*x", "!t ", "|\n", ">\n", " ", "? ",
    "---\n", "...\n", "\\u0041", "\\ud800", "\\", "é", "\r\n", "\r", "@", "~", "0.10", "<<: ", "\xa0", "\ufeff", "\u2028", "\t", "\x00",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("{a: [b, &x c, *x], d: 'e'}")
@example("\n\ufeff- a")
@example('a: "\\ud800"')
@example("a: &x 1\nb: &x 2\n")
def test_what_yamls_own_parser_reads_the_fast_one_reads_alike(text: str) -> None:
    read = parse(text)
    with patch.object(yaml, "__with_libyaml__", False):
        alone = parse(text)
    assert read == alone or (alone[0] is None and alone[1])


def test_a_question_mark_or_a_tab_is_part_of_a_word() -> None:
    assert parse("[Is it?yes, a\tb]") == (["Is it?yes", "a\tb"], [])


def test_lists_within_lists_without_end_are_refused() -> None:
    for text in ("[" * 200_000, "- " * 200_000, "{a: " * 200_000):
        assert parse(text) == (None, ["lists or mappings are nested too deeply; a job needs few levels"])
