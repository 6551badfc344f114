"""Report sentences on requirements, suppression, certificate, verification and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from core.recount.spreads import SLACK as RECOUNT_SLACK
from schemas.errors.base import counted, listed, verb_of
from schemas.job.method import METHODS, OBJECTIVES
from schemas.job.privacy import SUPPRESSIONS
from schemas.reading.model import plain, share_text
from schemas.registry.privacy_kinds import models_in_job
from schemas.release.figures import passthrough_warnings, population_sentences, stated_count_text
from schemas.release.increments import composition_warning
from schemas.release.manifest import Linked, Manifest, OneValue, endpoint_sentences, left_over_clause
from schemas.release.report import Limit, Proof
from schemas.release.terms import Terms
from tasks.report.claims import attack_warning, untreated_warning
from tasks.report.terms import UnitWording

RECORDS = UnitWording()
FOUR, SLACK = Decimal("0.0001"), Decimal(repr(RECOUNT_SLACK))
NO_SENSITIVE_MODEL = (
    "Everybody in a class may share a sensitive value, and then to know the class is to know it. The job did not ask for {models}."
)


def promises(privacy: Mapping[str, Any], unit: UnitWording = RECORDS) -> tuple[str, ...]:
    """Return the privacy requirements of every class as sentences, k-anonymity first.

    Args:
        privacy: The manifest's privacy section.
        unit: The unit that k counts.
    """
    return tuple(one.sentence for one in proofs(privacy, {}, 0, unit))


def proofs(
    privacy: Mapping[str, Any], measured: Mapping[str, Mapping[str, float]], smallest: int, unit: UnitWording = RECORDS
) -> tuple[Proof, ...]:
    """Return each privacy requirement with the worst value that the recount measured.

    Args:
        privacy: As the manifest holds it.
        measured: As the recount holds it.
        smallest: Size of the smallest class, in the unit of k.
    """
    k = privacy["k"]
    found = [Proof(model="k-anonymity", column=None, sentence=unit.promise(k), asked=f"≥ {k:,}", measured=f"{smallest:,}")]
    for kind, column, promised in models_in_job(privacy):
        worst = _figure(measured.get(kind.section, {}).get(column), ROUND_FLOOR if kind.least else ROUND_CEILING)
        found.append(Proof(column=column, measured=worst, **kind.words(column, promised)._asdict()))
    return tuple(found)


def _figure(value: float | None, rounding: str) -> str | None:
    """Format a measured figure with at most four decimals, never rounded to the safe side."""
    return None if value is None else plain(round_to(Decimal(repr(value)), rounding))


def round_to(value: Decimal, rounding: str) -> Decimal:
    """Return a number at four decimals, rounded as given unless within the recount's slack of the nearest."""
    near = value.quantize(FOUR)
    return near if abs(near - value) < SLACK else value.quantize(FOUR, rounding)


LEVELS_ALONE = (
    "That is about the levels of the columns, compared as if all records that fail at them were suppressed. What became of these "
    "afterwards was chosen step by step and is not part of it; the losses above are those of what was published."
)


def certificate(manifest: Manifest) -> tuple[str, ...]:
    """Return sentences on whether the release is certified to be the best by its method."""
    objective, nodes, passing = manifest.asked.objective, manifest.search.get("nodes"), manifest.search.get("passing")
    if objective is None or not isinstance(nodes, int):
        return (
            "No certificate: this method gives every class labels of its own and looks for small classes step by step. "
            "It claims to be safe, which was verified, not to be the best.",
            *_orders(manifest),
        )
    measure, alone = OBJECTIVES[objective].measure, (LEVELS_ALONE,) if manifest.remainder else ()
    if "weighted" in manifest.loss:
        measure = f"{measure}, by the weights of the job"
    ways = f"The job allows {counted(nodes, 'combination')} of levels for whole columns."
    if manifest.optimal == "certified":
        known = "" if passing is None else f" Known to keep the promise within the suppression limit: at least {passing:,}."
        return (
            f"{ways}{known}",
            f"Certified: none that keeps it has a smaller loss by {measure}. Every combination was counted, or excluded because it cannot "
            "keep the promise or cannot lose less.",
            *alone,
        )
    return (
        ways,
        f"Not certified: this is the {manifest.optimal}. It is safe all the same; a combination with a smaller {measure} may exist.",
        *alone,
    )


