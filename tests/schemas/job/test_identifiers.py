"""What a job may say of identifiers, and that neither a key nor where it lies comes out of it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.errors.base import JobError
from schemas.job.job import Job, job_digest, load_job
from schemas.job.run_parameters import RunParameters
from schemas.relational.tables_job import jobs_json_schema
from tests.jobs import job_of, write_job

KEY = {"env": "SKALD_KEY"}
TREATMENTS: dict[str, Any] = {
    "hash": {"hash": {"key": KEY}},
    "mask": {"mask": {"keep": 3, "from": "end"}},
    "pattern": {"mask": {"pattern": r"(\d+).*", "replacement": r"\1*"}},
    "token": {"token": {"vault": {"file": "../vault.parquet"}}},
    "encrypt": {"encrypt": {"key": {"prefect_block": "skald-key"}, "alphabet": "digits"}},
    "shift": {"shift": {"subject": "person", "days": 30, "key": {"file": "key"}}},
}
SECRET = "s3cr3t-K3Y-that-must-not-be-seen"


def job_with(folder: Path, *entries: Any) -> Path:
    return write_job(folder, job_of(columns=job_of()["columns"] | {"identifiers": ["person", *entries]}))


def faults(folder: Path, treatment: Any, name: str = "ssn") -> tuple[str, ...]:
    with pytest.raises(JobError) as raised:
        load_job(job_with(folder, {"name": name, "treatment": treatment}))
    return raised.value.faults


@pytest.mark.parametrize("kind", TREATMENTS)
def test_every_treatment_is_recognised_by_its_key(tmp_path: Path, kind: str) -> None:
    job = load_job(job_with(tmp_path, {"name": "ssn", "treatment": TREATMENTS[kind]}))
    [one] = job.columns.pseudonyms
    assert (job.columns.dropped, one.name, one.treatment.kind) == (["person"], "ssn", "mask" if kind == "pattern" else kind)
    assert job.columns.roles()["ssn"] == "identifiers"


def test_a_name_alone_is_left_out_and_so_is_one_that_says_so(tmp_path: Path) -> None:
    plain = load_job(job_with(tmp_path, "ssn"))
    for entry in ({"name": "ssn"}, {"name": "ssn", "treatment": "drop"}):
        said = load_job(job_with(tmp_path, entry))
        assert said.columns.identifiers == plain.columns.identifiers == ["person", "ssn"]
        assert job_digest(said) == job_digest(plain)


def test_the_digest_counts_treatments_and_not_where_keys_lie(tmp_path: Path) -> None:
    def digest(treatment: dict[str, Any]) -> str:
        return job_digest(load_job(job_with(tmp_path, {"name": "ssn", "treatment": treatment})))

    assert len({digest(treatment) for treatment in TREATMENTS.values()}) == len(TREATMENTS)
    assert digest({"hash": {"key": KEY}}) == digest({"hash": {"key": {"file": "elsewhere"}, "length": 64}})
    assert digest({"hash": {"key": KEY}}) != digest({"hash": {"key": KEY, "length": 32}})
    job = load_job(job_with(tmp_path, *({"name": kind, "treatment": treatment} for kind, treatment in TREATMENTS.items())))
    assert not [place for place in ("SKALD_KEY", "vault.parquet", "skald-key") if place in str(job.canonical())]


WRONG: dict[str, tuple[Any, str]] = {
    "misspelt": ({"hsah": {"key": KEY}}, "names no treatment (did you mean 'hash'?); give it the key 'hash', 'mask',"),
    "two": ({"hash": {"key": KEY}, "mask": {"keep": 1}}, "names 2 treatments at once, 'hash' and 'mask'; keep one"),
    "a word": ("hash", "must be the word drop or a mapping with the key"),
    "no key": ({"hash": {}}, "treatment.hash.key: is missing; add it"),
    "misspelt setting": ({"hash": {"key": KEY, "lenght": 3}}, "treatment.hash.lenght: unknown key (did you mean 'length'?)"),
    "short": ({"hash": {"key": KEY, "length": 8}}, "hash.length: must be at least 16"),
    "no way": ({"mask": {"from": "end"}}, "mask: must say either keep or pattern"),
    "both ways": ({"mask": {"keep": 1, "pattern": "x", "replacement": ""}}, "mask: must say either keep or pattern"),
    "half a pattern": ({"mask": {"pattern": "x"}}, "pattern and replacement belong together"),
    "mixed": ({"mask": {"pattern": "x", "replacement": "", "from": "end"}}, "'from' and 'with' belong to keep"),
    "misspelt side": ({"mask": {"keep": 1, "form": "end"}}, "mask.form: unknown key (did you mean 'from'?)"),
    "no expression": ({"mask": {"pattern": "(", "replacement": ""}}, "pattern is not a regular expression"),
    "no such group": ({"mask": {"pattern": "(x)", "replacement": r"\2"}}, "names a group that it does not have"),
    "whole value": ({"mask": {"pattern": "(x)", "replacement": r"\0"}}, r"or \0"),
    "no alphabet": ({"encrypt": {"key": KEY}}, "must say either alphabet or characters"),
    "unknown alphabet": ({"encrypt": {"key": KEY, "alphabet": "digit"}}, "alphabet: must be 'digits', 'lower', 'upper', 'letters' or"),
    "twice": ({"encrypt": {"key": KEY, "characters": "aab"}}, "characters must be at least two, each once"),
    "both": ({"encrypt": {"key": KEY, "alphabet": "digits", "separators": "-0"}}, "separators must not be among"),
    "no days": ({"shift": {"key": KEY, "subject": "person", "days": 0}}, "shift.days: must be at least 1"),
    "nobody": ({"shift": {"key": KEY, "subject": "persn", "days": 9}}, "column 'persn' has no role in columns (did you mean 'person'?)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_treatment_is_told_with_its_place(tmp_path: Path, case: str) -> None:
    treatment, sentence = WRONG[case]
    told = faults(tmp_path, treatment)
    assert len(told) == 1
    assert told[0].startswith("columns.identifiers")
    assert sentence in told[0]


@pytest.mark.parametrize(
    "place",
    [SECRET, [SECRET], {SECRET: None}, {"value": SECRET}, {"env": SECRET}, {"env": [SECRET]}, {"prefect_block": SECRET}, None,
     {"env": "A", "file": SECRET}, {"env": "A", SECRET: 1}, {"file": [SECRET]}],
    ids=str,
)  # fmt: skip
def test_a_key_that_stands_in_the_job_itself_is_refused_and_not_shown(tmp_path: Path, place: Any) -> None:
    for treatment in ({"hash": {"key": place}}, {"token": {"vault": place}}, {"shift": {"key": place, "days": 1, "subject": "person"}}):
        told = faults(tmp_path, treatment)
        assert len(told) == 1
        assert SECRET not in told[0]
        assert ".key" in told[0] or ".vault" in told[0]


@pytest.mark.parametrize("setting", ["columns.identifiers=[{name: x, treatment: {hash: {key: %s}}}]", "columns.identifiers.1.treatment=%s"])
def test_no_treatment_is_a_parameter_of_prefect(setting: str) -> None:
    assert RunParameters.of(Path("job.yaml"), ["columns.identifiers=[person, ssn]", "columns.identifiers.0=person"]).overrides
    with pytest.raises(JobError) as raised:
        RunParameters.of(Path("job.yaml"), [setting % SECRET])
    assert SECRET not in str(raised.value)


def test_all_faults_of_all_identifiers_are_told_at_once(tmp_path: Path) -> None:
    entries = [{"name": case, "treatment": treatment} for case, (treatment, _) in WRONG.items()]
    with pytest.raises(JobError) as raised:
        load_job(job_with(tmp_path, *entries, {"name": "person", "treatment": {"mask": {"keep": 0}}}))
    told = "\n".join(raised.value.faults)
    assert len(raised.value.faults) == len(WRONG) + 1
    assert all(sentence in told for _, sentence in WRONG.values())
    assert "column 'person' is listed 2 times in 'identifiers'" in told


def test_a_job_goes_to_workers_with_the_place_of_a_key_and_an_editor_knows_treatments(tmp_path: Path) -> None:
    job = load_job(job_with(tmp_path, *({"name": kind, "treatment": treatment} for kind, treatment in TREATMENTS.items())))
    again = pickle.loads(pickle.dumps(job))
    assert again.columns == job.columns
    assert Job.model_validate(yaml.safe_load(yaml.safe_dump(job_of()))).columns.pseudonyms == []
    assert "HashTreatment" in jobs_json_schema()["$defs"]
