"""What ``skald utility`` shows, as Rich tables."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from tasks.utility.utility import Utility


def utility_summary(utility: Utility) -> RenderableType:
    """Returns the figures of a release's utility as two tables."""
    columns = Table("quasi-identifier", "generalised (NCP)", "marginal moved (total variation)", box=None, header_style="bold")
    for qid, figures in utility.columns.items():
        columns.add_row(qid, f"{figures.generalised:.4f}", f"{figures.marginal:.4f}")
    facts = Table(box=None, show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    suppressed = "" if utility.suppressed is None else f", {utility.suppressed:,} suppressed"
    facts.add_row("records", f"{utility.released:,} of {utility.records:,} in the files{suppressed}")
    asked = utility.queries
    facts.add_row(
        "count queries",
        f"relative error: median {asked.median:.4f}, mean {asked.mean:.4f} of {asked.queries:,} queries"
        f" (range and category, seed {asked.seed})",
    )
    if told := utility.classifier:
        facts.add_row(
            f"'{told.target}' told",
            f"rightly for {told.release:.2%} of the records from the release, {told.source:.2%} from the source, "
            f"{told.majority:.2%} from nothing",
        )
    return Group(columns, "", facts)