def _orders(manifest: Manifest) -> tuple[str, ...]:
    """Return a sentence on the hierarchies whose sibling order was learnt from counts."""
    learnt = manifest.search.get("orders_learnt")
    if not isinstance(learnt, int):
        return ()
    whose = "hierarchies of words" if learnt > 1 else "hierarchy of words"
    return (
        f"Order learnt: the siblings of {learnt} {whose} were cut in an order that follows from how many records each of them has, "
        "and not as they are listed. No label tells that order.",
    )


def suppression(manifest: Manifest) -> tuple[str, ...]:
    """Return sentences on how many records were suppressed, for which requirement, and how."""
    lost, why = manifest.suppressed, manifest.suppressed_for
    if not lost:
        return ("No record was suppressed.",)
    told = []
    if few := why.get("k", 0):
        told.append(f"{counted(few, 'record')}: {UnitWording.of_release(manifest).lacking(manifest.privacy['k'])}")
    if uneven := why.get("spread", 0):
        told.append(f"{counted(uneven, 'record')}: enough share their combination, but not with sensitive values spread as was asked.")
    if linked := why.get("linked", 0):
        told.append(f"{counted(linked, 'record')}: with them fewer than k people would share a set of combinations (method.linked: keep).")
    if not told:
        told.append(f"{counted(lost, 'record')}: {METHODS[manifest.method].suppressed}.")
    if SUPPRESSIONS[manifest.asked.treatment].masks:
        dropped = lost - manifest.masked - uneven
        told.append(f"Published with * in every quasi-identifier: {counted(manifest.masked, 'record')} of them.")
        if uneven:
            told.append(f"Of these {counted(uneven, 'record')} none is masked or starred: who is must not follow from sensitive values.")
        # Masked records share one combination like any class, and too few of them would be a class that fails.
        if dropped and not why:
            told.append(f"Left out, as a mask would give them away or they break what was asked: {counted(dropped, 'record')} of them.")
        elif dropped:
            mask = "of them would be no safe class" if manifest.remainder else "that holds so few would give them away"
            told.append(f"Left out, because a mask {mask}: {counted(dropped, 'record')}.")
    else:
        told.append("They are left out of the files and of every risk below; losses count them as withheld.")
    return tuple(told)


def verification(manifest: Manifest) -> tuple[str, ...]:
    """Return sentences on how the release was verified before publication."""
    told = [
        "The written files were counted again by DuckDB, which was told the job and not how the classes were made: "
        f"{counted(manifest.released, 'record')} in {counted(manifest.classes, 'class')}, the smallest of "
        f"{counted(manifest.min_class, manifest.unit)}. Nulls of quasi-identifiers count as a value of their own. No class fails.",
    ]
    told += [kind.proven(column) for kind, column, _ in models_in_job(manifest.privacy)]
    told += [*endpoint_sentences(manifest.endpoints, manifest.unit), *population_sentences(manifest.population)]
    kept = "no identifier is among them"
    if manifest.pseudonyms:
        kept = "identifiers are among them as pseudonyms only, of the form that their treatments promise"
    told += [
        f"The files hold the columns that the job publishes and no others; {kept}.",
        "They were held against the source: columns that are published as they are have its values, but for those of suppressed records, "
        "and every label covers values that are there.",
        "A release that fails any of this is not published. To check it again: skald verify RELEASE --job JOB.",
    ]
    return tuple(told)


def limits(privacy: Mapping[str, Any], terms: Terms, unit: UnitWording = RECORDS) -> tuple[Limit, ...]:
    """Return the report's limits: attacks and columns against which the release does not protect.

    Args:
        privacy: As the manifest holds it.
        terms: The other settings of the job.
    """
    guarded = {*privacy.get("l", {}), *privacy.get("t", {})}
    unguarded = [f"'{name}'" for name in terms.sensitive if name not in guarded]
    told = []
    if unguarded:
        told.append(
            Limit(text=f"{NO_SENSITIVE_MODEL.format(models='l-diversity or t-closeness of ' + ', '.join(unguarded))}", source=DIVERSITY)
        )
    if privacy.get("l") and not privacy.get("t"):
        told.append(Limit(text="l-diversity counts values, not what they mean: different values may tell much the same.", source=CLOSENESS))
    if guarded:
        told.append(Limit(text=TRIED_NEXT if terms.tries_next else LEFT_OUT_SENTENCE, source=MINIMALITY))
    rest = terms.insensitive
    if rest:
        which = "All columns without another role" if rest == "rest" else counted(len(rest), "insensitive column")
        told.append(Limit(text=f"{which}: in no risk on this page. Whoever knows such a value can use it.", source=""))
    if SUPPRESSIONS[terms.treatment].stars or terms.rounds:
        told.append(Limit(text=RARE, source=MINIMALITY))
    return (*told, OTHER_COLUMNS, *unit.limits(), *ALWAYS)


