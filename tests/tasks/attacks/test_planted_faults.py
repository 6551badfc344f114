"""Releases that break the promise in one way each are found by an attack, and good ones raise no alarm."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.attacks import attacked_tables, inference, record_attacks
from schemas.job.privacy import AttackSettings
from schemas.relational.tables_job import load_tables_job
from tasks.attacks.joined_tables import attack_tables
from tests.jobs import write_job
from tests.tasks.attacks.made_releases import K, Made, attacks_on, broken_by, good_release, labelled, published, source_of

CLASS = ("age", "zip", "sex")
SOUND = Made(source_of(11), published(labelled(source_of(11))))
"""Keeps its promise; each fault is one change of it."""
LABELS = ("singling_out", None, record_attacks.BY_LABELS)
BREACH = ("inference", "disease", inference.BY_BREACH)


def smallest() -> pl.DataFrame:
    """Return the records of the smallest class."""
    sized = SOUND.release.with_columns(pl.len().over(CLASS).alias("size"))
    first = sized.sort("size", *CLASS).select(CLASS).head(1)
    return SOUND.release.join(first, on=CLASS, how="semi")


def without_smallest() -> pl.DataFrame:
    return SOUND.release.join(smallest().select(CLASS).head(1), on=CLASS, how="anti")


def with_class(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the release with another class in the place of the smallest."""
    return pl.concat([without_smallest(), rows.select(SOUND.release.columns)]).sort(*CLASS, "disease", "note")


def class_below_k() -> Made:
    return SOUND.with_release(with_class(smallest().head(K - 1)))


def class_of_one() -> Made:
    return SOUND.with_release(with_class(smallest().head(1)))


def finer_label() -> Made:
    """Publish one record with its own age."""
    row = pl.concat([smallest().head(1).with_columns(age=pl.lit("33")), smallest()])
    return SOUND.with_release(with_class(row))


def false_label() -> Made:
    """Publish a class under a ZIP code in which nobody lives."""
    return SOUND.with_release(with_class(smallest().with_columns(zip=pl.lit("99*"))))


def suppressed_record() -> Made:
    """Publish a record that was to be left out, as it is."""
    row = SOUND.source.head(1).with_columns(pl.col("age").cast(pl.String))
    return SOUND.with_release(pl.concat([SOUND.release, row.select(SOUND.release.columns)]).sort(*CLASS, "disease", "note"))


def record_repeated() -> Made:
    """Make a class of k records out of one person's record."""
    lone = pl.DataFrame(SOUND.source.head(1).with_columns(age=pl.lit(5, pl.Int64), zip=pl.lit("777")))
    source = pl.concat([SOUND.source, lone])
    row = labelled(lone).select(SOUND.release.columns)
    return Made(source, pl.concat([SOUND.release, *[row] * K]).sort(*CLASS, "disease", "note"))


def class_of_one_person() -> Made:
    """Have a class of k records, all of one of the persons whom the job names."""
    lone = SOUND.source.head(1).with_columns(age=pl.lit(5, pl.Int64), zip=pl.lit("777"))
    source = pl.concat([SOUND.source, *[lone] * K])
    row = labelled(lone).select(SOUND.release.columns)
    release = pl.concat([SOUND.release, *[row] * K]).sort(*CLASS, "disease", "note")
    return Made(source, release, {"columns.person": "person"})


