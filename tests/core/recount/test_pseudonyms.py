"""How many equal values make it certain that identifiers were published as they are, where some may be equal by chance."""

from __future__ import annotations

import pytest

from core.recount.linked import SAMPLE, SPARSE, pseudonym_faults
from schemas.job.identifiers import Identifier


def identifier(treatment: dict[str, object]) -> Identifier:
    return Identifier.model_validate({"name": "ssn", "treatment": treatment})


KEY = {"env": "KEY"}
ENCRYPTED, HASHED = identifier({"encrypt": {"key": KEY, "alphabet": "digits", "width": 9}}), identifier({"hash": {"key": KEY}})


@pytest.mark.parametrize(
    ("shared", "accused"),
    [
        ((SAMPLE, SAMPLE, SPARSE - 1), True),
        ((SAMPLE - 1, SAMPLE - 1, SPARSE - 1), False),
        ((SAMPLE + 1, SAMPLE, SPARSE - 1), False),
        ((SAMPLE, SAMPLE, SPARSE), False),
        (None, False),
    ],
)
def test_encrypted_numbers_are_accused_if_enough_of_a_sparse_domain_are_all_of_the_source(
    shared: tuple[int, int, int] | None, accused: bool
) -> None:
    assert bool(pseudonym_faults(ENCRYPTED, False, (0, 0), shared)) == accused


def test_a_single_value_of_the_source_accuses_a_hash() -> None:
    assert pseudonym_faults(HASHED, False, (0, 0), (30, 0, 30)) == []
    assert pseudonym_faults(HASHED, False, (0, 0), (30, 1, 30)) == ["1 value of the source's 'ssn' published as pseudonyms"]
