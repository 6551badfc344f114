"""Text and questions of a drafted job of several tables, without cell values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from core.formats.concept_names import Role
from core.formats.proposals import Proposal
from schemas.errors.base import counted, listed
from schemas.reading.model import share_text
from schemas.relational.fitting import TableTree
from tasks.planning.draft import drafted_k
from tasks.planning.draft_text import Question, next_commands_sentence, normalise_words, obstacle_sentence, questions_of, yaml_name
from tasks.planning.open_sources import job_name

LIMIT, LIMIT_OF_ROWS = 0.02, 0.1
"""The shares of persons and rows that the job may leave out."""
ORPHANS = "May rows be left out that refer to rows that are not there?"


@dataclass
class DraftedTable:
    """One table of a drafted job: source, proposals, key, references and bound on rows.

    Attributes:
        name: The folder's name.
        source: What the job says under ``source``.
        relation: What DuckDB reads it as.
        proposals: A role for each column.
        unique: Columns without nulls in which no value repeats.
        key: The column that names a row; empty where none does.
        references: The table that each column refers to.
        orphans: Whether some values of a reference find no row.
        most_rows: How many rows of a person the job keeps; None where they are not bounded.
        rows_beyond: About how many rows that withholds.
    """

    name: str
    source: str
    relation: str
    proposals: list[Proposal]
    rows: int
    unique: list[str] = field(default_factory=list)
    key: str = ""
    references: dict[str, str] = field(default_factory=dict)
    orphans: bool = False
    most_rows: int | None = None
    rows_beyond: int = 0

    @property
    def bound_words(self) -> str:
        """What the bound on the rows of a person takes, in words; empty where there is none."""
        if self.most_rows is None:
            return ""
        share = share_text(self.rows_beyond / max(self.rows, 1), 0)
        return f"withholds about {self.rows_beyond:,} of {counted(self.rows, 'row')} ({share})"


@dataclass(frozen=True)
class DraftedTables:
    """A drafted job of several tables: the tables, their tree and written hierarchy files.

    Attributes:
        tables: In the order of the job, the unit first.
        tree: Which hangs from which.
        ladders: The hierarchy files that were written.
        accept: Whether questions are answered.
    """

    tables: tuple[DraftedTable, ...]
    tree: TableTree
    ladders: tuple[Path, ...]
    accept: bool = False

    @property
    def obstacle(self) -> str:
        """Why the job does not run yet, in a sentence; empty if it does."""
        persons = self.tables[0].rows
        return obstacle_sentence(persons, drafted_k(persons), "person", coarsened=has_known(self.tables))

    @property
    def questions(self) -> tuple[TableQuestion, ...]:
        """Questions that the user can answer and the data cannot, table by table."""
        return tuple(TableQuestion(table.name, *question) for table in self.tables for question in _questions_of(table))


class TableQuestion(NamedTuple):
    """A question of a draft about columns of a table, with the safest answer and its meaning.

    Attributes:
        table: Its name.
        question: In words.
        safest: The safest answer, which the draft has already: the role of these columns, or what ``orphans`` says.
        meaning: What that answer means.
    """

    table: str
    columns: tuple[str, ...]
    question: str
    safest: str
    meaning: str


def _questions_of(table: DraftedTable) -> list[Question]:
    """Return the questions about a table.

    They are of roles, but for key and references, and of rows that refer to nothing.
    """
    roles = [(one, drafted_role(table, one)) for one in table.proposals]
    asked = list(questions_of([replace(one, role=cast(Role, role)) for one, role in roles if role != "key"]))
    if table.orphans:
        asked.append(Question(tuple(table.references), ORPHANS, "drop", "they are left out and counted; 'refuse' ends the run"))
    return asked


def has_known(tables: Sequence[DraftedTable]) -> bool:
    """Return whether any table has a quasi-identifier."""
    return any(drafted_role(table, proposal) == "quasi_identifier" for table in tables for proposal in table.proposals)


def drafted_tables_text(drafted: DraftedTables, out: Path) -> str:
    """Return the YAML text of a drafted job of several tables, with comments."""
    tables = drafted.tables
    lines = [
        f"# A first job of {len(tables)} tables, drafted from names and counts.",
        f"# {drafted.obstacle or 'It runs as it is.'} Read every line all the same: a proposal is a guess.",
        f"# {next_commands_sentence(' '.join(out.name.split()))}",
        *_asked(drafted),
        "",
        "version: 2",
        f"name: {yaml_name(job_name(out))}",
        "tables:",
    ]
    for table in tables:
        lines += _table_lines(table, drafted)
    lines += [
        "",
        "# Every history, of all tables joined, is shared by at least k persons.",
        f"privacy: {{k: {drafted_k(tables[0].rows)}, knows: all}}",
        "# The share of persons who may be left out, and of the other tables' rows that may be withheld of those who stay.",
        f"suppression: {{limit: {LIMIT}, rows: {LIMIT_OF_ROWS}}}",
    ]
    if any(table.orphans for table in tables):
        lines += [
            f"# {_mark(drafted)}some rows refer to rows that are not there: refuse, or drop, which leaves them out and counts them.",
            "orphans: drop",
        ]
    return (
        "\n".join([*lines, "method: {name: skald, objective: gcp}", "memory: 1GB", f"target: {yaml_name('releases/' + job_name(out))}"])
        + "\n"
    )


def _asked(drafted: DraftedTables) -> list[str]:
    """Return the comment lines on a draft's questions, each with its safest answer."""
    lines = ["#", "# ACCEPTED, the safest answers:" if drafted.accept else "# DECIDE; meanwhile each has its safest answer:"]
    for number, one in enumerate(drafted.questions, 1):
        names = ", ".join(map(yaml_name, one.columns))
        lines.append(f"# {number}. {one.question} Safest: {one.safest}, {one.meaning}. {yaml_name(one.table)}: {names}")
    return lines if drafted.questions else []


