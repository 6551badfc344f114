"""One block of synthetic patients, after Table I and section IV of the SKALD paper.

No person's data: frequencies are set by hand to look like an Indian hospital's, skewed where real ones are (blood groups, cities,
illnesses), with BMI and health condition depending a little on age. Every column takes the paper's number of distinct values: 8, 16, 67,
241 and 1,347.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data.identities import addresses, names, patient_ids
from data.lots import TICKETS, tickets
from data.pin_codes import pin_codes, pin_weights

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
    """Return the 16 professions with their frequencies, domain by domain."""
    return {name: share for domains in PROFESSIONS.values() for jobs in domains.values() for name, share in jobs.items()}


@lru_cache(maxsize=1)
def draw_block(seed: int, number: int) -> pa.Table:
    """Draw one block of synthetic patients: records ``number * BLOCK`` to ``(number + 1) * BLOCK``.

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
