"""Terminal output of a run, of its verification and of attacks on it, as Rich tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from core.recount.classes import Recount
from flows.compiling_notes import compiling_said
from flows.terminal.screen import NameTable, Screen, print_json, say
from schemas.errors.base import counted, printable
from schemas.errors.storage import PrintingError
from schemas.job.privacy import AttackBasis, AttackFigures, attacks_sentence, broken_attacks
from schemas.reading.model import share_text
from schemas.release.evidence import SIGNING_KEY
from schemas.release.figures import PassedColumn, Remainder, population_sentences
from schemas.release.manifest import Manifest, Persons
from schemas.release.terms import Unreported
from tasks.engine.progress import STEPS, hearing, listening
from tasks.publication.manifests import risk_after
from tasks.report.claims import first_warning, maximum_risk_in_short
from tasks.report.criteria import advice_sentences
from tasks.report.sentences import increment_sentences, linked_sentences, overlap_lines, warning_sentences
from tasks.report.terms import UnitWording
from tasks.verification.published_releases import newer_releases_sentence


def attack_summary(attacks: Sequence[AttackFigures], basis: AttackBasis) -> RenderableType:
    """Return a table of attacks, broken ones first, with a sentence about their number."""
    broken = len(broken_attacks(attacks))
    table = NameTable(box=None)
    for title in ("attack", "guesses", "right", "control", "advantage", "accepted", "verdict"):
        table.add_column(title, overflow="fold")
    for one in sorted(attacks, key=lambda one: one.verdict != "broken"):
        control = share_text(one.control_right / one.control_guesses, narrow=True) if one.control_guesses else "-"
        table.add_row(
            attacks_sentence(one),
            f"{one.guesses:,}",
            share_text(one.right / one.guesses, narrow=True) if one.guesses else "-",
            control,
            f"{one.advantage:+.1%} ({one.low:+.1%} to {one.high:+.1%})",
            share_text(one.accepted, narrow=True),
            one.verdict,
        )
    head = f"{counted(len(attacks), 'attack')}, {broken:,} of them won more than the job accepts." if attacks else "No attack was played."
    return Group(Text(head), *(Text(printable(one)) for one in basis.unplayed), table)


UNKNOWN = "No maximum risk is claimed: without a manifest nothing is known of columns that are published besides the quasi-identifiers."


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show progress bars on a terminal while the block runs; print notes anywhere on standard error."""
    console = Console(stderr=True)

    def note(sentence: str) -> None:
        console.print(Text(f"Note: {printable(sentence, lines=False)}"), soft_wrap=True)

    def compiling(sentence: str) -> None:
        console.print(sentence, soft_wrap=True, highlight=False)

    with hearing(note), compiling_said(compiling):
        if not console.is_terminal:
            yield
            return
        with _bars(console):
            yield


