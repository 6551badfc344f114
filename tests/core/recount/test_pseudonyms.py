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


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("revealed", [0, 1, 2])
@pytest.mark.parametrize("malformed", [0, 1, 2])
def test_pseudonyms_of_another_form_are_a_fault_and_those_of_masked_records_where_some_are_masked(
    masks: bool, revealed: int, malformed: int
) -> None:
    expected = [f"{malformed} record{'s' * (malformed > 1)} in 'ssn' without the form of its treatment"] if malformed else []
    if masks and revealed:
        expected.append(f"{revealed} masked record{'s' * (revealed > 1)} with a pseudonym in 'ssn', which links them")
    found = pseudonym_faults(HASHED, masks, (malformed, revealed), None)
    assert [one.split(" (")[0] for one in found] == expected
