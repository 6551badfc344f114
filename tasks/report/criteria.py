"""The report's answers on singling out, linkability and inference (Article 29 WP, Opinion 05/2014).

A question is answered with no more than was measured. Where something speaks against a release, or was not measured, the answer says
so.
"""

from __future__ import annotations

import json

from schemas.errors.base import counted, listed, verb_of
from schemas.job.method import OBJECTIVES
from schemas.reading.model import share_text
from schemas.registry.privacy_kinds import models_in_job
from schemas.release.figures import KINDS, identifying_columns, population_sentences
from schemas.release.manifest import Manifest
from schemas.release.report import Criterion, Proof
from schemas.release.terms import OWN_NODE
from tasks.report.claims import together_sentences
from tasks.report.sentences import linked_sentences, one_value_sentence, proofs
from tasks.report.terms import UnitWording


def criteria_of(manifest: Manifest) -> tuple[Criterion, ...]:
    """Return the report's answers on singling out, linkability and inference for a release."""
    return _singling_out(manifest), _linkability(manifest), _inference(manifest)


def _singling_out(manifest: Manifest) -> Criterion:
    """Answer whether the record of one person can be singled out."""
    unit, before = UnitWording.of_release(manifest), manifest.risk.get("before", {})
    told = [
        f"By the quasi-identifiers: the smallest class, of records that look alike, has {counted(manifest.min_class, unit.one)}; "
        f"k = {manifest.privacy['k']:,} was asked."
    ]
    if "unique" in before:
        now, later = int(before["unique"]), int(manifest.risk.get("after", {}).get("unique", 0))
        # Who is in several classes counts in each: persons are no share of those that there are.
        if unit.of_persons:
            whose = f"of {counted(now, 'combination')} all records were one person's"
        else:
            whose = f"{counted(now, unit.one)} of {int(before['records']):,} {verb_of(now, 'were')} alone with their combination"
        told.append(f"In the source {whose}; in the release {later:,}.")
    told += population_sentences(manifest.population)
    told += together_sentences(manifest)
    alone = {name: one.unique_records for name, one in manifest.passthrough.items() if one.unique_records}
    told += [
        f"By '{name}': {counted(records, 'record')} of it {verb_of(records, 'have')} a value "
        "that no other record has. Whoever knows that value finds the record."
        for name, records in alone.items()
    ]
    if manifest.repeats:
        told.append("Records were counted and not people: identifiers repeat, so that a class may be fewer people than records.")
    if unit.linked:
        told += linked_sentences(manifest)
    stand_out = any(one is not None and one.below_k for one in map(manifest.together, KINDS))
    weak = bool(stand_out or alone or identifying_columns(manifest.passthrough) or manifest.repeats or unit.linked)
    answer = f"No closer than to {counted(manifest.min_class, unit.one)} that look alike."
    if weak:
        answer = "By the quasi-identifiers no closer than to the smallest class; but something else speaks against it."
    return Criterion(
        name="Singling out", question="Can the record of one person be told apart?", answer=answer, kept=not weak, figures=tuple(told)
    )


def _linkability(manifest: Manifest) -> Criterion:
    """Answer whether records of one person can be joined, within the release or with other data."""
    after, unit = manifest.risk.get("after", {}), UnitWording.of_release(manifest)
    told = []
    if "marketer" in after:
        told.append(
            f"Whoever matches all {unit.several} with a register of the same quasi-identifiers is expected to be right for "
            f"{share_text(after['marketer'], 2)} of them, and for a single one at best with a chance of "
            f"{share_text(after['prosecutor_max'], 2)}."
        )
    linked, overlaps, names = linked_sentences(manifest), _overlaps(manifest), identifying_columns(manifest.passthrough)
    if manifest.pseudonyms:
        told.append(
            f"{listed(manifest.pseudonyms)}: pseudonyms. Releases with the same key or vault can be joined by them, and so can the records "
            "of one person."
        )
    else:
        told.append("No column that the job calls an identifier is published, and nothing stands in the place of one.")
    if names:
        told.append(f"{listed(names)}: published with values that may tell who people are. Other data can be joined by them.")
    told += [*linked, *overlaps, *(one.sentence() for one in manifest.joined or ())]
    if not overlaps and not manifest.joined:
        looked = "No earlier release was found that is made of the same records."
        if manifest.overlaps is None:
            looked = "Earlier releases were not looked for."
        told.append(f"{looked} What others published of the same people is not known.")
    weak = bool(manifest.pseudonyms or linked or overlaps or names)
    answer = (
        "Yes, in part: by what, stands below."
        if weak
        else "No closer than to a class, for whoever has another file with the same quasi-identifiers."
    )
    return Criterion(
        name="Linkability",
        question="Can records of one person be joined, within this release or with other data?",
        answer=answer,
        kept=not weak,
        figures=tuple(told),
    )