def _mark(drafted: DraftedTables) -> str:
    return "accepted, " if drafted.accept else "DECIDE, "


def _because(proposal: Proposal, drafted: DraftedTables) -> str:
    """Return the reason for a column's role, marked if it is asked about."""
    return f"{_mark(drafted) if proposal.question else ''}{proposal.reason}"


def _table_lines(table: DraftedTable, drafted: DraftedTables) -> list[str]:
    is_unit = table.name == drafted.tree.unit
    lines = [f"  {yaml_name(table.name)}:{'  # the unit: a row for each person' if is_unit else ''}", f"    source: {table.source}"]
    lines += [f"    key: {yaml_name(table.key)}"] if table.key else []
    if table.references:
        shown = ", ".join(f"{yaml_name(column)}: {yaml_name(other)}" for column, other in table.references.items())
        lines.append(f"    references: {{{shown}}}  # by their names and values")
    if not is_unit:
        bounded = f"rows: {{most: {table.most_rows}}}" if table.most_rows else "# rows: {most: 20}"
        taken = f"; {table.bound_words}" if table.most_rows else ""
        lines.append(f"    {bounded}  # bounds the rows of a person: many rows set people apart{taken}")
    coarsened, named, guarded, others, kept_back = (
        [one for one in table.proposals if drafted_role(table, one) == role]
        for role in ("quasi_identifier", "identifier", "sensitive", "insensitive", "withheld")
    )
    lines.append("    columns:")
    lines += [f"      identifiers: {_names(named)}"]
    lines += [f"      withheld:{'' if kept_back else ' []'}"]
    lines += [f"        - {yaml_name(one.profile.name)}  # {_because(one, drafted)}" for one in kept_back]
    lines += [f"      quasi_identifiers:{'' if coarsened else ' []'}"]
    for one in coarsened:
        why = "; ".join(part for part in (_because(one, drafted), one.hint) if part)
        lines.append(
            f"        - {{name: {yaml_name(one.profile.name)}, hierarchy: {one.hierarchy}{normalise_words(one.normalise)}}}  # {why}"
        )
    published = [_published_lines(role, some, drafted) for role, some in (("sensitive", guarded), ("insensitive", others))]
    return [*lines, *published[0], *published[1]]


def _published_lines(role: str, proposals: Sequence[Proposal], drafted: DraftedTables) -> list[str]:
    """Return the YAML lines of the published columns of one role, each with its proposed treatment."""
    if not proposals:
        return [f"      {role}: []"]
    lines = [f"      {role}:  # every value is that of at least k persons (shared), others on a grid, 'other' or withheld"]
    for one in proposals:
        name = yaml_name(one.profile.name)
        entry = name if one.publish_setting is None else f"{{name: {name}, publish: {one.publish_setting}}}"
        lines.append(f"        - {entry}  # {_because(one, drafted)}")
    return lines


def drafted_role(table: DraftedTable, proposal: Proposal) -> str:
    """Return the role of a column in the drafted job."""
    if proposal.profile.name in {table.key, *table.references}:
        return "key"
    if proposal.role == "quasi_identifier" and proposal.hierarchy:
        return "quasi_identifier"
    if proposal.role in {"identifier", "key"}:
        return "identifier"
    if proposal.role in {"insensitive", "weight"}:
        return "insensitive"
    return "sensitive" if proposal.role == "sensitive" else "withheld"


def draft_content(drafted: DraftedTables, out: Path) -> dict[str, object]:
    """Return the draft as JSON-compatible values: keys, references, roles and questions."""
    tables: dict[str, dict[str, Any]] = {
        table.name: {
            "key": table.key or None,
            "references": table.references,
            "rows": table.rows,
            "most_rows": table.most_rows,
            "rows_beyond": table.rows_beyond,
            "columns": [
                {"name": one.profile.name, "role": role, "confidence": one.confidence, "because": one.reason}
                | ({"publish": one.publish_setting} if one.publish_setting and role in {"sensitive", "insensitive"} else {})
                for one in table.proposals
                for role in [drafted_role(table, one)]
            ],
        }
        for table in drafted.tables
    }
    questions = [
        {"table": one.table, "columns": list(one.columns), "question": one.question, "safest": one.safest} for one in drafted.questions
    ]
    columns = [{"table": name} | one for name, table in tables.items() for one in table["columns"]]
    return {"unit": drafted.tree.unit, "tables": tables, "columns": columns, "questions": questions, "job": str(out)}


def _names(proposals: Sequence[Proposal]) -> str:
    return f"[{', '.join(yaml_name(one.profile.name) for one in proposals)}]"


def drafted_table_sentences(drafted: DraftedTables) -> Mapping[str, str]:
    """Return by table a phrase on it: the unit or what it refers to, its key and number of rows."""
    found = {}
    for table in drafted.tables:
        role = "the unit" if table.name == drafted.tree.unit else f"refers to {listed(table.references.values())}"
        taken = f"; rows: {{most: {table.most_rows}}} {table.bound_words}" if table.most_rows else ""
        found[table.name] = f"{role}, key {table.key or 'none'}, {counted(table.rows, 'row')} looked at{taken}"
    return found