@contextmanager
def _bars(console: Console) -> Iterator[None]:
    """Show one progress bar per phase while the block runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bars = {}

        def advance(phase: str, done: int, total: int) -> None:
            if phase not in bars:
                words = f"phase {STEPS[phase].phase}  {STEPS[phase].words}" if phase in STEPS else phase
                bars[phase] = progress.add_task(words, total=total)
            progress.update(bars[phase], completed=done)

        with listening(advance):
            yield


def release_summary(manifest: Manifest, folder: str, *, new: bool, untold: Unreported | None) -> RenderableType:
    """Return a run's terminal summary: counts, loss, risk, file paths, and unreported figures if given.

    Args:
        manifest: Of the release.
        folder: Where it lies.
        new: Whether this run made it.
        untold: What this run found out that the release does not tell; whoever runs a job has the source.
    """
    table = fact_table()
    if first := first_warning(manifest):
        table.add_row("warning", first)
    searched = untold.search if untold else manifest.search
    table.add_row("records", f"{manifest.records:,}")
    table.add_row("released", f"{manifest.released:,}")
    table.add_row("suppressed", f"{manifest.suppressed:,} ({share_text(manifest.suppressed / manifest.records, 2)})" + _masked(manifest))
    for name, text in suppressed_record_rows(manifest.remainder):
        table.add_row(name, text)
    least = counted(manifest.min_class, manifest.unit)
    table.add_row("classes", f"{manifest.classes:,}, the smallest of {least} (k = {manifest.privacy['k']})")
    for name, text in exposure_rows(manifest):
        table.add_row(name, text)
    if persons := manifest.persons:
        table.add_row("persons", persons_sentence(persons))
        if persons.largest_share is not None:
            table.add_row("largest share", f"nobody holds more than {share_text(persons.largest_share, 0)} of a class's records")
    if manifest.levels:
        table.add_row("levels", ", ".join(f"{qid} {level}" for qid, level in manifest.levels.items()))
    precision = f" · precision {manifest.loss['precision']:.4f}" if "precision" in manifest.loss else ""
    table.add_row("loss", f"DM* {manifest.loss['dm_star']:,} · GCP {manifest.loss['gcp']:.4f}{precision}")
    if manifest.replay_of:
        table.add_row("replay of", manifest.replay_of)
    elif isinstance(nodes := manifest.search.get("nodes"), int):
        passing = searched.get("passing")
        passed = f"{passing:,} of {counted(nodes, 'node')} passed" if passing is not None else f"{counted(nodes, 'node')} in all"
        table.add_row("optimum", f"{untold.optimal if untold else manifest.optimal}: {passed}")
    elif searched:
        table.add_row(manifest.method, " · ".join(f"{name} {count:,}" for name, count in searched.items()))
    before = {"before": untold.risk} if untold and untold.risk else {}
    for name, text in risk_rows(before | manifest.risk, UnitWording.of_release(manifest), manifest):
        table.add_row(name, text)
    if manifest.pseudonyms:
        columns = ", ".join(f"{column} ({words})" for column, words in manifest.pseudonyms.items())
        table.add_row("pseudonymous", f"{columns}: linkable to every release with the same key or vault")
    for name, text in sentence_rows(manifest, untold):
        table.add_row(name, text)
    table.add_row("time", f"{sum(manifest.seconds.values()):.1f} s, at most {manifest.peak_rss / 1e6:,.0f} MB")
    table.add_row("verified", "recounted from the written files" if new else "when it was published; skald verify recounts it")
    # Outside the table, which would break a path where the terminal ends.
    paths = [f" {'release':<13} {folder}", *([f" {'report':<13} {report}"] if (report := Path(folder, "report.html")).is_file() else [])]
    said = Group(table, *(Text(path) for path in paths))
    return said if new else Group("Already published: the same job on the same data. No new release was made.", said)


def signature_text(signed_by: str | None) -> str:
    """Return the key that signed a release, or that none did though a key is named; empty otherwise."""
    if signed_by:
        return f"of {signed_by}"
    return "none: the release was there already, and gets no signature later" if SIGNING_KEY in os.environ else ""


def attacks_in_short(manifest: Manifest, untold: Unreported | None) -> str:
    """Return a line with the numbers of safe, accepted and broken attacks of a release.

    They are attacks on the release, and on the source where this run did these.
    """
    played = [*manifest.attacks, *(untold.attacks if untold else ())]
    safe, within, broken = (sum(one.verdict == verdict for one in played) for verdict in ("safe", "told", "broken"))
    # What attacks on people came to is in no release, and kept by the run that made it alone.
    only = "" if untold else ", of those that the release states; skald attack plays those on people of the source again"
    return f"{counted(len(played), 'attack')}: {safe:,} safe, {within:,} within what the job accepts, {broken:,} broken{only}"


def persons_sentence(persons: Persons) -> str:
    """Return a text with the numbers of released persons and of records that k of them have."""
    of = f" of {persons.source:,}" if persons.source is not None else ", and fewer than k more in the source"
    lost = f"; {counted(persons.withheld, 'record')} of persons who have too many withheld" if persons.withheld else ""
    return f"{persons.released:,}{of}; at least k of them have {counted(persons.most_records, 'record')} or more{lost}"


def sentence_rows(manifest: Manifest, untold: Unreported | None) -> Iterator[tuple[str, str]]:
    """Yield the summary's rows (name, sentence), from linked records and warnings to the signature."""
    said = {
        "linked": linked_sentences(manifest),
        "source": increment_sentences(manifest),
        # What is said first of all is not said again.
        "warning": [one for one in warning_sentences(manifest) if one != first_warning(manifest)],
        "earlier": overlap_lines(manifest),
        "next": advice_sentences(manifest),
    }
    yield from ((name, sentence) for name, sentences in said.items() for sentence in sentences)
    if manifest.attacked:
        yield "attacks", attacks_in_short(manifest, untold)
    if signature := signature_text(manifest.signed_by):
        yield "signature", signature


