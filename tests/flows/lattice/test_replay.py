"""An earlier release applied to other data: the same levels, verified anew, and refused where they no longer hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import JobError, PrivacyError, StorageError
from schemas.errors.methods import ReplayError
from schemas.job.job import job_digest, load_job
from tests.conftest import Anonymise, CommandLine
from tests.jobs import QIDS, class_sizes, digests, generalise, people, people_job, released

TABLE = people(400)
MORE = people(150, seed=3)


@pytest.fixture
def yesterday(anonymise: Anonymise, tmp_path: Path) -> str:
    """A release of two files; then comes a third, with which another node is better."""
    release = anonymise(people_job(tmp_path, TABLE, files=2)).manifest.release
    pq.write_table(MORE, tmp_path / "people" / "zzz.parquet")
    return release


@pytest.mark.ci
def test_the_earlier_levels_are_applied_and_what_fails_is_suppressed(anonymise: Anonymise, tmp_path: Path, yesterday: str) -> None:
    job = tmp_path / "job.yaml"
    made = anonymise(job, f"replay={yesterday}")
    earlier = json.loads((tmp_path / "releases" / yesterday / "manifest.json").read_text())
    assert list(made.manifest.node or ()) == earlier["node"]
    assert anonymise(job).manifest.node != made.manifest.node
    rows = generalise(pa.concat_tables([TABLE, MORE]), earlier["node"])
    kept = {row: size for row, size in Counter(rows).items() if size >= 5}
    text = {tuple(str(value) for value in row): size for row, size in kept.items()}
    found = {tuple(str(value) for value in row): size for row, size in class_sizes(released(made.folder), QIDS).items()}
    assert found == text
    assert made.manifest.suppressed == len(rows) - sum(kept.values())
    assert made.manifest.replay_of == yesterday
    assert made.manifest.optimal == f"replay of {yesterday}, and no other choice was examined"


@pytest.mark.slow
def test_the_same_levels_put_fewer_records_at_risk_than_better_ones(anonymise: Anonymise, tmp_path: Path, yesterday: str) -> None:
    job = tmp_path / "job.yaml"
    again, better = (anonymise(job, *settings).manifest for settings in ([f"replay={yesterday}"], []))
    [risk], [_, other] = again.overlaps, better.overlaps
    assert (risk.release, other.release) == (yesterday, yesterday)
    assert (risk.shared_at_risk or 0) < (other.shared_at_risk or 0)


@pytest.mark.slow
def test_a_replay_of_a_release_on_its_own_data_is_its_data(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    made = anonymise(job)
    again = anonymise(job, f"replay=releases/{made.manifest.release}")
    assert again.manifest.release != made.manifest.release
    assert digests(again.folder) == digests(made.folder)
    assert anonymise(job, f"replay={made.manifest.release}").manifest == again.manifest


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "settings", [["privacy.l={disease: {distinct: 2}}", "suppression.limit=0.9"], ["method.root=dense"], ["suppression.treatment=cell"]]
)
def test_levels_are_replayed_under_other_promises_and_roots(
    anonymise: Anonymise, tmp_path: Path, yesterday: str, settings: list[str]
) -> None:
    made = anonymise(tmp_path / "job.yaml", f"replay={yesterday}", *settings).manifest
    assert made.replay_of == yesterday
    assert made.suppressed


@pytest.mark.ci
def test_levels_that_no_longer_keep_the_promise_are_refused_with_numbers(direct: CommandLine, tmp_path: Path, yesterday: str) -> None:
    release = yesterday
    done = direct("run", "job.yaml", "--replay", release, "--set", "suppression.limit=0")
    assert done.returncode == 3, done.stderr
    assert f"The classes of release '{release}' do not hold here" in done.stderr
    assert "of 550 are in classes that fail, and suppression.limit allows 0" in done.stderr
    assert [path.name for path in (tmp_path / "releases").glob("people-*")] == [release]
    kept = direct("run", "job.yaml", "--replay", f"releases/{release}", "--set", "suppression.limit=0.2", "--json")
    assert kept.returncode == 0, kept.stderr
    assert json.loads(kept.stdout)["replay_of"] == release


ROUNDED = "columns.insensitive=[note, {name: score, publish: {round: 20}}, {name: visits, publish: {top: 2}}]"


@pytest.mark.ci
@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_columns_that_the_job_alone_rounds_or_cuts_are_replayed(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    job = people_job(tmp_path, TABLE, files=2, method={"name": method}, suppression={"limit": 0.3})
    first = anonymise(job, ROUNDED)
    again = anonymise(job, ROUNDED, f"replay={first.manifest.release}")
    assert digests(again.folder) == digests(first.folder)
    pq.write_table(MORE, tmp_path / "people" / "zzz.parquet")
    more = anonymise(job, ROUNDED, f"replay={first.manifest.release}")
    assert (more.manifest.replay_of, more.manifest.node) == (first.manifest.release, first.manifest.node)
    frame, scores = released(more.folder), pa.concat_tables([TABLE, MORE])["score"].to_pylist()
    assert max(frame["visits"].drop_nulls()) == 2
    rounded = {round(one / 20) * 20 for one in scores if one is not None}
    assert set(frame["score"].drop_nulls()) <= rounded


def test_values_that_depend_on_other_people_are_not_replayed(tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    assert load_job(job, [ROUNDED, "replay=some"]).replay
    for way in ("shared", "{microaggregate: 7}"):
        given = f"columns.insensitive=[{{name: note, publish: {{round: 1}}}}, {{name: score, publish: {way}}}, visits]"
        assert load_job(job, [given]).columns.ways
        with pytest.raises(JobError, match="replay: values of 'score' are decided anew for each release"):
            load_job(job, [given, "replay=some"])


@pytest.mark.ci
@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        (["columns.quasi_identifiers.1.hierarchy.widths=[1, 4]"], ReplayError, r"\('age'\), so its levels do not mean the same here"),
        (["method.name=mondrian"], ReplayError, "was made by method 'skald' and cannot be replayed by 'mondrian'"),
        (["method.name=rayden"], JobError, "replay: rayden recodes single records"),
        (["method.name=kmember"], JobError, "replay: kmember recodes single records"),
        (["method.node=[0, 0, 0, 0]"], JobError, "replay: its levels are those of the earlier release, and method.node names others"),
        (["privacy.k=500"], PrivacyError, "do not hold here"),
        (["replay=nowhere"], StorageError, "'nowhere' is not a release"),
    ],
    ids=["another hierarchy", "another method", "a method of records", "another of these", "other levels", "another k", "no release"],
)
def test_what_does_not_mean_the_same_is_refused(
    anonymise: Anonymise, tmp_path: Path, yesterday: str, settings: list[str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        anonymise(tmp_path / "job.yaml", f"replay={yesterday}", *settings)
    assert [path.name for path in (tmp_path / "releases").glob("people-*")] == [yesterday]


def older(manifest: dict[str, object]) -> None:
    manifest.pop("hierarchies")


def other_job(manifest: dict[str, object]) -> None:
    older(manifest)
    manifest["job"] = "0" * 64


def other_type(manifest: dict[str, object]) -> None:
    tops = manifest["tops"]
    assert isinstance(tops, dict)
    tops["age"] += 1


def of_itself(manifest: dict[str, object]) -> None:
    manifest["replay_of"] = manifest["release"]


def of_another_folder(manifest: dict[str, object]) -> None:
    manifest["replay_of"] = "../elsewhere"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (older, ""),
        (other_job, "does not say which hierarchies"),
        (other_type, r"The hierarchies of 'age' have another"),
        (of_itself, "does not say which release"),
        (of_another_folder, "does not say which release"),
    ],
)
def test_a_release_that_says_less_is_believed_only_if_its_job_is_this_one(
    anonymise: Anonymise, tmp_path: Path, yesterday: str, change: Callable[[dict[str, object]], None], said: str
) -> None:
    path = tmp_path / "releases" / yesterday / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    if not said:
        assert anonymise(tmp_path / "job.yaml", f"replay={yesterday}").manifest.replay_of == yesterday
        return
    with pytest.raises(ReplayError, match=said):
        anonymise(tmp_path / "job.yaml", f"replay={yesterday}")


def test_a_job_without_replay_has_the_digest_it_always_had(tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    plain = load_job(job)
    assert "replay" not in plain.canonical()
    one, other = (job_digest(load_job(job, [f"replay={where}"])) for where in ("people-1", "elsewhere/people-1"))
    assert one == other != job_digest(plain)
