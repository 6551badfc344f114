"""How sensitive values are spread over classes where persons count: everybody counts once for each of their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.persons.visits import Counts, Visits
from core.privacy.models import Spread


def spread_of_people(visits: Visits, owners: NDArray[Any], values: Counts, whole: Counts) -> Spread:
    """Returns how the values of a sensitive column are spread over classes.

    Args:
        visits: To cells that tell the column's values apart.
        owners: Shape (cells,), the class of each cell.
        values: Shape (cells,), its value.
        whole: Shape (values,), persons of the whole source by value.
    """
    found, pairs = np.unique(owners.astype(np.int64) * len(whole) + values, return_inverse=True)
    counts = visits.count(pairs, len(found))
    kept = counts > 0
    return Spread(found[kept] // len(whole), found[kept] % len(whole), counts[kept], whole)
