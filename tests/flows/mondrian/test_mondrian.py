"""Mondrian from a job file to a verified release, on cells and in fragments; and what the reference implementation gets wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from core.units.losses import ClassSizes, risk_of
from schemas.errors.base import PrivacyError, SourceError
from schemas.job.method import METHODS
from tasks.mondrian.fragments import PARTED, batches_of_runs
from tasks.mondrian.ways import ATTEMPTS
from tasks.publication.verify_and_publish import PublishedRelease
from tests.flows.privacy.test_sensitive import MODELS, safe, table
from tests.flows.privacy.test_sensitive import job as sensitive_job
from tests.house.replaced import CELLS_BYTES_PER_ROW, WAYS_PARTED
from tests.jobs import PAYLOAD, QIDS, class_sizes, data_files, digests, people, people_job, released, two_column_job

MONDRIAN: dict[str, Any] = {"name": "mondrian"}
FRAGMENTS = {"fragments": {"count": 4, "sample": 0.5}}
WAYS = [MONDRIAN, MONDRIAN | FRAGMENTS, MONDRIAN | {"mode": "relaxed"}]
Cut = Callable[..., PublishedRelease]


@pytest.fixture(scope="module")
def cut() -> Cut:
    flow = METHODS["mondrian"].flow.load()
    return lambda job, *settings: getattr(flow, "fn", flow)(job, tuple(settings))


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "method", [*WAYS, MONDRIAN | {"score": "ncp"}, MONDRIAN | {"mode": "median", "generalisation": "hierarchy"} | FRAGMENTS]
)
def test_every_record_is_released_in_a_class_of_k(cut: Cut, tmp_path: Path, method: dict) -> None:
    made = cut(people_job(tmp_path, method=method))
    frame = released(made.folder)
    sizes = class_sizes(frame, QIDS)
    assert (len(frame), made.manifest.suppressed, made.manifest.node) == (400, 0, None)
    assert min(sizes.values()) == made.manifest.min_class >= 5
    assert len(sizes) == made.manifest.classes > 1
    assert made.manifest.loss["dm"] == sum(size**2 for size in sizes.values())
    source = Counter(zip(*(people(400)[qid].to_pylist() for qid in QIDS), strict=True))
    assert made.untold.risk == risk_of(ClassSizes.of(Counter(source.values())))


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", WAYS)
def test_what_is_published_covers_the_value_that_it_stands_for(cut: Cut, tmp_path: Path, method: dict) -> None:
    table = people(300).append_column("key", pa.array([f"key {number}" for number in range(300)]))
    columns = ["disease", "note", "score", "visits", "key"]
    job = people_job(tmp_path, table, method=method)
    text = job.read_text().replace("  - visits\n", "  - visits\n  - key\n")
    job.write_text(text)
    frame = released(cut(job).folder).select([*QIDS, *columns])
    both = pl.DataFrame(table).select(["key", *QIDS]).join(frame, on="key", suffix="_published")
    assert len(both) == 300
    for raw, label in zip(both["age"], both["age_published"], strict=True):
        assert label == "*" or _beside_null(raw, label) or _within(raw, (label or "").removeprefix("{").removesuffix(", null}"))
    for raw, label in zip(both["zip"], both["zip_published"], strict=True):
        assert (
            label in {"*", raw} or _beside_null(raw, label) or raw.startswith(label.removeprefix("{").removesuffix(", null}").rstrip("*"))
        )


def _beside_null(value: Any, label: str | None) -> bool:
    return value is None and (label is None or label.endswith(", null}"))


def _within(value: int, label: str) -> bool:
    ends = [int(number) for number in re.findall(r"-?\d+", label)]
    return (label.startswith("<=") or ends[0] <= value) and (label.startswith(">=") or value <= ends[-1])


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", WAYS)
def test_release_is_identical_for_any_chunking_and_order_of_records(cut: Cut, tmp_path: Path, method: dict) -> None:
    table = people(400)
    shuffled = table.take(pa.array(list(reversed(range(400)))))
    one = cut(people_job(tmp_path / "one", table, method=method))
    two = cut(people_job(tmp_path / "two", shuffled, files=3, row_group=50, method=method, chunk_rows=70))
    assert digests(one.folder) == digests(two.folder)


@pytest.mark.ci
def test_fragments_of_a_complete_sample_publish_what_a_centralised_run_does(cut: Cut, tmp_path: Path) -> None:
    whole = released(cut(people_job(tmp_path / "one", method=MONDRIAN)).folder)
    parts = cut(people_job(tmp_path / "two", method=MONDRIAN | {"fragments": {"count": 8, "sample": 1}}))
    assert parts.untold.search["fragments"] == 8
    assert sorted(whole.rows(), key=str) == sorted(released(parts.folder).rows(), key=str)


@pytest.mark.ci
def test_losses_count_classes_that_two_fragments_publish_alike_as_one(cut: Cut, tmp_path: Path) -> None:
    table = pa.table({"q": [number // 10 for number in range(400)], "s": ["x"] * 400})
    method = MONDRIAN | {"fragments": {"count": 2, "sample": 1}, "generalisation": "hierarchy"}
    made = cut(two_column_job(tmp_path, table, {"widths": [100]}, method=method, privacy={"k": 150}))
    assert class_sizes(released(made.folder), ["q"]) == {("[0 - 99]",): 400}
    assert (made.untold.search["fragments"], made.untold.search["partitions"], made.manifest.classes) == (2, 2, 1)
    loss = made.manifest.loss
    assert (loss["dm"], loss["dm_star"], loss["c_avg"]) == (400**2, 400**2, pytest.approx(400 / 150))
    assert made.untold.loss["dm_partitions"] == 2 * 200**2


@pytest.fixture(scope="module")
def classes(cut: Cut, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[list[tuple[Any, ...]]]]:
    """Return the records of each class that a way publishes of the people with sensitive values, each release made once."""

    @cache
    def classes_of(way: int, name: str | None) -> list[list[tuple[Any, ...]]]:
        job = sensitive_job(tmp_path_factory.mktemp("models"), table(0), MODELS[name] if name else {}, 0)
        frame = released(cut(job, f"method={json.dumps(WAYS[way])}").folder)
        return [part.select("age", "zip", "disease", "pay").rows() for _, part in frame.group_by("age", "zip")]

    return classes_of


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(("way", "name"), [(place % len(WAYS), name) for place, name in enumerate(MODELS)])
def test_every_privacy_model_holds_in_every_class(classes: Callable[..., list[list[tuple[Any, ...]]]], way: int, name: str) -> None:
    made, unlimited, everybody = classes(way, name), classes(way, None), table(0).to_pylist()
    whole = [tuple(row.values()) for row in everybody]
    assert all(safe(rows, whole, MODELS[name]) for rows in made)
    assert not all(safe(rows, whole, MODELS[name]) for rows in unlimited), "there was nothing to keep"
    assert 1 < len(made) < len(unlimited)


@pytest.mark.ci
def test_bounds_are_the_least_and_greatest_values_of_the_class(cut: Cut, tmp_path: Path) -> None:
    made = cut(people_job(tmp_path, method=MONDRIAN, intervals="bounds", endpoints="observed"))
    frame = released(made.folder)
    assert frame["age_low"].dtype == frame["age_high"].dtype == pl.Int64
    assert (frame["age_low"] <= frame["age_high"]).all()


@pytest.mark.slow
def test_small_memory_shares_records_out_by_itself(cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if a record took 100 kB: 3,000 are too many for 64 MB, and a fragment of two at a time may have 320.
    monkeypatch.setattr(CELLS_BYTES_PER_ROW, 100_000)
    made = cut(people_job(tmp_path, people(3000), method=MONDRIAN, memory="64MB", chunk_rows=500))
    assert made.untold.search["fragments"] >= 10
    assert (made.manifest.released, made.manifest.min_class >= 5) == (3000, True)


def alike() -> pa.Table:
    """A thousand people, and one and a half thousand who share all quasi-identifiers, but not their diseases."""
    some, rows = people(1000), [*range(1000)]
    table = some.take(pa.array([*rows, *[7] * 1500])).set_column(0, "person", pa.array(range(2500)))
    return table.set_column(table.column_names.index("disease"), "disease", some["disease"].take(pa.array([*rows, *rows, *rows[:500]])))


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [{"k": 5}, {"k": 5, "l": {"disease": {"distinct": 2}}}])
def test_records_too_much_alike_to_be_cut_apart_are_held_in_lots(
    cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, privacy: dict
) -> None:
    table = alike()
    monkeypatch.setattr(CELLS_BYTES_PER_ROW, 50_000)
    made = cut(people_job(tmp_path, table, method=MONDRIAN, memory="64MB", chunk_rows=200, privacy=privacy))
    sizes = class_sizes(released(made.folder), QIDS)
    assert max(sizes.values()) >= 1500 > 64_000_000 // 50_000
    assert (sum(sizes.values()), min(sizes.values()) >= 5) == (2500, True)
    job = people_job(tmp_path / "relaxed", table, method=MONDRIAN | {"mode": "relaxed"}, memory="64MB", chunk_rows=200)
    with pytest.raises(PrivacyError, match=r"records too much alike to be cut apart, and method 'mondrian' holds all of them"):
        cut(job)


@pytest.mark.slow
def test_lots_change_no_byte(cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ("chunk_rows=40", "rows_per_file=30", "privacy.l={disease: {distinct: 2}}")
    one = cut(people_job(tmp_path / "one", method=MONDRIAN | FRAGMENTS), *settings)
    numbers = []

    def small(runs: Any, tables: Any, group: Any, most: int) -> list:
        numbers.append(len(found := batches_of_runs(runs, tables, group, 25)))
        return found

    monkeypatch.setattr("tasks.mondrian.fragments.batches_of_runs", small)
    two = cut(people_job(tmp_path / "two", method=MONDRIAN | FRAGMENTS), *settings)
    assert digests(one.folder) == digests(two.folder)
    assert min(numbers) > 1


@pytest.mark.ci
def test_generalisation_is_chosen_for_each_qid(cut: Cut, tmp_path: Path) -> None:
    ways = {"sex": "set", "age": "hierarchy", "zip": "prefix", "height": "set", "born": "interval"}
    frame = released(cut(people_job(tmp_path, method=MONDRIAN | {"generalisation": ways})).folder)
    labels = {name: {label for label in frame[name] if label not in {None, "*"}} for name in QIDS}
    assert any(label.startswith("{") for label in labels["sex"])
    assert all(re.fullmatch(r"\d+|\[\d+ - \d+\]|\{\[\d+ - \d+\], null\}", label) for label in labels["age"])
    assert any(re.fullmatch(r"\d+\*+", label) for label in labels["zip"])
    assert any(re.fullmatch(r"\[\d{4}-\d\d-\d\d - \d{4}-\d\d-\d\d\]", label) for label in labels["born"])
    assert list(frame.columns) == [*QIDS, *PAYLOAD]


def test_intervals_of_words_are_refused(cut: Cut, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"'sex'.*interval"):
        cut(people_job(tmp_path, method=MONDRIAN | {"generalisation": {"sex": "interval"}}))


# What the reference implementation of the paper gets wrong, one promise each.


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("how", [{"cut": "quantile", "sample": 1}, {"cut": "multidimensional", "sample": 0.3, "seed": 6}])
def test_a_fragment_of_few_distinct_values_publishes_no_class_below_k(cut: Cut, tmp_path: Path, how: dict) -> None:
    table = pa.table({"q": [1] * 20 + [2] * 20 + [3] * 2, "s": ["x"] * 42})
    method = MONDRIAN | {"fragments": {"count": 4} | how}
    made = cut(two_column_job(tmp_path, table, {"widths": [1, 2]}, method=method, privacy={"k": 5}))
    assert made.untold.search["merged"] == 1, "no fragment was too thin by itself"
    assert made.manifest.released == 42
    assert min(class_sizes(released(made.folder), ["q"]).values()) >= 5


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("way", ["quantile", "multidimensional"])
def test_records_with_a_null_in_a_cut_column_are_anonymised_like_others(cut: Cut, tmp_path: Path, way: str) -> None:
    values = [*range(20), None, None, None, *range(20)]
    table = pa.table({"q": pa.array(values, pa.int64()), "s": [str(number) for number in range(43)]})
    method = MONDRIAN | {"fragments": {"count": 4, "cut": way, "sample": 1}}
    made = cut(two_column_job(tmp_path, table, {"widths": [1, 2]}, method=method, privacy={"k": 5}))
    frame = released(made.folder)
    assert made.untold.search["fragments"] > 1
    assert len(frame) == 43
    assert min(class_sizes(frame, ["q"]).values()) >= 5


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", WAYS)
def test_a_table_that_breaks_the_promise_as_a_whole_is_not_published(cut: Cut, tmp_path: Path, method: dict) -> None:
    table = pa.table({"q": [1, 2, 3, 4], "s": ["x"] * 4})
    with pytest.raises(PrivacyError, match="k = 5 cannot be met by 4 records"):
        cut(two_column_job(tmp_path / "few", table, {"widths": [1]}, method=method, privacy={"k": 5}))
    job = two_column_job(tmp_path / "alike", table, {"widths": [1]}, method=method, privacy={"k": 2, "l": {"s": {"distinct": 2}}})
    with pytest.raises(PrivacyError, match=r"All records in one class would not keep .*privacy\.l"):
        cut(job)
    assert not (tmp_path / "alike" / "releases").exists()


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", WAYS)
def test_negative_numbers_and_constant_columns_are_measured(cut: Cut, tmp_path: Path, method: dict) -> None:
    for name, values in {"negative": [-3, -2, -2, -1, -9, -8], "constant": [7] * 6}.items():
        table = pa.table({"q": values, "s": ["x"] * 6})
        made = cut(two_column_job(tmp_path / name, table, {"widths": [1]}, method=method, privacy={"k": 2}))
        assert 0 <= made.manifest.loss["gcp"] < 1
        assert made.manifest.released == 6


@pytest.mark.ci
def test_fragments_that_are_done_are_not_done_again(cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = cut(people_job(tmp_path / "one", method=MONDRIAN | FRAGMENTS))
    job = people_job(tmp_path / "two", method=MONDRIAN | FRAGMENTS)

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tasks.publication.recount_calls.recount", ended)
        with pytest.raises(KeyboardInterrupt):
            cut(job)
    written = (tmp_path / "two" / ".skald" / "people" / "artifacts" / "files").glob("*.parquet")
    done = {(path.stat().st_ino, path.stat().st_mtime_ns) for path in written}
    assert done
    made = cut(job)
    assert {(path.stat().st_ino, path.stat().st_mtime_ns) for path in data_files(made.folder)} == done
    assert digests(made.folder) == digests(undisturbed.folder)
    assert not cut(job).new


@pytest.mark.slow
def test_cuts_that_were_given_up_are_not_made_again_by_a_run_that_goes_on(
    cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CELLS_BYTES_PER_ROW, 50_000)
    job = people_job(tmp_path, alike(), method=MONDRIAN, memory="64MB", chunk_rows=500)
    parted: list[int] = []

    def counting(*given: Any) -> Any:
        parted.append(1)
        return PARTED.make(*given)

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    counted = replace(PARTED, make=counting, code="tasks.mondrian.fragments")
    monkeypatch.setattr(WAYS_PARTED, counted)
    with monkeypatch.context() as patched:
        patched.setattr("tasks.publication.recount_calls.recount", ended)
        with pytest.raises(KeyboardInterrupt):
            cut(job)
    assert len(parted) == ATTEMPTS * 5
    parted.clear()
    assert cut(job).manifest.released == 2500
    assert len(parted) == 5
