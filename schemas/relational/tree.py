"""Tree of a job's tables: one table is the unit, and references lead all others to it.

See DESIGN.md, section 13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.errors.base import counted, listed, nearest


@dataclass(frozen=True)
class TableTree:
    """The unit's table, and the chain of references of every other table.

    Attributes:
        unit: The table with a row for each person.
        chains: Of every table the tables from the unit down to the one that it hangs from, parents first; empty for the unit.
    """

    unit: str
    chains: Mapping[str, tuple[str, ...]]

    @property
    def tables(self) -> list[str]:
        """Names of all tables, each after the tables that it references."""
        return list(self.chains)

    def branch_of(self, table: str) -> str:
        """Return the child of the unit (the table of persons) above a table, or the table if it is that child."""
        return (*self.chains[table], table)[1]

    @property
    def branches(self) -> list[str]:
        """Names of the child tables of the unit (the table of persons), one per branch of the tree."""
        return [table for table, chain in self.chains.items() if len(chain) == 1]

    def branch_tables(self, branch: str) -> list[str]:
        """Return all tables of a branch, from the unit's child table down, parents first."""
        return [table for table in self.chains if table != self.unit and self.branch_of(table) == branch]

    def tables_below(self, table: str) -> list[str]:
        """Return the tables whose rows reference a table, directly or through other tables."""
        return [other for other, chain in self.chains.items() if table in chain]


def tree_of(references: Mapping[str, Sequence[str]]) -> tuple[TableTree | None, list[str]]:
    """Return the tree of tables and no fault, or None and a message for each fault.

    Args:
        references: The tables that each table refers to, one for each of its references.
    """
    faults = _reference_faults(references)
    units = [table for table, referred in references.items() if not referred]
    if not units:
        faults.append("tables: every table refers to another, and one must be the unit, with a row for each person and no reference")
    if len(units) > 1:
        faults.append(
            f"tables: {listed(units)} refer to no other table, and one alone can be the unit; give the others a reference, "
            "or join tables of codes to the tables that use them first"
        )
    if faults:
        return None, faults
    chains: dict[str, tuple[str, ...]] = {units[0]: ()}
    while len(chains) < len(references):
        ready = [table for table in references if table not in chains and set(references[table]) <= chains.keys()]
        if not ready:
            circle = [table for table in references if table not in chains]
            return None, [f"tables: the references of {listed(circle)} lead in a circle; every table must hang from the unit"]
        for table in ready:
            deepest = max(references[table], key=lambda one: len(chains[one]))
            chain = (*chains[deepest], deepest)
            if others := [one for one in references[table] if one not in chain]:
                faults.append(
                    f"tables.{table}: refers to {listed([deepest, *others])}, of which none hangs from the other; keep one way to the unit"
                )
            chains[table] = chain
    return (None, faults) if faults else (TableTree(units[0], chains), [])


def _reference_faults(references: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the faults of references between tables."""
    faults = []
    for table, referred in references.items():
        for other in dict.fromkeys(referred):
            if other not in references:
                faults.append(f"tables.{table}.references: there is no table '{other}'{nearest(other, references)}")
            elif other == table:
                faults.append(f"tables.{table}.references: the table refers to itself, which is a circle; leave that reference out")
            elif (times := list(referred).count(other)) > 1:
                faults.append(
                    f"tables.{table}.references: has {counted(times, 'reference')} to '{other}', so that a row would be of several persons "
                    "(a transfer, say); make a row for each"
                )
    return faults
