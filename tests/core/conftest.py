"""How laws are tried: a time is never asserted, so that a busy machine fails no test."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("skald", deadline=None)
settings.load_profile("skald")
