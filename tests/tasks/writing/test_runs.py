"""A run gives back what was put into it, however few bytes its numbers take."""

from __future__ import annotations

from contextlib import nullcontext
from math import ceil, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.values import ValuesError
from tasks.store.keys import StepCode
from tasks.store.store import Store
from tasks.writing import two_level_shuffle
from tasks.writing.people import write_fragment_members
from tasks.writing.runs import (
    LONG,
    PAGE,
    REPEATED,
    SAMPLED_VALUES,
    TRIED,
    RunWriter,
    _are_numbers,
    _check_unpacked,
    _formed,
    _packs,
    count_file_records,
    pays_to_dictionary_encode,
    read_file_records,
    write_run,
)
from tests.house.replaced import RUNS_MOST_UNPACKED


def payload(entries: int, rows: int) -> pa.RecordBatch:
    """Records with one of so many texts, the last of them with none, and with a number."""
    places = np.arange(rows, dtype=np.int32) % entries
    texts = pa.DictionaryArray.from_arrays(
        pa.array(places, mask=np.arange(rows) == rows - 1), [f"text {place}" for place in range(entries)]
    )
    return pa.RecordBatch.from_arrays([texts, pa.array(np.arange(rows) / 2)], names=["text", "number"])


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("columns", [["text"], ["text", "number"]], ids="-".join)
@pytest.mark.parametrize("most", [1 << 30, 1], ids=["one round", "a round for each batch"])
def test_runs_of_few_and_of_many_entries_and_classes_are_gathered_together(tmp_path: Path, columns: list[str], most: int) -> None:
    paths, expected = [], []
    for number, (entries, classes) in enumerate([(3, 2), (127, 255), (128, 256), (40_000, 70_000)]):
        batch = payload(entries, 2 * entries).select(columns)
        all_classes = (np.arange(2 * entries) * classes // (2 * entries)).astype(np.int32)
        paths.append(tmp_path / f"{number}.arrow")
        with RunWriter(paths[-1], 2, most) as run:
            for start in range(0, len(all_classes), entries):
                part = slice(start, start + entries)
                run.add(all_classes[part], batch.slice(start, entries), np.arange(len(all_classes))[part] % 2)
        expected += [(int(one), *row.values()) for one, row in list(zip(all_classes, batch.to_pylist(), strict=True))[1::2]]
    found, held = read_file_records(paths, 1, len(columns))
    assert found.dtype == np.int32
    assert sorted(zip(found.tolist(), *(column.to_pylist() for column in held), strict=True), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("most", [1 << 30, 1])
@pytest.mark.parametrize("narrow", [True, False])
def test_numbers_are_narrow_in_a_run_of_one_pass_alone_and_all_records_come_back(tmp_path: Path, most: int, narrow: bool) -> None:
    """Later passes have classes and entries that would not fit into what held those of the first."""
    batches = [([0, 2, 1], ["x", None, "y"], [1, 0, 1]), ([], [], []), ([126, 300, 5], ["z", "x", "w"], [0, 2, 1]), ([7], ["v"], [2])]
    for several in (1, len(batches)):
        path, expected = tmp_path / f"{several}.arrow", dict[int, list[Any]]()
        with RunWriter(path, 3, most, narrow=narrow) as run:
            for classes, texts, files in batches[:several]:
                entries = pa.array(texts, pa.string()).dictionary_encode()
                payload = pa.RecordBatch.from_arrays([entries, pa.array(classes, pa.int64())], names=["t", "n"])
                run.add(np.array(classes, np.int32), payload, np.array(files, np.int64))
                for one, text, file in zip(classes, texts, files, strict=True):
                    expected.setdefault(file, []).append((one, text, one))
        assert run.rows == sum(map(len, expected.values()))
        for number in range(3):
            found, (texts_of, numbers) = read_file_records([path], number, 2)
            assert list(zip(found.tolist(), texts_of.to_pylist(), numbers.to_pylist(), strict=True)) == expected.get(number, [])
            assert pa.types.is_dictionary(texts_of.type), "texts are entries again, in however many passes they were written"
        one_pass, schema = most > 1 or several == 1, pa.ipc.open_file(path).schema
        held = (pa.uint8() if several == 1 else pa.uint16()) if narrow and one_pass else pa.int32()
        assert schema.field(0).type == held
        coded = pa.dictionary(pa.int8() if narrow else pa.int32(), pa.string())
        assert schema.field(1).type == (coded if one_pass else pa.string())


def test_a_run_without_records_has_its_files_all_the_same(tmp_path: Path) -> None:
    nothing = payload(1, 1).slice(0, 0)
    with RunWriter(tmp_path / "run.arrow", 0, 1) as run:
        run.add(np.empty(0, np.int32), nothing, np.empty(0, np.int64))
    assert (run.rows, count_file_records([tmp_path / "run.arrow"], 0)) == (0, 0)


def test_what_a_run_was_given_before_an_error_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(LookupError), RunWriter(tmp_path / "run.arrow", 1, 1 << 30) as run:
        run.add(np.zeros(4, np.int32), payload(2, 4), np.zeros(4, np.int64))
        raise LookupError
    assert not (tmp_path / "run.arrow").exists()


@pytest.mark.parametrize(("distinct", "pays"), [(0.1, True), (0.5, False)])
@pytest.mark.parametrize("values", [2_000, 20_000])
def test_numbers_of_which_few_differ_are_written_as_a_dictionary_though_not_all_are_looked_at(
    values: int, distinct: float, pays: bool
) -> None:
    drawn = np.random.default_rng(1).integers(0, int(distinct * values), values)
    assert pays_to_dictionary_encode(pa.array(drawn)) is pays


@pytest.mark.parametrize("files", [2, 5, 9, 10, 17, 37])
def test_there_are_about_as_many_shuffle_parts_as_each_has_files(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    monkeypatch.setattr(two_level_shuffle, "count_remote_workers", lambda: 2)

    def made(given_run: Any, step: Any, given: Any, groups: Any) -> list[Any]:
        assert (given_run, step, given.columns, given.store) == (run, two_level_shuffle.SHUFFLE_PARTS, 1, "store")
        assert [number for numbers in given.files for number in numbers] == list(range(files)), "each file is in one shuffle part"
        return [SimpleNamespace(shuffle_parts=tuple((*numbers, len(group)) for numbers in given.files)) for group in groups]

    monkeypatch.setattr(two_level_shuffle, "run_for_each_item", made)
    run: Any = SimpleNamespace(store="store")
    runs: Any = list(range(17))
    found = two_level_shuffle.shuffle_runs(run, runs, files, 1)
    assert len(found.runs) <= found.files <= len(found.runs) + 2
    assert found.files == ceil(sqrt(files))
    assert {len(part) for part in found.runs} == {4}, "seventeen runs, five at a time"
    for number in range(files):
        part, within = found.of(number)
        assert all(one[within] == number for one in part)


@pytest.mark.parametrize(("files", "runs", "workers"), [(0, 9, 2), (1, 9, 2), (2, 8, 2), (2, 9, 0)])
def test_few_files_or_runs_and_those_of_one_machine_are_gathered_at_once(
    monkeypatch: pytest.MonkeyPatch, files: int, runs: int, workers: int
) -> None:
    monkeypatch.setattr(two_level_shuffle, "count_remote_workers", lambda: workers)
    monkeypatch.setattr(two_level_shuffle, "run_for_each_item", None)
    every: Any = list(range(runs))
    found = two_level_shuffle.shuffle_runs(SimpleNamespace(store=None), every, files, 1)  # type: ignore[arg-type]
    assert found == ((tuple(every),), max(files, 1))
    assert [found.of(number) for number in range(files)] == [(tuple(every), number) for number in range(files)]


def test_two_files_of_nine_runs_are_gathered_apart_where_there_are_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def laid(*given: Any) -> list[SimpleNamespace]:
        return [SimpleNamespace(shuffle_parts=tuple(group)) for group in given[3]]

    monkeypatch.setattr(two_level_shuffle, "count_remote_workers", lambda: 1)
    monkeypatch.setattr(two_level_shuffle, "run_for_each_item", laid)
    every: Any = list(range(9))
    found = two_level_shuffle.shuffle_runs(SimpleNamespace(store=None), every, 2, 1)  # type: ignore[arg-type]
    assert found == (((0, 3, 6), (1, 4, 7), (2, 5, 8)), 2)


def test_numbers_are_judged_by_evenly_spaced_ones_where_there_are_many() -> None:
    """Each that is looked at differs; the others, which nobody looks at, are all the same."""
    spaced = np.zeros(8 * SAMPLED_VALUES, np.int64)
    spaced[::8] = np.arange(1, SAMPLED_VALUES + 1)
    assert not pays_to_dictionary_encode(pa.array(spaced))
    assert pays_to_dictionary_encode(pa.array(np.roll(spaced, 1)))


@pytest.mark.parametrize(
    ("times", "distinct", "pays"), [(4, 2048, True), (4, 2049, False), (5, 2048, False), (8, 1535, True), (8, 1536, False)]
)
def test_all_are_looked_at_up_to_four_times_as_many_as_are_sampled(times: int, distinct: int, pays: bool) -> None:
    """Of eight times as many, three quarters of the sampled ones differ where a quarter of all may be expected to."""
    values = np.zeros(times * SAMPLED_VALUES, np.int64)
    values[::times] = np.minimum(np.arange(SAMPLED_VALUES), distinct - 1)
    values[1] = min(distinct - 1, SAMPLED_VALUES)
    assert pays_to_dictionary_encode(pa.array(values)) is pays


def test_a_text_is_long_for_its_file_only_beyond_both_bounds() -> None:
    """What unpacks to many times its entry is written as long as it stays below what a reader can hold."""
    texts = pa.array(["x" * 1_000_000, "short"])
    few, many = (pa.DictionaryArray.from_arrays(pa.array([0] * times + [1] * 300, pa.int32()), texts) for times in (100, 400))
    _check_unpacked("note", few)
    with pytest.raises(ValuesError):
        _check_unpacked("note", many)


@pytest.mark.parametrize(("times", "refused"), [(REPEATED, False), (REPEATED + 1, True)])
def test_long_texts_may_repeat_a_few_times_whatever_they_unpack_to(monkeypatch: pytest.MonkeyPatch, times: int, refused: bool) -> None:
    monkeypatch.setattr(RUNS_MOST_UNPACKED, 1_000)
    texts = pa.array(["x" * 2_000, "y" * 2_000])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1] * times, pa.int32()), texts)
    if refused:
        with pytest.raises(ValuesError):
            _check_unpacked("note", column)
    else:
        _check_unpacked("note", column)
    in_bytes = pa.DictionaryArray.from_arrays(column.indices, texts.cast(pa.binary()))
    with pytest.raises(ValuesError) if refused else nullcontext():
        _check_unpacked("note", in_bytes)
    if not refused:
        _check_unpacked("note", pa.array(range(2_000)))
        _check_unpacked("note", pa.array(range(2_000)).dictionary_encode())
        _check_unpacked("note", pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array([None], pa.string())))
        _check_unpacked("note", pa.DictionaryArray.from_arrays(pa.nulls(99, pa.int32()), texts))
    # Short ones may as often as they like.
    _check_unpacked("note", pa.DictionaryArray.from_arrays(pa.array([0] * 99, pa.int32()), ["x" * LONG]))


