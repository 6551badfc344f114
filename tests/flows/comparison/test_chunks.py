"""A comparison finds what a full enumeration finds, in every chunk and in all, and publishes nothing."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from core.charts.scales import short
from schemas.errors.base import PrivacyError, SkaldError
from tests.conftest import Anonymise, CommandLine, snapshot
from tests.jobs import LEVELS, job_of, people, people_job
from tests.oracles.lattice import Ladder, Node, best_node, losses, published

ROWS, QIDS = 240, ["sex", "age", "zip"]
TABLE = people(ROWS, seed=5)
LIMIT = Fraction(1, 20)
Compare = Callable[..., Any]


@pytest.fixture(scope="module")
def compare() -> Compare:
    """Runs a comparison in this process, without Prefect: ``compare(job_path, chunks, ks, cut=True)``."""
    from flows import compare as module

    flow: Any = module.compare

    def run(job_path: Path, chunks: Sequence[int], ks: Sequence[int], *settings: str, **options: Any) -> Any:
        return getattr(flow, "fn", flow)(job_path, settings, tuple(chunks), tuple(ks), **options)

    return run


def small_job(folder: Path, files: int = 1, **parts: Any) -> Path:
    """A job of three QIDs, 40 nodes."""
    columns = job_of()["columns"]
    columns |= {"quasi_identifiers": columns["quasi_identifiers"][:3], "identifiers": ["person", "height", "smoker", "born"]}
    return people_job(folder, TABLE, files=files, columns=columns, **parts)


def records(table: pa.Table = TABLE) -> tuple[list[tuple[Any, ...]], list[Ladder]]:
    """The QIDs of every record, and what each value is published as, read off the hierarchies value by value."""
    columns = [table[qid].to_pylist() for qid in QIDS]
    ladders: list[Ladder] = []
    for qid, column in zip(QIDS, columns, strict=True):
        top = len(LEVELS[qid]) - 1
        ladders.append(
            [
                {value: label(value) if value is not None or level == top else None for value in column}
                for level, label in enumerate(LEVELS[qid])
            ]
        )
    return list(zip(*columns, strict=True)), ladders


def alone(chunks: Sequence[Sequence[Any]], ladders: Sequence[Ladder], k: int) -> dict[str, Any]:
    """Releases of chunks by force: each searched through its whole lattice, the published records counted one by one."""
    sizes: Counter[tuple[Any, ...]] = Counter()
    nodes: list[Node | None] = []
    suppressed = summed = 0
    for chunk in chunks:
        node = best_node(chunk, ladders, k, LIMIT, "dm_star")
        nodes.append(node)
        if node is None:
            suppressed, summed = suppressed + len(chunk), summed + len(chunk) ** 2
            continue
        own = Counter(published(row, ladders, node) for row in chunk)
        loss = losses(chunk, ladders, node, k)
        suppressed, summed = suppressed + loss.suppressed, summed + loss.dm_star
        for combination, size in own.items():
            if size >= k:
                sizes[tuple(value if value is None else str(value) for value in combination)] += size
    return {
        "nodes": Counter(node for node in nodes if node is not None),
        "lost_chunks": nodes.count(None),
        "classes": len(sizes),
        "suppressed": suppressed,
        "dm_star": sum(size**2 for size in sizes.values()) + suppressed**2,
        "dm_star_summed": summed,
    }


def parts_of(rows: Sequence[Any], count: int) -> list[Sequence[Any]]:
    return [rows[len(rows) * number // count : len(rows) * (number + 1) // count] for number in range(count)]


@pytest.mark.few(2)
@pytest.mark.parametrize("cut", [False, True], ids=["growing", "cut"])
@pytest.mark.parametrize(("files", "chunk_rows"), [(1, 1000), (8, 1000), (3, 17)])
def test_every_figure_is_that_of_a_full_enumeration(compare, tmp_path: Path, cut: bool, files: int, chunk_rows: int) -> None:
    found = compare(small_job(tmp_path, files), [1, 2, 8], [2, 5, 40], f"chunk_rows={chunk_rows}", cut=cut).comparison
    rows, ladders = records()
    assert [(case.chunks, case.k) for case in found.cases] == [(chunks, k) for chunks in (1, 2, 8) for k in (2, 5, 40)]
    for case in found.cases:
        chunks = parts_of(rows, case.chunks) if cut else parts_of(rows, 8)[: case.chunks]
        whole = [row for chunk in chunks for row in chunk]
        expected = alone(chunks, ladders, case.k)
        assert Counter({tuple(share.node): share.chunks for share in case.alone.nodes}) == expected.pop("nodes")
        assert {name: getattr(case.alone, name) for name in expected} == expected
        node = best_node(whole, ladders, case.k, LIMIT, "dm_star")
        assert case.skald.node == node
        assert case.records == case.skald.records == len(whole)
        together = losses(whole, ladders, node, case.k).dm_star if node else len(whole) ** 2
        assert case.skald.dm_star == together
        assert case.ratio == expected["dm_star"] / together
        assert case.ratio_summed == expected["dm_star_summed"] / together
        assert (case.skald.unexamined, case.alone.unexamined) == (0, 0)
    # Of k = 40 and chunks of 30 records none can be released, and the figures say so.
    assert found.cases[-1].alone.lost_chunks == 8
    assert found.cases[-1].alone.suppressed == ROWS


def test_all_chunks_together_are_the_release_of_a_run(compare, anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=4)
    found = compare(job, [4], [3, 7]).comparison
    for case in found.cases:
        manifest = anonymise(job, f"privacy.k={case.k}").manifest
        skald = case.skald
        assert (skald.node, skald.suppressed, skald.classes) == (manifest.node, manifest.suppressed, manifest.classes)
        assert (skald.dm_star, skald.gcp) == (manifest.loss["dm_star"], pytest.approx(manifest.loss["gcp"]))


def test_a_root_that_memory_bounds_is_that_of_a_run_and_the_chunks_are_searched_at_full_resolution(
    compare, anonymise: Anonymise, tmp_path: Path
) -> None:
    # Four numbers make 64 ** 4 = 16.8 million bins, of which 64 MB hold four million.
    random = np.random.default_rng(3)
    numbers = {name: (random.beta(1, 6, 600) * 64).astype(int) for name in "abcd"}
    columns = {"quasi_identifiers": [{"name": name, "hierarchy": {"widths": [1, 8, 32]}} for name in "abcd"], "sensitive": ["s"]}
    table = pa.table(numbers | {"s": random.integers(0, 3, 600)})
    parts: dict[str, Any] = {"columns": columns, "memory": "64MB", "method": {"name": "skald", "root": "dense"}}
    job = people_job(tmp_path, table, files=2, **parts)
    (case,) = compare(job, [2], [2], "suppression.limit=0.9").comparison.cases
    manifest = anonymise(job, "privacy.k=2", "suppression.limit=0.9").manifest
    assert any(manifest.search["root"])
    assert (case.skald.node, case.skald.dm_star) == (manifest.node, manifest.loss["dm_star"])
    assert (case.skald.unexamined > 0) == (manifest.optimal != "certified")
    occupied = compare(job, [2], [2], "suppression.limit=0.9", "method.root=occupied").comparison.cases[0]
    assert case.alone == occupied.alone
    assert occupied.skald.unexamined == 0


def test_one_chunk_alone_is_all_chunks_together(compare, tmp_path: Path) -> None:
    for case in compare(small_job(tmp_path), [1], [1, 3, 9]).comparison.cases:
        assert (case.ratio, case.ratio_summed) == (1, 1)
        assert case.alone.gcp == pytest.approx(case.skald.gcp)
        assert case.alone.classes == case.skald.classes


def test_how_the_source_is_stored_changes_no_figure(compare, tmp_path: Path) -> None:
    found = [compare(small_job(tmp_path / str(files), files), [1, 3], [4]).comparison.cases for files in (1, 2, 5)]
    assert found[0] == found[1] == found[2]


def test_files_say_what_the_comparison_says_and_no_value(compare, tmp_path: Path) -> None:
    compared = compare(small_job(tmp_path), [1, 4], [3, 6])
    assert compared.folder == tmp_path / "releases-comparison"
    assert {path.name for path in compared.folder.iterdir()} == {f"comparison.{kind}" for kind in ("json", "csv", "svg")}
    assert json.loads((compared.folder / "comparison.json").read_text()) == compared.comparison.model_dump(mode="json")
    with (compared.folder / "comparison.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["chunks"]), int(row["k"]), float(row["ratio"])) for row in rows] == [
        (case.chunks, case.k, case.ratio) for case in compared.comparison.cases
    ]
    assert compared.comparison.qids[1].levels == ("1", "5", "10", "40", "*")
    text = "".join((compared.folder / f"comparison.{kind}").read_text() for kind in ("json", "csv", "svg"))
    values = {value for name in ("zip", "disease", "note") for value in TABLE[name].to_pylist() if value is not None}
    assert not [value for value in values if value in text]


def test_the_picture_is_the_same_for_the_same_figures_and_shows_every_ratio(compare, tmp_path: Path) -> None:
    job = small_job(tmp_path)
    compared = [compare(job, [1, 2], [3, 6], to=tmp_path / name) for name in "ab"]
    first, second = ((one.folder / "comparison.svg").read_text("utf-8") for one in compared)
    assert first == second
    shown = [text.text for text in ElementTree.fromstring(first).iter("{http://www.w3.org/2000/svg}text")]
    assert {short(case.ratio) for case in compared[0].comparison.cases} <= set(shown)
    assert {"DM* ratio (the paper's Fig. 3)", "1 chunk", "2 chunks", "SKALD, k = 3", "alone, k = 6"} <= set(shown)


def test_nothing_is_published_and_the_target_stays_as_it_is(compare, anonymise: Anonymise, tmp_path: Path) -> None:
    job = small_job(tmp_path)
    compare(job, [2], [3])
    assert not (tmp_path / "releases").exists()
    anonymise(job)
    before = snapshot(tmp_path / "releases")
    compare(job, [2], [3, 4], to=tmp_path / "figures")
    assert snapshot(tmp_path / "releases") == before


def test_another_k_or_number_of_chunks_scans_nothing_again(compare, tmp_path: Path) -> None:
    job = small_job(tmp_path, files=4)
    compare(job, [1, 4], [3])
    artifacts = tmp_path / ".skald" / "people" / "artifacts"
    before = snapshot(artifacts)
    compare(job, [1, 2, 4], [3, 6, 9])
    after = snapshot(artifacts)
    assert {name: after[name] for name in before if "digests" not in name} == {
        name: stat for name, stat in before.items() if "digests" not in name
    }
    new = {name.split("/")[0] for name in after.keys() - before.keys()}
    assert new == {"histogram", "optima", "optima_classes", "recounts"}


@pytest.mark.parametrize(
    ("chunks", "ks", "cut", "kind", "told"),
    [
        ([1, 241], [3], False, SkaldError, "240 records cannot be cut into 241 chunks"),
        ([2, 3, 4], [3], True, SkaldError, "3 does not divide 4"),
        ([1, 2], [3, 241], False, PrivacyError, "k = 241 cannot be met by 240 records"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(compare, tmp_path: Path, chunks, ks, cut, kind, told: str) -> None:
    with pytest.raises(kind, match=told):
        compare(small_job(tmp_path), chunks, ks, cut=cut)
    assert not (tmp_path / "releases-comparison").exists()
    assert not list((tmp_path / ".skald").rglob("histograms"))


@pytest.mark.few(3)
@pytest.mark.parametrize("option", [("--chunks", "0"), ("--chunks", "1,,2"), ("--k", "five"), ("--k", "-3"), ("--k", "")])
def test_lists_that_are_no_numbers_are_refused(skald: CommandLine, tmp_path: Path, option: tuple[str, str]) -> None:
    done = skald("compare", small_job(tmp_path), *option)
    assert done.returncode == 2
    assert f"{option[0]} takes whole numbers" in done.stderr
    assert "Traceback" not in done.stderr


def without_seconds(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    assert found.pop("seconds").keys() >= {"source", "histograms", "recount"}
    return found


@pytest.mark.slow
def test_the_command_shows_writes_and_prints_the_same_with_and_without_prefect(compare, tmp_path: Path) -> None:
    skald = CommandLine("prefect", tmp_path)
    expected = without_seconds(compare(small_job(tmp_path / "expected"), [1, 4], [3, 6]).comparison.model_dump_json())
    for name, options in (("prefect", []), ("direct", ["--direct"])):
        job = small_job(tmp_path / name)
        done = skald("compare", job, "--chunks", "4,1", "--k", "6,3,3", "--to", tmp_path / name / "figures", "--json", *options)
        assert done.returncode == 0, done.stderr
        assert without_seconds(done.stdout) == expected
        assert without_seconds((tmp_path / name / "figures" / "comparison.json").read_text()) == expected
    shown = skald("compare", tmp_path / "direct" / "job.yaml", "--chunks", "1,4", "--k", "3,6", "--direct", COLUMNS="80")
    assert shown.returncode == 0, shown.stderr
    ratios = {(case["chunks"], case["k"]): f"{case['ratio']:,.2f}" for case in expected["cases"]}
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["3", ratios[1, 3], ratios[4, 3]] in lines
    assert ["6", ratios[1, 6], ratios[4, 6]] in lines
    assert "…" not in shown.stdout.split("DM* ratio")[1]


@pytest.mark.slow
def test_a_killed_comparison_continues_where_it_was(compare, tmp_path: Path) -> None:
    skald = CommandLine("prefect", tmp_path)
    expected = compare(small_job(tmp_path / "expected"), [1, 24], [2, 3, 5]).comparison
    job = small_job(tmp_path / "killed")
    arguments = ("compare", job, "--chunks", "1,24", "--k", "2,3,5", "--json", "--direct")
    skald.killed("optima/*.record", *arguments)
    assert not (tmp_path / "killed" / "releases-comparison").exists()
    before = snapshot(tmp_path / "killed" / ".skald" / "people" / "artifacts" / "histograms")
    done = skald.here(*arguments)
    assert done.returncode == 0, done.stderr
    assert without_seconds(done.stdout) == without_seconds(expected.model_dump_json())
    assert snapshot(tmp_path / "killed" / ".skald" / "people" / "artifacts" / "histograms") == before
