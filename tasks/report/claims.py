"""Which maximum risk a release claims, and why none: by whatever it publishes, and not by its quasi-identifiers alone."""

from __future__ import annotations

from schemas.release.figures import KINDS, Together, together_warning, unclaimed_because, unclaimed_together
from schemas.release.manifest import Manifest
from tasks.report.attacks import attack_warning
from tasks.report.units import UnitWording


def unclaimed(manifest: Manifest) -> str:
    """Returns why what is published as in the source leaves no maximum risk to claim; empty where it does not."""
    k, together = int(manifest.privacy["k"]), manifest.passthrough_together
    said = unclaimed_together(together, k, accepted=is_accepted_untreated(manifest), untreated=manifest.untreated)
    return said or unclaimed_because(manifest.passthrough)


def is_accepted_untreated(manifest: Manifest) -> bool:
    """Tells whether the job accepts that fewer than k share what untreated columns publish together."""
    return bool(manifest.asked and manifest.asked.accept_untreated)


def accepted_below_k(manifest: Manifest) -> Together | None:
    """Returns what the job accepts of untreated columns together, where there is something to accept and it does."""
    together = manifest.passthrough_together
    return together if together and together.below_k and is_accepted_untreated(manifest) else None


def first_warning(manifest: Manifest) -> str:
    """Returns what is said before anything else of a release; empty where nothing stands out."""
    return attack_warning(manifest) or untreated_warning(manifest)


def untreated_warning(manifest: Manifest) -> str:
    """Returns the warning of untreated columns that single people out together; empty where none do."""
    return together_warning(manifest.passthrough_together, int(manifest.privacy["k"]), accepted=is_accepted_untreated(manifest))


def together_sentences(manifest: Manifest) -> tuple[str, ...]:
    """Returns who stands out by columns of each kind together, a sentence each."""
    k = int(manifest.privacy["k"])
    return tuple(one.sentence(kind, k) for kind in KINDS if (one := manifest.together(kind)))


def maximum_risk(manifest: Manifest) -> str:
    """Returns the strictest published maximum that a release keeps, in a sentence, or why none is claimed; empty without a risk."""
    # By the smallest class that was counted: k is only what no class may fall below.
    least = int(manifest.risk.get("after", {}).get("min_class", 0))
    return unclaimed(manifest) or (_limited(manifest, UnitWording.of_release(manifest).maximum_risk(least)) if least else "")


def maximum_risk_in_short(manifest: Manifest, unit: UnitWording, least: int) -> str:
    """Returns the same as the command line says it.

    Args:
        manifest: Of the release.
        unit: What classes are counted in.
        least: The smallest class.
    """
    return unclaimed(manifest) or _limited(manifest, unit.maximum_risk_in_short(least))


def _limited(manifest: Manifest, claim: str) -> str:
    accepted = accepted_below_k(manifest)
    if accepted is None:
        return claim
    return (
        f"{claim.rstrip('.')}, by the quasi-identifiers alone. {accepted.accepted(int(manifest.privacy['k']))} (columns.accept_untreated)."
    )
