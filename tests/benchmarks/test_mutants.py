"""The faults that ``benchmarks.mutants`` puts into code are what they say, each in one place, and the sample of them stays."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.mutants.__main__ import FIRST, Asked, sample
from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.mutations import mutants_of
from benchmarks.mutants.nearest import NEAREST, nearest
from benchmarks.mutants.reach import NOTED, Reach, callers, cheapest_of, noting
from benchmarks.mutants.trial import Copy
from benchmarks.mutants.within import Planned
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


def test_functions_note_that_they_are_called_and_do_what_they_did() -> None:
    names: dict[str, Any] = {NOTED: set()}
    exec(noting("class Words:\n    def length(self, word):\n        'Say how long.'\n        return len(word)\n", "core/kept.py"), names)
    assert names[NOTED] == set()
    assert names["Words"]().length("four") == 4
    assert names["Words"].length.__doc__ == "Say how long."
    assert names[NOTED] == {"core/kept.py:Words.length"}
    compiled = "@kernel\ndef doubled(number):\n    return 2 * number  # as it stands\n"
    assert noting(compiled, "core/kept.py") == compiled


def test_what_is_compiled_is_reached_by_those_who_call_it() -> None:
    sources = {
        "core/loops.py": "@kernel\ndef inner(x):\n    return x\n\n@kernel\ndef outer(x):\n    return inner(x)\n",
        "core/sizes.py": "from core.loops import outer\n\ndef sizes(x):\n    return outer(x)\n\ndef others(x):\n    return x\n",
        "core/strange.py": "def called(x):\n    return x.outer()\n",
    }
    assert callers(sources, "core/loops.py", "inner") == {"core/loops.py:outer", "core/sizes.py:sizes"}


def test_the_cheapest_tests_that_reach_a_fault_are_asked_as_far_as_time_goes() -> None:
    [one, *_] = mutants_of("core/recount/coverage.py", (ROOT / "core/recount/coverage.py").read_text("utf-8"))
    at = f"{one.path}:{one.function}"
    cheap = [Reach(f"tests/{number:03d}.py::test", 0.05, frozenset({at})) for number in range(100)]
    dear = Reach("tests/flow.py::test", 50.0, frozenset({at, "core/else.py:f"}))
    far = Reach("tests/far.py::test", 0.01, frozenset({"core/else.py:f"}))
    reaches = [dear, *cheap, far]
    assert [test.test for test in cheapest_of(reaches)["core/else.py:f"]] == [far.test, dear.test]
    asked = [stage.tests for stage in Asked(reaches, "not slow", 60).stages(one)]
    assert [len(tests) for tests in asked] == [FIRST, 101 - FIRST]
    assert asked[-1][-1] == dear.test
    assert sum(len(stage.tests) for stage in Asked(reaches, "not slow", 40).stages(one)) == 100
    assert [stage.tests for stage in Asked([dear], "not slow", 1).stages(one)] == [[dear.test]], "one is asked whatever it costs"
    assert [stage.tests[0] for stage in Asked([], "not slow", 60).stages(one)] == list(nearest(one.path))


def test_a_function_with_a_fault_is_noticed_by_its_tests_and_is_itself_again_afterwards(tmp_path: Path) -> None:
    source = "def doubled(number):\n    return 2 * number\n\n\ndef halved(number):\n    return number // 2\n"
    (tmp_path / "kept.py").write_text(source)
    tests = (
        "import kept\n\n\ndef test_two():\n    assert kept.doubled(2) == 4\n\n\ndef test_three():\n    assert kept.doubled(3) == 6\n\n\n"
        "def test_all():\n    assert kept.halved(5) == 2\n"
    )
    (tmp_path / "test_kept.py").write_text(tests)
    names = [f"test_kept.py::test_{name}" for name in ("two", "three", "all")]
    plus, one, never = (
        source.replace("2 * number", "2 + number"),
        source.replace("number //", "number -"),
        source.replace("2\n", "(1 + 1)\n"),
    )
    loops = source.replace("    return number //", "    while True:\n        pass\n    return number //")
    plan = [
        Planned("plus", "kept.py", "doubled", plus, names, 60), Planned("loops", "kept.py", "halved", loops, names, 1),
        Planned("same", "kept.py", "halved", never, names, 60), Planned("minus", "kept.py", "halved", one, names, 60),
    ]  # fmt: skip
    copy = Copy.__new__(Copy)
    copy.folder = tmp_path
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    verdicts = copy.tried_within(plan, "not slow")
    assert {name: verdict.killed for name, verdict in verdicts.items()} == {
        "plus": names[1], "loops": names[2], "same": "", "minus": names[2],
    }  # fmt: skip
