"""What to do next where whole columns are withheld, or classes stay whole: in words, and by the line of the job that does it."""

from __future__ import annotations

import json

from schemas.errors.base import listed
from schemas.job.objectives import OBJECTIVES
from schemas.release.manifest import Manifest

NEARLY, COARSE = 0.9, 0.5
"""The penalty from which a column tells next to nothing, and that of all columns from which another method is worth a look."""
MONDRIAN, MANY_TIMES = "mondrian", 50
"""The method whose cuts l or t may refuse, and how many times larger than what could be cut, 2k, a class is that stayed whole for it."""


def advice_sentences(manifest: Manifest, objective: str | None) -> tuple[str, ...]:
    """Returns which columns one node withholds, or nearly so, and what to write to keep more of them; empty if it keeps enough.

    ``objective`` is what the search minimised, if that is known.
    """
    if kept := _kept_whole(manifest):
        return kept
    levels = manifest.levels or {}
    withheld = [name for name, level in levels.items() if manifest.tops.get(name) == level > 0]
    nearly = [name for name in levels if name not in withheld and manifest.ncp.get(name, 0.0) >= NEARLY]
    if not levels or not (withheld or nearly or manifest.loss["gcp"] >= COARSE):
        return ()
    told = []
    if withheld:
        told.append(f"{listed(withheld)} {_are(withheld)} withheld in every record.")
    if nearly:
        told.append(f"{listed(nearly)} {_are(nearly)} so coarse that next to nothing is told.")
    return (*told, *_for_one_node(objective, [*withheld, *nearly]), _other_method(manifest))


def _kept_whole(manifest: Manifest) -> tuple[str, ...]:
    """Returns what to write where l or t refused the best cut of a class that is far larger than k asks for; empty if none did so."""
    guarded = any(manifest.privacy.get(kind) for kind in ("l", "t"))
    if manifest.method != MONDRIAN or not guarded or not manifest.asked or manifest.asked.tries_next or not manifest.released:
        return ()
    # Of the class of a record, on average: a class of nearly all records counts by what it holds.
    told = uncut_classes_advice(manifest.loss["dm"] / manifest.released, manifest.privacy["k"])
    return (told,) if told else ()


def uncut_classes_advice(size: float, k: int, sampled: int | None = None) -> str | None:
    """Returns what to write where classes stay whole because l or t refuse their best cuts.

    Args:
        size: Records of the class of a record, on average.
        k: That was asked for.
        sampled: Of how many records that is, where these are but a sample; None for all.

    Returns:
        Nothing where classes are not far larger than k.
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
    return "is" if len(names) == 1 else "are"


def _for_one_node(objective: str | None, names: list[str]) -> tuple[str, ...]:
    """Returns what keeps more with levels for whole columns, as far as the job does not ask for it already."""
    if objective is None:
        return ()
    if not OBJECTIVES[objective].weighed:
        return ("The objective counts classes and not what columns lose. To lose less, write method: {name: skald, objective: gcp}.",)
    if not names:
        return ()
    which, name = "one of them" if len(names) > 1 else "it", json.dumps(names[0], ensure_ascii=False)
    return (f"If {which} matters most, raise its weight, as in method.weights: {{{name}: 3}}.",)


def _other_method(manifest: Manifest) -> str:
    loss = manifest.loss["gcp"]
    return (
        f"One level for a whole column costs {loss:.2f} of GCP here. Methods with labels of their own in every class mostly lose far less: "
        "method: {name: mondrian, score: ncp}. What they lose on these data is measured by skald compare JOB --methods skald,mondrian."
    )