def _overlaps(manifest: Manifest) -> list[str]:
    """Return sentences on other releases with some of the same records, and the risk of the worst one."""
    overlaps = manifest.overlaps or ()
    found = len(overlaps) + manifest.unmeasured_overlaps
    if not found:
        return []
    measured = [one for one in overlaps if one.shared_at_risk is not None]
    worst = max(measured, key=lambda one: one.shared_at_risk or 0, default=None)
    told = "What they tell together with this one was not measured."
    if worst is not None:
        told = (
            f"Together with one of them fewer than k share both combinations of {counted(worst.shared_at_risk or 0, worst.unit)} at worst."
        )
    return [f"{counted(found, 'other release')} of the same source {verb_of(found, 'hold')} some of the same records, or may. {told}"]


def _worst(proof: Proof) -> str:
    """Return the worst measured figure of a requirement as words.

    How far a class is from the source follows from records that no file holds, so it may have no figure.
    """
    return f"{proof.measured} was measured at worst" if proof.measured else "and every class keeps it"


def _inference(manifest: Manifest) -> Criterion:
    """Answer whether sensitive values of a person known to be in the data can be inferred."""
    found, sensitive, told = manifest.one_value, manifest.asked.sensitive, []
    for name, one in found.items():
        told.append(
            one_value_sentence(name, one, manifest.classes)
            if one.classes
            else f"'{name}': in no class, of {manifest.classes:,}, do all who have a value hold the same one."
        )
    if unmeasured := [name for name in sensitive if name not in found]:
        told.append(f"{listed(unmeasured)}: not measured.")
    asked = [
        proof for proof in proofs(manifest.privacy, manifest.measured, manifest.min_class, UnitWording.of_release(manifest)) if proof.column
    ]
    told += [f"'{one.column}', {one.model}: {one.asked} was asked of every class, {_worst(one)}." for one in asked]
    guarded = {column for _, column, _ in models_in_job(manifest.privacy)}
    if unguarded := [name for name in sensitive if name not in guarded]:
        told.append(f"How values are spread within a class was not asked to be limited for {listed(unguarded)}.")
    if not sensitive:
        told.append("The job names no sensitive column, so that nothing was measured.")
    certain = any(one.classes for one in found.values())
    weak = certain or bool(unguarded) or not sensitive
    answer = (
        "Yes, for certain, in some classes."
        if certain
        else "Not measured."
        if not sensitive
        else "Nothing follows for certain; how likely a value is was not limited."
        if unguarded
        else "Limited as was asked."
    )
    return Criterion(
        name="Inference",
        question="Can something sensitive be concluded about somebody who is known to be in the data?",
        answer=answer,
        kept=not weak,
        figures=tuple(told),
    )


PLAIN_SUPPRESSION = "--set suppression.treatment=drop --set suppression.rounds=0"
"""What a method that chooses no levels needs in a job whose suppression stars cells or has rounds."""
NEARLY, COARSE = 0.9, 0.5
"""The penalty from which a column tells next to nothing, and that of all columns from which another method is worth a look."""
MONDRIAN, MANY_TIMES = "mondrian", 50
"""The method whose cuts l or t may refuse, and how many times larger than what could be cut, 2k, a class is that stayed whole for it."""