def ends_of_one_person() -> Made:
    """Publish ranges that end at somebody's own value although the job asks for shared ends."""
    random = np.random.default_rng(3)
    source = SOUND.source.with_columns(age=pl.Series(random.permutation(1_000_000)[: len(SOUND.source)]))
    rows = source.sort("age").with_columns(block=pl.int_range(pl.len()) // K)
    ends = pl.format("[{} - {}]", pl.col("age").min().over("block"), pl.col("age").max().over("block"))
    rows = rows.with_columns(age=ends, zip=pl.lit("*"), sex=pl.lit("*"))
    return Made(source, published(rows), {"method": {"name": "mondrian"}})


def digest_of(name: str, digits: int | None = None) -> Callable[[], Made]:
    """Publish plain digests of the identifier in the place of notes."""

    def made() -> Made:
        digests = [hashlib.new(name, text.encode()).hexdigest()[:digits] for text in SOUND.source["person"]]
        source = SOUND.source.with_columns(note=pl.Series(digests))
        return Made(source, published(labelled(source)))

    return made


def digest_of_a_file() -> Made:
    """Have the plain digest of the source's file in its manifest."""
    return Made(SOUND.source, SOUND.release, manifest=json.dumps({"sources": ["0123456789abcdef" * 4]}))


def order_of_the_source(*, backwards: bool) -> Callable[[], Made]:
    def made() -> Made:
        source = SOUND.source.with_columns(note=pl.Series(np.random.default_rng(5).permutation(len(SOUND.source))).cast(pl.String))
        rows = labelled(source).filter(pl.len().over(CLASS) >= K).select(SOUND.release.columns)
        return Made(source, rows.reverse() if backwards else rows)

    return made


def column_nobody_asked_for(name: str) -> Callable[[], Made]:
    """Publish the row number, or the identifier itself."""

    def made() -> Made:
        rows = labelled(SOUND.source.with_row_index("index")).filter(pl.len().over(CLASS) >= K)
        return SOUND.with_release(rows.select(*SOUND.release.columns, name).sort(*CLASS, "disease", "note"))

    return made


def unevenly(promised: dict[str, Any], *, of_t: bool = False) -> Callable[[], Made]:
    """Have a class in which one value is more frequent than the job allows."""

    def made() -> Made:
        wide = labelled(source_of(11, 2_000), 20, 1).filter(pl.len().over(CLASS) >= K)
        first = wide.sort(*CLASS).select(CLASS).head(1).row(0)
        mine = pl.all_horizontal(pl.col(name) == value for name, value in zip(CLASS, first, strict=True))
        most = pl.int_range(pl.len()).over(CLASS) >= (0 if promised.get("distinct") else 1)
        uneven = wide.with_columns(pl.when(mine & most).then(pl.lit("flu")).otherwise(pl.col("disease")).alias("disease"))
        truth = source_of(11, 2_000).join(uneven.select("person", "disease"), on="person", how="left", suffix="_now")
        source = truth.with_columns(pl.coalesce("disease_now", "disease").alias("disease")).drop("disease_now")
        return Made(source, published(uneven), {f"privacy.{'t' if of_t else 'l'}": {"disease": promised}})

    return made


def shared_value_of_one() -> Made:
    """Publish a value of one person in a column that promises k for each."""
    note = pl.Series([*["rest"] * (len(SOUND.release) - 1), "mine"])
    shared = {"columns.insensitive": [{"name": "note", "publish": "shared"}]}
    return SOUND.with_release(SOUND.release.with_columns(note=note), **shared)


def pseudonyms_that_link() -> Made:
    """Have pseudonyms whose records lie in sets of classes that few share."""
    source = source_of(11, 1_000)
    rows = labelled(source).with_columns(visit=pl.int_range(pl.len()) // 5).filter(pl.len().over(CLASS) >= K)
    release = rows.select(*SOUND.release.columns, pl.format("v{}", "visit").alias("person")).sort(*CLASS, "disease", "note")
    named = [{"name": "person", "treatment": {"hash": {"key": {"env": "PLANTED_KEY"}}}}]
    return Made(source, release, {"columns.identifiers": named})


FAULTS: dict[str, tuple[Callable[[], Made], tuple[str, str | None, str]]] = {
    "a class of k - 1": (class_below_k, LABELS),
    "a class of one": (class_of_one, LABELS),
    "a finer label": (finer_label, LABELS),
    "a false label": (false_label, LABELS),
    "a suppressed record": (suppressed_record, LABELS),
    "a record repeated": (record_repeated, LABELS),
    "a class of one person": (class_of_one_person, LABELS),
    "ends of one person": (ends_of_one_person, ("singling_out", "age", record_attacks.BY_END)),
    "a digest": (digest_of("sha256"), ("membership", "person", record_attacks.BY_DIGEST)),
    "an old digest": (digest_of("md5"), ("membership", "person", record_attacks.BY_DIGEST)),
    "a digest cut short": (digest_of("sha1", 16), ("membership", "person", record_attacks.BY_DIGEST)),
    "a digest of a file": (digest_of_a_file, ("membership", None, record_attacks.BY_FILES)),
    "the order of the source": (order_of_the_source(backwards=False), ("linkage", None, record_attacks.ORDER)),
    "its order backwards": (order_of_the_source(backwards=True), ("linkage", None, record_attacks.ORDER)),
    "row numbers": (column_nobody_asked_for("index"), ("singling_out", "index", record_attacks.BY_VALUE)),
    "identifiers": (column_nobody_asked_for("person"), ("singling_out", "person", record_attacks.BY_VALUE)),
    "one value in a class": (unevenly({"distinct": 2}), BREACH),
    "too little entropy": (unevenly({"entropy": 2}), BREACH),
    "too frequent a value": (unevenly({"recursive": {"c": 2, "l": 2}}), BREACH),
    "a class far from all": (unevenly({"t": 0.2}, of_t=True), BREACH),
    "a shared value of one": (shared_value_of_one, ("singling_out", "note", record_attacks.BY_VALUE)),
    "pseudonyms that link": (pseudonyms_that_link, ("linkage", "person", record_attacks.PSEUDONYMS)),
}


def test_what_the_faults_are_planted_in_is_sound(tmp_path: Path) -> None:
    assert broken_by(attacks_on(SOUND, tmp_path)) == []


@pytest.mark.ci
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    plant, attack = FAULTS[fault]
    assert attack in broken_by(attacks_on(plant(), tmp_path))


def test_everybody_is_attacked_where_the_job_says_so(tmp_path: Path) -> None:
    played = attacks_on(SOUND, tmp_path, AttackSettings(sample="all"))
    assert {one.guesses for one in played.labels if one.name == "membership"} == {len(SOUND.release)}
    assert played.basis.sample is None


@pytest.mark.ci
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100))])
def test_a_good_release_raises_no_alarm(seed: int, tmp_path: Path) -> None:
    made = good_release(seed, 3 + seed % 5)
    assert broken_by(attacks_on(made, tmp_path, AttackSettings(seed=seed))) == []


