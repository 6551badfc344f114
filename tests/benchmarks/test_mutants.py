"""The faults that ``benchmarks.mutants`` puts into code are what they say, each in one place, and the sample of them stays."""

from __future__ import annotations

import ast
from collections import Counter

from benchmarks.mutants.__main__ import sample
from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.mutations import mutants_of
from benchmarks.mutants.nearest import NEAREST, nearest
from tests.places import ROOT

SOURCE = '''
"""Words: a < b."""

def kept(sizes, k, unit=3):
    if not sizes and k > 1:
        raise ValueError(f"é {k + 1} is too many")
    return min(len(sizes), k) + 2 if all(size >= k for size in sizes if size) else kept(k, sizes)

def statement(k):
    return f"SELECT count(*) FROM {kept(k < 1, 2)} WHERE a <= {k:d} AND b IS NOT DISTINCT FROM c"
'''


def changes() -> dict[str, str]:
    return {one.after: one.applied(SOURCE) for one in mutants_of("core/kept.py", SOURCE)}


def test_every_kind_of_fault_is_put_in_and_what_is_left_is_code() -> None:
    found = mutants_of("core/kept.py", SOURCE)
    assert {one.kind for one in found} == {"comparison", "condition", "term", "constant", "argument", "statement"}
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert one.applied(SOURCE) != SOURCE
        ast.parse(one.applied(SOURCE))


def test_words_of_errors_and_docstrings_stay_as_they_are() -> None:
    for text in changes().values():
        assert 'raise ValueError(f"é {k + 1} is too many")' in text
        assert '"""Words: a < b."""' in text


def test_one_place_is_changed() -> None:
    texts = set(changes().values())
    assert SOURCE.replace("size >= k", "size > k") in texts
    assert SOURCE.replace("kept(k, sizes)", "kept(sizes, k)") in texts
    assert SOURCE.replace("if size)", "if True)") in texts
    assert SOURCE.replace("min(len(sizes), k) + 2", "min(len(sizes), k)") in texts
    assert SOURCE.replace("a <=", "a <") in texts
    assert SOURCE.replace(" AND ", " OR ") in texts
    assert SOURCE.replace("IS NOT DISTINCT FROM", "=") in texts


def test_a_sample_holds_as_many_of_each_kind_and_stays_when_others_go() -> None:
    found = mutants_of("core/recount/classes.py", (ROOT / "core/recount/classes.py").read_text("utf-8"))
    chosen = sample(found, 30, 1)
    assert len(chosen) == 30
    kinds = Counter(one.kind for one in chosen)
    assert len(kinds) == 6
    assert min(kinds.values()) >= 4
    without = [one for one in found if one not in chosen[:1]]
    assert len(set(chosen[1:]) - set(sample(without, 30, 1))) <= 1


def test_there_is_what_is_looked_at_and_what_is_asked() -> None:
    for path in NEAREST:
        assert (ROOT / path).exists()
        assert all((ROOT / test).exists() for test in nearest(path))
    assert all(reason.endswith(".") for reason in EQUIVALENT.values())
