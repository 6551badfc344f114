"""Format of a release's data files: Parquet, partitioned Parquet, CSV or a DuckDB table."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from schemas.errors.base import listed, nearest
from schemas.job.columns import ColumnNames
from schemas.reading.model import Character, StrictModel, fault


class Output(StrictModel):
    """File format of the released records.

    The content of the records does not depend on it.
    """

    format: Literal["parquet", "csv", "duckdb"] = "parquet"
    """Files of Parquet, files of CSV that run no formula in a spreadsheet, or the table `release` of one DuckDB file."""
    partition_by: ColumnNames = Field(default_factory=list)
    """Published quasi-identifiers whose values become folders (region=North), as Hive and Spark read them; Parquet only."""
    delimiter: Character = ","
    """What separates the fields of CSV."""
    bom: bool = True
    """Whether CSV begins with the mark by which Excel knows UTF-8."""

    @model_validator(mode="after")
    def _keys_fit_the_format(self) -> Self:
        """Check that the output settings fit the format."""
        faults = []
        if self.partition_by and self.format != "parquet":
            faults.append(f"partition_by only fits Parquet, but the format is {self.format}; remove one of them")
        if len(set(self.partition_by)) < len(self.partition_by):
            faults.append("partition_by lists a column twice; list it once")
        # By value and not by what is written: to spell a default out is to ask for nothing.
        given = [key for key, left_out in (("delimiter", ","), ("bom", True)) if getattr(self, key) != left_out]
        if given and self.format != "csv":
            faults.append(f"{listed(given)} only fit CSV, but the format is {self.format}; remove them or say format: csv")
        if self.delimiter in "\"'=+-@":
            faults.append("delimiter must not be a quote or a character that begins a formula; use a comma, a semicolon or a tab")
        if faults:
            raise fault(*faults)
        return self

    def canonical(self) -> dict[str, Any]:
        """Return the output settings as JSON data; empty for the default settings."""
        return {} if self == Output() else super().canonical()


def published_names(qids: object, as_bounds: bool) -> list[str]:
    """Return the published column names of quasi-identifiers, validated or raw.

    With ``as_bounds``, a column in widths is published as two columns, ``_low`` and ``_high``.
    """
    found: list[str] = []
    for qid in qids if isinstance(qids, list) else []:
        given = qid if isinstance(qid, Mapping) else vars(qid) if hasattr(qid, "hierarchy") else {}
        name, hierarchy = given.get("name"), given.get("hierarchy")
        widths = "widths" in hierarchy if isinstance(hierarchy, Mapping) else hasattr(hierarchy, "widths")
        if isinstance(name, str):
            found += [f"{name}_low", f"{name}_high"] if as_bounds and widths else [name]
    return found


def partition_faults(columns: list[str], published: list[str], others: list[str]) -> list[str]:
    """Return a message for each column of ``partition_by`` that cannot name folders.

    Every person who can list files can read the values in folder names.

    Args:
        columns: What ``partition_by`` names.
        published: The columns under which the quasi-identifiers are published.
        others: All other columns with a role.
    """
    faults = []
    for name in columns:
        if name in others:
            faults.append(
                f"output.partition_by: column '{name}' is no quasi-identifier; its values would stand in folder names, where only "
                "published quasi-identifiers may"
            )
        elif name not in published:
            faults.append(f"output.partition_by: '{name}' is not published{nearest(name, published)}; known are {listed(published)}")
    if len(published) <= len(set(columns)):
        faults.append("output.partition_by: at least one quasi-identifier must stay in the files")
    return faults
