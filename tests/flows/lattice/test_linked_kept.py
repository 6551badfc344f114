"""With ``linked: keep`` the set of combinations that a person's records are in is that of k people, in the files that are published."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors.base import JobError, PrivacyError
from schemas.job.job import load_job
from tasks.planning.pareto_page import measure_pareto_front
from tasks.publication.verify_and_publish import PublishedRelease
from tests.conftest import Anonymise, CommandLine
from tests.flows.lattice.test_linked import hashed, in_files, key, told
from tests.flows.lattice.test_persons import QIDS, TABLE, K, job, visits
from tests.house.replaced import PERSON_CELLS_PART
from tests.jobs import generalise, people, released

pytestmark = pytest.mark.slow
KEEP = {"name": "skald", "linked": "keep"}
__all__ = ["key"]


def kept_job(folder: Path, table: pa.Table = TABLE, **parts: Any) -> Path:
    return job(folder, table, **({"columns": hashed("person"), "method": KEEP, "suppression": {"limit": 0.3}} | parts))


def sets_by_the_rule(node: tuple[int, ...], table: pa.Table = TABLE, k: int = K) -> dict[Any, frozenset[Any]]:
    """The combinations that are left to each person, one person after the other."""
    rows, whose = generalise(table, node, QIDS), table["person"].to_pylist()
    members: dict[Any, set[Any]] = defaultdict(set)
    for row, person in zip(rows, whose, strict=True):
        if person is not None:
            members[row].add(person)
    kept = {row for row, people in members.items() if len(people) >= k}
    # Of classes of as many people the one that comes first in the files; nulls come last in each column.
    places = {row: place for place, row in enumerate(sorted(kept, key=lambda row: [(value is None, str(value)) for value in row]))}
    order = sorted(kept, key=lambda row: (-len(members[row]), places[row]))
    sets = {person: tuple(row for row in order if person in members[row]) for person in set(whose) - {None}}
    for length in range(max(map(len, sets.values())), 0, -1):
        sharing = Counter(sets.values())
        sets = {person: mine[:-1] if len(mine) == length and sharing[mine] < k else mine for person, mine in sets.items()}
    return {person: frozenset(mine) for person, mine in sets.items()}


def assert_kept(made: PublishedRelease, k: int = K) -> None:
    """Count the sets in the files one by one."""
    frame = released(made.folder)
    sets: dict[str, set[Any]] = defaultdict(set)
    for *row, person in frame.select(*QIDS, "person").rows():
        if person is not None:
            sets[person].add(tuple(row))
    assert min(Counter(map(frozenset, sets.values())).values()) >= k
    classes = Counter(row for mine in sets.values() for row in mine)
    assert set(classes) == set(frame.select(QIDS).rows())
    assert min(classes.values()) >= k
    [one] = made.manifest.linked or ()
    assert told(one) == in_files(made, "person", "person", k)
    assert (one.smallest >= k, one.below_k, one.accepted) == (True, 0, False)
    assert made.manifest.released == len(frame)
    assert made.manifest.suppressed == made.manifest.records - len(frame)


@pytest.mark.promise
def test_every_set_in_the_files_is_that_of_k_people(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(kept_job(tmp_path))
    assert_kept(made)
    assert 0 < made.manifest.suppressed <= 0.3 * len(TABLE)
    assert made.untold.suppressed_for["linked"] + made.untold.suppressed_for.get("k", 0) == made.manifest.suppressed
    assert made.manifest.suppressed_for == {}
    assert made.manifest.optimal.startswith("best of ")


@pytest.mark.parametrize("limit", ["0", "0.05", "0.6", "1"])
def test_the_limit_is_kept_by_coarser_levels(anonymise: Anonymise, tmp_path: Path, limit: str) -> None:
    made = anonymise(kept_job(tmp_path, suppression={"limit": float(limit)}))
    assert_kept(made)
    assert made.manifest.suppressed <= Fraction(limit) * len(TABLE)


def test_the_page_of_the_front_marks_no_node_that_is_not_published(anonymise: Anonymise, tmp_path: Path) -> None:
    """Links are no part of its search."""
    path = kept_job(tmp_path)
    marked = [one.node for one in measure_pareto_front(load_job(path)).nodes if one.chosen]
    assert set(map(tuple, marked)) <= {tuple(anonymise(path).manifest.node)}


@pytest.mark.parametrize("limit", [0.3, 0.6, 1])
def test_the_records_that_go_are_those_of_the_rule(anonymise: Anonymise, tmp_path: Path, limit: float) -> None:
    made = anonymise(kept_job(tmp_path, suppression={"limit": limit}))
    assert made.manifest.node is not None
    sets = sets_by_the_rule(made.manifest.node)
    left = set().union(*sets.values())
    rows = zip(generalise(TABLE, made.manifest.node, QIDS), TABLE["person"].to_pylist(), strict=True)
    expected = Counter(row for row, person in rows if (row in left if person is None else row in sets[person]))
    assert Counter(released(made.folder).select(QIDS).rows()) == expected


@pytest.mark.parametrize("parts", [{"files": 3}, {"files": 2, "row_group": 50, "chunk_rows": 60}, {"threads": 1, "rows_per_file": 50}])
def test_files_chunks_and_threads_keep_the_same_records(anonymise: Anonymise, tmp_path: Path, parts: dict[str, Any]) -> None:
    one, other = anonymise(kept_job(tmp_path / "one")), anonymise(kept_job(tmp_path / "other", **parts))
    assert (one.manifest.node, one.manifest.linked, one.manifest.loss) == (other.manifest.node, other.manifest.linked, other.manifest.loss)
    columns = released(one.folder).columns
    assert released(one.folder).sort(columns).equals(released(other.folder).sort(columns))


def test_the_order_of_records_and_the_shares_of_people_change_nothing(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = anonymise(kept_job(tmp_path / "one"))
    shuffled = TABLE.take(pa.array(np.random.default_rng(0).permutation(len(TABLE))))
    monkeypatch.setattr(PERSON_CELLS_PART, 1_000_000)
    other = anonymise(kept_job(tmp_path / "other", shuffled, files=3))
    assert released(one.folder).equals(released(other.folder))


def test_where_nobody_has_two_records_nothing_is_taken_out_and_the_certificate_holds(anonymise: Anonymise, tmp_path: Path) -> None:
    table = people(400)
    plain = anonymise(job(tmp_path / "plain", table, suppression={"limit": 0.05}))
    made = anonymise(kept_job(tmp_path / "kept", table, suppression={"limit": 0.05}))
    assert (made.manifest.node, made.manifest.loss, made.manifest.optimal) == (plain.manifest.node, plain.manifest.loss, "certified")
    assert_kept(made)


def test_losses_are_of_what_is_left(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(kept_job(tmp_path))
    sizes = Counter(released(made.folder).select(QIDS).rows()).values()
    assert made.manifest.loss["dm_star"] == sum(size**2 for size in sizes) + made.manifest.suppressed**2
    assert made.manifest.loss["dm"] == sum(size**2 for size in sizes) + made.manifest.suppressed * len(TABLE)
    assert made.manifest.loss["suppression_rate"] == made.manifest.suppressed / len(TABLE)


def test_a_replay_keeps_it_within_the_limit_or_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    first = anonymise(kept_job(tmp_path))
    other = visits(500, seed=9)
    pa.parquet.write_table(other, tmp_path / "people" / "000.parquet")
    again = anonymise(tmp_path / "job.yaml", f"replay={first.manifest.release}", "suppression.limit=0.9")
    assert again.manifest.node == first.manifest.node
    assert_kept(again)
    with pytest.raises(PrivacyError, match="do not hold here"):
        anonymise(tmp_path / "job.yaml", f"replay={first.manifest.release}", "suppression.limit=0")


def test_verify_finds_it_kept_and_an_overlap_is_counted_in_persons(anonymise: Anonymise, direct: CommandLine, tmp_path: Path) -> None:
    made = anonymise(kept_job(tmp_path))
    done = direct("verify", str(made.folder), "--job", str(tmp_path / "job.yaml"), "--json", PERSON_KEY="9f3c1b7a5e2d48c6" * 4)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["linked"][0]["failing"] == 0
    again = anonymise(tmp_path / "job.yaml", "privacy.k=5")
    [overlap] = again.untold.overlaps
    assert (overlap.unit, overlap.unmeasured) == ("person", "")
    assert overlap.shared_at_risk is not None


def test_what_it_needs_and_does_not_go_with_is_told(tmp_path: Path) -> None:
    for parts, why in (
        ({"columns": hashed("person", person=[])}, "set columns.person"),
        ({"suppression": {"limit": 0.1, "treatment": "mask"}}, "use suppression.treatment: drop"),
        ({"privacy": {"k": 3, "l": {"disease": {"distinct": 2}}}}, "privacy.l.disease would have to hold"),
    ):
        with pytest.raises(JobError, match=why):
            load_job(kept_job(tmp_path, **parts))
