"""Algorithms that recode single records go through the same house: verified, the same for any source order, resumable, refused in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.kmember.partition import RecordsToGroup
from core.units.losses import ClassSizes, risk_of
from schemas.errors.base import JobError, PrivacyError, SourceError
from schemas.errors.methods import FragmentsError
from schemas.job.method import METHODS as FLOWS
from tasks.publication.verify_and_publish import PublishedRelease
from tests.conftest import CommandLine
from tests.house.replaced import CELLS_BYTES_PER_ROW, CODING_BYTES_PER_RECORD
from tests.jobs import LEVELS, PAYLOAD, QIDS, class_sizes, digests, job_of, people, people_job, released
from tests.laws import THOROUGHLY
from tests.oracles.hierarchies import first_appearance

METHODS = ["rayden", "canon", "mondrian_cof", "clustering", "kmember"]
TABLE = people(400)
BEFORE = risk_of(ClassSizes.of(Counter(Counter(zip(*(TABLE[qid].to_pylist() for qid in QIDS), strict=True)).values())))
"""The risk of the source, counted record by record."""
QUICK = settings(max_examples=4 if THOROUGHLY else 2, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
Anonymise = Callable[..., PublishedRelease]


def job_for(folder: Path, method: str, **parts: Any) -> Path:
    return people_job(folder, parts.pop("table", TABLE), method={"name": method} | parts.pop("options", {}), **parts)


OPTIONS = [
    ("rayden", {"split": "median", "vantage": "random", "outliers": "freely", "alpha": 0.5}),
    ("rayden", {"split": "median", "vantage": "seed", "chaining": "tang", "missing": "ignored", "categories": "equal", "seed": 3}),
    ("rayden", {"generalisation": "set", "alpha": 0}),
    ("canon", {"split": "median", "vantage": "seed"}),
    ("mondrian_cof", {"alpha": 1, "outliers": "freely", "missing": "ignored"}),
    ("clustering", {"start": "parents", "distance": "raw", "generalisation": "level"}),
    ("clustering", {"generalisation": "set"}),
    ("rayden", {"exchange": True}),
    ("clustering", {"exchange": True, "generalisation": "set"}),
    ("kmember", {"generalisation": "set", "effort": 2}),
    ("kmember", {"generalisation": "prefix"}),
    ("kmember", {"generalisation": {"age": "interval", "height": "hierarchy", "sex": "set"}, "block": 100}),
]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("method", "options"), [*((method, {}) for method in METHODS), *OPTIONS])
def test_every_record_is_published_once_in_a_class_of_k(run: Anonymise, tmp_path: Path, method: str, options: dict[str, Any]) -> None:
    made = run(job_for(tmp_path, method, options=options), "privacy.k=4", "rows_per_file=100")
    frame, manifest = released(made.folder), made.manifest
    sizes = class_sizes(frame, QIDS)
    assert len(frame) == len(TABLE) == manifest.released
    assert (min(sizes.values()), len(sizes)) == (manifest.min_class, manifest.classes)
    assert manifest.min_class >= 4
    assert (manifest.method, manifest.node, manifest.levels) == (method, None, None)
    assert manifest.loss["dm"] == sum(size * size for size in sizes.values())
    assert frame.columns == [*QIDS, *PAYLOAD]
    assert made.untold.risk == BEFORE
    assert Counter(frame.select(PAYLOAD).rows()) == Counter(pl.DataFrame(TABLE.select(PAYLOAD)).rows())


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS[:-1])
def test_an_exchange_loses_less_of_what_is_published(run: Anonymise, tmp_path: Path, method: str) -> None:
    plain = run(job_for(tmp_path / "one", method))
    made = run(job_for(tmp_path / "two", method, options={"exchange": True}))
    assert made.untold.search["steps"] > 0
    assert made.manifest.loss["gcp"] < plain.manifest.loss["gcp"]
    assert min(class_sizes(released(made.folder), QIDS).values()) >= 5


@pytest.mark.ci
def test_classes_far_larger_than_others_are_left_out_of_an_exchange(
    run: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clustered, looked_at = RecordsToGroup.clustered, list[int]()

    def counted(self: RecordsToGroup, effort: Any, classes: Any) -> Any:
        looked_at.append(len(classes))
        return clustered(self, effort, classes)

    monkeypatch.setattr(RecordsToGroup, "clustered", counted)
    equal = pa.concat_tables([TABLE, *[TABLE.slice(0, 1)] * 200])
    made = run(job_for(tmp_path, "mondrian_cof", table=equal, options={"exchange": True}), "privacy.k=4")
    sizes = class_sizes(released(made.folder), QIDS).values()
    assert looked_at[0] <= len(TABLE)
    assert max(sizes) > 200
    assert sum(sizes) == made.manifest.released
    assert min(sizes) >= 4


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", METHODS)
def test_what_is_published_covers_the_record(run: Anonymise, tmp_path: Path, method: str) -> None:
    columns = job_of()["columns"] | {"identifiers": [], "insensitive": ["person", "note", "score", "visits"]}
    made = run(job_for(tmp_path, method, columns=columns), "privacy.k=3")
    raw = {row["person"]: row for row in TABLE.to_pylist()}
    for row in released(made.folder).to_dicts():
        for qid in QIDS:
            assert covers(qid, row[qid], raw[row["person"]][qid])


def covers(qid: str, label: str | None, value: Any) -> bool:
    if label == "*" or value is None:
        return label in {"*", value} or str(label).endswith(", null}")
    label = str(label).removeprefix("{").removesuffix(", null}")
    if qid in {"age", "height", "born"}:
        ends = label.strip("[]<>= ").split(" - ")
        kind = type(value) if qid != "born" else type(value).fromisoformat
        return bool((label.startswith("<=") or kind(ends[0]) <= value) and (label.startswith(">=") or value <= kind(ends[-1])))
    return label in {str(level(value)).lower() if qid == "smoker" else level(value) for level in LEVELS[qid]}


@pytest.fixture(scope="module", params=METHODS)
def undisturbed(request: pytest.FixtureRequest, run: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    made = run(job_for(tmp_path_factory.mktemp("one"), request.param), "privacy.k=4", "rows_per_file=100", "threads=1")
    assert len(made.manifest.files) > 2
    return request.param, digests(made.folder)


@pytest.mark.slow
@pytest.mark.few(1)
@QUICK
@given(order=st.randoms(use_true_random=False), files=st.integers(1, 5), row_group=st.integers(20, 600), chunk_rows=st.integers(30, 600))
def test_release_is_identical_for_any_order_of_rows_files_and_chunks(
    run: Anonymise, undisturbed: tuple[str, list[str]], order: Any, files: int, row_group: int, chunk_rows: int
) -> None:
    method, expected = undisturbed
    rows = list(range(len(TABLE)))
    order.shuffle(rows)
    with TemporaryDirectory() as folder:
        job = job_for(Path(folder), method, table=TABLE.take(rows), files=files, row_group=row_group)
        assert digests(run(job, "privacy.k=4", "rows_per_file=100", f"chunk_rows={chunk_rows}").folder) == expected


@pytest.mark.ci
def test_equal_files_in_one_source_do_not_take_each_others_classes(run: Anonymise, tmp_path: Path) -> None:
    job = job_for(tmp_path, "rayden")
    folder = tmp_path / "people"
    (folder / "001.parquet").write_bytes((folder / "000.parquet").read_bytes())
    made = run(job, "privacy.k=5")
    assert made.manifest.records == made.manifest.released == 2 * len(TABLE)
    assert min(class_sizes(released(made.folder), QIDS).values()) >= 5


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_finished_steps_are_not_done_again(run: Anonymise, tmp_path: Path, method: str) -> None:
    job = job_for(tmp_path, method)
    first = run(job, "privacy.k=4")
    store = tmp_path / ".skald" / "people" / "artifacts"
    before = {path: path.stat().st_mtime_ns for step in ("coded", "assigned", "classes") for path in (store / step).iterdir()}
    again = run(job, "privacy.k=4", "rows_per_file=150")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert again.new
    assert released(again.folder).equals(released(first.folder))
    other = run(job, "privacy.k=5")
    assert other.manifest.min_class >= 5
    assert {path.name for path in (store / "coded").iterdir()} == {path.name for path in before if path.parent.name == "coded"}
    assert not run(job, "privacy.k=5").new


@pytest.mark.slow
def test_a_damaged_recoding_is_made_again(run: Anonymise, tmp_path: Path) -> None:
    job = job_for(tmp_path, "rayden")
    first = run(job, "privacy.k=4")
    for path in (tmp_path / ".skald" / "people" / "artifacts" / "assigned").glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:-9])
    again = run(job, "privacy.k=4", "rows_per_file=150")
    assert released(again.folder).equals(released(first.folder))


SPECK = {"name": "rayden", "chaining": "tang", "outliers": "freely", "pool": "suppress", "split": "median", "alpha": 2}


def one_speck() -> Any:
    # Ages 20 to 29 and one of 59: a single outlier, which no other joins.
    table = people(20, 1)
    ages = np.append(np.repeat(np.arange(20, 30), 2)[:19], 59)
    columns = {name: table[name] for name in table.column_names}
    return type(table).from_pydict(columns | {"age": ages})


OTHERS = ["person", "sex", "zip", "height", "smoker", "born"]
AGE_ONLY = job_of()["columns"] | {"identifiers": OTHERS, "quasi_identifiers": [job_of()["columns"]["quasi_identifiers"][1]]}


@pytest.mark.ci
def test_a_pool_below_k_is_suppressed_within_the_limit_or_refused(run: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, one_speck(), columns=AGE_ONLY, method=SPECK, endpoints="observed")
    made = run(job, "privacy.k=11", "suppression.limit=0.05")
    assert (made.manifest.released, made.manifest.suppressed, made.untold.search["recovered"]) == (19, 1, 0)
    assert 59 not in {int(end) for label in released(made.folder)["age"] for end in label.strip("[]").split(" - ")}
    with pytest.raises(PrivacyError, match=r"1 record would be suppressed, and suppression.limit allows 0"):
        run(job, "privacy.k=11", "suppression.limit=0")
    assert run(job, "privacy.k=11", "suppression.limit=0", "method.pool=join").manifest.released == 20


@pytest.mark.ci
@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_done_is_said(run: Anonymise, tmp_path: Path, method: str) -> None:
    job = job_for(tmp_path, method)
    with pytest.raises(PrivacyError, match="k = 401 cannot be met by 400 records"):
        run(job, "privacy.k=401")
    assert not list((tmp_path / "releases").glob("people-*"))


def test_canon_without_numbers_is_refused(run: Anonymise, tmp_path: Path) -> None:
    columns = job_of()["columns"]
    unpublished = ["person", "age", "zip", "height", "smoker", "born"]
    words = columns | {"quasi_identifiers": columns["quasi_identifiers"][:1], "identifiers": unpublished}
    with pytest.raises(SourceError, match="Method 'canon' compares numbers and dates"):
        run(job_for(tmp_path, "canon", columns=words))


ASKED = ["l={disease: {distinct: 3}}", "t={disease: {t: 0.4}}"]
SHARED = ("privacy.k=4", "rows_per_file=100", "method.fragments={count: 4, sample: 1}")


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_fragments_are_anonymised_alone_and_published_together(run: Anonymise, tmp_path: Path, method: str) -> None:
    options = {"alpha": 1} if method in {"rayden", "mondrian_cof"} else {}
    made = run(job_for(tmp_path / "one", method, options=options), *SHARED)
    frame, manifest = released(made.folder), made.manifest
    sizes = class_sizes(frame, QIDS)
    assert made.untold.search["fragments"] == 4
    assert (len(frame), min(sizes.values()), len(sizes)) == (len(TABLE), manifest.min_class, manifest.classes)
    assert manifest.min_class >= 4
    assert made.untold.risk == BEFORE
    if options:
        found = made.untold.search
        assert 0 < found["left"] == found["recovered"] <= found["outliers"] < len(TABLE)
        assert found["merged_partitions"] >= 0
    assert Counter(frame.select(PAYLOAD).rows()) == Counter(pl.DataFrame(TABLE.select(PAYLOAD)).rows())
    rows = np.random.default_rng(1).permutation(len(TABLE))
    again = run(job_for(tmp_path / "two", method, options=options, table=TABLE.take(rows), files=3), *SHARED, "chunk_rows=77")
    assert digests(again.folder) == digests(made.folder)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", ASKED)
def test_fragments_keep_other_privacy_models(run: Anonymise, tmp_path: Path, method: str, asked: str) -> None:
    made = run(job_for(tmp_path, method), *SHARED, f"privacy.{asked}")
    assert made.untold.search["fragments"] > 1
    assert made.manifest.released == len(TABLE)
    kept(released(made.folder), asked)


@pytest.mark.ci
def test_records_that_do_not_fit_the_memory_are_shared_out(run: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CODING_BYTES_PER_RECORD, 1_000_000)
    monkeypatch.setattr(CELLS_BYTES_PER_ROW, 1_000_000)
    made = run(job_for(tmp_path, "rayden"), "privacy.k=4", "method.fragments.sample=1")
    assert made.untold.search["fragments"] > 1
    assert made.manifest.released == len(TABLE)
    with pytest.raises(PrivacyError, match="Method 'rayden' holds all 400 records at once, which takes about 801 MB"):
        run(job_for(tmp_path, "rayden"), "method.pool=suppress")


def test_a_pool_of_all_outliers_and_fragments_are_told_to_exclude_each_other(run: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(
        FragmentsError, match=r"looks for outliers among all records together.* Leave method\.fragments out, or say pool: join"
    ):
        run(job_for(tmp_path, "rayden"), "method.pool=suppress", "method.fragments.count=2")


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", ASKED)
def test_other_privacy_models_are_kept(run: Anonymise, tmp_path: Path, method: str, asked: str) -> None:
    made = run(job_for(tmp_path, method), "privacy.k=4", f"privacy.{asked}")
    assert made.manifest.released == len(TABLE)
    kept(released(made.folder), asked)


def kept(frame: pl.DataFrame, asked: str) -> None:
    """Count the sensitive values of every class, value by value."""
    if asked.startswith("l"):
        assert frame.group_by(QIDS).agg(pl.col("disease").n_unique())["disease"].min() >= 3
    else:
        whole = Counter(frame["disease"].to_list())
        for _, part in frame.group_by(QIDS):
            mine = Counter(part["disease"].to_list())
            assert sum(abs(mine[value] / len(part) - whole[value] / len(frame)) for value in whole) / 2 <= 0.4 + 1e-9


@pytest.mark.ci
def test_the_seed_changes_the_release_and_the_same_seed_does_not(run: Anonymise, tmp_path: Path) -> None:
    job = job_for(tmp_path, "rayden", options={"vantage": "random"})
    found = [tuple(digests(run(job, "privacy.k=4", f"method.seed={seed}").folder)) for seed in (1, 2, 1)]
    assert first_appearance(found) == [0, 1, 0]


@pytest.mark.parametrize(
    ("key", "sentence"), [("alpha=-1", "0 or more"), ("vantage=best", "must be 'random', 'farthest' or 'seed'"), ("k=3", "unknown key")]
)
def test_wrong_settings_are_told(run: Anonymise, tmp_path: Path, key: str, sentence: str) -> None:
    with pytest.raises(JobError, match=sentence):
        run(job_for(tmp_path, "rayden"), f"method.{key}")


def test_an_exchange_does_not_go_with_the_groups_of_a_level(run: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"method\.exchange: .* say one of both"):
        run(job_for(tmp_path, "clustering"), "method.exchange=true", "method.generalisation=level")


def test_every_method_of_the_job_has_a_flow() -> None:
    assert set(METHODS) <= set(FLOWS)
    for method in FLOWS:
        assert getattr(FLOWS[method].flow.load(), "__name__", "") == method


@pytest.mark.ci
@pytest.mark.slow_under_prefect
def test_the_command_line_runs_the_flow_of_the_method(skald: CommandLine, tmp_path: Path) -> None:
    job = job_for(tmp_path / "job", "rayden")
    done = skald("run", job)
    assert done.returncode == 0, done.stderr
    assert "rayden" in done.stdout
    again = skald.here("verify", next((tmp_path / "job" / "releases").glob("people-*")), "--job", job)
    assert again.returncode == 0, again.stderr


LONG = people(900)
CUTS = ("chunk_rows=60", "rows_per_file=200", "privacy.k=4")


@pytest.mark.slow
def test_killed_in_every_step_a_run_continues_and_ends_in_the_same_bytes(run: Anonymise, direct: CommandLine, tmp_path: Path) -> None:
    undisturbed = digests(run(job_for(tmp_path / "undisturbed", "rayden", table=LONG), *CUTS).folder)
    job_for(tmp_path, "rayden", table=LONG)
    settings_ = [word for setting in CUTS for word in ("--set", setting)]
    for step in ("domains", "coded", "assigned", "runs", "files"):
        direct.killed(f"{step}/*.record", "run", "job.yaml", *settings_)
        assert not list((tmp_path / "releases").glob("people-*"))
    done = direct("run", "job.yaml", *settings_)
    assert done.returncode == 0, done.stderr
    release = tmp_path / "releases" / (tmp_path / "releases" / "CURRENT").read_text().strip()
    assert digests(release) == undisturbed


def test_intervals_of_words_are_refused_before_anything_is_grouped(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"'sex'.*published as an interval"):
        anonymise(people_job(tmp_path, method={"name": "kmember", "generalisation": {"sex": "interval"}}))
