"""How laws are tried: how often, and that no busy machine fails one."""

from __future__ import annotations

import os
from math import ceil

from hypothesis import HealthCheck, settings

USUAL = 60
"""Examples of a law that asks for no other number."""
THOROUGHLY = os.environ.get("SKALD_LAWS") == "thoroughly"
QUICKLY, FEW = 0.1, 10
"""The share of the examples that ``make test`` tries, and the least; ``make slow`` tries all of them. Each run draws other ones."""

# How long an example takes to draw or to try says how busy the machine is.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def load() -> None:
    """Make this the way of all laws, those that ask for nothing else."""
    settings.register_profile("skald", tried(USUAL), deadline=None, suppress_health_check=SLOW)
    settings.load_profile("skald")


def tried(examples: int) -> settings:
    """Return how a law is tried that needs another number of examples than most."""
    return settings(max_examples=examples if THOROUGHLY else max(min(examples, FEW), ceil(examples * QUICKLY)))
