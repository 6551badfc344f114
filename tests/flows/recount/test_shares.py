"""A recount in shares finds the figures of a recount as one, however many there are, and notices a missing one and one that comes twice."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.recount.classes import Recount
from core.recount.shares import ShareClasses, ShareSpread, control_faults, merge_share_counts
from schemas.errors.base import VerificationError
from tasks.publication import recount_calls, recounts
from tasks.publication.recounts import RecountTasks
from tests.conftest import Anonymise
from tests.flows.lattice import test_persons
from tests.flows.privacy.test_sensitive import MODELS, job, table
from tests.flows.privacy.test_values_of_people import people_job as visits_job
from tests.flows.privacy.test_values_of_people import visits
from tests.flows.recount.test_population import everybody, job_file
from tests.house.replaced import COLUMNS_HELD
from tests.jobs import JOB, people, people_job

PASSING = {"seconds", "peak_rss", "created", "workers", "increment", "documents", "seal"}
HASH = {"hash": {"key": {"env": "PERSON_KEY"}, "length": 16}}
LINKED = {"name": "person", "treatment": HASH}
Write = Callable[[Path], Path]
PROMISES: dict[str, dict[str, Any]] = {
    "entropy and order": {
        "l": MODELS["entropy"]["l"] | {"pay": {"distinct": 3}},
        "t": MODELS["ordered"]["t"] | MODELS["equal"]["t"],
    },
    "recursive and hierarchical": {
        "l": MODELS["recursive"]["l"] | {"pay": {"entropy": 2, "nulls": "value"}},
        "t": MODELS["hierarchical"]["t"],
    },
    "nulls": {"l": MODELS["nulls"]["l"]},
}
"""Every model, several of them at once: shares are added up for each by itself."""
PUBLISHED = {
    "sensitive": [{"name": "disease", "publish": "shared"}],
    "insensitive": ["note", {"name": "score", "publish": {"microaggregate": 6}}, {"name": "visits", "publish": {"top": 5}}],
}
JOBS: dict[str, Write] = {
    "published otherwise": lambda folder: people_job(folder, people(900), files=3, columns=JOB["columns"] | PUBLISHED),
    "published otherwise, of people": lambda folder: test_persons.job(
        folder, columns=test_persons.columns(sensitive=[{"name": "disease", "publish": "shared"}])
    ),
    "every kind of column": lambda folder: people_job(folder, people(900), files=3),
    "masked": lambda folder: people_job(folder, people(900), files=3, suppression={"limit": 0.1, "treatment": "mask"}),
    "stars": lambda folder: people_job(folder, people(900), files=3, suppression={"limit": 0.1, "treatment": "cell"}),
    "mondrian": lambda folder: people_job(folder, people(900), files=3, method={"name": "mondrian"}),
    "clustering": lambda folder: people_job(folder, people(300), files=3, method={"name": "rayden"}),
    "csv": lambda folder: people_job(folder, people(900), files=3, output={"format": "csv"}),
    "folders": lambda folder: people_job(folder, people(900, 1), files=3, output={"partition_by": ["sex"]}, privacy={"k": 2}),
    "bounds": lambda folder: people_job(folder, people(900), files=3, intervals="bounds"),
    "pseudonyms": lambda folder: people_job(folder, people(600), files=2, columns=JOB["columns"] | {"identifiers": [LINKED]}),
    "population": lambda folder: job_file(folder, {"name": "skald"}, everybody(2_000)),
    "persons": test_persons.job,
    "linked": lambda folder: test_persons.job(
        folder, columns=test_persons.columns(identifiers=[LINKED, "zip", "height", "born"], linkable=["person"])
    ),
    **{name: lambda folder, asked=asked: job(folder, table(1), asked, 0.4) for name, asked in PROMISES.items()},  # type: ignore[misc]
    **{
        f"{name} of people": lambda folder, asked=asked: visits_job(folder, visits(2), asked, 0.6)  # type: ignore[misc]
        for name, asked in PROMISES.items()
    },
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)


def manifest_of(anonymise: Anonymise, path: Path, folder: Path, threads: int) -> dict[str, Any]:
    made = anonymise(path, "rows_per_file=60", f"threads={threads}", f"target={folder / f'{threads}'}", "chunk_rows=100")
    return {key: value for key, value in made.manifest.model_dump().items() if key not in PASSING}


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("name", JOBS)
def test_the_figures_are_the_same_whatever_the_number_of_shares(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    path = JOBS[name](tmp_path / "job")
    whole = manifest_of(anonymise, path, tmp_path / "whole", 2)
    # As on a cluster of so many workers, in this process; of one job also few, some of whose shares hold most of it.
    for shares in (5, 2) if name == "every kind of column" else (5,):
        monkeypatch.setattr(recounts, "_most", lambda _written, shares=shares: shares)
        assert manifest_of(anonymise, path, tmp_path / "shares", shares) == whole


@pytest.mark.slow
def test_whole_records_are_read_by_one_thread_where_row_groups_are_large(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = people_job(tmp_path / "job", people(300), files=3)
    whole = manifest_of(anonymise, path, tmp_path / "whole", 2)
    monkeypatch.setattr(recounts, "_most", lambda _written: 2)
    monkeypatch.setattr(COLUMNS_HELD, 1 << 40)
    asked, answered = list[tuple[bool, int]](), recount_calls._answered

    def counted(connection: Any, one: Any, *more: Any) -> Any:
        [(threads,)] = connection.execute("SELECT current_setting('threads')").fetchall()
        asked.append((one.wide, threads))
        return answered(connection, one, *more)

    monkeypatch.setattr(recount_calls, "_answered", counted)
    assert manifest_of(anonymise, path, tmp_path / "shares", 2) == whole
    # Of either part of release and source; of the release also the untreated columns together, and the sensitive ones.
    assert [threads for wide, threads in asked if wide] == [1] * 8
    assert {threads for wide, threads in asked if not wide} == {2}


def shares_of(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, folder: Path, change: Callable[[str, list[Any]], list[Any]]
) -> pytest.ExceptionInfo[VerificationError]:
    """Run a job whose tasks of a recount give back something else than they made."""
    each = RecountTasks.map_calls

    def changed(self: RecountTasks, function: Any, label: str, arguments: Any, *, pass_key: bool = True) -> Any:
        return change(label, each(self, function, label, arguments, pass_key=pass_key))

    monkeypatch.setattr(recounts, "_most", lambda _written: 3)
    monkeypatch.setattr(RecountTasks, "map_calls", changed)
    with pytest.raises(VerificationError) as refused:
        anonymise(people_job(folder, people(300), files=3), "rows_per_file=60", "threads=3")
    assert not list((folder / "releases").glob("people-*"))
    return refused


@pytest.mark.ci
def test_a_share_that_comes_twice_in_the_place_of_another_publishes_nothing(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused = shares_of(anonymise, monkeypatch, tmp_path, lambda label, made: [made[0], made[0], *made[2:]] if label == "classes" else made)
    assert "with other records than were set apart" in str(refused.value)


@pytest.mark.slow
def test_files_that_no_task_read_publish_nothing(anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refused = shares_of(anonymise, monkeypatch, tmp_path, lambda label, made: made[1:] if label == "set apart" else made)
    assert "are not those that were written, each once" in str(refused.value)


@pytest.mark.slow
def test_parts_of_the_source_that_were_not_counted_publish_nothing(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shares_of(anonymise, monkeypatch, tmp_path, lambda label, made: made[1:] if label == "count source" else made)


def test_a_part_with_more_records_than_were_written_publishes_nothing(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its files are those that were written, and their records are added up all the same."""

    def more(label: str, made: list[Any]) -> list[Any]:
        return [made[0].model_copy(update={"records": made[0].records + 1}), *made[1:]] if label == "set apart" else made

    refused = shares_of(anonymise, monkeypatch, tmp_path, more)
    assert re.search(r"the data files hold (\d+) records, and \d+ were written", str(refused.value))


