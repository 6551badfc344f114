"""Ages of 90 and above, sparse ZIP codes and whole dates, as safe harbour wants them: no method publishes them, none is verified."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import JobError, VerificationError
from schemas.job.job import job_digest, load_job
from schemas.registry.hierarchies import OF_2020, SPARSE_ZIP_CODES
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import people_job, released

METHODS = ["skald", "mondrian", "rayden", "canon", "mondrian_cof", "clustering", "kmember"]


def patients(rows: int = 600) -> pa.Table:
    """Many old people, and ZIP codes of sparse areas: so many that k alone would publish them."""
    random = np.random.default_rng(5)
    heads = random.choice(["606", "100", *OF_2020[:2]], rows)
    born = [date(1940, 1, 1) + timedelta(int(days)) for days in random.choice([0, 400, 9000], rows)]
    return pa.table(
        {
            "age": random.choice([30, 31, 60, 89, 90, 95, 101], rows),
            "zip": [f"{head}{tail:02}" for head, tail in zip(heads, random.choice([1, 2], rows), strict=True)],
            "admitted": born,
            "illness": random.choice(["a", "b"], rows),
        }
    )


SAFE = {
    "age": {"hierarchy": {"widths": [1, 10], "top": 90}},
    "zip": {"hierarchy": {"prefix": [3], "sparse": "hipaa"}},
    "admitted": {"hierarchy": {"date": ["year", "decade"]}, "exact": False},
}
PLAIN = {
    "age": {"hierarchy": {"widths": [1, 10]}},
    "zip": {"hierarchy": {"prefix": [3]}},
    "admitted": {"hierarchy": {"date": ["year", "decade"]}},
}


def job(folder: Path, qids: Mapping[str, Mapping[str, Any]], name: str = "safe") -> Path:
    columns = {
        "quasi_identifiers": [{"name": qid, **spec} for qid, spec in qids.items()],
        "sensitive": ["illness"],
    }
    return people_job(folder, patients(), name=name, columns=columns, privacy={"k": 2}, suppression={"limit": 0.1})


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("method", METHODS)
def test_no_method_publishes_what_the_safe_harbour_hides(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    file = job(tmp_path, SAFE)
    made = anonymise(file, f"method.name={method}")
    frame = released(made.folder)
    words = {word for name in ("age", "zip", "admitted") for word in frame[name].cast(pl.String).unique().drop_nulls()}
    digits = {part for word in words for part in word.replace("[", " ").replace("]", " ").split()}
    assert digits.isdisjoint({"91", "95", "101", "1940-01-01"})
    assert not any(word.startswith(("036", "059", "606", "100")) and len(word.rstrip("*")) > 3 for word in words)
    assert not any(word.startswith(("036", "059")) for word in words)
    verify_release(load_job(file, (f"method.name={method}",)), made.folder)


def test_of_all_nodes_that_hide_the_values_the_best_is_found(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, SAFE), "suppression.limit=0")
    manifest = made.manifest
    assert manifest.node is not None
    assert all(level >= 1 for level in manifest.node)
    assert manifest.search["nodes"] == 3 * 2 * 3
    assert manifest.optimal == "certified"
    published = [
        (
            ">= 90" if row["age"] >= 90 else row["age"],
            "000" if row["zip"][:3] in OF_2020 else row["zip"][:3],
            row["admitted"].year,
        )
        for row in patients().to_pylist()
    ]
    sizes = {one: published.count(one) for one in set(published)}
    assert min(sizes.values()) >= 2, "the finest allowed node passes, so it is the best by DM*"
    assert manifest.node == (1, 1, 1)
    assert manifest.loss["dm_star"] == sum(size * size for size in sizes.values())


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden"])
def test_a_release_that_tells_hidden_values_is_refused(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    made = anonymise(job(tmp_path / "plain", PLAIN, "plain"), f"method.name={method}")
    safe = load_job(job(tmp_path / "safe", SAFE), (f"method.name={method}",))
    with pytest.raises(VerificationError, match=r"tells? values that the job hides"):
        verify_release(safe, made.folder)


def test_bounds_leave_the_side_beyond_the_top_open(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, SAFE), "intervals=bounds", "suppression.limit=0")
    frame = released(made.folder)
    oldest = frame.filter(pl.col("age_low") == 90)
    assert len(oldest) == sum(age >= 90 for age in patients()["age"].to_pylist())
    assert oldest["age_high"].is_null().all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("method.name=rayden", "intervals=bounds"), "bounds of it need method"),
        (("method.name=mondrian", "method.generalisation=interval"), "may not be published exactly, so it must be hierarchy"),
    ],
)
def test_ranges_of_hidden_values_are_refused_with_the_job(tmp_path: Path, settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(JobError, match=words):
        load_job(job(tmp_path, SAFE), settings)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("method", METHODS)
def test_births_of_people_over_89_are_one_group_whatever_the_method(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    """A few years of birth lie beyond the end, in the midst of a decade; k alone would publish each of them."""
    random = np.random.default_rng(3)
    years = random.choice([1925, 1930, 1936, 1937, 1939, 1960, 1971], 400)
    born = pa.array([date(year, 1 + number % 12, 3) for number, year in enumerate(years.tolist())])
    table = pa.table({"born": born, "sex": random.choice(["f", "m"], 400), "age": 2026 - years, "illness": random.choice(["a", "b"], 400)})
    qids: dict[str, Any] = {
        "born": {"hierarchy": {"date": ["year", "decade"], "bottom": 1936}},
        "age": {"hierarchy": {"widths": [1, 10], "top": 90}},
        "sex": {"hierarchy": {"tree": {"*": ["f", "m"]}}},
    }
    columns = {"quasi_identifiers": [{"name": name, **spec} for name, spec in qids.items()], "sensitive": ["illness"]}
    file = people_job(tmp_path, table, name="births", columns=columns, privacy={"k": 2}, suppression={"limit": 0.1})
    made = anonymise(file, f"method.name={method}")
    words = {str(word) for word in released(made.folder)["born"].unique().drop_nulls()}
    assert "<= 1936" in words or words == {"*"} or method != "skald"
    assert not {year for year in ("1925", "1930", "1936") if any(word.startswith(year) and word != "1930s" for word in words)}
    assert not words & {"1920s"}
    verify_release(load_job(file, (f"method.name={method}",)), made.folder)


def test_the_newest_census_is_the_default_and_each_has_its_name(tmp_path: Path) -> None:
    def digest(sparse: str) -> str:
        return job_digest(load_job(job(tmp_path / sparse, SAFE | {"zip": {"hierarchy": {"prefix": [3], "sparse": sparse}}})))

    assert digest("hipaa") == digest("hipaa_2020")
    assert len({digest(f"hipaa_{year}") for year in (2000, 2010, 2020)}) == 3
    for word, length, differing in (("hipaa_2000", 17, {"063", "830"}), ("hipaa_2010", 18, {"369", "753", "772"})):
        assert len(SPARSE_ZIP_CODES[word]) == length
        assert differing <= set(SPARSE_ZIP_CODES[word])
    assert SPARSE_ZIP_CODES["hipaa"] == OF_2020


@pytest.mark.ci
def test_a_job_without_hidden_values_keeps_its_release_id(anonymise: Anonymise, tmp_path: Path) -> None:
    explicit = {name: {**spec, "exact": True} for name, spec in PLAIN.items()}
    first, second = anonymise(job(tmp_path / "a", PLAIN)), anonymise(job(tmp_path / "b", explicit))
    assert first.manifest.release == second.manifest.release
