"""Privacy models that the product does not know are an entry each: schema, plan, release, recount, report and docs find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from pydantic import AfterValidator

from core.columns.domains import Domain
from core.privacy.models import SLACK, Failing, Spreads
from docs.reference_pages import job_page
from schemas.errors.base import JobError, VerificationError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from schemas.reading.model import ExactDecimal
from schemas.reading.registry import Code
from schemas.registry.privacy_kinds import DISTANCES, DIVERSITIES, DistanceKind, DiversityKind, Wording
from schemas.registry.sensitive import ClosenessSpec, DiversitySpec, from_0_to_1
from schemas.relational.tables_job import jobs_json_schema
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import class_sizes, data_files, people, people_job, released
from tests.registries.shown import shown_plan, shown_report

TABLE = people(300, seed=3)
QIDS = ["age", "sex"]


class CommonSpec(DiversitySpec):
    """No value is too common in a class ((α, k)-anonymity)."""

    kind: ClassVar[str] = "common"
    common: Annotated[ExactDecimal, AfterValidator(from_0_to_1)]
    """The greatest share of a class that one value may have."""


class LargestSpec(ClosenessSpec):
    """t-closeness by the largest difference of any one value's share."""

    kind: ClassVar[str] = "largest"
    distance: Literal["largest"]
    """The largest difference that one value makes."""


@dataclass(frozen=True)
class Common:
    """Monotone: the share of a value in a union lies between its shares in the parts."""

    column: str
    most: Decimal

    def failing(self, counts: np.ndarray[Any, np.dtype[np.int64]], spreads: Spreads | None = None) -> Failing:
        assert spreads is not None
        spread = spreads[self.column]
        greatest = np.zeros(len(counts), np.int64)
        np.maximum.at(greatest, spread.owners, spread.counts)
        return np.array([count > self.most * size for count, size in zip(greatest.tolist(), counts.tolist(), strict=True)], np.bool_)

    @property
    def relaxed(self) -> None:
        return None


@dataclass(frozen=True)
class Largest:
    """Monotone: a maximum of convex functions is convex."""

    column: str
    t: float

    def failing(self, counts: np.ndarray[Any, np.dtype[np.int64]], spreads: Spreads | None = None) -> Failing:
        assert spreads is not None
        spread = spreads[self.column]
        shares = np.zeros((len(counts), len(spread.source_counts)))
        shares[spread.owners, spread.values] = spread.counts / counts[spread.owners]
        return np.array(np.abs(shares - spread.source_counts / spread.source_counts.sum()).max(axis=1) > self.t + SLACK, np.bool_)

    @property
    def relaxed(self) -> None:
        return None


def common(column: str, spec: CommonSpec, _domain: Domain, _folder: Path) -> Common:
    return Common(column, spec.common)


def largest(column: str, spec: LargestSpec, _domain: Domain, _folder: Path) -> Largest:
    return Largest(column, float(spec.t))


def common_sql(source: str, qids: Sequence[str], column: str, spec: CommonSpec, _levels: int) -> str:
    return f"""
        WITH parts AS (SELECT {", ".join(qids)}, {column} AS s, count(*) AS r FROM {source} GROUP BY ALL),
        classes AS (SELECT max(r) / sum(r) AS share FROM parts GROUP BY {", ".join(qids)})
        SELECT count(*) FILTER (share > {float(spec.common)!r} + 1e-9), count(*), max(share)::DOUBLE FROM classes
    """


def largest_sql(source: str, qids: Sequence[str], column: str, spec: LargestSpec, _levels: int) -> str:
    return f"""
        WITH numbered AS (SELECT dense_rank() OVER (ORDER BY {", ".join(qids)}) AS class, {column} AS value FROM {source}),
        sizes AS (SELECT class, count(*) AS records FROM numbered GROUP BY class),
        parts AS (SELECT class, value, count(*) AS r FROM numbered GROUP BY ALL),
        classes AS (
            SELECT sizes.class, max(abs(coalesce(r, 0) / sizes.records - whole.records / everything)) AS apart
            FROM sizes CROSS JOIN whole CROSS JOIN (SELECT sum(records) AS everything FROM whole)
            LEFT JOIN parts ON parts.class = sizes.class AND parts.value IS NOT DISTINCT FROM whole.value GROUP BY sizes.class
        )
        SELECT count(*) FILTER (apart > {float(spec.t)!r} + 1e-9), count(*), max(apart)::DOUBLE FROM classes
    """


def common_words(column: str, promised: Mapping[str, Any]) -> Wording:
    return Wording(
        "toy (α, k)-anonymity", f"≤ {promised['common']}", f"No value of '{column}' has more than {promised['common']} of a class."
    )


def largest_words(column: str, promised: Mapping[str, Any]) -> Wording:
    return Wording("toy closeness", f"≤ {promised['t']}", f"No value of '{column}' is {promised['t']} more or less frequent in a class.")


