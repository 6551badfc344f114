"""Whether releases are signed, for whoever need not load what signs them."""

from __future__ import annotations

import os

SIGNING_KEY = "SKALD_SIGNING_KEY"
"""The variable that names the file of the private key; unset or empty where nothing is signed."""


def is_signing() -> bool:
    """Tells whether the environment names a key to sign releases with."""
    return bool(os.environ.get(SIGNING_KEY))
