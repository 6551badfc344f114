"""What the batches of an Arrow file take is known before one is read, whatever the file says in front of its buffers."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from tasks.source.arrow_files import batch_sizes, convert_arrow
from tasks.source.batches import check_values
from tasks.source.unpacked import MOST_VALUE
from tasks.store.store import Store

ROWS = 1_000
TABLE = pa.table(
    {
        "number": list(range(ROWS)),
        "text": ["x" * 300] * ROWS,
        "kind": pa.array(["f", "m"] * (ROWS // 2)).dictionary_encode(),
        "nothing": pa.nulls(ROWS),
    }
)


def written(new: Any, codec: str | None, rows: int = ROWS) -> bytes:
    sink = BytesIO()
    with new(sink, TABLE.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(TABLE, max_chunksize=rows)
    return sink.getvalue()


@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_batches_take_what_arrow_makes_room_for(new: Any, codec: str | None) -> None:
    sizes = list(batch_sizes(BytesIO(written(new, codec, 300))))
    # The dictionary, and four batches of records.
    assert len(sizes) == 5
    plain = [batch.nbytes for batch in TABLE.select(["number", "text", "kind"]).to_batches(max_chunksize=300)]
    assert all(0.9 * size <= said <= 1.2 * size + 200 for said, size in zip(sizes[1:], plain, strict=True))


def test_a_batch_of_which_a_buffer_claims_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    content = bytearray(written(ipc.new_file, "zstd"))
    place = content.index((300 * ROWS).to_bytes(8, "little"))
    content[place : place + 8] = (1 << 43).to_bytes(8, "little")
    path = tmp_path / "in.arrow"
    path.write_bytes(content)
    with pytest.raises(ValuesError, match=r"A batch of 'in\.arrow' takes 8,796,0"):
        convert_arrow(path, "in.arrow", "digest", Store(tmp_path), 512_000_000)


def test_a_value_of_more_than_16_megabytes_is_refused_in_every_conversion(tmp_path: Path) -> None:
    for texts in (pa.array(["x" * (MOST_VALUE + 1)]), pa.array(["x" * (MOST_VALUE + 1)]).dictionary_encode()):
        with pytest.raises(ValuesError, match=r"'text' of 'in\.arrow' holds values of more than 16 MB"):
            check_values(pa.record_batch([texts], ["text"]), "in.arrow")
    check_values(pa.record_batch([pa.array(["x" * 6_000_000] * 3)], ["text"]), "in.arrow")


@given(place=st.integers(0, 2_000), junk=st.binary(min_size=1, max_size=12), new=st.sampled_from([ipc.new_file, ipc.new_stream]))
def test_whatever_stands_in_a_file_ends_in_sizes_or_is_refused(place: int, junk: bytes, new: Any) -> None:
    content = written(new, "zstd", 300)
    content = content[:place] + junk + content[place + len(junk) :]
    with suppress(ValueError):
        assert len(list(batch_sizes(BytesIO(content)))) < 100


def test_what_is_no_arrow_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.arrow").write_bytes(b"ARROW1\0\0" + b"\xff" * 200)
    with pytest.raises(SourceError, match="cannot be read as arrow"):
        convert_arrow(tmp_path / "in.arrow", "in.arrow", "digest", Store(tmp_path), 512_000_000)
