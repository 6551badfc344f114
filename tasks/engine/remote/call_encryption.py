"""Calls are sealed: whoever reads or writes where they lie learns nothing from them, and cannot make a worker do anything.

AES-256-GCM, with a key of the moment that a worker gets over the engine's own channel and that lies nowhere. The name of a call is sealed
with it, so that one cannot be put in another's place.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from schemas.errors.runners import RunnerError

NONCE = 12
"""Bytes; chosen by chance, of which 2^32 under one key are safe, and a phase has some dozen."""


@dataclass(frozen=True)
class CallKey:
    """A key that calls are sealed with; it shows itself nowhere."""

    secret: bytes = field(default_factory=lambda: AESGCM.generate_key(256), repr=False)

    def sealed(self, name: str, content: bytes) -> bytes:
        """Returns the content of a call as it may lie anywhere."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + AESGCM(self.secret).encrypt(nonce, content, name.encode())

    def opened(self, name: str, sealed: bytes) -> bytes:
        """Returns the content of a call.

        Raises:
            RunnerError: it is not what was sealed under this name.
        """
        try:
            return AESGCM(self.secret).decrypt(sealed[:NONCE], sealed[NONCE:], name.encode())
        except (InvalidTag, ValueError):
            raise RunnerError.altered_call() from None
