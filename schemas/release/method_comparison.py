"""Results of a comparison of methods, as in ``methods.json`` and ``methods.html``.

They hold figures and texts, and no cell value.
"""

from __future__ import annotations

from typing import Literal

from schemas.errors.base import PrivacyError, SkaldError
from schemas.reading.model import FrozenModel
from schemas.release.figures import RepeatedColumn

WRONG, REFUSED = SkaldError.exit_code, PrivacyError.exit_code


class Figures(FrozenModel):
    """Figures of one release of one method, counted in its files by the same code for all methods.

    Attributes:
        released: Records in classes, masked ones not among them; persons of a job of several tables.
        suppressed: Records that were dropped or masked; persons who were left out.
        classes: Published classes; histories.
        min_class: Size of the smallest, in the comparison's unit.
        gcp: Mean penalty of what is published for a value: range over range of numbers, values covered over values of others; 0 for a value
            itself, 1 for a suppressed record.
        dm: Σ over classes |E|² + s·N.
        c_avg: Records or persons per class in units of k.
        prosecutor_max: Highest risk of a record or person.
        prosecutor_mean: Mean risk of one.
        share_above: Share of them whose risk is above ``threshold``.
        cpu: Seconds, of the run's own process.
        peak: Bytes, of the same.
        wall: Seconds.
    """

    released: int
    suppressed: int
    classes: int
    min_class: int
    gcp: float
    dm: int
    c_avg: float
    prosecutor_max: float
    prosecutor_mean: float
    share_above: float
    cpu: float
    peak: int
    wall: float

    @property
    def records(self) -> int:
        """Number of records in the source, N; of persons, where a job has several tables."""
        return self.released + self.suppressed

    @property
    def share_in_classes(self) -> float:
        """Fraction of the records that are in classes."""
        return self.released / self.records


class MethodRun(FrozenModel):
    """One method at one k: its figures, or the reason of its failure with the exit code of ``skald run``."""

    method: str
    k: int
    figures: Figures | None = None
    failed: str | None = None
    code: int | None = None


class Advice(FrozenModel):
    """The recommended method at one k, with reasons.

    Attributes:
        k: Which.
        method: The recommended one; None where none could be run.
        verdict: Why.
        others: What every other method is better for, or why it is not recommended, a sentence each.
    """

    k: int
    method: str | None
    verdict: str
    others: tuple[str, ...]


class MethodComparison(FrozenModel):
    """A comparison of methods on the same job and data.

    Attributes:
        format: Version of this format.
        name: The job's name.
        inputs: Digest of the source files.
        tables: Names of the tables of a job of several, of which persons are counted and not records; else none.
        records: N.
        quasi_identifiers: In job order; ``table.column`` in other tables than that of the persons.
        promises: What every class keeps besides k, a sentence each.
        limit: Share of them that may be suppressed, as it is written.
        memory: The budget in bytes.
        threshold: The risk that ``share_above`` refers to.
        unit: What k counts: ``record`` or ``person``.
        repeats: Identifiers whose values repeat although no person is named.
        runs: By k, then in the order that was asked for.
        summary: The advice in one paragraph.
        advice: One per k.
        rules: How the advice is made, a sentence each.
        versions: Of what made it.
    """

    format: Literal[1] = 1
    name: str
    inputs: str
    tables: tuple[str, ...] = ()
    records: int
    quasi_identifiers: tuple[str, ...]
    promises: tuple[str, ...]
    limit: str
    memory: int
    threshold: float
    unit: Literal["record", "person"] = "record"
    repeats: dict[str, RepeatedColumn] = {}
    runs: tuple[MethodRun, ...]
    summary: str
    advice: tuple[Advice, ...]
    rules: tuple[str, ...]
    versions: dict[str, str]

    @property
    def exit_code(self) -> int:
        """Exit code of the comparison: 0 if any method ran, 3 if the promise refused every one, else 2."""
        if any(run.figures for run in self.runs):
            return 0
        return REFUSED if {run.code for run in self.runs} == {REFUSED} else WRONG

    @property
    def counts(self) -> Literal["record", "person"]:
        """What ``records`` counts, and what may be suppressed."""
        return "person" if self.tables else "record"

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the requested order."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    @property
    def ks(self) -> tuple[int, ...]:
        """Values of k, ascending."""
        return tuple(sorted({run.k for run in self.runs}))
