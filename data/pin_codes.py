"""The 1,347 PIN codes of the medical data set, after Karnataka's postal map, with their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PIN_CODES = 1_347

# The map is the same whatever the seed of the data, so that two data sets can be compared code by code.
MAP_SEED = 560_001

BENGALURU = (560_001, 560_110)
CITIES = ((570_001, 570_032), (575_001, 575_030), (580_001, 580_032), (583_101, 583_105), (585_101, 585_106), (590_001, 590_020))
DISTRICTS = (561, 562, 563, 571, 572, 573, 574, 576, 577, 581, 582, 583, 584, 585, 586, 587, 591)
DISTRICT_OFFICES = (111, 350)


def pin_codes() -> NDArray[np.int32]:
    """Return the PIN codes from the most to the least populous, shape (1347,).

    Bengaluru, the other cities, then the country.
    """
    rng = np.random.default_rng(MAP_SEED)
    capital = np.arange(BENGALURU[0], BENGALURU[1] + 1)
    cities = np.concatenate([np.arange(first, last + 1) for first, last in CITIES])
    country = np.concatenate([1_000 * district + np.arange(DISTRICT_OFFICES[0], DISTRICT_OFFICES[1] + 1) for district in DISTRICTS])
    offices = rng.choice(country, PIN_CODES - capital.size - cities.size, replace=False)
    return np.concatenate([rng.permutation(capital), rng.permutation(cities), offices]).astype(np.int32)


def pin_weights() -> NDArray[np.float64]:
    """Return one weight per code of `pin_codes`, shape (1347,).

    Zipf's law with its head flattened (Zipf-Mandelbrot). The first code has 1.9 % of the patients and the last 0.015 %, so that all of
    them occur in some ten thousand records.
    """
    return np.asarray(1.0 / (10.0 + np.arange(1, PIN_CODES + 1)))
