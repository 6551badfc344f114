"""Privacy models: given the classes of a recoding, which of them may not be published (one interface for all algorithms)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class PrivacyModel(Protocol):
    """Answers which classes fail; monotone: a union of classes is never worse than its worst part."""

    def fails(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns, in the shape (classes,), which classes of the given sizes fail."""
        ...


@dataclass(frozen=True)
class KAnonymity:
    """Every class has at least k records (Sweeney 2002; papers/skald.txt, II.A).

    Monotone: the size of a union is the sum of the sizes of its parts, so a union of classes of which one has k records has k.
    """

    k: int

    def fails(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which classes have fewer than k records."""
        return counts < self.k
