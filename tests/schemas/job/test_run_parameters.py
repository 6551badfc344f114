"""Parameters that Prefect keeps: figures and names, nothing that could be a value of a cell or a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from schemas.errors.base import JobError
from schemas.job.run_parameters import RunParameters

VALUE = "a cell value"
KEPT = [
    "privacy.k=10",
    "privacy.l.disease.distinct=3",
    "privacy.t.disease.t=0.2",
    "suppression.limit=0.05",
    "method.fragments.count=4",
    "memory=2GB",
    "columns.insensitive=[note, score]",
    "columns.sensitive.0.name=pay",
    "columns.sensitive.0.publish=shared",
    "columns.sensitive.0.publish.round=100",
    "columns.quasi_identifiers.1.hierarchy.widths=[1, 2]",
    "columns.quasi_identifiers.2.hierarchy.prefix.0=4",
    "source.path=people/*.parquet",
    "source.path.0=s3://bucket/people/*.parquet",
    "source.path=people/year=2026/month=*/*.parquet",
    "target=s3://bucket/releases",
    "work=other",
    "overlaps=refuse",
    "orphans=drop",
    "attacks=off",
    "attacks.sample=500",
    "privacy.knows.rows=2",
    "columns.person=patient",
    "columns.linkable.0=visit",
    "columns.quasi_identifiers.0.exact=false",
    "output={format: csv}",
    "output.format=csv",
    "run_by=Data office",
    "source.name=Patients",
]
REFUSED = [
    f"columns.quasi_identifiers.0.hierarchy.tree={{{VALUE}: [x]}}",
    f"columns.quasi_identifiers.0.hierarchy.tree.{VALUE}=x",
    f"columns.quasi_identifiers.0.hierarchy={{tree: {{{VALUE}: [x]}}}}",
    f"columns={{quasi_identifiers: [{VALUE}]}}",
    f"source.null_values=[{VALUE}]",
    f"source={{null_values: [{VALUE}]}}",
    f"privacy.t.disease.hierarchy.tree={{{VALUE}: [x]}}",
    f"privacy={{t: {VALUE}}}",
    f"treatments.key={VALUE}",
    f"columns.quasi_identifiers.0.hierarchy.top={VALUE}",
    f"columns.quasi_identifiers.0.hierarchy.bottom={VALUE}",
    f"source.connection.password={VALUE}",
    f"source.path=s3://user:{VALUE}@host/bucket",
    f"target=s3://user:{VALUE}@host/bucket",
    f"source.path=s3://bucket/people.parquet?secret={VALUE}",
    f"source.path.0=s3://bucket/year=2026/people.parquet?x=1&token={VALUE}",
    f"target=s3://bucket/releases?sig={VALUE}",
    f"work=password={VALUE}",
    f"columns.sensitive=[{{name: pay, publish: {{top: {VALUE}}}}}]",
    f"columns.insensitive=[{{name: pay, publish: {{bottom: {VALUE}}}}}]",
    f"columns.sensitive.0.publish={{top: {VALUE}}}",
    f"columns.sensitive.0.publish.top={VALUE}",
    f"privacy.k=3\n{VALUE}",
    VALUE,
    "",
]


@pytest.mark.parametrize("setting", KEPT)
def test_settings_without_values_of_cells_are_parameters(setting: str) -> None:
    assert RunParameters.of(Path("job.yaml"), [setting]).overrides == (setting,)


@pytest.mark.parametrize("setting", REFUSED)
def test_settings_that_could_hold_values_of_cells_are_refused_by_their_position_alone(setting: str) -> None:
    with pytest.raises(JobError, match="'--set 2'; write them into the job file, or run with --direct") as refused:
        RunParameters.of(Path("job.yaml"), ["privacy.k=3", setting])
    assert VALUE not in str(refused.value)
    with pytest.raises(ValidationError) as faults:
        RunParameters(job_file="job.yaml", settings=[setting])
    assert VALUE not in str(faults.value)


@pytest.mark.parametrize(
    ("setting", "forms"),
    [
        ("privacy={k: 12}", "--set privacy.k=…"),
        (f"privacy={{k: 12, t: {{{VALUE}: {{t: 0.2}}}}}}", "--set privacy.k=… --set privacy.t.COLUMN.t=…"),
        ("columns.quasi_identifiers.0={name: age, hierarchy: {widths: [1]}}", "--set columns.quasi_identifiers.0.name=… --set columns."),
    ],
)
def test_a_mapping_is_answered_with_the_dotted_paths_to_write_instead(setting: str, forms: str) -> None:
    with pytest.raises(JobError) as refused:
        RunParameters.of(Path("job.yaml"), ["privacy.k=3", setting])
    [sentence] = refused.value.faults
    assert f"--set 2 gives a mapping; --set takes a dotted path and its value: write {forms}" in sentence
    assert VALUE not in sentence
    # What is told is taken: each path may be a parameter.
    told = [part.removesuffix("=…") for part in sentence.split("write ")[1].split() if part != "--set"]
    assert RunParameters.of(Path("job.yaml"), [f"{path}=1" for path in told]).settings


def test_a_setting_that_is_none_is_answered_with_what_set_takes() -> None:
    with pytest.raises(JobError, match=r"dotted path and its value, as in --set privacy\.k=12"):
        RunParameters.of(Path("job.yaml"), ["privacy"])


def test_what_the_form_asks_for_by_name_comes_last_and_wins() -> None:
    given = RunParameters(job_file="/jobs/job.yaml", k=7, limit=0.00001, memory="1GB", settings=["privacy.k=3"])
    assert given.overrides == ("privacy.k=3", "privacy.k=7", "suppression.limit=1e-05", "memory=1GB")


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"k": True}, {"limit": 1.1}, {"limit": -0.1}, {"memory": "lots"}, {"other": 1}, {"job_file": ""}]
)
def test_figures_out_of_range_and_unknown_fields_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RunParameters.model_validate({"job_file": "job.yaml"} | wrong)
