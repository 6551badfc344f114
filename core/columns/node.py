"""A node of the lattice: what the recoding of one level per quasi-identifier is called, wherever codes are rolled up."""

from __future__ import annotations

Node = tuple[int, ...]
