"""Made-up tables of a wanted shape, and the job that anonymises them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import yaml

BATCH = 500_000
SIZES = (16, 40, 100, 8, 4, 24, 60, 12, 2, 32, 6, 50, 20, 10, 80)
"""Values of each quasi-identifier of numbers."""
CONDITIONS = [f"condition {number}" for number in range(12)]
Compression = Literal["none", "snappy", "zstd", "gzip"]


@dataclass(frozen=True)
class Shape:
    """A table.

    Attributes:
        rows: Its records.
        qids: Quasi-identifiers.
        values: Different values of the first, about; None for a small column as the others are.
        text: Whether the first holds text.
        nulls: Share of nulls in every quasi-identifier.
        kind: What files it lies in.
        compression: Of Parquet files.
    """

    rows: int = 200_000
    qids: int = 6
    values: int | None = None
    text: bool = False
    nulls: float = 0.0
    kind: Literal["parquet", "csv"] = "parquet"
    compression: Compression = "zstd"

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"table.{self.kind}"

    def write(self, folder: Path) -> Path:
        """Write the file, the same for the same shape."""
        path, random = folder / self.name, np.random.default_rng(7)
        if self.kind == "csv":
            pyarrow.csv.write_csv(pa.concat_tables(self._batch(random, first) for first in range(0, self.rows, BATCH)), path)
            return path
        batches = (self._batch(random, first) for first in range(0, self.rows, BATCH))
        table = next(batches)
        with pq.ParquetWriter(path, table.schema, compression=self.compression) as writer:
            for batch in chain([table], batches):
                writer.write_table(batch)
        return path

    def job(self) -> dict[str, Any]:
        """Return a job that anonymises it; k = 10, one record in a hundred may be suppressed."""
        return {
            "version": 1,
            "name": "cliff",
            "source": {"path": self.name} | ({"format": "csv", "types": self._types()} if self.kind == "csv" else {}),
            "columns": {
                "quasi_identifiers": [{"name": f"q{qid}", "hierarchy": self._hierarchy(qid)} for qid in range(self.qids)],
                "sensitive": ["condition"],
            },
            "privacy": {"k": 10},
            "suppression": {"limit": 0.01},
            "method": {"name": "skald"},
            "memory": "1GB",
            "target": "releases",
        }

    def _types(self) -> dict[str, str]:
        return {f"q{qid}": "integer" for qid in range(self.qids) if qid or not self.text}

    def _hierarchy(self, qid: int) -> dict[str, Any]:
        if qid == 0 and self.text:
            return {"prefix": [6, 4, 2]}
        size = self._size(qid)
        finest = max(size // 50, 2)
        return {"widths": [finest] + [finest * times for times in (5, 20) if finest * times < size]}

    def _size(self, qid: int) -> int:
        return self.values or SIZES[0] if qid == 0 else SIZES[qid % len(SIZES)]

    def _batch(self, random: np.random.Generator, first: int) -> pa.Table:
        rows = min(BATCH, self.rows - first)
        columns: dict[str, pa.Array] = {}
        for qid in range(self.qids):
            # The lesser of two throws: some values are far rarer than others.
            drawn = random.integers(0, self._size(qid), (2, rows)).min(axis=0)
            array = pa.array(np.char.zfill(drawn.astype(str), 8) if qid == 0 and self.text else drawn)
            columns[f"q{qid}"] = pc.if_else(random.random(rows) < self.nulls, None, array) if self.nulls else array
        columns["condition"] = pa.array(np.array(CONDITIONS)[random.integers(0, len(CONDITIONS), rows)])
        return pa.table(columns)


def prepare(folder: Path, shape: Shape, settings: dict[str, Any]) -> Path:
    """Write a table and its job into a folder.

    Args:
        folder: An empty folder.
        shape: The table.
        settings: What replaces parts of the job, by the path of a setting: ``{"privacy.k": 50}``.

    Returns:
        The file of the table.
    """
    job = shape.job()
    for path, value in settings.items():
        *parents, last = path.split(".")
        part = job
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = value
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return shape.write(folder)
