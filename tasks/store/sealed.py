"""What is kept as JSON between runs carries its own digest, so that a character that changed is noticed and the whole not believed.

It is no protection from who may write in the work folder, who could seal it anew; it is one from accidents, and from files that were moved.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from schemas.reading.regular_files import content_of


def seal(content: Any) -> str:
    """Returns anything that JSON can say as JSON with its digest."""
    return json.dumps([content, _digest(content)])


def unsealed(path: Path) -> Any:
    """Returns what was sealed in a file; None if it is gone, cut off or not what was sealed."""
    try:
        return unsealed_text(content_of(path, links=False))
    except OSError:
        return None


def unsealed_text(text: bytes) -> Any:
    """Returns what was sealed as a text; None if it is cut off or not what was sealed."""
    try:
        content, digest = json.loads(text)
    except (ValueError, TypeError):
        return None
    return content if digest == _digest(content) else None


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
