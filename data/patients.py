"""One block of synthetic patients, after Table I and section IV of the SKALD paper.

No person's data: frequencies are set by hand to look like an Indian hospital's, skewed where real ones are (blood groups, cities,
illnesses), with BMI and health condition depending a little on age. Every column takes the paper's number of distinct values: 8, 16, 67,
241 and 1,347.

Names and streets are Faker's for India. Faker makes one word at a time, so it fills small pools once and Arrow combines them; a patient's
number is written digit by digit into one byte matrix, which becomes an Arrow string column without a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

POOL_SEED = 1
POOL_DRAWS = 4_000

# Table I agrees with ages on the last day of this year: P0001-9112-1 was born in December 1991 and is 33.
YEAR = 2_024

MAX_NUMBER = 999_999_999
ID_LENGTH = len("P000000001-9112-1")


class Pools(NamedTuple):
    """Distinct words to combine, each an Arrow array of strings in alphabetical order."""

    first_names: pa.Array
    last_names: pa.Array
    houses: pa.Array
    streets: pa.Array


@lru_cache(maxsize=1)
def pools() -> Pools:
    """Return the pools of words, drawn from Faker's locale en_IN with a fixed seed."""
    from faker import Faker  # noqa: PLC0415 - start-up that only who makes data should pay

    fake = Faker("en_IN")
    fake.seed_instance(POOL_SEED)

    def pool(word: Callable[[], str]) -> pa.Array:
        return pa.array(sorted({word() for _ in range(POOL_DRAWS)}), pa.string())

    return Pools(pool(fake.first_name), pool(fake.last_name), pool(fake.building_number), pool(fake.street_name))


def names(count: int, rng: np.random.Generator) -> pa.Array:
    """Return ``count`` random full names as an Arrow array of strings."""
    return _combined(pools().first_names, " ", pools().last_names, count, rng)


def addresses(count: int, rng: np.random.Generator) -> pa.Array:
    """Return ``count`` random addresses, house and street, as an Arrow array of strings."""
    return _combined(pools().houses, ", ", pools().streets, count, rng)