@pytest.mark.ci
def test_a_part_of_the_source_that_is_counted_twice_publishes_nothing(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every record of the release is one of the source, and more often than it needs to be."""
    refused = shares_of(anonymise, monkeypatch, tmp_path, lambda label, made: [*made, made[0]] if label == "count source" else made)
    [fault] = refused.value.faults
    assert re.fullmatch(r"of the source \d+ records were counted, and it has 300", fault)


def test_missing_and_repeated_shares_are_counted() -> None:
    assert not control_faults([(0, 5), (1, 7)], {0: 5, 1: 7})
    assert control_faults([(0, 5)], {0: 5, 1: 7}) == ["1 share of the classes with other records than were set apart for them"]
    assert control_faults([(0, 5), (0, 5), (1, 7)], {0: 5, 1: 7})
    assert control_faults([(0, 5), (1, 6)], {0: 5, 1: 7})


ONE = Recount(7, 2, 3, 1, 3, 0, {3: 1, 4: 1}, withheld={"zip": 1}, one_value={"pay": (1, 3)})
OTHER = Recount(5, 1, 5, 0, 0, 5, {5: 1}, withheld={"zip": 5}, one_value={"pay": (0, 0)})
EMPTY = Recount(0, 0, 0, 0, 0, 0, withheld={"zip": 0}, one_value={"pay": (0, 0)})
SPREADS = ShareSpread(1, 2, 0.5, 2), ShareSpread(0, 1, 0.25, 1), ShareSpread(0, 0, None)
SHARES = [ShareClasses(counts, (spread,), {"pay": 1}) for counts, spread in zip((ONE, OTHER, EMPTY), SPREADS, strict=True)]


@pytest.mark.parametrize(("least", "worst"), [(True, 0.25), (False, 0.5)])
def test_shares_are_added_up_with_the_worst_of_all(least: bool, worst: float) -> None:
    whole = merge_share_counts(SHARES, [least])
    expected = Recount(12, 3, 3, 1, 3, 5, {3: 1, 4: 1, 5: 1}, withheld={"zip": 6}, one_value={"pay": (1, 3)})
    assert whole.counts == expected
    assert whole.spreads == (ShareSpread(1, 3, worst, 3),)
    assert whole.unexpected == {"pay": 3}


def test_one_share_is_the_whole() -> None:
    whole = merge_share_counts(SHARES[:1], [True])
    assert replace(whole.counts, sizes=dict(whole.counts.sizes)) == ONE
    assert (whole.spreads, whole.unexpected) == (SHARES[0].spreads, SHARES[0].unexpected)


@pytest.mark.ci
@pytest.mark.parametrize("intervals", ["text", pytest.param("bounds", marks=pytest.mark.slow)])
def test_each_part_is_read_a_few_times_however_many_columns_there_are(
    anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, intervals: str
) -> None:
    readings, each = list[tuple[str, int]](), RecountTasks.map_calls

    def counted(self: RecountTasks, function: Any, label: str, arguments: Any, *, pass_key: bool = True) -> Any:
        readings.append((label, max(len(one[2]) for one in arguments) if label.startswith("count ") else 0))
        return each(self, function, label, arguments, pass_key=pass_key)

    monkeypatch.setattr(recounts, "_most", lambda _written: 3)
    monkeypatch.setattr(RecountTasks, "map_calls", counted)
    anonymise(people_job(tmp_path, people(300), files=3, intervals=intervals), "rows_per_file=60", "threads=3")
    qids = len(JOB["columns"]["quasi_identifiers"])
    of_release, of_source = ([asked for label, asked in readings if label == f"count {side}"] for side in ("release", "source"))
    # Labels of all quasi-identifiers at once, what columns tell together, and whole records; of the source its number too.
    assert (len(of_release), max(of_release)) == (3, qids)
    assert (len(of_source), max(of_source)) == (3, qids)
