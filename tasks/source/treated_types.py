"""Which identifiers can be treated as the job says, by their types, and of which type their pseudonyms are."""

from __future__ import annotations

import pyarrow as pa

from core.columns.column_types import working_type
from core.pseudonyms.treatments import has_text
from schemas.errors.base import SourceError, nearest
from schemas.job.job import Job
from schemas.pseudonyms.kinds import treatment_kind


def treated_types(job: Job, schema: pa.Schema) -> dict[str, pa.DataType]:
    """Returns the type of the pseudonyms of each identifier that is published, in the order of the job.

    Raises:
        SourceError: a column whose type its treatment cannot take, or a shift by a subject that is no column or has no one text.
    """
    types = {}
    for one in job.columns.pseudonyms:
        dtype, entry = working_type(schema.field(one.name).type), treatment_kind(one.treatment)
        if (made := entry.published(one.treatment, dtype)) is None:
            raise SourceError.wrong_type(one.name, str(dtype), f"treated by '{entry.name}'", entry.fitting)
        if (subject := one.treatment.subject) is not None:
            _check_subject(schema, subject, entry.name)
        types[one.name] = made
    return types


def _check_subject(schema: pa.Schema, subject: str, kind: str) -> None:
    if subject not in schema.names:
        raise SourceError.unknown_columns([f"'{subject}'{nearest(subject, schema.names)}"])
    dtype = working_type(schema.field(subject).type)
    if not has_text(dtype):
        raise SourceError.wrong_type(subject, str(dtype), f"the subject of a {kind}", "make it text, a whole number or a date")
