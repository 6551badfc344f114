"""Stars and rounds end to end: from the job to files that are recounted, and to figures that are theirs."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import JobError, VerificationError
from schemas.job.job import load_job
from schemas.release.manifest import Manifest
from tasks.recount.recount import verify_release
from tasks.utility.utility import measure_utility
from tests.conftest import Anonymise, CommandLine
from tests.flows.privacy.test_hidden_values import SAFE
from tests.flows.privacy.test_hidden_values import job as hidden_job
from tests.flows.privacy.test_sensitive import MODELS, safe
from tests.flows.privacy.test_sensitive import job as sensitive_job
from tests.flows.privacy.test_sensitive import table as sensitive_table
from tests.flows.privacy.test_treatments import as_text, payload
from tests.house.replaced import ROOTS_BYTES_PER_CELL
from tests.jobs import PAYLOAD, QIDS, class_sizes, digests, generalise, people, people_job, released, write_parquet

TABLE = people(400, seed=2)
TREATMENTS = [("cell", 0), ("cell", 2), ("drop", 2), ("mask", 1)]
GCP = "method.objective=gcp"
"""Its best levels leave several columns to star."""
Rows = Counter[tuple[Any, ...]]


def settings(treatment: str, rounds: int, limit: float = 0.2) -> tuple[str, ...]:
    return (f"suppression={{limit: {limit}, treatment: {treatment}, rounds: {rounds}}}", GCP)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job, whose phase 1 all releases share."""
    return people_job(tmp_path_factory.mktemp("people"), TABLE, files=3)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("treatment", "rounds"), TREATMENTS)
def test_records_that_fail_are_published_otherwise_and_all_others_as_they_were(
    anonymise: Anonymise, folder: Path, treatment: str, rounds: int
) -> None:
    made = anonymise(folder, *settings(treatment, rounds))
    manifest, frame = made.manifest, released(made.folder)
    remainder, node = manifest.remainder, manifest.node
    assert remainder is not None
    assert node is not None
    at_node = [as_text(row) for row in generalise(TABLE, node)]
    sizes = Counter(at_node)
    rows: Rows = Counter(frame.rows())
    safe_rows = Counter(row + rest for row, rest in zip(at_node, payload(TABLE), strict=True) if sizes[row] >= 5)
    assert rows >= safe_rows
    failed = sum(size for size in sizes.values() if size < 5)
    assert remainder.records == failed <= 0.2 * 400
    assert manifest.released == len(frame) == 400 - manifest.suppressed + manifest.masked
    # What the others publish beside their QIDs is that of records that fail, each once at most.
    others = Counter(row[len(QIDS) :] for row in (rows - safe_rows).elements())
    assert others <= Counter(rest for row, rest in zip(at_node, payload(TABLE), strict=True) if sizes[row] < 5)
    classes = class_sizes(frame, QIDS)
    assert (manifest.classes, manifest.min_class) == (len(classes), min(classes.values()))
    assert manifest.min_class >= 5
    assert all(frame.schema[qid] == pl.String for qid in QIDS)
    assert [name for name in frame.columns if name not in QIDS] == PAYLOAD


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(("treatment", "rounds"), TREATMENTS)
def test_figures_are_those_of_the_files(anonymise: Anonymise, tmp_path: Path, treatment: str, rounds: int) -> None:
    made = anonymise(people_job(tmp_path, TABLE, files=3), *settings(treatment, rounds))
    manifest, frame = made.manifest, released(made.folder)
    assert manifest.remainder is not None
    assert manifest.remainder.withheld == {qid: frame[qid].to_list().count("*") for qid in QIDS}
    sizes = class_sizes(frame, QIDS)
    assert sizes.pop(("*",) * len(QIDS), 0) == manifest.masked
    squares = sum(size**2 for size in sizes.values())
    assert manifest.loss["dm_star"] == squares + manifest.suppressed**2
    assert manifest.loss["dm"] == squares + manifest.suppressed * 400
    assert manifest.remainder.dm_star >= squares
    assert manifest.risk["after"]["records"] == sizes.total()
    if treatment == "cell" and not rounds:
        below = [qid for qid in QIDS if manifest.levels and manifest.levels[qid] < manifest.tops[qid]]
        starred = sum(frame[qid].to_list().count("*") for qid in below)
        assert manifest.remainder.stars == starred > manifest.remainder.starred > 0
        # The release does not tell it, and whoever runs the job is told.
        assert manifest.remainder.least is None
        assert made.untold.least_stars is not None
        assert 0 < made.untold.least_stars <= starred


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("treatment", "rounds"), TREATMENTS)
def test_penalties_are_those_that_the_labels_in_the_files_cost(anonymise: Anonymise, tmp_path: Path, treatment: str, rounds: int) -> None:
    path, asked = people_job(tmp_path, TABLE, files=3), settings(treatment, rounds)
    made = anonymise(path, *asked)
    manifest, found = made.manifest, measure_utility(load_job(path, asked), made.folder, queries=1, seed=0, target=None)
    dropped = manifest.suppressed - manifest.masked
    lost = {qid: (one.generalised * manifest.released + dropped) / 400 for qid, one in found.columns.items()}
    assert made.untold.ncp == pytest.approx(lost)
    frame = released(made.folder)
    told = {qid: (sum(label_costs(qid, frame[qid].to_list())) + dropped) / 400 for qid in QIDS}
    assert manifest.ncp == pytest.approx(told)
    assert manifest.loss["gcp"] == pytest.approx(sum(told.values()) / len(QIDS))