def one_value_limits(manifest: Manifest) -> tuple[Limit, ...]:
    """Return a report limit per sensitive column that has one value only in some classes."""
    return tuple(
        Limit(text=one_value_sentence(name, one, manifest.classes), source=DIVERSITY)
        for name, one in manifest.one_value.items()
        if one.classes
    )


def one_value_sentence(name: str, counts: OneValue, class_count: int) -> str:
    """Return a sentence on how many classes have only one value of a sensitive column."""
    return (
        f"'{name}': in {counts.classes:,} of {class_count:,} classes ({share_text(counts.share)}), with "
        f"{counted(counts.records, 'record')}, all who have a value, if anybody has, hold the same one. Who is known to be in one of these "
        "is known to have it, or none."
    )


def increment_sentences(manifest: Manifest) -> tuple[str, ...]:
    """Return sentences on changes of the source and its columns since the last release."""
    told = manifest.increment.sentences(manifest.records) if manifest.increment else ()
    return (*told, *(f"Column '{name}': {words}." for name, words in manifest.evolved.items()))


def overlap_sentences(manifest: Manifest) -> list[str]:
    """Return what was found of overlaps with other releases of the same source, as sentences."""
    return [*(one.sentence() for one in manifest.compositions), *_uncompared(manifest)]


def overlap_lines(manifest: Manifest) -> list[str]:
    """Return what was found of overlaps with other releases of the same source, one short line for each."""
    return [*(one.in_short() for one in manifest.compositions), *_uncompared(manifest)]


def _uncompared(manifest: Manifest) -> list[str]:
    """Return sentences on releases that were not compared, and on records that were compared for persons."""
    told = []
    if manifest.unmeasured_overlaps:
        older = counted(manifest.unmeasured_overlaps, "older release")
        are = verb_of(manifest.unmeasured_overlaps, "are")
        told.append(
            f"Whether {older} that {are} of the same source, or may be, put anybody at risk together with this one was not measured."
        )
    if manifest.persons and any(overlap.unit == "record" and overlap.shared_at_risk is not None for overlap in manifest.overlaps or ()):
        told.append("What releases tell together was counted in records: of fewer people than k there can be more than that.")
    return told


def warning_sentences(manifest: Manifest) -> list[str]:
    """Return all warnings of a run: on attacks, untreated columns and repeating identifiers first."""
    # By content, because a copy has a name of its own.
    equal = len(manifest.sources) - len({file.digest for file in manifest.sources})
    twice = "its records are published twice" if manifest.persons else "its people count twice in k"
    copies = [f"{counted(equal, 'file')} of the source with the same content as another: if copied, {twice}."]
    first = [one for one in (attack_warning(manifest), untreated_warning(manifest), UnitWording.of_release(manifest).warning()) if one]
    told = [*passthrough_warnings(manifest.passthrough, manifest.published)]
    if joint := composition_warning(manifest):
        told.append(joint)
    if manifest.asked.tries_next:
        told.append(TRIED_NEXT)
    return [*first, *(copies if equal else []), *empty_column_warnings(manifest), *told]


def empty_column_warnings(manifest: Manifest) -> list[str]:
    """Return a warning for each column with ``publish`` that has no value in the release."""
    found = {name: manifest.passthrough.get(name) for name in manifest.published}
    return [
        f"Column '{name}' has no value in the release: too few have one of its values to publish any, or the published records have none."
        for name, one in found.items()
        if one is not None and one.values == 0
    ]


