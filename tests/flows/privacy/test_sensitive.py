"""l-diversity and t-closeness end to end: the optimum of a full enumeration, and a recount that notices what breaks."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import released, write_job, write_parquet

Keeps = Callable[[list[tuple[Any, ...]], list[tuple[Any, ...]], dict[str, Any]], bool]
DISEASES = ["flu", "cold", "asthma", "cancer", None]
TREE = {"lungs": ["flu", "cold", "asthma"], "other": ["cancer"]}
MODELS: dict[str, dict[str, Any]] = {
    "distinct": {"l": {"disease": {"distinct": 3}}},
    "nulls": {"l": {"disease": {"distinct": 3, "nulls": "value"}}},
    "entropy": {"l": {"disease": {"entropy": 2.5}}},
    "entropy of nulls": {"l": {"disease": {"entropy": 2.5, "nulls": "value"}}},
    "recursive": {"l": {"disease": {"recursive": {"c": 1.5, "l": 2}}}},
    "equal": {"t": {"disease": {"t": 0.25}}},
    "ordered": {"t": {"pay": {"t": 0.15, "distance": "ordered"}}},
    "hierarchical": {"t": {"disease": {"t": 0.2, "distance": "hierarchical", "hierarchy": {"tree": TREE}}}},
    "two columns": {"l": {"disease": {"distinct": 2}, "pay": {"distinct": 3}}, "t": {"disease": {"t": 0.4}}},
}


def table(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    size = 240
    age = random.integers(0, 16, size)
    zip_code = random.integers(0, 8, size)
    likely = np.where(age[:, None] < 8, [0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.3, 0.1])
    disease = [DISEASES[random.choice(5, p=row)] for row in likely]
    return pa.table({"age": age, "zip": [f"{code:03b}" for code in zip_code], "disease": disease, "pay": random.integers(1, 7, size) * 100})


def job(folder: Path, data: pa.Table, privacy: dict[str, Any], limit: float, treatment: str = "drop") -> Path:
    write_parquet(folder / "people", data, files=3)
    qids = [{"name": "age", "hierarchy": {"widths": [2, 4, 8]}}, {"name": "zip", "hierarchy": {"prefix": [2, 1]}}]
    return write_job(
        folder,
        {
            "version": 1, "name": "people", "source": {"path": "people/*.parquet"},
            "columns": {"quasi_identifiers": qids, "sensitive": ["disease", "pay"]},
            "privacy": {"k": 3} | privacy, "suppression": {"limit": limit, "treatment": treatment},
            "method": {"name": "skald", "objective": "dm_star"}, "memory": "256MB", "target": "releases",
        },
    )  # fmt: skip


def published(row: tuple[Any, ...], node: tuple[int, int]) -> tuple[Any, ...]:
    width, kept = [1, 2, 4, 8, 0][node[0]], [3, 2, 1, 0][node[1]]
    return row[0] // width if width else "*", row[1][:kept]


def distance(kind: str, mine: Counter[Any], whole: Counter[Any]) -> float:
    """The earth mover's distance of two distributions, by its definition for each ground distance."""
    values = sorted(whole, key=lambda value: (value is None, value))
    extra = {value: mine[value] / mine.total() - whole[value] / whole.total() for value in values}
    if kind == "equal":
        return sum(map(abs, extra.values())) / 2
    if kind == "ordered":
        return sum(abs(sum(extra[value] for value in values[: end + 1])) for end in range(len(values))) / (len(values) - 1)
    moved = 0.0
    groups = {value: next((group for group, members in TREE.items() if value in members), None) for value in values}
    net: defaultdict[Any, float] = defaultdict(float)
    for group in set(groups.values()):
        inside = [extra[value] for value in values if groups[value] == group]
        moved += min(sum(max(one, 0) for one in inside), sum(max(-one, 0) for one in inside)) / 2
        net[group] = sum(inside)
    return moved + min(sum(max(one, 0) for one in net.values()), sum(max(-one, 0) for one in net.values()))


def safe(rows: list[tuple[Any, ...]], everyone: list[tuple[Any, ...]], privacy: dict[str, Any]) -> bool:
    where = {"disease": 2, "pay": 3}
    for column, model in privacy.get("l", {}).items():
        known = Counter(row[where[column]] for row in rows if row[where[column]] is not None or model.get("nulls") == "value")
        falling, total = sorted(known.values(), reverse=True), known.total()
        if len(falling) < model.get("distinct", 1):
            return False
        if "entropy" in model and -sum(n / total * log(n / total) for n in falling) < log(float(model["entropy"])) - 1e-9:
            return False
        if "recursive" in model:
            rule = model["recursive"]
            if not falling[0] < Fraction(str(rule["c"])) * sum(falling[rule["l"] - 1 :]):
                return False
    for column, model in privacy.get("t", {}).items():
        mine, whole = (Counter(row[where[column]] for row in part) for part in (rows, everyone))
        if distance(model.get("distance", "equal"), mine, whole) > float(model["t"]) + 1e-9:
            return False
    return len(rows) >= 3


