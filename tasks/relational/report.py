"""The report of a release of several tables, as a function of its manifest."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from schemas.errors.base import counted
from schemas.relational.manifest import ReleasedTable, TablesManifest
from tasks.store.keys import code_of

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.3rem .7rem;text-align:right}"
    "th:first-child,td:first-child{text-align:left}"
)
LIMITS = (
    "k is of whole histories: whoever knows all rows of a person finds at least k persons with them.",
    "It is no differential privacy. Sensitive and untreated columns are no part of a history; l and t are of those that the job names.",
    "Pseudonyms are new in every release, so that keys join no two releases; releases of the same persons were not compared otherwise.",
)


def report_code_of_tables() -> str:
    """Returns the fingerprint of the code that makes the report."""
    return code_of(__name__)


def report_content(manifest: TablesManifest) -> dict[str, Any]:
    """Returns the report as JSON can say it: sentences, and the figures of the manifest that they are made of."""
    persons = manifest.persons
    left_out = persons.source - persons.released
    sentences = [
        f"{counted(persons.released, 'person')} of {persons.source:,} are published in {counted(len(manifest.tables), 'table')}; "
        f"{left_out:,} are left out with all their rows.",
        f"Every history is shared by at least {manifest.privacy['k']:,} persons: there are {manifest.histories:,} different ones, and the "
        f"one that fewest share is of {manifest.min_class:,}.",
        f"The joined tables were recounted from the written files. A person who is known by all rows is found with a chance of at most 1 "
        f"in {manifest.min_class:,}.",
        f"The levels are the best of {counted(manifest.search.get('nodes', 0), 'node')}: {manifest.optimal}.",
    ]
    sentences += [_rows_sentence(name, table) for name, table in manifest.tables.items() if name != manifest.unit]
    return {
        "release": manifest.release,
        "name": manifest.name,
        "unit": manifest.unit,
        "privacy": manifest.privacy,
        "sentences": sentences,
        "limits": list(LIMITS),
        "persons": persons.model_dump(),
        "histories": manifest.histories,
        "min_class": manifest.min_class,
        "tables": {name: table.model_dump() for name, table in manifest.tables.items()},
        "loss": manifest.loss.model_dump(),
    }


def _rows_sentence(name: str, table: ReleasedTable) -> str:
    return (
        f"'{name}': {counted(table.released, 'row')} of {table.records:,} are published, {table.withheld:,} withheld of persons who stay, "
        f"{table.suppressed:,} left out with their persons, {table.orphans:,} of nobody."
    )


def report_texts(manifest: TablesManifest) -> dict[str, str]:
    """Returns the two files of the report by name."""
    content = report_content(manifest)
    return {"report.html": _page(content), "report.json": json.dumps(content, indent=2) + "\n"}


def _page(content: dict[str, Any]) -> str:
    columns = ("records", "released", "withheld", "suppressed", "orphans")
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{''.join(f'<td>{table[column]:,}</td>' for column in columns)}"
        f"<td>{escape(', '.join(f'{qid} {level}' for qid, level in table['levels'].items()) or 'none')}</td>"
        f"<td>{content['loss']['by_table'].get(name, 0):.4f}</td></tr>"
        for name, table in content["tables"].items()
    )
    head = "".join(f"<th>{title}</th>" for title in ("table", *columns, "levels", "GCP"))
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in content["sentences"])
    limits = "".join(f"<li>{escape(sentence)}</li>" for sentence in content["limits"])
    title = escape(f"Release {content['release']}")
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title><style>{STYLE}</style></head>"
        f"<body><h1>{title}</h1>{paragraphs}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>Mean certainty penalty over all tables: {content['loss']['gcp']:.4f}.</p><h2>Limits</h2><ul>{limits}</ul></body></html>\n"
    )