COMPOSITION = "Ganta, Kasiviswanathan and Smith, Composition attacks, KDD 2008"
DIVERSITY = "Machanavajjhala et al., l-Diversity, TKDD 2007"
MINIMALITY = "Wong et al., Minimality Attack in Privacy Preserving Data Publishing, VLDB 2007"
RARE = (
    "A starred value, or a level that only few records have, shows that a record's combination was rare. Its class holds only such "
    "records, so that who knows that a person's combination is common can exclude it."
)
LEFT_OUT_SENTENCE = (
    "Combinations that enough share and that are left out are told to break l-diversity or t-closeness, though not by which values. What "
    "is published, and how, follows from no sensitive value of single classes; how likely a value is for somebody who knows the method is "
    "not bounded."
)
TRIED_NEXT = (
    "Where l or t refused a cut, the next best was tried (method.refused: next), so that cuts follow from sensitive values: who knows all "
    "quasi-identifiers and the algorithm can learn from the classes whose values refused it. refused: stop, the default, tells nothing."
)
CLOSENESS = "Li, Li and Venkatasubramanian, t-Closeness, ICDE 2007"
OTHER_COLUMNS = Limit(
    text="The risks hold for what the job calls quasi-identifiers. Any other column that people can know is not counted.",
    source="Sweeney, k-anonymity, IJUFKS 2002",
)
ALWAYS = (
    Limit(
        text="Two releases about the same people can be combined, even if each is k-anonymous by itself.",
        source=COMPOSITION,
    ),
    Limit(
        text="Who knows the method and more about some people may narrow a class down; k-anonymity does not bound what is learnt.",
        source="Cohen, Attacks on Deidentification's Defenses, USENIX Security 2022",
    ),
    Limit(
        text="Whether data are anonymous in law also depends on who gets them, what else they hold, and on linking and inference.",
        source="Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques",
    ),
)


SEQUENCES = "Wang and Fung, Anonymizing Sequential Releases, KDD 2006"


def linked_sentences(manifest: Manifest) -> list[str]:
    """Return a sentence for each set of linking columns on how many share a set of classes.

    That set is the set of combinations of all records of one pseudonym or person.
    """
    return [_sentence(one, manifest) for one in manifest.linked or ()]


def _sentence(one: Linked, manifest: Manifest) -> str:
    """Return the sentence on the sets of combinations that one linking column shows."""
    k, unit = manifest.privacy["k"], "person" if manifest.persons else "pseudonym"
    shown = f"Equal pseudonyms in {listed(one.columns)} show which records belong together."
    if not one.below_k and one.smallest >= k and not one.left_over:
        least = counted(one.smallest, unit)
        return f"{shown} The set of combinations that all records of one are in is shared by {least} or more (k = {k:,})."
    left, accepted = left_over_clause(one.left_over, k), " The job accepts that (columns.linkable)." if one.accepted else ""
    return (
        f"{shown} {stated_count_text(one.below_k, k, unit)} of {one.people:,} ({share_text(one.share, 2)}) "
        f"{verb_of(one.below_k, 'share')} the set of combinations that their records are in with fewer than k = {k:,}, the least "
        f"{stated_count_text(one.smallest, k)}{left}.{accepted}"
    )


def local_treatment_sentences(manifest: Manifest) -> tuple[str, ...]:
    """Return how failing records were treated, or that none failed; empty without local treatment."""
    remainder = manifest.remainder
    if remainder is None:
        return ()
    if not remainder.records:
        return ("No record failed at the levels of the columns, so that nothing was starred or anonymised again.",)
    return (
        f"{counted(remainder.records, 'record')} had combinations that fail at the levels of the columns. All others are published at "
        "these levels, as they would be without them.",
        *_rounds(manifest),
        *_stars(manifest),
    )


def _rounds(manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each further pass of local transformation."""
    assert manifest.remainder is not None
    names = list(manifest.levels or {})
    for number, one in enumerate(manifest.remainder.rounds, start=1):
        levels = ", ".join(f"{name} {level}" for name, level in zip(names, one.node, strict=False))
        yield (
            f"Round {number} published {counted(one.records, 'record')} of them in {counted(one.classes, 'class')}, at the best levels for "
            f"what was left: {levels}."
        )


def _stars(manifest: Manifest) -> Iterator[str]:
    """Yield a sentence on records with suppressed cells."""
    remainder = manifest.remainder
    assert remainder is not None
    if remainder.starred:
        bound = f"; fewer than {remainder.least:,} were not possible there" if remainder.least is not None else ""
        if remainder.least == remainder.stars:
            bound = ", the fewest possible there"
        yield (
            f"Published with some values starred: {counted(remainder.starred, 'record')}, {counted(remainder.stars, 'value')} in all"
            f"{' with those of masked records' if manifest.masked else ''}{bound}."
        )


PSEUDONYMOUS = (
    Limit(
        text="This release is pseudonymous, not anonymous: whoever holds the key or the vault can find persons in it or undo pseudonyms, "
        "and what is masked in part stays readable in part. Pseudonyms are in no risk above.",
        source="GDPR, Article 4(5) and Recital 26",
    ),
    Limit(
        text="Releases with the same key or vault can be linked record by record, and so can the records of one person in this release. "
        "Their classes together may be narrower than k records. Another key for each receiver keeps releases apart.",
        source="Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques",
    ),
)