@pytest.mark.parametrize(("times", "refused"), [(8, False), (9, True)])
def test_a_long_text_may_repeat_up_to_what_may_be_unpacked(monkeypatch: pytest.MonkeyPatch, times: int, refused: bool) -> None:
    monkeypatch.setattr(RUNS_MOST_UNPACKED, 16_000)
    with pytest.raises(ValuesError) if refused else nullcontext():
        _check_unpacked("note", pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), ["x" * 2_000]))


@pytest.mark.parametrize("most", [1 << 30, 1])
def test_a_file_behind_the_last_one_of_a_run_has_no_records_of_it(tmp_path: Path, most: int) -> None:
    path = tmp_path / "run.arrow"
    with RunWriter(path, 2, most) as run:
        for _ in range(3):
            run.add(np.array([4, 5], np.int32), payload(2, 2), np.array([0, 1]))
    found = [(count_file_records([path], number), read_file_records([path], number, 2)[0].tolist()) for number in range(4)]
    assert found == [(3, [4, 4, 4]), (3, [5, 5, 5]), (0, []), (0, [])]


def test_classes_of_a_fragment_are_numbered_after_those_of_others(tmp_path: Path) -> None:
    columns = {name: [7, 8, 9] for name in ("content", "untreated", "value_0", "value_1")}
    kept = pa.table({name: pa.array(values, pa.uint64()) for name, values in columns.items()})
    assert write_fragment_members(tmp_path / "members.parquet", 40, np.array([0, -1, 2], np.int32), kept) == 3
    assert pq.read_table(tmp_path / "members.parquet").to_pydict() == {"class": [40, -1, 42]} | columns
    # Digests of whole records hardly ever repeat, so that a dictionary of them would be all of them beside their places.
    group = pq.read_metadata(tmp_path / "members.parquet").row_group(0)
    coded = [one.path_in_schema for one in map(group.column, range(group.num_columns)) if one.has_dictionary_page]
    assert coded == ["value_0", "value_1"]


