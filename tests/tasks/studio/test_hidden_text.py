"""The text of a job on the page: rare values of trees are hidden, and what comes back is what the file had."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from schemas.reading.job_files import parse
from tasks.studio.job_text import flow_text, full_text, hidden_text

NAMES = some.sampled_from(["Alder", "it's", "a: b", "[x]", "ä", "no", "007", "Birch # not"])
TREES = some.recursive(some.lists(NAMES, min_size=1, max_size=3), lambda inner: some.dictionaries(NAMES, inner, min_size=1, max_size=2))


@given(some.dictionaries(NAMES, TREES, min_size=1, max_size=3), some.frozensets(NAMES), some.booleans())
def test_what_is_hidden_comes_back(tree: dict[str, object], shared: frozenset[str], block: bool) -> None:
    written = flow_text(tree) if not block else "".join(f"\n        {flow_text(key)}: {flow_text(one)}" for key, one in tree.items())
    head = "# first\nname: x\ncolumns:\n  - name: town\n    hierarchy:\n      tree:"
    text = f"{head}{'' if block else ' '}{written}\nmemory: 1GB # last\n"
    if parse(text)[1]:
        return
    shown = hidden_text(text, {"town": shared})
    assert full_text(shown, text, {"town": shared}) == text
    assert shown.startswith("# first\nname: x\n") and shown.endswith("memory: 1GB # last\n")
    leaves = {one for one in _leaves(tree) if one not in shared}
    if not leaves:
        assert shown == text
    data, faults = parse(shown)
    assert not faults
    assert not leaves & set(_leaves(data["columns"][0]["hierarchy"]["tree"]))  # type: ignore[index,call-overload]


def _leaves(tree: object) -> list[str]:
    if isinstance(tree, dict):
        return [leaf for one in tree.values() for leaf in _leaves(one)]
    return [str(one) for one in tree] if isinstance(tree, list) else [str(tree)]


def test_a_query_is_hidden_and_comments_are_not() -> None:
    text = "source: {query: \"SELECT * FROM t WHERE name = 'Ada'\"}  # ours\n"
    shown = hidden_text(text, {})
    assert "Ada" not in shown and "# ours" in shown
    assert full_text(shown, text, {}) == text
