"""What was tried and how it ended: a row for each kind of trial, a sentence for each failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts trials.

    Attributes:
        tried: Trials by part and kind.
        faults: What ended otherwise than it should, in sentences.
    """

    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, part: str, kind: str, fault: str = "", times: int = 1) -> None:
        """Count a trial, with what is wrong with its end, if anything is."""
        self.tried[part, kind] += times
        if fault:
            self.failed[part, kind] += 1
            self.faults.append(f"{part}, {kind}: {fault}")

    def total(self, part: str) -> int:
        """Return how many trials a part had."""
        return sum(times for (of, _), times in self.tried.items() if of == part)

    def table(self) -> str:
        """Return the rows as text, by part and kind."""
        lines = [f"{'part':<12}{'kind':<50}{'tried':>8}{'failed':>8}"]
        lines += [f"{part:<12}{kind:<50}{times:>8,}{self.failed[part, kind]:>8,}" for (part, kind), times in sorted(self.tried.items())]
        return "\n".join(lines)