@pytest.mark.parametrize(
    ("values", "pays"),
    [
        ([7, 7, 7, 7], True), ([7, 7, 7], False), ([7, 8] * 4, True), ([7, 8, *[7] * 5], False), ([None, 7, 7, 7, 7], True),
        ([None, None, 7, 7, 7], False), ([True] * 3, False), ([], True), ([None], True), (["a", "a"], True), (["a", "b"], False),
        (["a", None], True), (["a", "a", "b"], False),
    ],
    ids=str,
)  # fmt: skip
def test_a_dictionary_pays_where_a_quarter_of_the_numbers_or_half_of_the_texts_differ(values: list[Any], pays: bool) -> None:
    assert pays_to_dictionary_encode(pa.array(values)) is pays


@pytest.mark.parametrize(("entries", "places", "pays"), [(["a", None], [0, 1, 1], True), (["a", "b", "c", None], [0, 1, 2, 3], False)])
def test_an_entry_without_a_text_is_none_of_the_texts_that_differ(entries: list[str | None], places: list[int], pays: bool) -> None:
    assert pays_to_dictionary_encode(pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(entries))) is pays


def test_one_long_text_is_plain_where_it_takes_more_than_a_page() -> None:
    for more in (0, 1):
        text = pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int32()), ["x" * (PAGE - 4 + more)])
        column, repeated = _formed(text, pa.string())
        assert text.dictionary.nbytes == PAGE + more
        assert (pa.types.is_dictionary(column.type), repeated) == (not more, True)


