"""What may be a key: how many random bits can be in it at most."""

from __future__ import annotations

import string
from math import log2

LEAST_BITS = 128
LEAST_DISTINCT = 5
_KINDS = ((string.digits, 10), (string.hexdigits, 16), (string.printable, 64))


def is_strong(key: bytes) -> bool:
    """Tells whether a key can hold 128 bits: by its length and the kind of characters that it is written in.

    Sixteen random bytes can, or 32 hexadecimal digits, 39 decimal ones, 22 of base 64. A sentence of that length passes too: what cannot
    be seen from a key is how it was chosen.
    """
    size = next((size for characters, size in _KINDS if set(key) <= set(characters.encode())), 256)
    return len(key) * log2(size) >= LEAST_BITS and len(set(key)) >= LEAST_DISTINCT
