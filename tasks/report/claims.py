"""Report texts on attacks, untreated columns, and the maximum risk that a release claims.

No maximum risk is claimed where untreated columns single people out.
"""

from __future__ import annotations

from schemas.errors.base import counted, verb_of
from schemas.job.privacy import AttackBasis, AttackFigures, attacks_sentence, broken_attacks
from schemas.release.figures import KINDS, Together, reason_of_combinations, reason_of_identifying_columns, together_warning
from schemas.release.increments import composition_warning
from schemas.release.manifest import Manifest
from schemas.release.report import ReportedAttack
from tasks.report.terms import UnitWording

TITLES = {
    "singling_out": "Singling out",
    "linkage": "Linkage",
    "inference": "Inference",
    "membership": "Membership",
    "downcoding": "Downcoding",
    "joins": "Joins",
}
ATTACKERS = {
    "singling_out": "Looks for what holds of fewer people than was promised",
    "linkage": "Has a file with names, and picks each person's record",
    "inference": "Guesses a person's value",
    "membership": "Guesses whether a person is in the source",
    "downcoding": "Guesses a finer label than the published one",
    "joins": "Joins tables or releases",
}
ACCEPTED = {
    "singling_out": "such values are published, and whoever knows one finds the record",
    "linkage": "k leaves whoever knows all quasi-identifiers one right guess in k",
    "inference": "the job bounds no further how likely a value is",
    "membership": "k-anonymity does not hide who is in the source",
    "downcoding": "labels as narrow as their class disclose something of it",
    "joins": "the job accepts it with a warning",
}
ON_LABELS = (
    "Before it was published, the release was attacked by code that knows the files and what an attacker may know. A control group shows "
    "what the same attacker gets right without the release: people who are not in it, made by recombining columns. An advantage is the "
    "difference of both shares, with its interval at 95 % (Wilson). These figures follow from the data files alone: the people who are "
    "attacked are known as exactly as their labels are."
)
ON_SOURCE = (
    "The same attacks were played against people of the source. The control group are those who were left out, or others made by "
    "recombining columns where these are few. Such figures follow from the source, and stay in the run folder."
)
UNPLAYED = "This release was not attacked: the job turned attacks off, or a version made it that had none."


def attack_sentences(manifest: Manifest) -> tuple[str, ...]:
    """Return the report's sentences on how a release was attacked and how many attacks succeeded."""
    basis = manifest.attacked
    if basis is None:
        return (UNPLAYED,)
    broken = len(broken_attacks(manifest.attacks))
    tried = len(manifest.attacks)
    verdict = (
        f"{broken:,} of {counted(tried, 'attack')} won more than the job accepts."
        if broken
        else f"None of {counted(tried, 'attack')} won more than the job accepts."
        if tried
        else "No attack was played."
    )
    whole = not basis.unplayed
    return (verdict, ON_LABELS, *((ON_SOURCE,) if whole else ()), *basis.unplayed, _drawn(basis))


def _drawn(basis: AttackBasis) -> str:
    whom = "everybody" if basis.sample is None else f"at most {counted(basis.sample, 'person')} each, fewer where a guess costs much"
    return f"Attacks were played against {whom}; they were drawn by seed {basis.seed:,}. Code of the attacks: {basis.code[:12]}."


def reported_attacks(manifest: Manifest) -> tuple[ReportedAttack, ...]:
    """Return a manifest's attacks with titles and explanations, those that break the release first."""
    order = sorted(manifest.attacks, key=lambda one: one.verdict != "broken")
    return tuple(
        ReportedAttack(title=TITLES[one.name], attacker=ATTACKERS[one.name], meaning=attack_meaning(one), figures=one) for one in order
    )


def attack_meaning(attack: AttackFigures) -> str:
    """Return a sentence that explains an attack's verdict for the report."""
    if attack.verdict == "broken":
        if not attack.guesses:
            return "Breaks the release. Its figures follow from the source and stand in the run folder alone."
        if attack.accepted:
            return "Breaks the release: it wins more than the job accepts."
        are = verb_of(attack.right, "are")
        return f"Breaks the release: {attack.right:,} of its guesses {are} right, and the job promises that none is."
    if attack.verdict == "told":
        return f"Wins more than without the release, within what the job accepts: {ACCEPTED[attack.name]}."
    if not attack.accepted and not attack.right:
        return "No guess is right, as was promised."
    return "Wins no more than without the release."


def attack_warning(manifest: Manifest) -> str:
    """Return a warning of attacks that won more than the job accepts; empty if there are none."""
    broken = broken_attacks(manifest.attacks)
    if not broken:
        return ""
    first, others = attacks_sentence(broken[0]), len(broken) - 1
    more = f" and {others:,} more" if others else ""
    return f"{counted(len(broken), 'attack')} on this release won more than the job accepts: {first}{more}. Do not hand it on unread."


def reason_without_maximum_risk(manifest: Manifest) -> str:
    """Return why untreated columns rule out a claim of maximum risk; empty if they do not."""
    k, together = int(manifest.privacy["k"]), manifest.passthrough_together
    said = reason_of_combinations(
        together, k, is_accepted=manifest.asked.accept_untreated, has_untreated_columns=manifest.has_untreated_columns
    )
    return said or reason_of_identifying_columns(manifest.passthrough)


def accepted_below_k(manifest: Manifest) -> Together | None:
    """Return the figures of untreated columns together if the job accepts some below k, else None."""
    together = manifest.passthrough_together
    return together if together and together.below_k and manifest.asked.accept_untreated else None


def first_warning(manifest: Manifest) -> str:
    """Return the most important warning: on attacks, untreated columns or earlier releases; empty if none."""
    return attack_warning(manifest) or untreated_warning(manifest) or composition_warning(manifest)


def untreated_warning(manifest: Manifest) -> str:
    """Return a warning of untreated columns that together single people out; empty if none do."""
    return together_warning(manifest.passthrough_together, int(manifest.privacy["k"]), is_accepted=manifest.asked.accept_untreated)


def together_sentences(manifest: Manifest) -> tuple[str, ...]:
    """Return a sentence for each counted kind of columns on how many units they single out together."""
    k = int(manifest.privacy["k"])
    return tuple(one.sentence(kind, k) for kind in KINDS if (one := manifest.together(kind)))


def maximum_risk(manifest: Manifest) -> str:
    """Return the claim of a maximum risk, or why there is none; empty if no risk was measured.

    Where untreated columns rule out a claim, it says why. Empty where no risk was measured.
    """
    # By the smallest class that was counted: k is only what no class may fall below.
    least = int(manifest.risk.get("after", {}).get("min_class", 0))
    return reason_without_maximum_risk(manifest) or (
        _limited(manifest, UnitWording.of_release(manifest).maximum_risk(least)) if least else ""
    )


def maximum_risk_in_short(manifest: Manifest, unit: UnitWording, least: int) -> str:
    """Return the claim of a maximum risk, or why there is none, in short for the command line.

    Args:
        manifest: Of the release.
        unit: The unit that classes are counted in.
        least: The smallest class.
    """
    return reason_without_maximum_risk(manifest) or _limited(manifest, unit.maximum_risk_in_short(least))


def _limited(manifest: Manifest, claim: str) -> str:
    accepted = accepted_below_k(manifest)
    if accepted is None:
        return claim
    return (
        f"{claim.rstrip('.')}, by the quasi-identifiers alone. {accepted.accepted(int(manifest.privacy['k']))} (columns.accept_untreated)."
    )