HERE = "tests.registries.test_toy_privacy"
COMMON = DiversityKind("common", CommonSpec, Code(f"{HERE}:common"), Code(f"{HERE}:common_sql"), common_words)
LARGEST = DistanceKind("largest", LargestSpec, Code(f"{HERE}:largest"), Code(f"{HERE}:largest_sql"), largest_words)
COLUMNS = {
    "identifiers": ["person", "zip", "height", "smoker", "born"],
    "quasi_identifiers": [
        {"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}},
        {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m", "x"]}}},
    ],
    "sensitive": ["disease"],
    "insensitive": ["note", "score", "visits"],
}


def toy_job(folder: Path, privacy: Mapping[str, Any], **parts: Any) -> Path:
    return people_job(folder, TABLE, columns=COLUMNS, privacy={"k": 4, **privacy}, suppression={"limit": 0.3}, **parts)


@pytest.mark.slow
def test_a_model_of_diversity_is_one_entry(anonymise: Anonymise, tmp_path: Path) -> None:
    with DIVERSITIES.having(COMMON):
        job = toy_job(tmp_path, {"l": {"disease": {"common": 0.7}}})
        assert jobs_json_schema()["$defs"]["CommonSpec"]["properties"]["common"]
        assert "## privacy.l: common" in job_page()
        assert "toy (α, k)-anonymity of 'disease' ≤ 0.7" in shown_plan(job)
        made = anonymise(job)
        frame = released(made.folder)
        sizes, most = class_sizes(frame, QIDS), Counter[tuple[Any, ...]]()
        for row, count in class_sizes(frame, [*QIDS, "disease"]).items():
            most[row[:2]] = max(most[row[:2]], count)
        assert max(most[key] / size for key, size in sizes.items()) == pytest.approx(made.manifest.measured["l"]["disease"])
        assert 0 < made.manifest.measured["l"]["disease"] <= 0.7
        page = shown_report(made)
        assert "toy (α, k)-anonymity" in page
        assert "No value of &#39;disease&#39; has more than 0.7 of a class." in page
        verify_release(load_job(job), made.folder)
        [file] = data_files(made.folder)
        pl.read_parquet(file).with_columns(pl.lit("flu").alias("disease")).write_parquet(file)
        with pytest.raises(VerificationError, match="lack the l-diversity of 'disease' that the job promises"):
            verify_release(load_job(job), made.folder)
    assert "CommonSpec" not in str(jobs_json_schema())
    with pytest.raises(JobError, match="must say one of distinct, entropy and recursive"):
        load_job(job)


@pytest.mark.ci
def test_a_distance_of_closeness_is_one_entry(anonymise: Anonymise, tmp_path: Path) -> None:
    with DISTANCES.having(LARGEST):
        job = toy_job(tmp_path, {"t": {"disease": {"t": 0.3, "distance": "largest"}}})
        assert jobs_json_schema()["$defs"]["LargestSpec"]["properties"]["distance"]["const"] == "largest"
        assert "## privacy.t: largest distance" in job_page()
        assert "toy closeness of 'disease' ≤ 0.3" in shown_plan(job)
        made = anonymise(job)
        assert "t" not in made.manifest.measured
        assert "toy closeness" in shown_report(made)
        verify_release(load_job(job), made.folder)
        [file] = data_files(made.folder)
        pl.read_parquet(file).with_columns(pl.lit("gout").alias("disease")).write_parquet(file)
        with pytest.raises(VerificationError, match=r"are farther from the whole in 'disease' than t = 0\.3"):
            verify_release(load_job(job), made.folder)
    with pytest.raises(JobError, match=r"privacy\.t\.disease\.distance: must be 'equal', 'ordered' or 'hierarchical'"):
        load_job(job)


def test_compiled_cuts_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    with DIVERSITIES.having(COMMON), DISTANCES.having(LARGEST):
        job = toy_job(tmp_path, {"l": {"disease": {"common": 0.7}}, "t": {"disease": {"t": 0.3, "distance": "largest"}}})
        load_job(job)
        with pytest.raises(JobError) as raised:
            load_job(job, ["method={name: mondrian}"])
        assert (raised.value.exit_code, raised.value.faults) == (2, tuple(
            f"privacy.{section}.disease: {name} is not known to the compiled cuts of method mondrian; choose another, such as skald"
            for section, name in (("l", "common"), ("t", "largest"))
        ))  # fmt: skip


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("fragments", [1, 4])
def test_methods_that_do_not_cut_by_them_keep_them_in_fragments_too(tmp_path: Path, fragments: int) -> None:
    with DIVERSITIES.having(COMMON):
        method = {"name": "clustering", "fragments": {"count": fragments, "sample": 1}}
        job = toy_job(tmp_path, {"l": {"disease": {"common": 0.7}}}, method=method)
        flow: Any = METHODS["clustering"].flow.load()
        made = getattr(flow, "fn", flow)(job, ())
        assert made.manifest.measured["l"]["disease"] <= 0.7
