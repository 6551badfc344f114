"""What to do next where one level for each whole column withholds columns: in words, and by the line of the job that does it."""

from __future__ import annotations

import json

from schemas.errors.base import listed
from schemas.job.objectives import OBJECTIVES
from schemas.release.manifest import Manifest

NEARLY, COARSE = 0.9, 0.5
"""The penalty from which a column tells next to nothing, and that of all columns from which another method is worth a look."""


def advice_sentences(manifest: Manifest, objective: str | None) -> tuple[str, ...]:
    """Returns which columns one node withholds, or nearly so, and what to write to keep more of them; empty if it keeps enough.

    ``objective`` is what the search minimised, if that is known.
    """
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