def best(
    rows: list[tuple[Any, ...]], privacy: dict[str, Any], limit: float, keeps: Keeps = safe
) -> tuple[tuple[int, int], int, int] | None:
    """The node that a full enumeration finds best, with its DM* and suppressed records."""
    found = []
    for node in product(range(5), range(4)):
        classes: defaultdict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
        for row in rows:
            classes[published(row, node)].append(row)
        kept = [len(members) for members in classes.values() if keeps(members, rows, privacy)]
        lost = len(rows) - sum(kept)
        if lost <= Fraction(str(limit)) * len(rows):
            precision = Fraction(node[0], 4) + Fraction(node[1], 3)
            found.append((sum(size * size for size in kept) + lost * lost, lost, precision, node))
    if not found or min(found)[1] == len(rows):
        return None
    value, lost, _, node = min(found)
    return node, value, lost


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("limit", "seed"), [(0, 0), (0.1, 1), (0.4, 0)])
@pytest.mark.parametrize("model", MODELS)
def test_the_optimum_is_that_of_a_full_enumeration(anonymise: Anonymise, tmp_path: Path, model: str, limit: float, seed: int) -> None:
    data = table(seed)
    rows = list(zip(*data.to_pydict().values(), strict=True))
    expected = best(rows, MODELS[model], limit)
    assert expected is not None
    made = anonymise(job(tmp_path, data, MODELS[model], limit))
    manifest = made.manifest
    assert (manifest.node, manifest.loss["dm_star"], manifest.suppressed) == expected
    assert manifest.optimal == "certified"
    classes: defaultdict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in released(made.folder).iter_rows():
        classes[row[:2]].append(row)
    assert all(safe(members, rows, MODELS[model]) for members in classes.values())


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("model", MODELS)
def test_masked_records_are_a_class_that_keeps_the_promise_too(anonymise: Anonymise, tmp_path: Path, model: str) -> None:
    data = table(5)
    rows = list(zip(*data.to_pydict().values(), strict=True))
    made = anonymise(job(tmp_path, data, MODELS[model], 0.4, "mask"))
    masked = [row for row in released(made.folder).iter_rows() if row[:2] == ("*", "*")]
    assert len(masked) >= made.manifest.masked
    assert not masked or safe(masked, rows, MODELS[model])


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("model", MODELS)
def test_verification_notices_a_class_whose_sensitive_values_were_evened_out(anonymise: Anonymise, tmp_path: Path, model: str) -> None:
    path = job(tmp_path, table(1), MODELS[model], 0.1)
    made = anonymise(path)
    forged = tmp_path / "forged"
    (forged / "data").mkdir(parents=True)
    frame = released(made.folder)
    first = frame.row(0)[:2]
    mine = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(frame.columns[:2], first, strict=True))
    same = [
        pl.when(mine).then(pl.lit(value)).otherwise(pl.col(name)).cast(frame[name].dtype).alias(name)
        for name, value in (("disease", "cancer"), ("pay", 600))
    ]
    frame.with_columns(same).write_parquet(forged / "data" / "part.parquet")
    with pytest.raises(VerificationError, match=r"1 of [\d,]+ classes (lack|are farther)"):
        verify_release(load_job(path), forged)
    honest = tmp_path / "honest"
    shutil.copytree(made.folder / "data", honest / "data")
    verify_release(load_job(path), honest)


@pytest.mark.parametrize(
    ("privacy", "sentence"),
    [
        ({"l": {"diseases": {"distinct": 2}}}, "privacy.l: column 'diseases' is not under columns.sensitive (did you mean 'disease'?)"),
        ({"t": {"age": {"t": 0.1}}}, "privacy.t: column 'age' is not under columns.sensitive"),
        ({"l": {"disease": {}}}, "must say one of distinct, entropy and recursive"),
        ({"l": {"disease": {"distinct": 0}}}, "privacy.l.disease.distinct"),
        ({"t": {"disease": {"t": 1.5}}}, "must be a number from 0 to 1"),
        ({"t": {"disease": {"t": 0.1, "distance": "hierarchical"}}}, "needs a hierarchy"),
        ({"t": {"disease": {"t": 0.1, "distance": "far"}}}, "privacy.t.disease.distance"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(anonymise: Anonymise, tmp_path: Path, privacy: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Exception, match=r"fault|privacy") as caught:
        anonymise(job(tmp_path, table(0), privacy, 0))
    assert sentence in str(caught.value)


def test_a_model_that_no_class_can_keep_ends_with_nothing_published(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path, table(0), {"l": {"disease": {"distinct": 6}}}, 0.1)
    with pytest.raises(Exception, match="nothing was published"):
        anonymise(path)
    assert not (tmp_path / "releases").exists()
