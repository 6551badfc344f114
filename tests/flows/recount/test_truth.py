"""A release is of its source's records, or it is refused: before it is published, and whenever it is verified beside the source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recoding.release_order import in_canonical_order
from core.recount.classes import Recount
from schemas.errors.base import VerificationError
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import load_job
from tasks.recount.original import NOT_AT_HAND, original_of
from tasks.recount.recount import recount, verify_release
from tests.command_line import CommandLine
from tests.conftest import Anonymise
from tests.jobs import JOB, data_files, people, people_job, released

TEXT = "suppression.treatment=mask"
WAYS: dict[str, tuple[str, ...]] = {
    "levels": ("method.name=skald",),
    "masked": ("method.name=skald", TEXT),
    "starred": ("method.name=skald", "suppression.treatment=cell"),
    "rounds": ("method.name=skald", "suppression.rounds=2"),
    "bounds": ("method.name=skald", "intervals=bounds"),
    "mondrian": ("method.name=mondrian",),
    "mondrian, masked": ("method.name=mondrian", TEXT),
    "mondrian, bounds": ("method.name=mondrian", "intervals=bounds"),
    "sets": ("method={name: mondrian, generalisation: set}",),
    "beginnings": ("method={name: mondrian, generalisation: {zip: prefix}}",),
    "rayden": ("method.name=rayden",),
    "clustering": ("method.name=clustering",),
}
LEVELS = ("levels", "masked", "bounds")
RECORDS = 1000
SETTINGS = ("privacy.k=4", "suppression.limit=0.06")
NAMES, BESIDE = ["sex", "age", "zip"], ["disease", "note", "visits"]
COLUMNS = {
    "identifiers": ["person", "height", "smoker", "born", "score"],
    "quasi_identifiers": [qid for qid in JOB["columns"]["quasi_identifiers"] if qid["name"] in NAMES],
    "sensitive": ["disease"],
    "insensitive": ["note", "visits"],
}
"""Few quasi-identifiers, so that their labels tell something, and fewer values beside them than there are records."""
Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def made(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a job that was run in a way, each once."""
    folders: dict[str, Path] = {}

    def run(way: str) -> Path:
        if way not in folders:
            folders[way] = tmp_path_factory.mktemp("made")
            anonymise(people_job(folders[way], people(RECORDS, seed=3), columns=COLUMNS), *SETTINGS, *WAYS[way])
        return folders[way]

    return run


