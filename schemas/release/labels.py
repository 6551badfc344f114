"""How labels of a release are spelled, for whoever writes them and whoever reads them."""

from __future__ import annotations

NULL_MEMBER = "null"
"""What stands for a null among values, as in ``{a, b, null}``; a value that could be read as it is in quotes there."""
