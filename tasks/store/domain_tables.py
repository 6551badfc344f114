"""Domain tables as artefacts: written in pieces and read column by column, since of millions of values a column has few of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.columns.domains import Counted, Domain, rows_of_axis, value_column
from schemas.errors.base import StorageError
from schemas.tables import TableSchema
from tasks.store.store import Artifact, Store
from tasks.store.tables import checked, opened_table


def write_domains(path: Path, blocks: Iterable[pa.Table], schema: TableSchema | pa.Schema, step: str) -> int:
    """Writes a domain table, at least one piece, and returns its number of rows.

    Args:
        path: Where to.
        blocks: Of which one is looked at and written at a time.
        schema: What each must satisfy, as of ``checked``.
        step: Names it in a message.

    Raises:
        StorageError: one does not, or does not go on where the one before it ended; names the checks, never a value.
    """
    rows, writer, last = 0, None, None
    try:
        for block in blocks:
            checked(block, schema, step)
            if last is not None and not _goes_on(last, block):
                raise StorageError.malformed(step, ["ascending"])
            writer = writer or opened_table(path, block.schema)
            writer.write_table(block)
            rows, last = rows + len(block), block
    finally:
        if writer:
            writer.close()
    return rows


def _goes_on(last: pa.Table, block: pa.Table) -> bool:
    """Tells whether a piece that is not the first one has values that come after those of the one before it."""
    if not len(last) or not len(block):
        return True
    before, position = last["qid"][-1].as_py(), block["qid"][0].as_py()
    if before != position:
        return bool(before < position)
    end, begin = last[value_column(position)][-1], block[value_column(position)][0]
    return end.is_valid and (not begin.is_valid or bool(pc.less(end, begin).as_py()))


def load_domains(store: Store, artifact: Artifact, names: Sequence[str]) -> tuple[Domain, ...]:
    """Reads a domain table, one ``Domain`` per column in the order of the job.

    Raises:
        StorageError: it is not what its step promises.
    """
    return tuple(axis.domain(name) for axis, name in zip(load_counted(store, artifact, len(names)), names, strict=True))


def load_counted(store: Store, artifact: Artifact, axes: int) -> list[Counted]:
    """Reads a domain table, which has so many columns of values, column by column.

    Raises:
        StorageError: it is not what its step promises.
    """
    try:
        with pa.OSFile(str(store.path(artifact))) as opened, pq.ParquetFile(opened) as file:
            if file.num_row_groups <= 1:
                table = file.read(use_threads=False)
                return [rows_of_axis(table, position) for position in range(axes)]
            held = [pc.min_max(file.read_row_group(group, ["qid"])["qid"]).as_py() for group in range(file.num_row_groups)]
            return [_rows_of(file, [(one["min"], one["max"]) for one in held], position) for position in range(axes)]
    except (pa.ArrowException, OSError):
        raise StorageError.malformed(artifact.step, ["not readable"]) from None


def _rows_of(file: pq.ParquetFile, held: Sequence[tuple[int, int]], position: int) -> Counted:
    """Returns the rows of a file that are of one column, given the first and the last column of each of its row groups."""
    groups = [number for number, (least, most) in enumerate(held) if least <= position <= most]
    wanted = ["qid", "count", value_column(position), *(["persons"] if "persons" in file.schema_arrow.names else [])]
    return rows_of_axis(file.read_row_groups(groups, wanted, use_threads=False), position)
