"""The faults that ``benchmarks.mutants`` puts into code are what they say, each in one place, and the sample of them stays."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.__main__ import all_mutants, sample
from benchmarks.mutants.copied import Copy
from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.mutations import mutants_of
from benchmarks.mutants.nearest import NEAREST, nearest
from benchmarks.mutants.reach import NOTED, Reach, callers, files_of_tests, noting, state_of
from benchmarks.mutants.trial import Asked, imports_of, tried, verdicts_of
from benchmarks.mutants.within import ENDLESS, Planned
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


def test_what_is_the_same_either_way_is_no_fault() -> None:
    for line in ("max(a, b)", "np.minimum(a, b)", "zip(a, b, strict=True)"):
        afters = {one.after for one in mutants_of("core/kept.py", f"def kept(a, b):\n    return {line}\n")}
        assert not {"b, a", "False"} & (afters - ({"b, a"} if "zip" in line else set()))


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


def test_equivalent_faults_are_left_out_and_each_is_still_a_place_of_the_code() -> None:
    assert not {one.name for one in all_mutants()} & set(EQUIVALENT)


def test_tests_of_the_own_folder_are_near_and_those_of_what_is_a_subject_of_its_own_besides() -> None:
    for path in NEAREST:
        folder = path.rpartition("/")[0] if path.endswith(".py") else path
        assert nearest(path) == tuple(dict.fromkeys([f"tests/{folder}", *NEAREST[path]]))
    assert nearest("tasks/lattice/node_recodings.py") == nearest("tasks/lattice")
    assert nearest("tasks/report/claims.py") == ("tests/tasks/report", "tests/flows/report")


def test_a_test_file_imports_a_module_by_its_names_or_as_a_whole() -> None:
    own = imports_of("tasks/lattice/node_recodings.py")
    for line in (
        "tasks.lattice.node_recodings import recode_node",
        "tasks.lattice import node_recodings, optimum",
        "tasks.lattice import optimum, node_recodings as made",
    ):
        assert own.search(f"import ast\nfrom {line}\n"), line
    for line in (
        "tasks.lattice.optimum import node_recodings",
        "tasks.lattice import recodings",
        "tasks.lattice import node_recodings_of",
        "core.lattice import node_recodings",
    ):
        assert not own.search(f"import ast\nfrom {line}\n"), line


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


def test_the_nearest_and_cheapest_tests_that_reach_a_fault_are_asked_as_far_as_time_goes() -> None:
    [one, *_] = mutants_of("core/recount/coverage.py", (ROOT / "core/recount/coverage.py").read_text("utf-8"))
    at = f"{one.path}:{one.function}"
    own = Reach("tests/core/recount/test_coverage.py::test", 5.0, frozenset({at}))
    near = Reach("tests/core/recount/test_names.py::test", 3.0, frozenset({at}))
    cheap = [Reach(f"tests/{number:03d}.py::test", 0.0625, frozenset({at})) for number in range(100)]
    far = Reach("tests/far.py::test", 0.01, frozenset({"core/else.py:f"}))
    reaches = [own, *cheap, near, far]
    assert Asked(ROOT, reaches, 60).tests(one) == [own, near, *cheap]
    assert Asked(ROOT, reaches, 10).tests(one) == [own, near, *cheap[:32]]
    assert Asked(ROOT, reaches, 1).tests(one) == [own], "one is asked whatever it costs"
    assert Asked(ROOT, [far], 60).planned(one).tests == []


def test_what_reads_source_text_is_not_asked_and_a_changed_test_changes_the_state() -> None:
    tests = files_of_tests(ROOT)
    assert "tests/core/privacy/test_models.py" in tests
    assert not {"tests/tasks/store/test_keys.py", "tests/test_house.py", "tests/house/test_forks.py"} & set(tests)
    assert state_of(ROOT) == state_of(ROOT) != state_of(ROOT, tests[:1])


@pytest.mark.slow
def test_a_function_with_a_fault_is_noticed_by_its_tests_in_a_process_of_its_own(tmp_path: Path) -> None:
    source = "def doubled(number):\n    return 2 * number\n\n\ndef halved(number):\n    return number // 2\n"
    (tmp_path / "core").mkdir()
    (tmp_path / "core/kept.py").write_text(source)
    tests = (
        "from core import kept\n\n\ndef test_two():\n    assert kept.doubled(2) == 4\n\n\n"
        "def test_three():\n    assert kept.doubled(3) == 6\n\n\ndef test_all():\n    assert kept.halved(5) == 2\n\n\n"
        "def test_never():\n    assert False\n"
    )
    (tmp_path / "test_kept.py").write_text(tests)
    names = [(f"test_kept.py::test_{name}", 0.0) for name in ("never", "two", "three", "all")]
    plus, one = source.replace("2 * number", "2 + number"), source.replace("number //", "number -")
    loops, same = (
        source.replace("    return number //", "    while True:\n        pass\n    return number //"),
        source.replace("2\n", "(1 + 1)\n"),
    )
    plan = [
        Planned(name, "core/kept.py", function, text, names, 60)
        for name, function, text in [
            ("plus", "doubled", plus),
            ("loops", "halved", loops),
            ("same", "halved", same),
            ("minus", "halved", one),
        ]
    ]
    copy = Copy.__new__(Copy)
    copy.folder = tmp_path
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    tried(copy, plan, "not slow", is_compiled=True, kept=tmp_path / "kept.jsonl", state="now")
    paths = {one.name: one.path for one in plan}
    verdicts = verdicts_of(tmp_path / "kept.jsonl", tmp_path, paths, "now")
    assert {name: verdict.killed for name, verdict in verdicts.items()} == {
        "plus": names[2][0], "loops": ENDLESS + names[3][0], "same": "", "minus": names[3][0],
    }  # fmt: skip
    assert verdicts["same"].tests == 3
    assert verdicts_of(tmp_path / "kept.jsonl", tmp_path, paths, "later").keys() == {"plus", "loops", "minus"}
    (tmp_path / "test_kept.py").write_text(f"{tests}\n")
    assert verdicts_of(tmp_path / "kept.jsonl", tmp_path, paths, "later") == {}