def names_by_words(descriptions: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that share a description, by that description."""
    alike: dict[str, list[str]] = {}
    for name, words in descriptions.items():
        alike.setdefault(words, []).append(name)
    return alike


def untreated_columns_sentence(column: PassedColumn) -> str:
    """Return a text with the counts of values and unique records of one untreated column."""
    return f"{counted(column.distinct, 'value')}, {counted(column.unique_records, 'record')} alone"


def suppressed_record_rows(remainder: Remainder | None) -> Iterator[tuple[str, str]]:
    """Yield rows (name, text) about records that fail at the global levels; none without such.

    One row for these, one per further pass, and one for suppressed cells.
    """
    if remainder is None:
        return
    yield "failed", f"{counted(remainder.records, 'record')} at the levels below"
    for number, one in enumerate(remainder.rounds, start=1):
        yield f"round {number}", f"{counted(one.records, 'record')} in {counted(one.classes, 'combination')} of levels {list(one.node)}"
    if remainder.stars:
        least = f" (at least {remainder.least:,})" if remainder.least is not None else ""
        yield "starred", f"{counted(remainder.starred, 'record')}, {counted(remainder.stars, 'value')}{least}"


def exposure_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield rows (name, text) on population risk, classes of one value, and nulls in published columns."""
    for sentence in population_sentences(manifest.population):
        yield "population", sentence
    for name, one in manifest.one_value.items():
        yield "one value", f"'{name}' in {counted(one.classes, 'class')} ({share_text(one.share)})"
    for name, column in manifest.published.items():
        if column.null:
            yield "null", f"'{name}': {column.nulls_text}"


def _masked(manifest: Manifest) -> str:
    """Return a clause with the number of masked records, or an empty text."""
    return f", {manifest.masked:,} of them masked" if manifest.masked else ""


def risk_rows(risk: Mapping[str, Mapping[str, int | float]], unit: UnitWording, manifest: Manifest | None) -> Iterator[tuple[str, str]]:
    """Yield rows (name, text) on the risk before, the risk after, and the strictest preset it meets.

    The risk before is left out if it was not counted. The last row says why, if there is no preset.
    """
    if not risk:
        return
    after = risk["after"]
    if "before" in risk:
        yield "risk before", risk_sentence(risk["before"], unit)
    suppressed = f" · {counted(int(after['suppressed']), 'suppressed record')} not in it" if after["suppressed"] else ""
    yield "risk after", risk_sentence(after, unit) + suppressed
    yield "maximum risk", maximum_risk_in_short(manifest, unit, int(after.get("min_class", 0))) if manifest else UNKNOWN


def risk_sentence(figures: Mapping[str, int | float], unit: UnitWording) -> str:
    """Return the re-identification risk of classes in one line."""
    if not figures["records"]:
        return f"no {unit.one} in a class"
    # Said where it matters that people are counted, or are not.
    least = counted(int(figures["min_class"]), unit.one) if unit.of_persons or unit.repeats else f"{figures['min_class']:,}"
    told = [
        f"at most 1 in {least} ({figures['prosecutor_max']:.4f})",
        f"mean {figures['prosecutor_mean']:.4f}",
        f"{share_text(figures['uniqueness'], 2)} unique",
    ]
    above = f"{share_text(figures['share_above'], 2)} above {figures['threshold']}"
    return " · ".join([*told, *([above] if "share_above" in unit.risks() else [])])


def verification_summary(
    recount: Recount,
    manifest: Manifest | None,
    k: int,
    notes: Sequence[str] = (),
    on_trust: Sequence[str] = (),
    *,
    newer: tuple[str, ...] = (),
    trusted: bool = False,
) -> RenderableType:
    """Return the results of a verification as a table.

    Args:
        recount: What was counted.
        manifest: What it was held against, if there is one.
        k: What every class has at least.
        notes: What could not be checked, in sentences.
        on_trust: Fields of the manifest that nothing at hand can tell.
        newer: Releases of the same job beside it that were made later.
        trusted: Whether the signature is that of a key which the user gave.
    """
    table = fact_table()
    if manifest and (first := first_warning(manifest)):
        table.add_row("warning", first)
    table.add_row("records", f"{recount.records:,}")
    promised = f"k = {k:,} persons, which were not counted" if manifest and manifest.persons and not recount.persons else f"k = {k:,}"
    table.add_row("classes", f"{recount.classes:,}, the smallest of {counted(recount.min_class, recount.unit)} ({promised})")
    suppressed, masked = (manifest.suppressed, manifest.masked) if manifest else (0, 0)
    before = {side: figures for side, figures in (manifest.risk if manifest else {}).items() if side == "before"}
    unit = replace(UnitWording.of_release(manifest) if manifest else UnitWording(), one="person" if recount.persons else "record")
    # Where persons could not be counted, the sizes of classes say nothing of a risk.
    risk = before | {"after": risk_after(recount, suppressed, masked)} if not manifest or manifest.unit == unit.one else {}
    for name, text in risk_rows(risk, unit, manifest):
        table.add_row(name, text)
    for sentence in linked_sentences(manifest) if manifest else ():
        table.add_row("linked", sentence)
    for line in overlap_lines(manifest) if manifest else ():
        table.add_row("earlier", line)
    table.add_row("manifest", "agrees with the files" if manifest else "none: suppression and file digests were not checked")
    if manifest:
        table.add_row("signature", _signature_words(manifest, trusted=trusted))
    if newer:
        table.add_row("newer", newer_releases_sentence(newer))
    for sentence in notes:
        table.add_row("not checked", sentence)
    if on_trust:
        table.add_row("on trust", f"the manifest's {', '.join(on_trust)}: nothing at hand tells them, a signature would (--key)")
    for sentence in recount.unproved:
        table.add_row("source", sentence)
    if recount.source is not None and not recount.unproved:
        table.add_row("source", _source_words(recount, recount.source))
    return table


def _source_words(recount: Recount, records: int) -> str:
    """Return a clause about the comparison of the files with the source's records.

    All records were compared, or records of some classes where labels overlap.
    """
    of_source = counted(records, "record")
    if recount.sampled is None:
        return f"has a record for each of the files', of its {of_source}"
    return (
        f"has, in its {of_source}, values for the labels of each column, beside the other columns in parts; "
        f"whole records were held together in {recount.sampled:,} of {recount.classes:,} classes"
    )


def _signature_words(manifest: Manifest, *, trusted: bool) -> str:
    """Return a clause about the signature of a manifest."""
    if manifest.signed_by is None:
        return "none: somebody who makes files and manifest anew would not be noticed"
    return "true, and of the key that was given" if trusted else f"true, of {manifest.signed_by}; give --key to say whose it must be"


def fact_table() -> Table:
    """Return an empty table with columns for names and facts."""
    table = NameTable(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    return table


def print_published(manifest: Manifest, place: str, *, new: bool, as_json: bool, untold: Unreported | None) -> None:
    """Print a release's summary, or its manifest as JSON; raise ``PrintingError`` if that fails.

    Args:
        manifest: That of the release.
        place: Where people find it.
        new: Whether this run made it.
        as_json: Whether the manifest is printed, and warnings on standard error.
        untold: What this run found out that the release does not tell.

    Raises:
        PrintingError: it could not be printed, which says nothing against the release.
    """
    try:
        if as_json:
            for sentence in warning_sentences(manifest):
                say(f"Warning: {sentence}")
            for line in overlap_lines(manifest):
                say(f"Earlier: {line}")
            print_json(manifest.model_dump(mode="json"))
        else:
            Screen().print(release_summary(manifest, place, new=new, untold=untold))
        sys.stdout.flush()
    except OSError as error:
        raise PrintingError.of_release(manifest.release, error.strerror or type(error).__name__) from None
    except Exception as error:
        if os.environ.get("SKALD_DEBUG"):
            raise
        # Of another error its kind alone.
        raise PrintingError.summary_failed(manifest.release, type(error).__name__) from None
