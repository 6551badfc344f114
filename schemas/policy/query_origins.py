"""Where the columns of a query come from, as far as its text tells: whether one that is never published goes out under another name.

A query can call a column as it likes, and a policy goes by names. So each name that a query gives must be that of the column behind it,
wherever the policy's names could be meant: what makes a column of another one, or of whole rows, is refused, and what does not tell what
it makes columns of is refused, too. Conditions, joins, groups and orders publish no value and may name what they like.

What a table or a view of the database calls a column is believed, and so is what a function of the server does with text that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Syntax = Mapping[str, Any]
UNTOLD = "what could not be read as a SELECT statement"


class Origins(NamedTuple):
    """What is wrong with a query: the columns that go out under another name, and the constructs that do not tell, in words."""

    renamed: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


def origins(syntax: Syntax | None, banned: Callable[[Iterable[str]], list[str]]) -> Origins:
    """Returns what a query does with columns that are never published.

    Args:
        syntax: The statement as DuckDB's ``json_serialize_sql`` tells it; None where it cannot be read.
        banned: Returns those of some names that are never published.
    """
    if syntax is None or len(syntax.get("statements", ())) != 1:
        return Origins(untold=(UNTOLD,))
    reading = _Reading(banned, {name.casefold() for name in _table_names(syntax)})
    reading.read(syntax)
    return Origins(tuple(dict.fromkeys(reading.renamed)), tuple(dict.fromkeys(reading.untold)))


class _Reading:
    def __init__(self, banned: Callable[[Iterable[str]], list[str]], tables: set[str]):
        self.banned, self.tables = banned, tables
        self.renamed: list[str] = []
        self.untold: list[str] = []

    def read(self, syntax: Syntax) -> None:
        for part in _parts(syntax):
            kind = part.get("type")
            if kind == "SELECT_NODE":
                self._select(part["select_list"])
                self._table(part.get("from_table"))
            elif kind == "SET_OPERATION_NODE":
                self._union(part)
            elif isinstance(kind, str) and kind.endswith("_NODE"):
                self.untold.append("a recursive query")
            if part.get("aliases") and "query_node" in part:
                self.untold.append("a list of columns after the name of a subquery")

    def _select(self, items: list[Syntax]) -> None:
        for item in items:
            if item.get("class") == "COLUMN_REF":
                *path, name = item["column_names"]
                self._whole_row(item)
                self.renamed += self.banned(path)
                if item.get("alias", "").casefold() not in {"", name.casefold()}:
                    self.renamed += self.banned([name])
            elif item.get("class") == "STAR" and not any(item.get(key) for key in ("replace_list", "rename_list", "columns", "expr")):
                continue
            else:
                self._made_of(item)

    def _made_of(self, syntax: Any) -> None:
        """Looks at what makes a value: it may be made of no column that is never published."""
        for part in _parts(syntax):
            if part.get("class") == "COLUMN_REF":
                self._whole_row(part)
                self.renamed += self.banned(part["column_names"])
            elif part.get("class") == "STAR":
                self.untold.append("COLUMNS, or * with REPLACE or RENAME")

    def _whole_row(self, reference: Syntax) -> None:
        if len(reference["column_names"]) == 1 and reference["column_names"][0].casefold() in self.tables:
            self.untold.append("the name of a table in the place of a column")

    def _table(self, table: Syntax | None) -> None:
        if table is None:
            return
        if table.get("column_name_alias"):
            self.untold.append("a list of columns after the name of a table")
        match table.get("type"):
            case "JOIN":
                self._table(table["left"])
                self._table(table["right"])
            case "EXPRESSION_LIST":
                self._made_of(table["values"])
            case "BASE_TABLE" | "SUBQUERY" | "EMPTY":
                # What is in a subquery is met as a part.
                pass
            case _:
                self.untold.append("a function, PIVOT or UNPIVOT in the place of a table")

    def _union(self, node: Syntax) -> None:
        """Looks at what takes its names from its first part alone."""
        lists = [child.get("select_list") for child in node["children"]]
        if not all(lists) or any(item.get("class") == "STAR" for items in lists for item in items):
            self.untold.append("UNION, INTERSECT or EXCEPT of parts whose columns are not listed")
            return
        first, *others = ([_name(item) for item in items] for items in lists)
        for names in others:
            self.renamed += self.banned([name for own, name in zip(first, names, strict=False) if own.casefold() != name.casefold()])


def _name(item: Syntax) -> str:
    """Returns the name under which a listed expression goes out, as far as it has one."""
    return str(item.get("alias") or (item.get("column_names") or [""])[-1])


def _parts(syntax: Any) -> Iterator[Syntax]:
    """Yields all objects of a statement, the outer ones first."""
    if isinstance(syntax, Mapping):
        yield syntax
    for inner in syntax.values() if isinstance(syntax, Mapping) else syntax if isinstance(syntax, list) else ():
        yield from _parts(inner)


def _table_names(syntax: Syntax) -> Iterator[str]:
    for part in _parts(syntax):
        if "class" not in part and part.get("type") in {"BASE_TABLE", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "JOIN", "PIVOT"}:
            yield from (str(part[key]) for key in ("alias", "table_name") if part.get(key))
