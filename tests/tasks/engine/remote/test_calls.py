"""Calls that travel: values come back as they were, and nobody without the key learns or changes anything."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mondrian.fragments import CutTree
from schemas.errors.base import InternalError, JobError, SkaldError, SourceError
from schemas.errors.runners import RunnerError, WithdrawnError
from schemas.job.job import load_job
from tasks.counting.source_domains import count_domains
from tasks.engine.guard import guarded
from tasks.engine.remote import call_queues, calls
from tasks.engine.remote.call_queues import FolderQueue, decoded, encoded
from tasks.engine.remote.calls import CallKey, Failure, Order, code_versions, fulfil, queued_call, release_versions, result_of
from tasks.source.chunks import Chunk, Piece, SourceFile
from tasks.source.locations import Located
from tasks.store.keys import fingerprint_of
from tasks.store.store import Store
from tests.jobs import people, people_job
from tests.places import ROOT

VALUE = "a cell value"
DESK = FolderQueue(Path("/nowhere"))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def functions_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls name functions of this file."""
    monkeypatch.setattr(call_queues, "FLOORS", (*call_queues.FLOORS, "tests."))


def join(*parts: object) -> str:
    return " ".join(map(str, parts))


def make(folder: Path) -> None:
    folder.mkdir()


def fail(kind: str) -> None:
    raise {"ours": SourceError.empty(1), "disk": OSError(28, "No space left on device", "folder"), "other": ValueError(VALUE)}[kind]


def refuse() -> None:
    raise JobError("job.yaml", ["one", "two"])


def back(*arguments: Any) -> tuple[Any, ...]:
    return decoded(encoded(fingerprint_of, arguments, DESK), DESK)[1]


@pytest.mark.ci
@given(st.lists(PLAIN))
def test_plain_values_come_back_as_they_were(arguments: list[Any]) -> None:
    assert back(*arguments) == tuple(arguments)
    assert repr(back(*arguments)) == repr(tuple(arguments))


def test_what_steps_get_comes_back_as_it_was(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.dictionary(pa.int32(), pa.string())), ("b", pa.decimal128(4, 1))], metadata={"x": "y"})
    file = SourceFile(name="n", path=tmp_path, digest="d", stat=(1, 2), groups=(3,), partition=(), drift=schema)
    chunk = Chunk(pieces=(Piece(file=file, first=0, rows=3),))
    tree = CutTree(qids=(0, 1), ranks=(2, 3), lefts=(4, 5))
    place = Located("n", tmp_path, "d", (1, 2))
    arguments = (chunk, tree, place, schema, pa.decimal128(4, 1), range(1, 9, 2), Decimal("1.50"), tmp_path, [(1, None)])
    assert back(*arguments) == arguments
    assert back(*arguments)[3].metadata == schema.metadata
    [store] = back(Store(tmp_path))
    assert store.folder == tmp_path


def test_a_job_comes_back_as_it_was(tmp_path: Path) -> None:
    ours = [path for path in sorted((ROOT / "data").rglob("*.yaml")) if "\nversion: 2" not in f"\n{path.read_text('utf-8')}"]
    for path in [people_job(tmp_path, people(10)), *ours]:
        job = load_job(path)
        [other] = back(job)
        assert other == job
        assert (other.folder, other.work_path, other.canonical()) == (job.folder, job.work_path, job.canonical())
        assert other.model_fields_set == job.model_fields_set


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 1, Path, pytest])
def test_what_no_step_gets_is_not_sent(value: object) -> None:
    with pytest.raises(InternalError):
        encoded(fingerprint_of, (value,), DESK)


