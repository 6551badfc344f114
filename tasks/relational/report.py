"""Report of a release of several tables, made from its manifest alone."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from schemas.errors.base import counted, printable, verb_of
from schemas.job.identifiers import ColumnPublication, treatment_sentence
from schemas.reading.model import share_text
from schemas.relational.manifest import ReleasedTable, TablesManifest
from schemas.relational.table_jobs import joined_column_name
from schemas.release.figures import (
    passthrough_warnings,
    reason_of_combinations,
    reason_of_identifying_columns,
    stated_count_text,
    together_warning,
)
from tasks.store.keys import code_of

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.3rem .7rem;text-align:right}"
    "th:first-child,td:first-child{text-align:left}h1,p,li{overflow-wrap:anywhere}.table{overflow-x:auto}"
)
BROKEN = "Warning: an attack breaks this release."
"""How the sentence on an attack ends that won more than the job accepts."""
VIEWPORT = "<meta name='viewport' content='width=device-width,initial-scale=1'>"
LIMITS = (
    "k is against whoever knows no more rows than is said: in insensitive and sensitive columns a person may be found all the same.",
    "It is no differential privacy. Sensitive and untreated columns are no part of a history; l and t are of those that the job names.",
    "What others published of the same persons is not known, nor what later releases will tell together with this one.",
)


def report_code_of_tables() -> str:
    """Return the fingerprint of the code that makes the report of several tables."""
    return code_of(__name__)


def report_content(manifest: TablesManifest) -> dict[str, Any]:
    """Return the report of several tables as JSON-compatible values: sentences and manifest figures."""
    persons = manifest.persons
    sentences = [
        *_untreated_warnings(manifest),
        _persons_sentence(manifest),
        *_promise_sentences(manifest),
        _method_sentence(manifest),
    ]
    sentences += [_rows_sentence(name, table, manifest.privacy["k"]) for name, table in manifest.tables.items() if name != manifest.unit]
    sentences += [
        _published_sentence(table, name, one, manifest.privacy["k"])
        for table, columns in manifest.published.items()
        for name, one in columns.items()
    ]
    sentences += [*_untreated_sentences(manifest), *_key_sentences(manifest), *_earlier_sentences(manifest), *_attack_sentences(manifest)]
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
        "passthrough_together": manifest.passthrough_together and manifest.passthrough_together.model_dump(),
        "sensitive_together": manifest.sensitive_together and manifest.sensitive_together.model_dump(),
        "published": {
            table: {name: one.model_dump(mode="json") for name, one in columns.items()} for table, columns in manifest.published.items()
        },
        "overlaps": None if manifest.overlaps is None else [one.model_dump(mode="json") for one in manifest.overlaps],
        "joined": None if manifest.joined is None else [one.model_dump(mode="json") for one in manifest.joined],
        "attacks": [one.model_dump(mode="json") for one in manifest.attacks],
    }


def _persons_sentence(manifest: TablesManifest) -> str:
    source, released = manifest.persons.source, manifest.persons.released
    if source is None:
        few = f"Fewer than k = {manifest.privacy['k']:,} are left out with all their rows."
        return f"{counted(released, 'person')} {verb_of(released, 'are')} published in {counted(len(manifest.tables), 'table')}. {few}"
    return (
        f"{counted(released, 'person')} of {source:,} {verb_of(released, 'are')} published in {counted(len(manifest.tables), 'table')}; "
        f"{source - released:,} {verb_of(source - released, 'are')} left out with all their rows."
    )


def _method_sentence(manifest: TablesManifest) -> str:
    if manifest.method == "mondrian":
        return "Mondrian made classes of persons. In each, rows are aligned; rows without partner are withheld."
    return f"The levels are the best of {counted(manifest.search.get('nodes', 0), 'node')}: {manifest.optimal}."


def _promise_sentences(manifest: TablesManifest) -> list[str]:
    least, knows = counted(manifest.privacy["k"], "person"), manifest.privacy.get("knows")
    if isinstance(knows, dict):
        rows = counted(int(knows["rows"]), "row")
        return [
            f"Every choice of at most {rows} of each table right below the persons is of at least {least} with the same labels; "
            f"the one that fewest share is of {manifest.min_class:,}. Every choice was counted.",
            _recounted_sentence(
                manifest,
                f"Whoever knows at most {rows} of a person, and not how many there are, finds the person with a chance of at most 1 in "
                f"{manifest.min_class:,}; whoever knows all rows may find the person.",
            ),
        ]
    return [
        f"Every history is shared by at least {least}: {manifest.histories:,} {verb_of(manifest.histories, 'are')} different, and the one "
        f"that fewest share is of {manifest.min_class:,}.",
        _recounted_sentence(manifest, f"A person who is known by all rows is found with a chance of at most 1 in {manifest.min_class:,}."),
    ]


def _recounted_sentence(manifest: TablesManifest, claim: str) -> str:
    """Return what was recounted, with the claim of a maximum risk or why there is none."""
    return f"The joined tables were recounted from the written files. {_reason_without_claim(manifest) or claim}"


def _reason_without_claim(manifest: TablesManifest) -> str:
    """Return why a release claims no maximum risk because of untreated columns; empty if it may claim one."""
    k = manifest.privacy["k"]
    told = reason_of_combinations(manifest.passthrough_together, k, is_accepted=False, has_untreated_columns=False)
    columns = {
        joined_column_name(manifest.unit, table, name): column
        for table, one in manifest.tables.items()
        for name, column in one.passthrough.items()
    }
    return told or reason_of_identifying_columns(columns)


def _untreated_warnings(manifest: TablesManifest) -> list[str]:
    """Return the warning that people stand out by untreated columns of all tables together, if they do."""
    said = together_warning(manifest.passthrough_together, manifest.privacy["k"], is_accepted=False, may_accept=False)
    return [f"Warning: {said}"] if said else []


def _untreated_sentences(manifest: TablesManifest) -> list[str]:
    """Return sentences on untreated columns: each, those that look identifying, and all together."""
    told, k = list[str](), manifest.privacy["k"]
    for table, one in manifest.tables.items():
        for name, column in one.passthrough.items():
            told.append(
                f"'{name}' of '{table}' is published as it is: {counted(column.distinct, 'value')}, "
                f"{counted(column.unique_records, 'record')} and {stated_count_text(column.unique_persons, k, 'person')} alone with theirs."
            )
        told += [f"Warning of '{table}': {sentence}" for sentence in passthrough_warnings(one.passthrough)]
        told += [f"'{table}', row by row: {sentence}" for sentence in _together_sentences(one, k)]
    # Who stands out by untreated columns of all tables is warned of, and not said again.
    warned = manifest.passthrough_together is not None and bool(manifest.passthrough_together.below_k)
    return [*told, *(f"All tables: {sentence}" for sentence in _together_sentences(manifest, k, without_untreated=warned))]


def _together_sentences(counted_in: ReleasedTable | TablesManifest, k: int, *, without_untreated: bool = False) -> list[str]:
    """Return sentences on who stands out by untreated columns and by sensitive ones."""
    untreated, sensitive = None if without_untreated else counted_in.passthrough_together, counted_in.sensitive_together
    return [*([untreated.sentence("insensitive", k)] if untreated else []), *([sensitive.sentence("sensitive", k)] if sensitive else [])]


def _orphans_text(orphans: int | None, k: int) -> str:
    return f"fewer than {k:,}" if orphans is None else f"{orphans:,}"


def _rows_sentence(name: str, table: ReleasedTable, k: int) -> str:
    nobody = f"{_orphans_text(table.orphans, k)} of nobody"
    if table.withheld is None:
        few = "How many are withheld of persons who stay or left out with theirs is not stated, because few persons lost some."
        return f"'{name}': {counted(table.released, 'row')} {verb_of(table.released, 'are')} published, {nobody}. {few}"
    kept = f"{table.withheld:,} withheld of persons who stay"
    if table.suppressed is None:
        few = "How many are left out with their persons is not stated, because these are few."
        return f"'{name}': {counted(table.released, 'row')} {verb_of(table.released, 'are')} published, {kept}, {nobody}. {few}"
    of = "" if table.records is None else f" of {table.records:,}"
    left_out = f"{table.suppressed:,} left out with their persons"
    return f"'{name}': {counted(table.released, 'row')}{of} {verb_of(table.released, 'are')} published, {kept}, {left_out}, {nobody}."


def _published_sentence(table: str, name: str, one: ColumnPublication, k: int) -> str:
    error = "" if one.error is None else f", with a mean absolute error of {one.error:,g}"
    way, changed = treatment_sentence(one.publish, k), share_text(one.changed)
    return f"'{name}' of '{table}' is published {way}. {changed} of its values stand for others too{error}. {one.nulls_text}."


def _key_sentences(manifest: TablesManifest) -> list[str]:
    if not manifest.pseudonyms:
        return ["Pseudonyms are new in this release, so that keys join it to no other."]
    return [
        f"'{column}' is published by {words}. Releases with the same key or vault can be joined by it."
        for column, words in manifest.pseudonyms.items()
    ]


def _earlier_sentences(manifest: TablesManifest) -> list[str]:
    """Return a sentence for each earlier release of the same persons: what both releases reveal together."""
    if manifest.overlaps is None:
        return ["Earlier releases were not looked for."]
    if not manifest.compositions and not manifest.unmeasured_overlaps:
        return ["No earlier release of the same persons was found."]
    found = [one.sentence() for one in manifest.compositions]
    if manifest.unmeasured_overlaps:
        found.append(
            f"{counted(manifest.unmeasured_overlaps, 'older release')} of the same persons "
            f"{verb_of(manifest.unmeasured_overlaps, 'were')} not compared with this one."
        )
    return found


def _attack_sentences(manifest: TablesManifest) -> list[str]:
    """Return a sentence for each attack by joins, successful attacks first."""
    if manifest.attacked is None:
        return ["This release was not attacked: the job turned attacks off, or a version made it that had none."]
    sentences = {"broken": BROKEN, "told": "The job accepts that.", "safe": "So it was promised."}
    played = sorted(manifest.attacks, key=lambda one: one.verdict != "broken")
    k, told = manifest.privacy["k"], list[str]()
    for one in played:
        how = f"{one.knows} ({one.target})" if one.target else one.knows
        told.append(
            f"Attacked before it was published, by {how}: {counted(one.right, 'person')} of {one.guesses:,} "
            f"{verb_of(one.right, 'share')} them with fewer than "
            f"{k:,}. {sentences[one.verdict]}"
        )
    return [*told, *manifest.attacked.unplayed]


def report_texts(manifest: TablesManifest) -> dict[str, str]:
    """Return the texts of ``report.html`` and ``report.json`` of several tables, by file name."""
    content = report_content(manifest)
    return {"report.html": _page(content), "report.json": json.dumps(content, indent=2) + "\n"}


def _levels_text(levels: dict[str, int | None]) -> str:
    return ", ".join(f"{qid} {'by row' if level is None else level}" for qid, level in levels.items()) or "none"


def _count_text(count: int | None) -> str:
    return "not stated" if count is None else f"{count:,}"


def _loss_text(loss: float | None) -> str:
    """Return a table's loss as text; without quasi-identifiers or rows it has none, which is not 0."""
    return "–" if loss is None else f"{loss:.4f}"