def advice_sentences(manifest: Manifest) -> tuple[str, ...]:
    """Return sentences on how to lose less where columns are withheld or too coarse; empty if not."""
    if kept := _kept_whole(manifest):
        return kept
    levels, objective = manifest.levels or {}, manifest.asked.objective
    withheld = [name for name, level in levels.items() if manifest.tops.get(name) == level > 0]
    nearly = [name for name in levels if name not in withheld and manifest.ncp.get(name, 0.0) >= NEARLY]
    if not levels or not (withheld or nearly or manifest.loss["gcp"] >= COARSE):
        return ()
    told = []
    if withheld:
        told.append(f"{listed(withheld)} {_are(withheld)} withheld in every record.")
    if nearly:
        told.append(f"{listed(nearly)} {_are(nearly)} so coarse that next to nothing is told.")
    if manifest.replay_of:
        return (*told, "Its levels are those of the release that was replayed. To lose less, leave replay out.")
    if objective and OBJECTIVES[objective].weighed and manifest.optimal.startswith(OWN_NODE):
        return (*told, "To lose less, leave method.node out, so that the best levels are looked for.", _other_method(manifest))
    return (*told, *_for_one_node(objective, [*withheld, *nearly]), _other_method(manifest))


def _kept_whole(manifest: Manifest) -> tuple[str, ...]:
    """Return advice where l or t refused cuts of classes far larger than k; empty elsewhere."""
    guarded = any(manifest.privacy.get(kind) for kind in ("l", "t"))
    if manifest.method != MONDRIAN or not guarded or manifest.asked.tries_next or not manifest.released:
        return ()
    # Of the class of a record, on average: a class of nearly all records counts by what it holds.
    told = uncut_classes_advice(manifest.loss["dm"] / manifest.released, manifest.privacy["k"])
    return (told,) if told else ()


def uncut_classes_advice(size: float, k: int, sampled: int | None = None) -> str | None:
    """Return a sentence if classes are far larger than k because l or t refuse cuts; None if not.

    Args:
        size: Mean size of the class of a record.
        k: The k of the job.
        sampled: Number of sampled records; None if all records were used.
    """
    if size < MANY_TIMES * 2 * k:
        return None
    of, stay = ("", "stayed") if sampled is None else (f" of {sampled:,} sampled ones", "stays")
    return (
        f"A record{of} is in a class of {size:,.0f} on average, where k asks for {k:,}: a class whose best cut l or t refused {stay} "
        "whole. method.refused: next tries the next best cut and loses far less. Its price is privacy: cuts follow from sensitive values "
        "then, and who knows all quasi-identifiers and the algorithm can learn whose values refused one."
    )


def _are(names: list[str]) -> str:
    return verb_of(len(names), "are")


def _for_one_node(objective: str | None, names: list[str]) -> tuple[str, ...]:
    """Return advice on objective or weights for full-domain recoding."""
    if objective is None:
        return ()
    if not OBJECTIVES[objective].weighed:
        return ("The objective counts classes and not what columns lose. To lose less, write method: {name: skald, objective: gcp}.",)
    if not names:
        return ()
    which, name = "one of them" if len(names) > 1 else "it", json.dumps(names[0], ensure_ascii=False)
    return (f"If {which} matters most, raise its weight, as in method.weights: {{{name}: 3}}.",)


def _other_method(manifest: Manifest) -> str:
    loss, needs_levels = manifest.loss["gcp"], manifest.asked.treatment == "cell" or manifest.asked.rounds
    without, plain = (", without cell and rounds", f" {PLAIN_SUPPRESSION}") if needs_levels else ("", "")
    return (
        f"One level for a whole column costs {loss:.2f} of GCP here. Methods with labels of their own in every class mostly lose far less: "
        f"method: {{name: mondrian, score: ncp}}{without}. What they lose on these data is measured by skald compare JOB --methods "
        f"skald,mondrian --set 'method={{name: mondrian, score: ncp}}'{plain}."
    )
