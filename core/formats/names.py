"""Words of a column's name, and whether they say that its values number persons, events or places."""

from __future__ import annotations

import re
from typing import Literal

Numbered = Literal["person", "event", "place"]

NUMBERED: dict[Numbered, frozenset[str]] = {
    "person": frozenset(
        [
            "person",
            "patient",
            "subject",
            "member",
            "customer",
            "client",
            "user",
            "individual",
            "participant",
            "respondent",
            "employee",
            "beneficiary",
            "insured",
            "policyholder",
            "enrollee",
            "subscriber",
            "student",
            "pupil",
            "passenger",
            "donor",
            "claimant",
            "borrower",
            "cardholder",
            "tenant",
        ]
    ),
    "event": frozenset(
        [
            "visit",
            "encounter",
            "episode",
            "admission",
            "stay",
            "hospitalization",
            "hospitalisation",
            "appointment",
            "order",
            "transaction",
            "purchase",
            "invoice",
            "claim",
            "payment",
            "session",
            "event",
            "trip",
            "ride",
            "booking",
            "ticket",
            "call",
            "message",
            "prescription",
            "procedure",
            "specimen",
            "sample",
            "test",
            "record",
            "row",
            "line",
            "entry",
        ]
    ),
    "place": frozenset(
        [
            "hospital",
            "ward",
            "clinic",
            "site",
            "center",
            "centre",
            "unit",
            "provider",
            "doctor",
            "physician",
            "practitioner",
            "nurse",
            "staff",
            "practice",
            "department",
            "dept",
            "store",
            "shop",
            "branch",
            "merchant",
            "seller",
            "vendor",
            "supplier",
            "product",
            "item",
            "sku",
            "drug",
            "device",
            "school",
            "teacher",
            "company",
            "employer",
            "firm",
            "team",
            "station",
            "machine",
            "batch",
            "lot",
            "study",
            "trial",
            "plan",
        ]
    ),
}
"""Words for whom a record is about, for what happened to them, and for what many people have in common."""


def words(name: str) -> list[str]:
    """Split a column's name into words in lower case: ``dateOfBirth`` and ``date_of_birth`` have three."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z]+", parted.lower()) if word]


def numbered_by(name: str) -> Numbered | None:
    """Return what a column numbers by its name: persons, events or places; None if it does not say.

    The last such word decides: ``patient_visit_id`` numbers visits.
    """
    told = [kind for word in words(name) for kind, known in NUMBERED.items() if word in known or word.removesuffix("s") in known]
    return told[-1] if told else None
