"""Small files share a chunk, and what was counted of a chunk stays of use whatever files come and go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tasks.source.chunks import Chunk, SourceFile
from tasks.source.sources import SHARED_FILES, SHARED_ROWS, chunks_of
from tasks.store.store import Store

ONE, OTHER = pa.schema([("a", pa.int64())]), pa.schema([("a", pa.string())])


def file(digest: str, *groups: int, name: str | None = None) -> SourceFile:
    return SourceFile(name=name or digest, path=Path(digest), digest=digest, stat=None, groups=groups)


def cut(folder: Path, files: Sequence[SourceFile], most: int = 100, schemas: Sequence[pa.Schema] = (), size: int = 10**9) -> list[Chunk]:
    return chunks_of(files, schemas or [ONE] * len(files), most, size, Store.at(folder))


def ranges(chunks: Sequence[Chunk]) -> list[tuple[str, int, int]]:
    return [(piece.file.name, piece.first, piece.rows) for chunk in chunks for piece in chunk.pieces]


days = st.lists(
    st.tuples(st.dictionaries(st.sampled_from("abcdefghijkl"), st.just(None), min_size=1), st.sampled_from([7, 20, 60, 100])),
    min_size=1,
    max_size=7,
)
SIZES = dict(zip("abcdefghijkl", (1, 3, 3, 5, 8, 8, 10, 20, 30, 30, 45, 90), strict=True))


@given(days=days)
def test_every_chunk_of_a_day_has_all_records_of_an_earlier_days_chunk_or_none(
    tmp_path_factory, days: list[tuple[dict[str, None], int]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    made: list[list[Chunk]] = []
    for names, most in days:
        made.append(cut(folder, [file(name, SIZES[name]) for name in sorted(names)], most))
    for number, ((names, most), chunks) in enumerate(zip(days, made, strict=True)):
        assert max(chunk.rows for chunk in chunks) <= most
        assert sorted(chain(*([name] * rows for name, _, rows in ranges(chunks)))) == sorted(chain(*([n] * SIZES[n] for n in names)))
        for earlier in (chunk for before in made[:number] for chunk in before):
            for chunk in chunks:
                # A file that is cut into ranges is a chunk of its own, of which another day may have cut other ranges.
                assert len(chunk.digests) == 1 or not chunk.digests & earlier.digests or chunk.digests <= earlier.digests


def test_files_that_are_new_are_read_with_one_another_and_old_chunks_stay(tmp_path: Path) -> None:
    old = [file(name, 10) for name in "bdf"]
    [chunk] = cut(tmp_path, old)
    later = cut(tmp_path, [file(name, 10) for name in "abcdefg"])
    assert chunk.key in [one.key for one in later]
    assert [sorted(one.digests) for one in later] == [["a", "c", "e", "g"], ["b", "d", "f"]]


def test_a_file_that_is_renamed_leaves_its_chunk_as_it_was(tmp_path: Path) -> None:
    [before] = cut(tmp_path, [file(name, 10) for name in "abc"])
    [after] = cut(tmp_path, [file("b", 10), file("c", 10), file("a", 10, name="moved")])
    assert after.key == before.key


def test_neither_large_files_nor_other_columns_nor_too_many_files_share_a_chunk(tmp_path: Path) -> None:
    assert len(cut(tmp_path / "large", [file("a", 50), file("b", 51), file("c", 50)])) == 2
    assert len(cut(tmp_path / "columns", [file("a", 1), file("b", 1), file("c", 1)], schemas=[ONE, OTHER, OTHER])) == 2
    assert len(cut(tmp_path / "many", [file(f"{number:05d}", 1) for number in range(SHARED_FILES + 1)], 10**6)) == 2
    wide = cut(tmp_path / "rows", [file(f"{number}", SHARED_ROWS // 2) for number in range(3)], 10**6)
    assert [chunk.rows for chunk in wide] == [SHARED_ROWS, SHARED_ROWS // 2]


def test_of_equal_files_one_shares_and_all_are_read(tmp_path: Path) -> None:
    chunks = cut(tmp_path, [file("a", 10), file("b", 10), file("a", 10, name="again"), file("empty")])
    assert ranges(chunks) == [("a", 0, 10), ("b", 0, 10), ("again", 0, 10)]
    assert [len(chunk.pieces) for chunk in chunks] == [2, 1]


def test_what_is_remembered_and_damaged_is_not_believed(tmp_path: Path) -> None:
    [chunk] = cut(tmp_path, [file(name, 10) for name in "ab"])
    memo = tmp_path / "artifacts" / "shares.json"
    memo.write_text(memo.read_text().replace('"a"', '"c"'))
    assert [one.key for one in cut(tmp_path, [file(name, 10) for name in "ab"])] == [chunk.key]
