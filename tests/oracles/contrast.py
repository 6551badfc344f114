"""How far two colours are apart, as WCAG 2 defines it: 4.5 for words, 3 for marks is what people need."""

from __future__ import annotations


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#18212B``, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