@pytest.mark.parametrize(
    "content",
    [
        b'[["os", "system"], ["tuple", ["true"]]]',
        b'[["tasks.store.keys", "fingerprint_of.__globals__"], ["tuple", []]]',
        b'[["tasks.store.store", "Store"], ["tuple", ["x"]]]',
        b'[["tasks.store.keys", "fingerprint_of"], ["data", [["subprocess", "Popen"], ["dict", []]]]]',
        b'[["tasks.store.keys", "fingerprint_of"], ["model", [["tasks.store.store", "Store"], null, null, null, null]]]',
        b'[["tasks.store.keys", "fingerprint_of"], ["named", [["tasks.store.keys", "fingerprint_of"]]]]',
    ],
)
def test_nothing_runs_that_is_no_function_of_ours(content: bytes) -> None:
    with pytest.raises(InternalError):
        decoded(content, DESK)


def test_a_call_is_private_sealed_and_gone_afterwards(tmp_path: Path) -> None:
    with queued_call(FolderQueue(tmp_path), CallKey(), join, (VALUE, 1)) as order:
        [path] = tmp_path.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        assert VALUE.encode() not in path.read_bytes()
        assert result_of(fulfil(pickle.loads(pickle.dumps(order)))) == f"{VALUE} 1"
        assert order.key.secret.hex() not in repr(order)
        assert repr(order.key.secret) not in repr(order)
    assert not list(tmp_path.iterdir())


def swapped(folder: Path, order: Order, other: Order) -> None:
    (folder / order.name).write_bytes((folder / other.name).read_bytes())


def flipped(folder: Path, order: Order, _other: Order) -> None:
    content = bytearray((folder / order.name).read_bytes())
    content[-1] ^= 1
    (folder / order.name).write_bytes(content)


def pickled(folder: Path, order: Order, _other: Order) -> None:
    (folder / order.name).write_bytes(pickle.dumps(folder / "made"))


def emptied(folder: Path, order: Order, _other: Order) -> None:
    (folder / order.name).write_bytes(b"")


@pytest.mark.parametrize("change", [swapped, flipped, pickled, emptied])
def test_a_call_that_somebody_else_wrote_is_not_made(tmp_path: Path, change: Callable[[Path, Order, Order], None]) -> None:
    queue, key = FolderQueue(tmp_path), CallKey()
    with queued_call(queue, key, make, (tmp_path / "one",)) as order, queued_call(queue, key, make, (tmp_path / "two",)) as other:
        change(tmp_path, order, other)
        with pytest.raises(RunnerError, match="is not what was laid out"):
            result_of(fulfil(order))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("function", "arguments"), [(fail, ("ours",)), (fail, ("disk",)), (fail, ("other",)), (refuse, ())])
def test_an_error_comes_back_from_elsewhere_as_it_is_raised_here(
    tmp_path: Path, function: Callable[..., None], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SkaldError) as here:
        guarded(function)(*arguments)
    with queued_call(FolderQueue(tmp_path), CallKey(), function, arguments) as order:
        failure = fulfil(order)
    assert isinstance(failure, Failure)
    found = pickle.loads(pickle.dumps(failure)).error()
    assert (type(found), str(found), found.exit_code) == (type(here.value), str(here.value), here.value.exit_code)


def test_a_call_that_was_withdrawn_is_told_from_a_folder_that_a_worker_cannot_see(tmp_path: Path) -> None:
    key = CallKey()
    assert fulfil(Order(FolderQueue(tmp_path), "gone", key, {})).kind is WithdrawnError
    assert "cannot read" in fulfil(Order(FolderQueue(tmp_path / "elsewhere"), "gone", key, {})).sentence


def test_a_worker_with_another_version_or_other_code_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, key, wanted = FolderQueue(tmp_path), CallKey(), dict(code_versions(count_domains))
    other = Order(queue, "name", key, wanted | {count_domains.__module__: "other code"})
    assert f"another version of '{count_domains.__module__}'" in fulfil(other).sentence
    assert "pyarrow" in wanted
    monkeypatch.setattr(calls, "release_versions", lambda: dict(release_versions()) | {"pyarrow": "0.1"})
    assert "another version of 'pyarrow'" in fulfil(Order(queue, "name", key, wanted)).sentence