@pytest.mark.parametrize("entries", [3, 200])
def test_a_shuffle_part_has_the_records_of_its_files_of_all_runs(tmp_path: Path, entries: int) -> None:
    """Five files, of which a part has three; one run ends before the last of them."""
    runs, files = [tmp_path / "first.arrow", tmp_path / "second.arrow"], 5
    for number, path in enumerate(runs):
        batch = payload(entries, 40)
        last = files if number == 0 else 3
        write_run(path, (np.arange(40) + 40 * number).astype(np.int32), batch, np.arange(40) * last // 40)
    part = tmp_path / "part.arrow"
    rows = two_level_shuffle.write_shuffle_part(part, runs, range(2, 5), 2)
    assert rows == sum(count_file_records(runs, number) for number in range(2, 5))
    for number in range(3):
        found, expected = (read_file_records(paths, one, 2) for paths, one in (([part], number), (runs, number + 2)))
        assert found[0].tolist() == expected[0].tolist()
        assert [column.to_pylist() for column in found[1]] == [column.to_pylist() for column in expected[1]]
        assert [column.type for column in found[1]] == [column.type for column in expected[1]]
    assert two_level_shuffle.write_shuffle_part(tmp_path / "none.arrow", runs, range(7, 7), 2) == 0


def test_each_shuffle_part_of_a_group_of_runs_is_kept_by_itself(tmp_path: Path) -> None:
    store, step = Store(tmp_path), StepCode("runs", two_level_shuffle.__name__)
    runs = [
        store.make(
            "runs",
            step.key(number),
            ".arrow",
            lambda path, n=number: write_run(path, np.full(10, n, np.int32), payload(3, 10), np.arange(10) % 5),
        )
        for number in range(2)
    ]
    given = two_level_shuffle.PartRanges((range(2), range(2, 4), range(4, 5)), 2, store)
    parts = two_level_shuffle._lay(given, runs).shuffle_parts
    assert [part.rows for part in parts] == [8, 8, 4]
    paths = [store.path(run) for run in runs]
    for part, numbers in zip(parts, given.files, strict=True):
        for place, number in enumerate(numbers):
            (mine, columns), (whole, expected) = read_file_records([store.path(part)], place, 2), read_file_records(paths, number, 2)
            assert (mine.tolist(), [one.to_pylist() for one in columns]) == (whole.tolist(), [one.to_pylist() for one in expected])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [("", True), ("d", True), ("dd", True), ("p", False), ("dp", False), ("dpp", False), ("ddd", True), ("dw", False)],
)
def test_columns_are_numbers_where_all_are_entries_of_dictionaries_that_are_no_larger(kinds: str, expected: bool) -> None:
    """A wide entry takes more bytes than the numbers of all records do; of the first column, which is the file, nothing is asked."""
    short, long = pa.array(["a", "b"] * 8), pa.array(["a" * 99, "b"] * 8)
    made = {"d": short.dictionary_encode(), "p": short, "w": long.dictionary_encode()}
    assert _are_numbers([pa.array(range(16)), *(made[kind] for kind in kinds)]) is expected


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(("came", "own"), [("plain", False), ("plain", True), ("coded", False)])
def test_texts_come_back_with_their_records_and_as_they_came_whatever_they_take(tmp_path: Path, came: str, own: bool, long: bool) -> None:
    """One run has two passes, the other one: what is coded there is plain in the first, as is a short part beside a long one.

    Texts of a column of their own, and those that came as entries, are entries again, in an order that says nothing; others are plain.
    """
    most, texts = PAGE // 3 if long else 1, list[str]()
    for number, batches in enumerate((["cabc", "b"], ["ac"])):
        with RunWriter(tmp_path / f"{number}.arrow", 1, 1, {"text"} if own else ()) as run:
            for letters in batches:
                column = pa.array([letter * most for letter in letters], pa.large_string())
                batch = pa.RecordBatch.from_arrays([column.dictionary_encode() if came == "coded" else column], names=["text"])
                run.add(np.array([ord(letter) for letter in letters], np.int32), batch, np.zeros(len(letters), np.int64))
                texts += letters
    classes, [found] = read_file_records([tmp_path / f"{number}.arrow" for number in range(2)], 0, 1)
    assert [chr(one) for one in classes] == texts
    coded = pa.types.is_dictionary(found.type)
    entries = [text[:1] for text in (found.dictionary if coded else found).to_pylist()]
    assert coded is (came == "coded" or own)
    assert ([entries[place] for place in found.indices.to_pylist()] if coded else entries) == texts
    assert not coded or entries == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("zeros", "random", "packs"),
    [(2, 0, True), (0, 2, False), (2, 2, False), (3, 2, True), (2, 3, False)],
)  # fmt: skip
def test_runs_are_packed_where_that_saves_more_than_half_of_all_columns(zeros: int, random: int, packs: bool) -> None:
    drawn = np.random.default_rng(1).integers(0, 256, 10_000 * random, np.uint8)
    columns = [pa.array(np.zeros(10_000 * zeros, np.uint8)), pa.array(drawn), pa.array([""] * 9), pa.array([1, None, 3])]
    assert _packs(columns) is packs


