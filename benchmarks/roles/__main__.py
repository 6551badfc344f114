"""Which share of columns gets an acceptable role, and how much of the information is published.

Run it with ``python -m benchmarks.roles``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from benchmarks.roles.schemas import SCHEMAS, Labelled, labelled
from benchmarks.roles.values import made_table
from core.formats.proposals import Proposal
from core.recoding.publishing import CountedValues, published_values
from tasks.planning.draft import DraftedJob, draft_job
from tasks.planning.open_sources import SourceOptions
from tasks.source.published_columns import comparable_values

LETTERS = {
    "I": "identifier",
    "K": "key",
    "Q": "quasi_identifier",
    "S": "sensitive",
    "N": "insensitive",
    "W": "withheld",
    "G": "weight",
}
PUBLISHED = set("QSNG")
K = 12


class Judged(NamedTuple):
    """What came of a table.

    Attributes:
        columns, acceptable: How many there are, and have an acceptable role.
        asked, questions: Columns that are asked about, and questions.
        named: Identifiers that would be published.
        information: Share of the information of publishable columns that is published.
        wrong: Columns with another role, as ``column: role``.
    """

    columns: int
    acceptable: int
    asked: int
    questions: int
    named: int
    information: float
    wrong: list[str]


def judge(columns: list[Labelled], table: pa.Table) -> Judged:
    """Draft a job for a table and holds the roles against the labels."""
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder) / "table.parquet")
        drafted = draft_job(SourceOptions((str(Path(folder) / "table.parquet"),)), Path(folder) / "job.yaml")
    found = {one.profile.name: one for one in drafted.proposals}
    wrong, named, shares = [], 0, []
    for column in columns:
        one = found[column.name]
        accepted = {LETTERS[letter] for letter in column.roles}
        if one.role not in accepted:
            wrong.append(f"{column.name}: {one.role}")
        named += (
            not PUBLISHED & set(column.roles)
            and (one.publish_setting is not None or one.role == "quasi_identifier")
            and column.roles[0] in "IK"
        )
        if column.roles[0] in PUBLISHED:
            shares.append(_information(one, drafted, table[column.name].combine_chunks()))
    asked = sum(one.question is not None for one in drafted.proposals)
    information = float(np.mean(shares)) if shares else 0.0
    return Judged(len(columns), len(columns) - len(wrong), asked, len(drafted.questions), named, information, wrong)


def _information(one: Proposal, drafted: DraftedJob, column: pa.Array) -> float:
    """Return how much of a column is published, from 0 to 1.

    Of quasi-identifiers it is 1 - GCP, of numbers 1 - error / deviation, of texts what is kept.
    """
    if one.role == "quasi_identifier":
        return 1 - (drafted.gcp if drafted.gcp is not None else 1.0)
    if one.publish_setting is None:
        # What repeats a quasi-identifier is published with that.
        return 1 - (drafted.gcp or 0.0) if one.reason.startswith("repeats") else 0.0
    values = pc.value_counts(column.drop_null())
    counts = values.field("counts").to_numpy()
    order = pc.sort_indices(values.field("values"))
    people, distinct = counts[order.to_numpy()], values.field("values").take(order)
    least = np.where(people < K, people, 0)
    counted = CountedValues(distinct, people, least, people, column.null_count, int(least.sum()))
    published = published_values(counted, "shared", K).apply(column)
    if pt.is_string(column.type) or pt.is_boolean(column.type):
        return float(pc.mean(pc.fill_null(pc.equal(published, column), False).cast(pa.float64())).as_py())
    given, made = (pc.cast(comparable_values(each), pa.float64()).to_numpy(zero_copy_only=False) for each in (column, published))
    apart = np.nanmean(np.abs(given - np.nanmedian(given)))
    lost = np.where(np.isnan(made), apart, np.abs(given - made))
    return float(max(1 - np.nanmean(lost) / apart, 0.0)) if apart else 1.0


def main() -> None:
    """Print a line for each table, and the shares of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--only", nargs="*", default=sorted(SCHEMAS))
    asked = parser.parse_args()
    every: list[Judged] = []
    print("| table | columns | acceptable | asked | questions | identifiers published | information | otherwise |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in asked.only:
        columns = labelled(name)
        one = judge(columns, made_table(columns, asked.rows, len(name)))
        every.append(one)
        share = f"{one.acceptable / one.columns:.0%}"
        figures = f"{one.columns} | {share} | {one.asked} | {one.questions} | {one.named} | {one.information:.2f}"
        print(f"| {name} | {figures} | {'; '.join(one.wrong)} |", flush=True)
    total, acceptable = (sum(getattr(one, name) for one in every) for name in ("columns", "acceptable"))
    named, information = sum(one.named for one in every), float(np.mean([one.information for one in every]))
    print(f"\n{acceptable / total:.1%} of {total} columns have an acceptable role, {named} identifiers are published.")
    print(f"{information:.0%} of the information of the other columns is published, as a mean of tables.")


if __name__ == "__main__":
    main()
