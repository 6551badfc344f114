"""Persons who have several values: where l or t is kept nobody surely holds one, by every method and model; the recount says so."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.base import PrivacyError, VerificationError
from schemas.errors.methods import HoldersError
from schemas.job.job import load_job
from tasks.composition.release_history import people_of_release
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.conftest import Anonymise
from tests.oracles.persons import too_many_hold

METHODS = ["skald", "mondrian", "kmember", "rayden", "canon", "mondrian_cof", "clustering"]
MODELS: dict[str, dict[str, Any]] = {
    "distinct": {"l": {"dx": {"distinct": 2}}},
    "entropy": {"l": {"dx": {"entropy": 1.8}}},
    "recursive": {"l": {"dx": {"recursive": {"c": 2, "l": 2}}}},
    "equal": {"t": {"dx": {"t": 0.4}}},
    "ordered": {"t": {"dx": {"t": 0.4, "distance": "ordered"}}},
}
DIAGNOSES = ["acne", "cold", "flu", "gout", "hiv"]


def visits() -> pa.Table:
    """Two records, of hiv and of flu, of each of the sixteen people of every fourth age; one of each other person."""
    rows = []
    for person in range(640):
        age = 20 + person % 40
        values = ["hiv", "flu"] if age % 4 == 0 else [DIAGNOSES[(person // 40) % 5]]
        rows += [{"pid": person, "age": age, "dx": value} for value in values]
    return pa.Table.from_pylist(rows)


def people_job(folder: Path, data: pa.Table, privacy: dict[str, Any], method: str = "skald", **parts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, folder / "visits.parquet")
    content = {
        "version": 1, "name": "several", "memory": "256MB", "target": "releases", "source": {"path": "visits.parquet"},
        "columns": {
            "person": "pid", "identifiers": ["pid"], "sensitive": ["dx"],
            "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 2, 4, 8]}}],
        },
        "privacy": {"k": 3, **privacy}, "method": {"name": method},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(content | parts))
    return path


def kept_people(path: Path, release: str) -> Any:
    kept = people_of_release(release, Store(path.parent / ".skald" / "several" / "artifacts"))
    assert kept is not None
    return kept


def classes_of(kept: Any) -> dict[Any, list[tuple[int, Any]]]:
    """Whose the records of each published class are, and their values."""
    [labels] = kept[1]
    names = pl.read_parquet(labels)["label_0"].to_list()
    classes = defaultdict(list)
    for file in kept[0]:
        for row in pl.read_parquet(file).iter_rows(named=True):
            classes[names[row["class"]]].append((row["person"], row["value_0"]))
    return classes


def certain(classes: dict[Any, list[tuple[int, Any]]]) -> int:
    """How many people are in a class where everybody holds one value."""
    found = set()
    for members in classes.values():
        everybody = {person for person, _ in members}
        holders = defaultdict(set)
        for person, value in members:
            holders[value].add(person)
        if any(who == everybody for who in holders.values()):
            found |= everybody
    return len(found)


def check(made: Any, path: Path, model: str) -> None:
    kept = kept_people(path, made.manifest.release)
    classes = classes_of(kept)
    everyone = [pair for members in classes.values() for pair in members]
    privacy = {section: {name: {key: one for key, one in asked.items() if key != "distance"} for name, asked in columns.items()}
               for section, columns in MODELS[model].items()}  # fmt: skip
    if made.manifest.suppressed == 0:
        assert not any(too_many_hold(members, everyone, privacy) for members in classes.values())
    assert certain(classes) == 0
    verify_release(load_job(path), made.folder, kept)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("model", MODELS)
def test_nobody_is_certain_to_hold_a_value_by_skald(anonymise: Anonymise, tmp_path: Path, model: str) -> None:
    path = people_job(tmp_path, visits(), MODELS[model], suppression={"limit": 0.3})
    check(anonymise(path), path, model)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("model", MODELS)
def test_nobody_is_certain_to_hold_a_value_by_any_method(anonymise: Anonymise, tmp_path: Path, model: str, method: str) -> None:
    path = people_job(tmp_path, visits(), MODELS[model], method)
    check(anonymise(path), path, model)


def test_one_value_counts_values_that_all_persons_of_a_class_hold(anonymise: Anonymise, tmp_path: Path) -> None:
    """Nothing is promised of the diagnoses: all of the sixteen people of each of ten ages have both."""
    path = people_job(tmp_path, visits(), {})
    made = anonymise(path)
    assert (made.manifest.one_value["dx"].classes, made.manifest.one_value["dx"].records) == (10, 320)
    found, _ = verify_release(load_job(path), made.folder, kept_people(path, made.manifest.release))
    assert found.one_value == {"dx": (10, 320)}
    # Without the run folder persons are counted in the source.
    assert verify_release(load_job(path), made.folder)[0].one_value == {"dx": (10, 320)}


@pytest.mark.ci
def test_the_recount_refuses_a_class_in_which_everybody_holds_a_value(anonymise: Anonymise, tmp_path: Path) -> None:
    """The release of a job without the promise, held against the job with it."""
    path = people_job(tmp_path, visits(), {})
    made = anonymise(path)
    kept, files = kept_people(path, made.manifest.release), sorted(made.folder.rglob("*.parquet"))
    assert files
    for model, section in {"distinct": "l", "recursive": "l", "equal": "t"}.items():
        asked = people_job(tmp_path, visits(), MODELS[model])
        with pytest.raises(
            VerificationError, match=f"in 10 of 40 classes too many persons hold the same value of 'dx' to keep the {section}"
        ):
            verify_release(load_job(asked), made.folder, kept)


@pytest.mark.ci
def test_the_largest_share_of_one_person_is_rounded_up_coarsely(anonymise: Anonymise, tmp_path: Path) -> None:
    """Of the 44 records of a class one person holds 14, which is 32 %; of 32 everybody holds two, and of 16 one."""
    data = pa.concat_tables([visits(), pa.Table.from_pylist([{"pid": 20, "age": 40, "dx": "acne"}] * 12)])
    path = people_job(tmp_path, data, {})
    made = anonymise(path)
    assert made.manifest.persons is not None
    assert made.manifest.persons.largest_share == 0.5
    other = people_job(tmp_path / "other", visits(), {})
    assert anonymise(other).manifest.persons.largest_share == 0.1
    text = (made.folder / "manifest.json").read_text()
    (made.folder / "manifest.json").write_text(text.replace('"largest_share": 0.5', '"largest_share": 0.25'))
    with pytest.raises(VerificationError, match="one person holds at most 25%"):
        verify_release(load_job(path), made.folder, kept_people(path, made.manifest.release))


@pytest.mark.parametrize("method", ["skald", "mondrian", "clustering"])
def test_where_all_records_together_break_it_the_sentence_says_so(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    data = pa.Table.from_pylist([{"pid": person, "age": 20 + person % 4, "dx": value} for person in range(40) for value in ("hiv", "flu")])
    with pytest.raises(PrivacyError, match="Persons have several values of 'dx'") as refused:
        anonymise(people_job(tmp_path, data, MODELS["distinct"], method))
    assert isinstance(refused.value, HoldersError)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_classes_are_found_although_all_records_together_break_it(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    """Everybody has both diagnoses, at two ages far apart, where half of the people have each."""
    rows = [
        {"pid": person, "age": 20 if visit else 60, "dx": ("hiv", "flu")[(person + visit) % 2]} for person in range(40) for visit in (0, 1)
    ]
    path = people_job(tmp_path, pa.Table.from_pylist(rows), MODELS["distinct"], method)
    made = anonymise(path)
    assert (made.manifest.classes, made.manifest.suppressed) == (2, 0)
    assert certain(classes_of(kept_people(path, made.manifest.release))) == 0
