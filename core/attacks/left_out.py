"""Who was left out: a combination that k people share and that is not published breaks l or t (minimality: Wong et al., VLDB 2007)."""

from __future__ import annotations

import numpy as np

from core.attacks.advantages import Guesses
from core.attacks.attacked_release import AttackedRelease, Codes, joint_codes

BY_LEFT_OUT = "the value of somebody who was left out with them"


def inference_by_left_out(
    release: AttackedRelease, column: str, labels: Codes, values: Codes, k: int, sample: int, random: np.random.Generator
) -> Guesses:
    """Plays the value of another person of the same combination: of those that k share and that were left out; control: of classes.

    Args:
        release: All of its records.
        column: The sensitive column.
        labels: Shape (n, q), the label of each record of the source in each quasi-identifier, -1 for none.
        values: Shape (n,), its value in the codes of the release.
        k: What is promised.
        sample: Guesses, at most.
        random: Draws.
    """
    joint = joint_codes(np.concatenate([release.labels, labels]))
    classes, groups = joint[: len(release.sizes)], joint[len(release.sizes) :]
    size = int(joint.max(initial=0)) + 1
    published = np.zeros(size, np.bool_)
    published[classes] = True
    counts = np.bincount(groups, minlength=size)
    known = (labels >= 0).all(axis=1)
    left = known & (counts >= max(k, 2))[groups] & ~published[groups]
    mine, others = (_neighbours_right(groups[chosen], values[chosen], sample, random) for chosen in (left, known & published[groups]))
    return Guesses("inference", column, BY_LEFT_OUT, *mine, *others)


def _neighbours_right(groups: Codes, values: Codes, sample: int, random: np.random.Generator) -> tuple[int, int]:
    """Returns how many people are guessed by somebody else of their group, and how many guesses are right."""
    held = values != -1
    groups, values = groups[held], values[held]
    order = np.lexsort([random.random(len(groups)), groups])
    first, second = order[:-1], order[1:]
    same = groups[first] == groups[second]
    drawn = random.permutation(np.flatnonzero(same))[:sample]
    right = (values[first[drawn]] == values[second[drawn]]) & (values[first[drawn]] >= 0)
    return len(drawn), int(np.count_nonzero(right))