def label_costs(qid: str, labels: list[str | None]) -> list[float]:
    """What each record's label costs by all labels of its column alone: share of what is listed, of the grid, or of labels below it."""
    told = {label for label in labels if label not in (None, "*")}
    costs: dict[str | None, float] = {None: 0.0, "*": 1.0}
    if qid in ("age", "height", "born"):
        ends = {label: ends_of(label) for label in told}
        grid = max((high for _, high in ends.values()), default=0) - min((low for low, _ in ends.values()), default=0)
        costs |= {label: float((high - low) / grid) if grid else 0.0 for label, (low, high) in ends.items()}
    elif qid == "zip":
        stems = {label.rstrip("*") for label in told}
        leaves = [stem for stem in stems if not any(other != stem and other.startswith(stem) for other in stems)]
        costs |= {label: sum(leaf.startswith(label.rstrip("*")) for leaf in leaves) / len(leaves) if "*" in label else 0 for label in told}
    else:
        # Trees and files of one group have nothing between a value and the star.
        costs |= dict.fromkeys(told, 0.0)
    return [costs[label] for label in labels]


def ends_of(label: str) -> tuple[Decimal, Decimal]:
    """From where to where a range, a number, a day, month, year or decade reaches; days since the first of all."""
    if label.startswith("["):
        low, high = label.strip("[])").split(" - ")
        return Decimal(low), Decimal(high)
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", label):
        return (Decimal(date.fromisoformat(label).toordinal()),) * 2
    if month := re.fullmatch(r"([0-9]{4})-([0-9]{2})", label):
        year, of_year = int(month[1]), int(month[2])
        after = date(year + of_year // 12, of_year % 12 + 1, 1)
        return Decimal(date(year, of_year, 1).toordinal()), Decimal(after.toordinal() - 1)
    if years := re.fullmatch(r"([0-9]{4})(s?)", label):
        first, many = int(years[1]), 10 if years[2] else 1
        return Decimal(date(first, 1, 1).toordinal()), Decimal(date(first + many, 1, 1).toordinal() - 1)
    return Decimal(label), Decimal(label)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.05, 0.2])
def test_less_is_lost_and_no_fewer_records_are_released_than_with_drop(anonymise: Anonymise, folder: Path, limit: float) -> None:
    dropped = anonymise(folder, f"suppression.limit={limit}", GCP).manifest
    for treatment, rounds in TREATMENTS:
        manifest = anonymise(folder, *settings(treatment, rounds, limit)).manifest
        assert manifest.node == dropped.node
        assert manifest.remainder is not None
        assert manifest.remainder.records == dropped.suppressed
        assert manifest.remainder.dm_star == dropped.loss["dm_star"]
        assert manifest.released >= dropped.released
        assert manifest.loss["gcp"] < dropped.loss["gcp"]


@pytest.mark.slow
@pytest.mark.parametrize(("chunk_rows", "threads"), [(7, 2), (400, 1)])
def test_bytes_do_not_depend_on_how_the_work_is_cut(
    anonymise: Anonymise, folder: Path, tmp_path: Path, chunk_rows: int, threads: int
) -> None:
    plain = anonymise(folder, *settings("cell", 2), "rows_per_file=100")
    order = np.random.default_rng(chunk_rows).permutation(400)
    job = people_job(tmp_path, TABLE.take(pa.array(order)), files=5)
    made = anonymise(job, *settings("cell", 2), "rows_per_file=100", f"chunk_rows={chunk_rows}", f"threads={threads}")
    assert digests(made.folder) == digests(plain.folder)
    assert made.manifest.remainder == plain.manifest.remainder


