"""Which identifiers can be treated as the job says, by their types, and of which type their pseudonyms are."""

from __future__ import annotations

import pyarrow as pa

from core.columns.column_types import working_type
from core.pseudonyms.treatments import has_text, published_type
from schemas.errors.base import SourceError, nearest
from schemas.job.job import Job
from schemas.pseudonyms.treatments import ShiftTreatment

_TEXT = "make it text, a whole number or a date"
FITTING = {kind: _TEXT for kind in ("hash", "mask", "token")} | {
    "encrypt": "it takes text, without encrypt.width, or whole numbers, with encrypt.width: the digits of the longest one",
    "shift": "it takes dates and timestamps",
}
"""What a column must be for a treatment to make sense."""


def treated_types(job: Job, schema: pa.Schema) -> dict[str, pa.DataType]:
    """Returns the type of the pseudonyms of each identifier that is published, in the order of the job.

    Raises:
        SourceError: a column whose type its treatment cannot take, or a shift by a subject that is no column or has no one text.
    """
    types = {}
    for one in job.columns.pseudonyms:
        dtype, kind = working_type(schema.field(one.name).type), one.treatment.kind
        if (made := published_type(one.treatment, dtype)) is None:
            raise SourceError.wrong_type(one.name, str(dtype), f"treated by '{kind}'", FITTING[kind])
        if isinstance(one.treatment, ShiftTreatment):
            _check_subject(schema, one.treatment.shift.subject)
        types[one.name] = made
    return types


def _check_subject(schema: pa.Schema, subject: str) -> None:
    if subject not in schema.names:
        raise SourceError.unknown_columns([f"'{subject}'{nearest(subject, schema.names)}"])
    dtype = working_type(schema.field(subject).type)
    if not has_text(dtype):
        raise SourceError.wrong_type(subject, str(dtype), "the subject of a shift", _TEXT)
