"""Digests of what records publish beside labels tell all different values apart, and a masked record has no pseudonym."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.writing.rewriting import additional_columns

NAMES = ["score", "disease", "ssn"]


def test_a_null_and_what_is_no_number_are_two_values_and_masked_records_have_no_pseudonym() -> None:
    score = pa.array([1.0, float("nan"), None, 1.0, float("nan"), None])
    disease, ssn = pa.array(["x", "x", "x", "y", "x", None]), pa.array(["p", "p", "q", "q", "r", "r"])
    payload = pa.RecordBatch.from_arrays([score, disease, ssn], names=NAMES)
    columns = SimpleNamespace(sensitive=["disease"], linking=["ssn"])
    job: Any = SimpleNamespace(columns=columns, suppression=SimpleNamespace(masks=True))
    source: Any = SimpleNamespace(payload=NAMES, treatments={"ssn": "hash"})
    labels, classes = pa.table({"q": ["a", "*"]}), np.array([0, 0, 1, 0, 0, 1], np.int32)
    found = additional_columns(job, source, labels, classes, payload)
    assert set(found) == {"link_0", "insensitive", "sensitive", "pseudonyms"}
    assert found["link_0"].to_pylist() == ["p", "p", None, "q", "r", None]
    numbers = {name: np.unique(found[name].to_numpy(), return_inverse=True)[1].tolist() for name in set(found) - {"link_0"}}
    for name, values in (("insensitive", "onNonN"), ("sensitive", "xxxyxN"), ("pseudonyms", "ppNqrN")):
        told = [[one == other for other in numbers[name]] for one in numbers[name]]
        assert told == [[one == other for other in values] for one in values], name
