"""Terminal output of jobs and releases of several tables."""

from __future__ import annotations

from collections.abc import Mapping

from flows.terminal.plans import NO_ID
from flows.terminal.runs import names_by_words, signature_text, untreated_columns_sentence
from schemas.errors.base import counted, listed, verb_of
from schemas.relational.manifest import TablesManifest
from schemas.release.figures import passthrough_warnings
from schemas.release.increments import composition_warning
from tasks.relational.plan import ExpectedTables, TablesPlan
from tasks.relational.report import BROKEN, report_content
from tasks.relational.verified import VerifiedTables
from tasks.verification.published_releases import newer_releases_sentence

COARSE = 0.9
"""Mean certainty penalty from which a table is told to keep hardly anything."""
FEW_ROWS = 2
"""Rows of a person that advice bounds tables by; a bound that is as low is not advised."""


def tables_summary(manifest: TablesManifest, place: str, bounds: Mapping[str, int | None], bounded: Mapping[str, int], *, new: bool) -> str:
    """Return the summary of a release of several tables as lines of text.

    Args:
        manifest: Of the release.
        place: Its folder or address.
        bounds: Bound on the rows of a person by table, None where there is none.
        bounded: Rows of published persons that these bounds withhold, by table with any. No release states them.
        new: Whether the run made it.
    """
    head = f"Published {place}" if new else f"Published already: {place}"
    loss = f"Mean certainty penalty {manifest.loss.gcp:.4f}."
    taken = [f"'{name}': {_bounded_words(rows, bounds.get(name))} (for you alone, no release says so)." for name, rows in bounded.items()]
    below = {name: most for name, most in bounds.items() if name != manifest.unit}
    advice = coarse_tables_advice(manifest.loss.by_table, manifest.method, below, known=isinstance(manifest.privacy.get("knows"), dict))
    signature = [f"Signature: {said}."] if (said := signature_text(manifest.signed_by)) else []
    return "\n".join([head, *_joint_warnings(manifest), *report_content(manifest)["sentences"], *taken, loss, *signature, *advice])


def tables_warnings(manifest: TablesManifest) -> list[str]:
    """Return warnings on a release of several tables, then a short line for each earlier release."""
    warned = [said for said in report_content(manifest)["sentences"] if said.startswith("Warning") or said.endswith(BROKEN)]
    return [*warned, *_joint_warnings(manifest), *(f"Earlier: {one.in_short()}" for one in manifest.compositions)]


def _joint_warnings(manifest: TablesManifest) -> list[str]:
    """Return the warning of earlier releases as a list of 0 or 1."""
    said = composition_warning(manifest)
    return [f"Warning: {said}"] if said else []


def _bounded_words(rows: int, most: int | None) -> str:
    """Return in words how many withheld rows are beyond the bound of their table or the one above."""
    bound = f"rows: {{most: {most}}}" if most else "the bound of the table above"
    return f"{rows:,} of the rows withheld {verb_of(rows, 'are')} beyond {bound}"


def coarse_tables_advice(losses: Mapping[str, float], method: str, bounds: Mapping[str, int | None], *, known: bool = False) -> list[str]:
    """Return one sentence of advice on tables that lost nearly all detail, or an empty list.

    Args:
        losses: Mean certainty penalty of each table, from 0 to 1.
        method: The algorithm that made them.
        bounds: Bound on the rows of a person in each table below the unit, None where there is none.
        known: Whether intruders know few rows; then one node for all withholds none.
    """
    coarse = [name for name, lost in losses.items() if lost >= COARSE]
    if not coarse:
        return []
    unbounded = [name for name, most in bounds.items() if most is None or most > FEW_ROWS]
    ways = [
        "name fewer of them",
        *([f"bound the rows of a person in {listed(unbounded)} (rows: {{most: {FEW_ROWS}}})"] if unbounded else []),
        f"raise suppression.limit{' or suppression.rows' if bounds and not (known and method == 'skald') else ''}",
        # Classes of persons have levels of their own. Where even these are coarse, one node for all loses more.
        *(["write method: {name: mondrian}"] if method == "skald" else []),
    ]
    return [f"Hardly anything is left of the quasi-identifiers of {listed(coarse)}. To keep more, {', '.join(ways[:-1])}, or {ways[-1]}."]