@pytest.mark.parametrize("first", [True, False])
def test_what_packing_saves_is_told_by_the_first_bytes(first: bool) -> None:
    parts = [np.zeros(TRIED, np.uint8), np.random.default_rng(1).integers(0, 256, 2 * TRIED, np.uint8)]
    assert _packs([pa.array(np.concatenate(parts if first else parts[::-1]))]) is first


@pytest.mark.parametrize("many", [1, 3, PAGE // LONG + 1])
@pytest.mark.parametrize(("more", "beside"), [(0, None), (1, None), (1, []), (1, [b"y", b"", None, b"y"])])
def test_bytes_are_entries_where_they_are_long_for_a_page_and_on_average_and_come_back_beside_short_ones(
    tmp_path: Path, many: int, more: int, beside: list[bytes | None] | None
) -> None:
    """Each value takes the four bytes of its offset too."""
    size = max(PAGE, LONG * many) - 4 * many + more
    values: list[bytes | None] = [b"x" * (size // many) for _ in range(many - 1)]
    values.append(b"z" * (size - size // many * (many - 1)))
    runs = [values] if beside is None else [values, beside]
    for number, held in enumerate(runs):
        payload = pa.RecordBatch.from_arrays([pa.array(held, pa.binary())], names=["bytes"])
        write_run(tmp_path / f"{number}.arrow", np.arange(len(held), dtype=np.int32), payload, np.zeros(len(held), np.int64))
    [found] = read_file_records([tmp_path / f"{number}.arrow" for number in range(len(runs))], 0, 1)[1]
    assert pa.types.is_dictionary(found.type) is (more > 0)
    assert (found.dictionary_decode() if more else found).equals(pa.array([one for held in runs for one in held], pa.binary()))