def release_of(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


def counted(folder: Path, way: str, change: Change, scratch: Path) -> Recount:
    """Recount the records of a release after a change, which no digest tells of."""
    job = load_job(folder / "job.yaml", (*SETTINGS, *WAYS[way]))
    schema = pq.read_schema(data_files(release_of(folder))[0])
    changed = change(released(release_of(folder)))
    path = scratch / "data" / "changed.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(changed.to_arrow(compat_level=pl.CompatLevel.oldest())).cast(schema), path)
    return recount(job, [path], scratch / "spill", "it", original_of(job))


def faults(folder: Path, way: str, change: Change, scratch: Path) -> str:
    with pytest.raises(VerificationError) as refused:
        counted(folder, way, change, scratch)
    assert refused.value.exit_code == 4
    return "\n".join(refused.value.faults)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_a_release_is_of_its_source_in_whatever_order(made: Callable[[str], Path], tmp_path: Path, way: str) -> None:
    found = counted(made(way), way, lambda frame: frame.sample(fraction=1, shuffle=True, seed=1), tmp_path)
    assert (found.source, found.unproved) == (RECORDS, ())


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_values_beside_those_of_other_records_are_refused(made: Callable[[str], Path], tmp_path: Path, way: str) -> None:
    for names in (["disease"], BESIDE, [*BESIDE, "sex"]):
        with pytest.raises(VerificationError):
            counted(made(way), way, reversed_columns(names), tmp_path / str(len(names)))


def reversed_columns(names: list[str]) -> Change:
    return lambda frame: frame.with_columns(pl.col(names).reverse())


@pytest.mark.ci
@pytest.mark.few(4)
@pytest.mark.parametrize("way", WAYS)
def test_sensitive_values_that_are_exchanged_between_records_are_noticed(made: Callable[[str], Path], tmp_path: Path, way: str) -> None:
    found = faults(made(way), way, reversed_columns(["disease"]), tmp_path)
    assert "together as no record of the source does" in found or "do not cover its values in the records with the same" in found


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_records_that_stand_in_the_classes_of_others_are_noticed(made: Callable[[str], Path], tmp_path: Path, way: str) -> None:
    """All that is published beside the quasi-identifiers stays together, and is that of the source."""
    found = faults(made(way), way, reversed_columns(BESIDE), tmp_path)
    if way in LEVELS:
        assert "put 'disease', 'note', 'visits'" in found
    else:
        assert "do not cover its values in the records with the same 'disease', 'note' and 'visits'" in found or "together" in found


def with_one(name: str, value: Any) -> Change:
    def change(frame: pl.DataFrame) -> pl.DataFrame:
        place = frame[name].is_not_null().arg_true()[0]
        return (
            frame.with_row_index("place")
            .with_columns(pl.when(pl.col("place") == place).then(pl.lit(value, frame.schema[name])).otherwise(pl.col(name)).alias(name))
            .drop("place")
        )

    return change


CHANGES = [("note", "note of nobody"), ("visits", 99), ("disease", "plague"), ("note", None)]


@pytest.mark.ci
@pytest.mark.few(6)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_one_altered_value_is_noticed(made: Callable[[str], Path], tmp_path: Path, way: str, name: str, value: Any) -> None:
    found = faults(made(way), way, with_one(name, value), tmp_path)
    if value is None:
        assert "together as no record" in found or "cover" in found or f"in '{name}' with a value" in found
    else:
        assert f"1 record in '{name}' with a value that the source does not have, or not as often" in found or "do not cover" in found
    assert str(value) not in found.replace("99 ", "")


def test_a_value_that_the_source_has_less_often_is_noticed_though_one_is_missing(made: Callable[[str], Path], tmp_path: Path) -> None:
    frame = released(release_of(made("levels")))
    source = pl.from_arrow(people(RECORDS, seed=3))
    assert isinstance(source, pl.DataFrame)
    rare = source["visits"].value_counts().sort("count")["visits"].drop_nulls()[0]
    often = frame["visits"].mode()[0]
    moved = [visits == often and place % 2 == 0 for place, visits in enumerate(frame["visits"])]
    found = faults(
        made("levels"),
        "levels",
        lambda frame: frame.with_columns(visits=pl.when(pl.Series(moved)).then(rare).otherwise(pl.col("visits"))),
        tmp_path,
    )
    assert " records in 'visits' with a value that the source does not have, or not as often" in found


@pytest.mark.few(12)
@pytest.mark.parametrize("way", ["masked", "starred", "rounds", "mondrian, masked", "rayden", "clustering", "beginnings"])
@pytest.mark.parametrize(("name", "label"), [("age", "[200 - 209]"), ("zip", "99999"), ("zip", "99***"), ("sex", "q"), ("sex", "{f, q}")])
def test_labels_that_cover_nothing_are_noticed(made: Callable[[str], Path], tmp_path: Path, way: str, name: str, label: str) -> None:
    name = "zip" if way in ("rayden", "clustering", "beginnings") and name == "age" else name
    found = faults(made(way), way, lambda frame: frame.with_columns(pl.lit(label).alias(name)), tmp_path)
    assert f"1 label of '{name}' covers no value of the source" in found


@pytest.mark.parametrize("way", WAYS)
def test_labels_of_other_records_are_noticed(made: Callable[[str], Path], tmp_path: Path, way: str) -> None:
    """Two labels of a quasi-identifier are exchanged in all records: each class stays as it is, and stands for other people."""
    frame = released(release_of(made(way)))
    names = [name for name in frame.columns if name not in BESIDE]
    name = max(names, key=lambda name: frame[name].n_unique())
    first, second = frame[name].drop_nulls().value_counts(sort=True)[name].to_list()[:2]
    exchanged = {first: second, second: first}
    found = faults(made(way), way, lambda frame: frame.with_columns(pl.col(name).replace(exchanged)), tmp_path)
    assert "cover" in found or "together" in found


@pytest.mark.parametrize("way", ["levels", "mondrian"])
def test_a_label_for_more_records_than_there_are_is_noticed(made: Callable[[str], Path], tmp_path: Path, way: str) -> None:
    frame = released(release_of(made(way)))
    name = max(NAMES, key=lambda name: frame[name].n_unique())
    rare = frame[name].drop_nulls().value_counts().sort("count")[name][0]
    found = faults(made(way), way, lambda frame: frame.with_columns(pl.lit(rare, frame.schema[name]).alias(name)), tmp_path)
    assert f"with labels of '{name}' that cover too few values of the source" in found


def test_records_twice_are_noticed(made: Callable[[str], Path], tmp_path: Path) -> None:
    found = faults(made("levels"), "levels", lambda frame: pl.concat([frame, frame]), tmp_path)
    assert "records, more than the 1,000 of the source" in found


def test_masked_records_must_be_of_the_source_too(made: Callable[[str], Path], tmp_path: Path) -> None:
    frame = released(release_of(made("masked")))
    starred = pl.all_horizontal(pl.col(name) == "*" for name in NAMES)
    assert 0 < len(frame.filter(starred)) < len(frame)
    change = frame.with_columns(visits=pl.when(starred).then(77).otherwise(pl.col("visits")))
    assert f"{len(frame.filter(starred))} records in 'visits'" in faults(made("masked"), "masked", lambda _: change, tmp_path)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("way", ["levels", "mondrian", "rayden"])
def test_a_run_whose_writer_mixes_records_up_publishes_nothing(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A fault is put into the writer: it gives each record of a file the payload of the one behind it."""

    def wrong_order(classes: Any, payload: Any) -> Any:
        right, columns = in_canonical_order(classes, payload)
        return right, [column.take(pa.array([*range(1, len(column)), 0])) for column in columns]

    monkeypatch.setattr("tasks.writing.rewriting.in_canonical_order", wrong_order)
    with pytest.raises(VerificationError) as refused:
        anonymise(people_job(tmp_path, people(RECORDS), columns=COLUMNS), *SETTINGS, *WAYS[way])
    assert refused.value.exit_code == 4
    assert not list((tmp_path / "releases").glob("people-*"))


@pytest.fixture
def folder(made: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of a job, its source and its release."""
    return Path(shutil.copytree(made("levels"), tmp_path / "copy"))


def verified(folder: Path, *settings: str) -> Recount:
    return verify_release(load_job(folder / "job.yaml", (*SETTINGS, *settings)), release_of(folder))[0]


def test_verify_holds_a_release_against_its_source(folder: Path) -> None:
    assert (verified(folder).source, verified(folder).unproved) == (RECORDS, ())


def changed_source(folder: Path) -> None:
    [path] = (folder / "people").glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)


FIRST = "columns.quasi_identifiers.0.hierarchy"


@pytest.mark.parametrize(
    ("change", "settings", "reason"),
    [
        (changed_source, (), "the source is not what it was when the release was made"),
        (lambda folder: shutil.rmtree(folder / "people"), (), NOT_AT_HAND),
        (lambda folder: (release_of(folder) / "manifest.json").unlink(), (), "it has no manifest, which would say what it was made of"),
        (lambda folder: None, (f"{FIRST}={{tree: {{a: [f, m], b: [x]}}}}",), "the job's hierarchies are not those of the release"),
    ],
)  # fmt: skip
def test_verify_says_what_it_could_not_check(folder: Path, change: Callable[[Path], None], settings: tuple[str, ...], reason: str) -> None:
    change(folder)
    found = verified(folder, *settings)
    assert (found.source, found.unproved) == (None, (f"Whether the records are those of the source was not checked: {reason}.",))


def test_a_job_whose_hierarchy_cannot_be_read_verifies_nothing(folder: Path) -> None:
    with pytest.raises(HierarchyError, match=r"the hierarchy file 'nowhere\.csv' cannot be read"):
        verified(folder, f"{FIRST}={{csv: nowhere.csv}}")


def test_verify_tells_untrue_records_beside_altered_files(folder: Path) -> None:
    path = data_files(release_of(folder))[0]
    frame = pl.read_parquet(path).with_columns(pl.col("disease").reverse())
    pq.write_table(pa.table(frame.to_arrow(compat_level=pl.CompatLevel.oldest())).cast(pq.read_schema(path)), path)
    with pytest.raises(VerificationError, match=r"1 data file altered since publication\n.*put 'disease', 'note', 'visits'"):
        verified(folder)


def test_a_manifest_that_adds_up_with_other_records_than_the_sources_is_noticed(folder: Path) -> None:
    path = release_of(folder) / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["records"] += 1
    manifest["suppressed"] += 1
    path.write_text(json.dumps(manifest))
    with pytest.raises(VerificationError, match="the manifest says records = 1,001, the source holds 1,000"):
        verified(folder)


def test_the_command_says_what_was_held_against_what(made: Callable[[str], Path], direct: CommandLine) -> None:
    folder = Path(shutil.copytree(made("levels"), direct.folder / "copy"))
    options = [option for setting in SETTINGS for option in ("--set", setting)]
    proved = direct("verify", release_of(folder), "--job", folder / "job.yaml", *options)
    assert "has a record for each of the files', of its 1,000 records" in proved.stdout
    without = direct("verify", release_of(folder))
    assert "not held against the source" in " ".join(without.stdout.split())
    assert "has a record for each" not in without.stdout
    changed_source(folder)
    left = direct("verify", release_of(folder), "--job", folder / "job.yaml", *options)
    assert left.returncode == 0
    assert "was not checked: the source is not what it was when the release was made" in left.stdout
    as_json = json.loads(direct("verify", release_of(folder), "--job", folder / "job.yaml", "--json", *options).stdout)
    assert as_json["source"] is None
    assert len(as_json["unproved"]) == 1


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("output", ["{format: csv}", "{format: duckdb}", "{partition_by: [sex]}", "{format: csv, delimiter: ;}"])
@pytest.mark.parametrize("way", ["levels", "mondrian"])
def test_releases_of_every_format_are_held_against_the_source(anonymise: Anonymise, tmp_path: Path, way: str, output: str) -> None:
    file = people_job(tmp_path, people(300))
    settings = (*SETTINGS, *WAYS[way], f"output={output}")
    made = anonymise(file, *settings)
    found, _ = verify_release(load_job(file, settings), made.folder)
    assert (found.source, found.unproved) == (300, ())


def test_columns_of_the_rest_are_held_against_the_source(anonymise: Anonymise, tmp_path: Path) -> None:
    table = people(300).append_column("cost", pa.array([Decimal(number // 3) / 4 for number in range(300)], pa.decimal128(9, 2)))
    columns = JOB["columns"] | {"insensitive": "rest"}
    file = people_job(tmp_path, table, columns=columns)
    made = anonymise(file, *SETTINGS)
    job = load_job(file, SETTINGS)
    path = tmp_path / "theirs" / "data" / "part.parquet"
    path.parent.mkdir(parents=True)
    frame = released(made.folder)
    frame.with_columns(cost=pl.col("cost").reverse()).write_parquet(path)
    with pytest.raises(VerificationError, match="together as no record"):
        recount(job, [path], tmp_path / "spill", "it", original_of(job))
    frame.with_columns(index=pl.lit(1)).write_parquet(path)
    with pytest.raises(VerificationError, match="the source has no 'index'"):
        recount(job, [path], tmp_path / "spill", "it", original_of(job))


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("way", ["levels", "mondrian", "mondrian, bounds", "sets", "rayden", "clustering"])
def test_labels_that_stand_beside_those_of_others_are_noticed_though_nothing_else_is_published(
    anonymise: Anonymise, tmp_path: Path, way: str
) -> None:
    """One quasi-identifier is given to other records: its labels are as many of each, and only beside those of the other one are wrong."""
    ages = [place % 40 for place in range(RECORDS)]
    table = pa.table({"age": ages, "tall": [age // 2 + place // 40 for place, age in enumerate(ages)]})
    qids = [{"name": name, "hierarchy": {"widths": [1, 4, 8, 16]}} for name in table.column_names]
    made = anonymise(people_job(tmp_path, table, columns={"quasi_identifiers": qids}), *SETTINGS, *WAYS[way])
    assert min(released(made.folder).select(pl.all().n_unique()).row(0)) > 2
    assert counted(tmp_path, way, lambda frame: frame, tmp_path / "same").source == RECORDS
    [name, *_] = released(made.folder).columns[-2:] if way == "mondrian, bounds" else ["tall"]
    names = [other for other in released(made.folder).columns if other.startswith(name[:4])]
    found = faults(tmp_path, way, reversed_columns(names), tmp_path / "changed")
    expected = "put 'age' and 'tall' together as no record" if way == "levels" else "with labels that together cover too few records"
    assert expected in found


def test_no_record_at_all_is_a_fault(made: Callable[[str], Path], tmp_path: Path) -> None:
    for way in ("levels", "mondrian", "masked"):
        assert faults(made(way), way, lambda frame: frame[:0], tmp_path / way) == "the data files hold no record"
