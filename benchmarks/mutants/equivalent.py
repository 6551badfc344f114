"""Mutants that nothing could kill: what they change is not seen by anybody, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {}
"""By the name of a mutant."""