def plan_lines(plan: TablesPlan) -> str:
    """Return the plan of a job of several tables as lines of text."""
    head = f"Release {plan.release}{', published already' if plan.exists else ''}." if plan.release else f"The release {NO_ID}."
    lines = [head, f"The unit is '{plan.unit}': {counted(plan.persons, 'person')}, of whom {plan.most_suppressed:,} may be left out."]
    for name, table in plan.tables.items():
        hangs = f", hangs from '{table.hangs_from}'" if table.hangs_from else ""
        levels = "; ".join(f"{qid}: {' > '.join(f'{groups:,}' for groups in found)}" for qid, found in table.groups.items())
        lines.append(
            f"'{name}': {counted(table.rows, 'row')} in {counted(table.files, 'file')}{hangs}. Groups by level: {levels or 'none'}."
        )
        for words, columns in names_by_words(table.published).items():
            lines.append(f"  {listed(columns)} {'goes' if len(columns) == 1 else 'go'} out {words}.")
        lines += [f"  untreated: {column}: {untreated_columns_sentence(one)}." for column, one in table.passthrough.items()]
        lines += [f"  Warning: {sentence}" for sentence in passthrough_warnings(table.passthrough)]
    lines += [f"'{column}' is published by {words}." for column, words in plan.pseudonyms.items()]
    if plan.nodes is None:
        lines.append("Persons are cut into classes (Mondrian); the rows of a class are aligned, each with labels of its own levels.")
    else:
        lines.append(f"The lattice of all tables has {counted(plan.nodes, 'node')}.")
    if plan.below_k is not None:
        lines.append(f"As they are, the histories of {counted(plan.below_k, 'person')} are shared by fewer than k.")
    if plan.refusal:
        lines.append(f"The run would publish nothing. {plan.refusal}")
    return "\n".join([*lines, *(_expected_sentences(plan, plan.expected) if plan.expected else [])])


def _expected_sentences(plan: TablesPlan, expected: ExpectedTables) -> list[str]:
    """Return sentences on what a run would publish: persons, rows, levels and losses."""
    lines = [f"The run would leave out {counted(expected.left_out, 'person')}, and lose {expected.loss:.2f} of the detail (GCP)."]
    for name, table in expected.tables.items():
        levels = ", ".join(f"{qid} {level}" for qid, level in table.levels.items() if level is not None)
        loss = "" if table.loss is None else f", GCP {table.loss:.2f}"
        withheld = f"{table.withheld:,} withheld of persons who stay"
        if table.bounded:
            withheld = f"{withheld} ({_bounded_words(table.bounded, plan.tables[name].most_rows)})"
        lines.append(f"  '{name}': {counted(table.released, 'row')}, {withheld}{loss}{f'; levels: {levels}' if levels else ''}.")
    losses = {name: table.loss for name, table in expected.tables.items() if table.loss is not None}
    bounds = {name: one.most_rows for name, one in plan.tables.items() if name != plan.unit}
    return [*lines, *coarse_tables_advice(losses, plan.method, bounds, known=plan.known_rows is not None)]


def verified_summary(verified: VerifiedTables) -> str:
    """Return the result of verifying a release of several tables as lines of text."""
    found, after = verified.recount, [*verified.notes, *_evidence_sentences(verified)]
    head = [f"Not verified: {sentence}" for sentence in verified.unverified]
    head.append("Not verified in full: nothing speaks against the rest." if head else "Verified.")
    if found is None:
        return "\n".join([*head, "The files agree with the manifest.", *after])
    rows = ", ".join(f"{counted(many, 'row')} of '{name}'" for name, many in found.records.items())
    who, knows = counted(found.smallest, "person"), verified.manifest.privacy.get("knows")
    shared = f"every choice of at most {counted(int(knows['rows']), 'row')} of a table" if isinstance(knows, dict) else "every history"
    different = "there is one history" if found.histories == 1 else f"there are {found.histories:,} different histories"
    least = f"{shared} is shared by at least {who}; {different}"
    *before, last = head
    return "\n".join([*before, f"{last} {counted(found.persons, 'person')}, {rows}; {least}.", *after])


def _evidence_sentences(verified: VerifiedTables) -> list[str]:
    """Return sentences on newer releases, and on what of the manifest is taken on trust."""
    newer = [newer_releases_sentence(verified.newer)] if verified.newer else []
    trust = f"The manifest's {', '.join(verified.on_trust)}: nothing at hand tells them, a signature would (--key)."
    return newer + ([trust] if verified.on_trust else [])
