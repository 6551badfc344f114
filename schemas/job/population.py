"""The population that the people of a source were drawn from: what the risk of a release is measured against besides the source itself."""

from typing import Any, ClassVar

from schemas.job.source import Paths
from schemas.reading.model import StrictModel


class Population(StrictModel):
    """A table of the population, a row a person, such as a register or a census."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"path"})
    path: Paths
    """Parquet files: a path or pattern relative to the job file, or a list of them. They have the quasi-identifiers under the names and in
    the types that the source has; other columns are not read."""

    def canonical(self) -> dict[str, Any]:
        """Returns nothing but that there is one: no byte of the data depends on it."""
        return {}