def _shown(text: str) -> str:
    """Return text as the page shows it: escaped, without control characters and direction marks."""
    return escape(printable(text))


def _page(content: dict[str, Any]) -> str:
    columns = ("records", "released", "withheld", "suppressed")
    rows = "".join(
        f"<tr><td>{_shown(name)}</td>{''.join(f'<td>{_count_text(table[column])}</td>' for column in columns)}"
        f"<td>{_orphans_text(table['orphans'], content['privacy']['k'])}</td>"
        f"<td>{_shown(_levels_text(table['levels']))}</td>"
        f"<td>{_loss_text(content['loss']['by_table'].get(name))}</td></tr>"
        for name, table in content["tables"].items()
    )
    head = "".join(f"<th>{title}</th>" for title in ("table", *columns, "orphans", "levels", "GCP"))
    paragraphs = "".join(f"<p>{_shown(sentence)}</p>" for sentence in content["sentences"])
    limits = "".join(f"<li>{_shown(sentence)}</li>" for sentence in content["limits"])
    title = _shown(f"Release {content['release']}")
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>{VIEWPORT}<title>{title}</title><style>{STYLE}</style></head>"
        f"<body><h1>{title}</h1>{paragraphs}<div class='table'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<p>Mean certainty penalty over all tables: {content['loss']['gcp']:.4f}.</p><h2>Limits</h2><ul>{limits}</ul></body></html>\n"
    )