@pytest.mark.ci
def test_a_coarse_root_leaves_rounds_the_finest_levels(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = anonymise(people_job(tmp_path / "free", TABLE), *settings("cell", 2))
    monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    short = anonymise(people_job(tmp_path / "short", TABLE), *settings("cell", 2), "memory=64MB", "method.roots=24")
    assert short.untold.search["root"] != free.untold.search["root"]
    assert short.manifest.node == free.manifest.node
    assert digests(short.folder) == digests(free.folder)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("treatment", "rounds"), [("cell", 0), ("mask", 2)])
def test_every_class_keeps_what_is_asked_of_sensitive_values(
    anonymise: Anonymise, tmp_path: Path, model: str, treatment: str, rounds: int
) -> None:
    data = sensitive_table(5)
    rows = list(zip(*data.to_pydict().values(), strict=True))
    path = sensitive_job(tmp_path, data, MODELS[model], 0.4, treatment)
    made = anonymise(path, f"suppression.rounds={rounds}")
    classes: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in released(made.folder).iter_rows():
        classes[row[:2]].append(row)
    assert made.manifest.remainder is not None
    assert all(safe(members, rows, MODELS[model]) for members in classes.values())
    verify_release(load_job(path, [f"suppression.rounds={rounds}"]), made.folder)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("first", [0, 1], ids=["starred after", "starred before"])
def test_what_two_releases_tell_together_is_counted_of_every_stage(anonymise: Anonymise, tmp_path: Path, first: int) -> None:
    notes = pa.array([f"note {number}" for number in range(400)])
    path = people_job(tmp_path, TABLE.set_column(TABLE.column_names.index("note"), "note", notes))
    asked = [("suppression.limit=0.05", "method.objective=dm_star"), settings("cell", 2)]
    made = [anonymise(path, *asked[first]), anonymise(path, *asked[1 - first])]
    seen = [{row[-1]: row[:-1] for row in released(one.folder).select([*QIDS, "note"]).rows()} for one in made]
    pairs = Counter((seen[0].get(note), seen[1].get(note)) for note in notes.to_pylist())
    [overlap] = made[1].untold.overlaps
    assert overlap.shared_at_risk == sum(size for pair, size in pairs.items() if size < 5 and any(pair)) > 0


@pytest.mark.ci
def test_replayed_levels_star_what_fails_at_them_now(anonymise: Anonymise, tmp_path: Path) -> None:
    path = people_job(tmp_path, TABLE)
    first = anonymise(path, *settings("cell", 2)).manifest
    write_parquet(tmp_path / "people", people(380, seed=9), files=2)
    again = anonymise(path, *settings("cell", 2, 0.5), f"replay={first.release}")
    assert again.manifest.node == first.node
    sizes = Counter(as_text(row) for row in generalise(people(380, seed=9), again.manifest.node or ()))
    assert again.manifest.remainder is not None
    assert again.manifest.remainder.records == sum(size for size in sizes.values() if size < 5)
    assert again.manifest.remainder.rounds
    assert min(class_sizes(released(again.folder), QIDS).values()) >= 5


@pytest.mark.ci
def test_levels_that_tell_hidden_values_are_in_no_round(anonymise: Anonymise, tmp_path: Path) -> None:
    path = hidden_job(tmp_path, SAFE)
    asked = ("suppression={limit: 0.5, treatment: cell, rounds: 3}", "privacy.k=12", GCP)
    made = anonymise(path, *asked)
    remainder = made.manifest.remainder
    assert remainder is not None
    assert remainder.rounds
    assert all(level >= 1 for one in remainder.rounds for level in one.node)
    verify_release(load_job(path, asked), made.folder)


def forged(folder: Path, into: Path, **changes: Any) -> Path:
    shutil.copytree(folder, into)
    manifest = json.loads((into / "manifest.json").read_text())
    (into / "manifest.json").write_text(Manifest.model_validate(manifest | changes).model_dump_json())
    return into


