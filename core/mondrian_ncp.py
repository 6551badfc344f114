"""The cut that lowers the normalised certainty penalty most, on the median or off it, compiled by numba."""

from __future__ import annotations
