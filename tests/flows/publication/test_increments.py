"""Tomorrow's run: the same folder with files that are new, changed or gone, and what it has to do with yesterday's release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.method import METHODS
from schemas.release.increments import Overlap
from tests.conftest import Anonymise, CommandLine, snapshot
from tests.jobs import QIDS, digests, generalise, people, people_job, write_parquet

TABLE = people(400)
MORE = people(120, seed=3)
SETTINGS = ("--set", "chunk_rows=100")


def with_more(folder: Path, table: pa.Table = MORE, name: str = "zzz") -> None:
    pq.write_table(table, folder / "people" / f"{name}.parquet")


@pytest.fixture(scope="module")
def fresh(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The release of a run that knows nothing of yesterday."""
    folder = tmp_path_factory.mktemp("fresh")
    job = people_job(folder, TABLE, files=3)
    with_more(folder)
    return digests(anonymise(job).folder)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Which files phases 1 and 2 open."""
    from tasks.counting import chunk_counts

    opened: list[str] = []
    read = chunk_counts.read_chunk

    def spied(chunk: Any, columns: Sequence[str], **options: Any) -> Any:
        opened.extend(Path(piece.file.name).stem for piece in chunk.pieces)
        return read(chunk, columns, **options)

    monkeypatch.setattr(chunk_counts, "read_chunk", spied)
    yield opened


@pytest.mark.slow
def test_only_new_files_are_scanned_even_if_they_bring_values_between_the_old_ones(
    anonymise: Anonymise, tmp_path: Path, scanned: list[str], fresh: list[str]
) -> None:
    job = people_job(tmp_path, TABLE, files=3)
    first = anonymise(job)
    # Values and cells are counted in one look.
    assert Counter(scanned) == {"000": 1, "001": 1, "002": 1}
    scanned.clear()
    with_more(tmp_path)
    second = anonymise(job)
    assert scanned == ["zzz"]
    assert digests(second.folder) == fresh
    told = second.manifest.increment
    assert told is not None
    assert (told.since, told.unchanged, told.new, told.changed, told.removed) == (first.manifest.release, 3, 1, 0, 0)
    assert (told.chunks, told.domains_reused, told.histograms_reused) == (2, 1, 1)
    assert (told.domains_records, told.histograms_records) == (400, 400)
    report = json.loads((second.folder / "report.json").read_text())
    assert report["increment"] == list(told.sentences(520))
    assert "3 files unchanged, 1 new, 0 changed, 0 removed" in report["increment"][0]


def test_the_values_of_new_files_really_lie_between_the_old_ones() -> None:
    old, new = (set(table["height"].to_pylist()) - {None} for table in (TABLE, MORE))
    assert {value for value in new - old if min(old) < value < max(old)}


@pytest.mark.slow
def test_changed_renamed_and_removed_files_are_told_apart(anonymise: Anonymise, tmp_path: Path) -> None:
    # Too large to share a chunk.
    job, folder = people_job(tmp_path, TABLE, files=4, chunk_rows=120), tmp_path / "people"
    assert anonymise(job).manifest.increment.since is None  # type: ignore[union-attr]
    (folder / "000.parquet").unlink()
    (folder / "001.parquet").rename(folder / "moved.parquet")
    with_more(tmp_path, MORE, "002")
    with_more(tmp_path, people(40, seed=9), "new")
    told = anonymise(job).manifest.increment
    assert told is not None
    assert (told.unchanged, told.new, told.changed, told.removed) == (2, 1, 1, 1)
    assert (told.chunks, told.domains_reused, told.domains_records) == (4, 2, 200)


@pytest.mark.slow
def test_files_that_shared_a_chunk_with_one_that_is_gone_are_read_again_and_no_others(
    anonymise: Anonymise, tmp_path: Path, scanned: list[str]
) -> None:
    job, folder = people_job(tmp_path, TABLE, files=4, chunk_rows=200), tmp_path / "people"
    anonymise(job)
    scanned.clear()
    (folder / "000.parquet").unlink()
    told = anonymise(job).manifest.increment
    assert told is not None
    assert (told.unchanged, told.removed, told.chunks, told.domains_reused, told.domains_records) == (3, 1, 2, 1, 200)
    assert set(scanned) == {"001"}


@pytest.mark.slow
def test_what_is_not_kept_is_not_told(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=2, artifacts="delete")
    anonymise(job)
    with_more(tmp_path)
    second = anonymise(job).manifest
    assert second.increment is not None
    assert (second.increment.since, second.increment.domains_reused) == (None, 0)
    assert [overlap.unmeasured for overlap in second.overlaps] == ["nothing is kept of it here, because its artefacts were removed"]


def chunk_artefacts(folder: Path) -> dict[str, Sequence[int]]:
    made = snapshot(folder / ".skald" / "people" / "artifacts")
    return {name: state for name, state in made.items() if name.startswith(("domains/", "histograms/"))}


@pytest.mark.slow
def test_killed_and_continued_tomorrows_run_ends_in_the_bytes_of_a_fresh_one(
    prefect: CommandLine, tmp_path: Path, fresh: list[str]
) -> None:
    people_job(tmp_path, TABLE, files=3)
    assert prefect("run", "job.yaml", *SETTINGS).returncode == 0
    before = chunk_artefacts(tmp_path)
    with_more(tmp_path)
    prefect.killed("domains/*.record", "run", "job.yaml", *SETTINGS)
    assert len(chunk_artefacts(tmp_path)) > len(before)
    done = prefect("run", "job.yaml", *SETTINGS, "--json")
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    assert chunk_artefacts(tmp_path).items() >= before.items(), "an old chunk was counted again"
    assert digests(tmp_path / "releases" / manifest["release"]) == fresh
    assert manifest["increment"]["new"] == 1
    assert "Earlier: people-" in done.stderr


Tables = dict[str, pa.Table]


def seen(tables: Tables, node: Sequence[int], k: int, mask: bool) -> dict[str, list[Any]]:
    """The published combination of each record by file, None where it is not published."""
    combinations = {name: generalise(table, node) for name, table in tables.items()}
    sizes = Counter(row for rows in combinations.values() for row in rows)
    suppressed = sum(size for size in sizes.values() if size < k)
    other = "*" if mask and suppressed >= k else None
    return {name: [row if sizes[row] >= k else other for row in rows] for name, rows in combinations.items()}


def few(pairs: Sequence[tuple[Any, ...]], k: int) -> int:
    counts = Counter(pair for pair in pairs if any(one is not None for one in pair))
    return sum(count for count in counts.values() if count < k)


def expected(then: Tables, now: Tables, nodes: Sequence[Sequence[int]], ks: Sequence[int], mask: bool) -> dict[str, int]:
    """What somebody with both releases finds out, record by record."""
    k, first, second = min(ks), seen(then, nodes[0], ks[0], mask), seen(now, nodes[1], ks[1], mask)
    shared = [pair for name in then.keys() & now.keys() for pair in zip(first[name], second[name], strict=True)]
    removed = [(row,) for name in then.keys() - now.keys() for row in first[name]]
    return {
        "shared": len(shared),
        "shared_at_risk": few(shared, k),
        "added_at_risk": few([(row,) for name in now.keys() - then.keys() for row in second[name]], k),
        "removed_at_risk": few(removed, k),
    }


def figures(overlap: Overlap) -> dict[str, int | None]:
    return {name: getattr(overlap, name) for name in ("shared", "shared_at_risk", "added_at_risk", "removed_at_risk")}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [[], ["suppression.limit=0.4", "suppression.treatment=mask"], ["method.root=dense"]])
def test_records_at_risk_are_those_that_both_releases_single_out(anonymise: Anonymise, tmp_path: Path, settings: list[str]) -> None:
    mask = "suppression.treatment=mask" in settings
    thirds: Tables = {f"{number:03d}": TABLE.slice(133 * number, 133) for number in range(3)}
    job = people_job(tmp_path)
    for path in (tmp_path / "people").iterdir():
        path.unlink()
    for name, table in thirds.items():
        with_more(tmp_path, table, name)
    made = [(anonymise(job, *settings), thirds, 5)]
    with_more(tmp_path)
    made.append((anonymise(job, *settings), thirds | {"zzz": MORE}, 5))
    (tmp_path / "people" / "000.parquet").unlink()
    last = anonymise(job, *settings, "privacy.k=9")
    left = {name: table for name, table in (thirds | {"zzz": MORE}).items() if name != "000"}
    for (release, tables, k), overlap in zip(reversed(made), last.untold.overlaps, strict=True):
        assert overlap.release == release.manifest.release
        nodes = [release.manifest.node, last.manifest.node]
        assert figures(overlap) == expected(tables, left, nodes, [k, 9], mask)
        assert not overlap.unmeasured
        assert overlap.reported().sentence() in [limit["text"] for limit in json.loads((last.folder / "report.json").read_text())["limits"]]
    assert sum(overlap.known_at_risk for overlap in last.untold.overlaps)
    [before] = made[1][0].untold.overlaps
    assert figures(before) == expected(thirds, thirds | {"zzz": MORE}, [one[0].manifest.node for one in made], [5, 5], mask)


@pytest.mark.slow
def test_releases_that_share_no_file_are_not_warned_of(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(people_job(tmp_path, TABLE))
    write_parquet(tmp_path / "people", MORE)
    assert not anonymise(tmp_path / "job.yaml").untold.overlaps


@pytest.mark.slow
def test_the_same_classes_put_nobody_at_risk(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    anonymise(job)
    [overlap] = anonymise(job, "rows_per_file=50").untold.overlaps
    assert (overlap.shared, overlap.known_at_risk, overlap.unmeasured) == (400, 0, "")


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["mondrian", "rayden"], ids=["classes of combinations", "classes of records"])
def test_classes_of_other_methods_are_compared_too(tmp_path: Path, method: str) -> None:
    job, flow = people_job(tmp_path, TABLE, files=2, method={"name": method}), METHODS[method].flow.load()
    run: Any = getattr(flow, "fn", flow)
    first = run(job)
    with_more(tmp_path)
    [overlap] = run(job).untold.overlaps
    assert overlap.release == first.manifest.release
    assert (overlap.shared, overlap.added, overlap.by) == (400, 120, "files")
    assert overlap.shared_at_risk is not None
    assert 0 < overlap.shared_at_risk <= 400
    assert "Fewer than k = 5" in overlap.sentence()


@pytest.mark.ci
def test_releases_of_other_hierarchies_are_compared_too_and_no_column_is_named(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    anonymise(job, "method.objective=dm_star")
    [overlap] = anonymise(job, "method.objective=dm_star", "columns.quasi_identifiers.1.hierarchy.widths=[1, 4]").untold.overlaps
    assert (overlap.shared, overlap.unmeasured) == (400, "")
    assert overlap.shared_at_risk
    assert QIDS[1] not in overlap.sentence()


@pytest.mark.slow
def test_a_run_is_compared_with_the_last_one(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    anonymise(job)
    with_more(tmp_path)
    second = anonymise(job)
    with_more(tmp_path, people(50, seed=5), "later")
    told = anonymise(job).manifest.increment
    assert told is not None
    assert (told.since, told.unchanged, told.new) == (second.manifest.release, 3, 1)


@pytest.mark.ci
def test_an_empty_file_relates_no_releases(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    with_more(tmp_path, TABLE.slice(0, 0), "empty")
    anonymise(job)
    write_parquet(tmp_path / "people", MORE)
    assert not anonymise(job).untold.overlaps


@pytest.mark.slow
def test_a_run_that_ends_as_soon_as_its_release_is_there_can_be_compared_with(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.publication.target import Target

    plain = Target.publish

    def dies(*arguments: Any) -> None:
        plain(*arguments)
        raise KeyboardInterrupt

    job = people_job(tmp_path, TABLE, files=2)
    with monkeypatch.context() as patch:
        patch.setattr(Target, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            anonymise(job)
    with_more(tmp_path)
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.shared, overlap.unmeasured) == (400, "")