@pytest.mark.slow
def test_verification_notices_stars_that_the_manifest_does_not_tell_of(anonymise: Anonymise, folder: Path, tmp_path: Path) -> None:
    asked = settings("cell", 1)
    made = anonymise(folder, *asked)
    job, remainder = load_job(folder, asked), made.manifest.remainder
    assert remainder is not None
    verify_release(job, made.folder)
    more = {"withheld": {**remainder.withheld, "age": remainder.withheld["age"] + 1}}
    cases = {
        "publish * in 'age'": remainder.model_copy(update=more),
        "more than fail at its levels": remainder.model_copy(update={"records": 0}),
        "81 records of 400 are suppressed, more than the limit": remainder.model_copy(update={"records": 81}),
        # Without it nothing explains the stars: the labels are held against the levels.
        "are not those of the levels that the release says": None,
    }
    for number, (sentence, said) in enumerate(cases.items()):
        changed = forged(made.folder, tmp_path / str(number), remainder=said.model_dump() if said else None)
        with pytest.raises(VerificationError, match=sentence.replace("*", r"\*")):
            verify_release(job, changed)
    none = settings("cell", 1, 0)
    changed = forged(anonymise(folder, *none).folder, tmp_path / "none", remainder=None)
    with pytest.raises(VerificationError, match="does not say what became of the records"):
        verify_release(load_job(folder, none), changed)


@pytest.mark.ci
def test_a_starred_class_below_k_is_found_by_a_recount_without_a_manifest(anonymise: Anonymise, folder: Path, tmp_path: Path) -> None:
    made = anonymise(folder, *settings("cell", 0))
    frame = released(made.folder)
    less = anonymise(folder, "suppression={limit: 0.2, treatment: mask}", GCP)
    starred = next(row for row in class_sizes(frame, QIDS) if row not in class_sizes(released(less.folder), QIDS))
    mine = pl.all_horizontal(pl.col(qid).eq_missing(pl.lit(label)) for qid, label in zip(QIDS, starred, strict=True))
    (tmp_path / "data").mkdir()
    frame.filter(~mine | (mine.cum_sum() < 5)).write_parquet(tmp_path / "data" / "part.parquet")
    with pytest.raises(VerificationError, match="fewer than k = 5"):
        verify_release(load_job(folder, settings("cell", 0)), tmp_path)


@pytest.mark.ci
def test_the_report_tells_what_became_of_rare_combinations(anonymise: Anonymise, folder: Path) -> None:
    made = anonymise(folder, *settings("cell", 1))
    remainder = made.manifest.remainder
    assert remainder is not None
    report = json.loads((made.folder / "report.json").read_text())
    told = " ".join(report["came_out"]["remainder"])
    assert f"{remainder.records} records had combinations that fail" in told
    assert f"Round 1 published {remainder.rounds[0].records} records" in told
    page = (made.folder / "report.html").read_text()
    assert "What became of rare combinations" in page
    assert "published with * in as few quasi-identifiers" in page
    plain = anonymise(folder, "suppression.limit=0.2", GCP)
    assert "What became of rare combinations" not in (plain.folder / "report.html").read_text()


@pytest.mark.parametrize("method", ["mondrian", "rayden", "canon", "mondrian_cof", "clustering"])
def test_methods_without_levels_refuse_stars_and_rounds(tmp_path: Path, method: str) -> None:
    job = people_job(tmp_path, TABLE)
    with pytest.raises(JobError) as caught:
        load_job(job, [f"method={{name: {method}}}", settings("cell", 1)[0]])
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["suppression.treatment", "suppression.rounds"]


@pytest.mark.ci
def test_a_job_that_suppresses_nothing_has_nothing_to_star(anonymise: Anonymise, folder: Path) -> None:
    made = anonymise(folder, *settings("cell", 3, 0)).manifest
    assert made.remainder is not None
    assert (made.remainder.records, made.remainder.rounds, made.remainder.stars, made.released) == (0, (), 0, 400)


@pytest.mark.slow
def test_the_command_line_goes_the_same_way_through_prefect(prefect: CommandLine, anonymise: Anonymise, folder: Path) -> None:
    job = people_job(prefect.folder, TABLE, files=2)
    done = prefect("run", job, *(part for setting in settings("cell", 2) for part in ("--set", setting)), "--json")
    assert done.returncode == 0, done.stderr
    manifest = Manifest.model_validate_json(done.stdout[done.stdout.index("{") :])
    undisturbed = anonymise(folder, *settings("cell", 2))
    assert [file.sha256 for file in manifest.files] == digests(undisturbed.folder)