def patient_ids(first: int, ages: NDArray[np.int16], rng: np.random.Generator) -> pa.Array:
    """Return a patient number, such as ``P000000001-9112-1``, for each age, as an Arrow array.

    Running number, year and month of birth, a digit from 1 to 3. The running number alone makes them unique.

    Args:
        first: running number of the first patient; numbers past `MAX_NUMBER` begin again at 0.
        ages: shape (n,), whole years at the end of `YEAR`.
        rng: source of the month and the last digit.
    """
    numbers = np.arange(first, first + ages.size)
    text = np.full((ages.size, ID_LENGTH), ord("-"), np.uint8)
    text[:, 0] = ord("P")
    triples, pairs = _digits(3), _digits(2)
    # The last block reaches one past the last number, a record that is never asked for.
    text[:, 1:4] = triples[numbers // 1_000_000 % 1_000]
    text[:, 4:7] = triples[numbers // 1_000 % 1_000]
    text[:, 7:10] = triples[numbers % 1_000]
    text[:, 11:13] = pairs[(YEAR - ages) % 100]
    text[:, 13:15] = pairs[rng.integers(1, 13, ages.size, np.uint8)]
    text[:, 16] = ord("0") + rng.integers(1, 4, ages.size, np.uint8)
    offsets = np.arange(0, text.size + 1, ID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(ages.size, pa.py_buffer(offsets), pa.py_buffer(text))


def _combined(left: pa.Array, between: str, right: pa.Array, count: int, rng: np.random.Generator) -> pa.Array:
    """Return random pairs of words, joined by a separator."""
    some = left.take(pa.array(rng.integers(0, len(left), count, np.int32)))
    others = right.take(pa.array(rng.integers(0, len(right), count, np.int32)))
    return pc.binary_join_element_wise(some, others, between)


@lru_cache(maxsize=2)
def _digits(width: int) -> NDArray[np.uint8]:
    """Return the ASCII digits of all numbers of a width, zero-padded, shape (10**width, width)."""
    text = "".join(f"{number:0{width}d}" for number in range(10**width))
    return np.frombuffer(text.encode("ascii"), np.uint8).reshape(-1, width)


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


TICKETS = 65_536


def tickets(weights: NDArray[np.float64], count: int = TICKETS) -> NDArray[np.intp]:
    """Return the item of each of ``count`` tickets, which items hold in proportion to their weights.

    An item holds its share of the tickets to within one, and at least one ticket if its share is one or more, so an item
    that is listed is an item that can occur. A draw is one look-up, where cumulative weights would take a search.

    Args:
        weights: shape (m,), not negative and not all zero; need not add up to one.
        count: number of tickets, a power of two so that an unbiased draw is a few random bits.

    Returns:
        Shape (count,): the item of every ticket, in ascending order.

    Raises:
        ValueError: a positive weight is so small that its item might get no ticket.
    """
    shares = weights * (count / weights.sum())
    starved = int(np.count_nonzero((shares > 0) & (shares < 1)))
    if starved:
        raise ValueError(f"{starved} of {weights.size} weights are too small for {count} tickets; draw from more tickets")
    ends = np.floor(np.cumsum(shares) + 0.5).astype(np.int64)
    ends[-1] = count
    return np.repeat(np.arange(weights.size), np.diff(ends, prepend=0))


# A million records are eight blocks. A block is also a row group.
BLOCK = 125_000

BLOOD_GROUPS = {"O+": 32.5, "B+": 31.5, "A+": 21.0, "AB+": 8.0, "O-": 2.2, "B-": 2.1, "A-": 2.0, "AB-": 0.7}

# sector → domain → profession → share of the patients; the hierarchy in jobs/medical.yaml is this tree
PROFESSIONS = {
    "Service": {
        "Healthcare": {"Medical Specialists": 4.0, "Allied Health": 5.0, "Nursing": 8.0, "Healthcare Support": 6.0},
        "Education": {"School Teachers": 12.0, "Lecturers": 4.5, "Special Educators": 1.5, "Education Administration": 3.0},
    },
    "Non-Service": {
        "Creative": {"Visual Artists": 2.0, "Performing Artists": 1.5, "Writers and Editors": 3.0, "Designers": 4.5},
        "Engineering": {"Software Engineers": 18.0, "Civil Engineers": 11.0, "Mechanical Engineers": 9.0, "Electrical Engineers": 7.0},
    },
}

YOUNGEST, OLDEST = 19, 85
LIGHTEST, HEAVIEST = 120, 360  # BMI in tenths

# condition → weight at 45 and how its logarithm changes in twenty years
CONDITIONS = {
    "Hypertension": (14.0, 0.30), "Diabetes": (12.0, 0.25), "Asthma": (7.0, -0.25), "Anaemia": (7.0, -0.20),
    "Migraine": (6.0, -0.25), "Hypothyroidism": (5.5, 0.05), "Gastritis": (5.5, -0.05), "Arthritis": (5.0, 0.40),
    "Back Pain": (5.0, 0.10), "Allergy": (4.5, -0.30), "Coronary Disease": (4.0, 0.40), "Depression": (4.0, -0.15),
    "Dengue": (3.0, -0.10), "Tuberculosis": (2.5, 0.00), "Obesity": (2.5, 0.05), "Kidney Disease": (2.0, 0.25),
    "Cataract": (2.0, 0.50), "COPD": (2.0, 0.30), "Eczema": (1.8, -0.20), "Gout": (1.5, 0.20), "Stroke": (1.2, 0.35),
    "Cancer": (1.2, 0.25), "Epilepsy": (1.0, -0.15), "Hepatitis": (1.0, 0.00), "Dementia": (0.8, 0.50),
}  # fmt: skip
CONDITION_TICKETS = 4_096

SCHEMA = pa.schema(
    [
        pa.field("patient_id", pa.string()),
        pa.field("name", pa.string()),
        pa.field("address", pa.string()),
        pa.field("blood_group", pa.dictionary(pa.uint8(), pa.string())),
        pa.field("profession", pa.dictionary(pa.uint8(), pa.string())),
        pa.field("age", pa.int16()),
        pa.field("bmi", pa.float64()),
        pa.field("pin_code", pa.int32()),
        pa.field("health_condition", pa.dictionary(pa.uint8(), pa.string())),
    ]
)


class Lots(NamedTuple):
    """Drawn item of every ticket, per column: a code, or the value itself for numbers."""

    blood_group: NDArray[np.uint8]  # (65536,)
    profession: NDArray[np.uint8]  # (65536,)
    age: NDArray[np.int16]  # (65536,)
    pin_code: NDArray[np.int32]  # (65536,)
    condition: NDArray[np.uint8]  # (67, 4096), one row per age


def professions() -> dict[str, float]:
    """Return the share of patients in each of the 16 professions, by name."""
    return {name: share for domains in PROFESSIONS.values() for jobs in domains.values() for name, share in jobs.items()}


@lru_cache(maxsize=1)
def draw_block(seed: int, number: int) -> pa.Table:
    """Return block ``number`` of synthetic patients, ``BLOCK`` records; the last one drawn is cached.

    A block depends on the seed and its number and on nothing else. The last one drawn is kept because a file may end inside it.

    Returns:
        `BLOCK` records in the columns of `SCHEMA`.
    """
    rng = np.random.default_rng([seed, number])
    lots = _lots()
    ages = lots.age[_draw(rng)]
    columns = [
        patient_ids(number * BLOCK + 1, ages, rng),
        names(BLOCK, rng),
        addresses(BLOCK, rng),
        _category(lots.blood_group[_draw(rng)], list(BLOOD_GROUPS)),
        _category(lots.profession[_draw(rng)], list(professions())),
        pa.array(ages),
        pa.array(_bmi(ages, rng)),
        pa.array(lots.pin_code[_draw(rng)]),
        _category(lots.condition[ages - YOUNGEST, _draw(rng, CONDITION_TICKETS)], list(CONDITIONS)),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@lru_cache(maxsize=1)
def _lots() -> Lots:
    """Return the tickets of all columns."""
    ages = np.arange(YOUNGEST, OLDEST + 1)
    age_weights = np.exp(-(((ages - YOUNGEST) / 38.0) ** 2)) + 0.02
    base, slope = np.array(list(CONDITIONS.values())).T
    condition_weights = base * np.exp(slope * (ages[:, None] - 45) / 20)
    return Lots(
        blood_group=tickets(np.array(list(BLOOD_GROUPS.values()))).astype(np.uint8),
        profession=tickets(np.array(list(professions().values()))).astype(np.uint8),
        age=ages[tickets(age_weights)].astype(np.int16),
        pin_code=pin_codes()[tickets(pin_weights())],
        condition=np.stack([tickets(weights, CONDITION_TICKETS) for weights in condition_weights]).astype(np.uint8),
    )


def _draw(rng: np.random.Generator, count: int = TICKETS) -> NDArray[np.uint16]:
    """Return random ticket numbers for one block."""
    return rng.integers(0, count, BLOCK, np.uint16)


def _bmi(ages: NDArray[np.int16], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the BMI of each patient, near normal around 24, in steps of 0.1.

    It grows by 0.3 per ten years of age. Values outside [12, 36] are mirrored at the end, so that the ends gather no heap. A tenth is an
    integer divided by ten, hence exactly the double that prints as 23.8.
    """
    drawn = np.float32(240) + np.float32(0.3) * (ages - np.float32(45)) + np.float32(38) * rng.standard_normal(BLOCK, np.float32)
    mirrored = HEAVIEST - np.abs(HEAVIEST - (LIGHTEST + np.abs(np.rint(drawn) - LIGHTEST)))
    return np.asarray(mirrored.astype(np.float64) / 10)


def _category(codes: NDArray[np.uint8], values: list[str]) -> pa.DictionaryArray:
    """Return codes as an Arrow dictionary column of texts."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, pa.string()))
