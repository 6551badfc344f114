"""A treatment of identifiers that the product does not know is one entry: schema, plan, release, recount, revealing and docs find it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from core.privacy.pseudonyms import TreatmentInputs, texts
from docs.reference_pages import job_page
from schemas.errors.base import JobError, VerificationError
from schemas.job.job import load_job
from schemas.reading.model import StrictModel
from schemas.reading.registry import Code
from schemas.registry.treatment_kinds import TREATMENTS, TreatmentKind
from schemas.registry.treatments import TreatmentSpec
from schemas.relational.tables_job import jobs_json_schema
from tasks.recount.recount import verify_release
from tasks.writing.pseudonyms import reveal
from tests.conftest import Anonymise
from tests.jobs import data_files, people, people_job, released
from tests.registries.shown import shown_plan, shown_report

TABLE = people(120)


class Backwards(StrictModel):
    """How a toy writes."""

    mark: str = "x"
    """What it begins with."""


class BackwardsTreatment(TreatmentSpec):
    """Publishes text the wrong way round."""

    kind: ClassVar[str] = "backwards"
    backwards: Backwards
    """Its settings."""


def turned(spec: BackwardsTreatment, values: pa.Array, _means: TreatmentInputs) -> pa.Array:
    """Return a mark and the text from its end."""
    marks = pa.scalar(spec.backwards.mark, pa.large_string())
    return pc.binary_join_element_wise(marks, pc.utf8_reverse(texts(values)), pa.scalar("", pa.large_string()))


def turned_again(spec: BackwardsTreatment, pseudonyms: pa.Array, _means: TreatmentInputs) -> pa.Array:
    """Return the text without the mark, from its end."""
    return pc.utf8_reverse(pc.utf8_slice_codeunits(pseudonyms, len(spec.backwards.mark)))


TOY = TreatmentKind(
    name="backwards",
    schema=BackwardsTreatment,
    words="text from its end",
    form=lambda spec: f"(?s){spec.backwards.mark}.*",
    published=Code("core.privacy.pseudonyms:type_of_text"),
    fitting="make it text",
    pseudonyms=Code("tests.registries.test_toy_treatment:turned"),
    originals=Code("tests.registries.test_toy_treatment:turned_again"),
    meets="never",
)


def toy_job(folder: Path, table: pa.Table = TABLE) -> Path:
    columns = {
        "identifiers": [{"name": "person", "treatment": {"backwards": {"mark": "y"}}}, "sex", "zip", "height", "smoker", "born"],
        "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}}],
        "sensitive": ["disease"],
        "insensitive": ["note", "score", "visits"],
    }
    return people_job(folder, table, columns=columns)


@pytest.mark.slow
def test_a_treatment_is_one_entry(anonymise: Anonymise, tmp_path: Path) -> None:
    with TREATMENTS.having(TOY):
        job = toy_job(tmp_path)
        assert jobs_json_schema()["$defs"]["BackwardsTreatment"]["properties"]["backwards"]
        assert "## treatment: backwards" in job_page()
        assert "person (text from its end)" in shown_plan(job)
        made = anonymise(job)
        assert made.manifest.pseudonyms == {"person": "text from its end"}
        assert "text from its end" in shown_report(made)
        pseudonyms = released(made.folder)["person"].to_list()
        assert set(pseudonyms) <= {f"y{str(person)[::-1]}" for person in TABLE["person"].to_pylist()}
        verify_release(load_job(job), made.folder)
        assert reveal(load_job(job), "person", ["y12", "y5"]) == ["21", "5"]
    assert "BackwardsTreatment" not in str(jobs_json_schema())
    with pytest.raises(JobError, match="names no treatment"):
        load_job(job)


FORGED: dict[str, tuple[Callable[[pl.Series], pl.Series], str]] = {
    "another form": (lambda person: person.str.slice(1), r"without the form of its treatment \(text from its end\)"),
    "an original": (lambda person: pl.Series("person", ["y1"] * len(person)), "1 value of the source's 'person' published"),
}


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("case", FORGED)
def test_the_recount_knows_its_form_and_that_it_never_meets_an_original(anonymise: Anonymise, tmp_path: Path, case: str) -> None:
    forge, told = FORGED[case]
    with TREATMENTS.having(TOY):
        job = toy_job(tmp_path, TABLE.set_column(0, "person", pa.array([f"y{number}" for number in range(len(TABLE))])))
        made = anonymise(job)
        [file] = data_files(made.folder)
        frame = pl.read_parquet(file)
        frame.with_columns(forge(frame["person"])).write_parquet(file)
        with pytest.raises(VerificationError, match=told):
            verify_release(load_job(job), made.folder)


def test_there_is_no_second_entry_of_one_name() -> None:
    with TREATMENTS.having(TOY), pytest.raises(ValueError, match="there is a treatment 'backwards' already"):
        TREATMENTS.add(TOY)
