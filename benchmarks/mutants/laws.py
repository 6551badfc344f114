"""How laws of Hypothesis are tried when faults are put into the code."""

from __future__ import annotations

from hypothesis import Phase, settings


def same_examples() -> None:
    """Let laws draw the same examples in each run, and make none smaller."""
    settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate), derandomize=True, database=None)
    settings.load_profile("mutants")