TABLES: dict[str, Any] = {
    "version": 2,
    "name": "joined",
    "tables": {
        "person": {
            "source": {"path": "person.parquet"},
            "key": "id",
            "columns": {"quasi_identifiers": [{"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}]},
        },
        "visit": {
            "source": {"path": "visit.parquet"},
            "references": {"id": "person"},
            "columns": {"quasi_identifiers": [{"name": "ward", "hierarchy": {"tree": {"*": ["a", "b"]}}}]},
        },
    },
    "privacy": {"k": 2},
    "memory": "256MB",
    "target": "releases",
}


@pytest.mark.parametrize(("wards", "below"), [([["a", "b"], ["b", "a"], ["a"], ["a"]], 0), ([["a", "b"], ["b", "b"], ["a"], ["a"]], 2)])
def test_a_join_that_singles_people_out_is_found(wards: list[list[str]], below: int, tmp_path: Path) -> None:
    job = load_tables_job(write_job(tmp_path, TABLES))
    pl.DataFrame({"id": list("wxyz"), "sex": ["f"] * 4}).write_parquet(tmp_path / "person.parquet")
    rows = [(person, ward) for person, mine in zip("wxyz", wards, strict=True) for ward in mine]
    pl.DataFrame(rows, ["id", "ward"], orient="row").write_parquet(tmp_path / "visit.parquet")
    played = attack_tables(job, {name: [tmp_path / f"{name}.parquet"] for name in job.tables}, tmp_path / "spill", "release")
    assert [(one.target, one.guesses, one.right) for one in played] == [(None, 4, below), ("visit", 4, below)]
    assert {one.verdict for one in played} == {"broken" if below else "safe"}
    assert played[0].knows == attacked_tables.BY_JOIN
