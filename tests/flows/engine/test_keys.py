"""What is made again and what is not: after a change of the code, after a change of what a step is told, under Prefect and without."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import PrivacyError, StorageError
from schemas.errors.methods import ReplayError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.composition.release_history import read_entry
from tasks.engine import steps
from tasks.engine.calls import artifacts_of
from tasks.recount.recount import verify_release
from tasks.store import keys
from tasks.store.keys import secret_of
from tasks.store.store import Artifact, Store
from tests.conftest import Anonymise, CommandLine
from tests.jobs import CSV_TYPES, JOB, digests, job_of, people, people_job, write_csv, write_job
from tests.places import ROOT
from tests.tasks.store.declared_steps import CODES

TABLE = people(400)
Edit = Callable[[str], None]


def flow_of(method: str) -> Any:
    flow = METHODS[method].flow.load()
    return getattr(flow, "fn", flow)


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Edit]:
    """Plays that a module was changed since."""
    plain, edited = keys.get_data, set()

    def forget() -> None:
        for cached in (keys.code_of, keys._read, keys._source):
            cached.cache_clear()

    def read(package: str, path: str) -> bytes | None:
        source = plain(package, path)
        return source + b"\nEDITED = True\n" if source and f"{package}/{path}" in edited else source

    def change(path: str) -> None:
        assert (ROOT / path).is_file()
        edited.add(path)
        forget()

    monkeypatch.setattr(keys, "get_data", read)
    yield change
    forget()


def made(folder: Path) -> dict[str, set[str]]:
    """The keys of what the store holds, by step."""
    store = folder / ".skald" / "people" / "artifacts"
    return {step.name: {path.stem for path in step.glob("*.record")} for step in store.iterdir() if step.is_dir()}


def again(before: dict[str, set[str]], after: dict[str, set[str]]) -> set[str]:
    """The steps that were made once more."""
    return {step for step in after if after[step] - before.get(step, set())} - {"releases"}


@pytest.mark.ci
def test_a_changed_search_searches_again_and_what_it_reads_stays(anonymise: Anonymise, tmp_path: Path, edit: Edit) -> None:
    job = people_job(tmp_path, TABLE, files=3)
    first, before = anonymise(job), made(tmp_path)
    assert anonymise(job, "target=unchanged").manifest.release == first.manifest.release
    assert made(tmp_path) == before
    edit("core/lattice/search.py")
    second, after = anonymise(job, "target=other"), made(tmp_path)
    assert again(before, after) == {"outcome", "cells", "classes", "lattice"}
    assert (second.manifest.release, digests(second.folder)) == (first.manifest.release, digests(first.folder))
    edit("core/columns/domains.py")
    third = anonymise(job, "target=third")
    assert again(after, made(tmp_path)) >= {"domains", "domain", "histograms", "histogram", "outcome"}
    assert (third.manifest.release, digests(third.folder)) == (first.manifest.release, digests(first.folder))
    assert third.manifest.increment is not None
    assert (third.manifest.increment.domains_reused, third.manifest.increment.unchanged) == (0, 0)


@pytest.mark.ci
@pytest.mark.parametrize("method", [{"name": "skald"}, {"name": "mondrian", "fragments": {"count": 2}}])
def test_files_of_another_library_are_written_again_by_a_run_that_goes_on(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: dict[str, Any]
) -> None:
    """A release is one library's: the files bear its version, and the recount of a release looks whether the manifest names it."""
    job, written = people_job(tmp_path, TABLE, method=method), list[set[str]]()

    def interrupted(*_: object) -> None:
        written.append(made(tmp_path)["files"])
        raise StorageError.not_writable("here", "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("tasks.publication.target.Target.publish", interrupted)
        for version in (pa.cpp_version, pa.cpp_version, "0.0.1"):
            patched.setattr(pa, "cpp_version", version)
            with pytest.raises(StorageError):
                anonymise(job)
    assert written[0] == written[1] < written[2]
    assert len(written[2]) == 2 * len(written[0])
    verify_release(load_job(job), anonymise(job).folder)


@pytest.mark.ci
def test_what_other_code_kept_of_a_recoding_is_not_believed_and_releases_are_held_against_each_other_by_records(
    anonymise: Anonymise, tmp_path: Path, edit: Edit
) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    anonymise(job)
    edit("core/lattice/search.py")
    assert not anonymise(job, "privacy.k=6").manifest.overlaps[0].unmeasured
    edit("core/recoding/recoding.py")
    *_, overlap = anonymise(job, "privacy.k=7").manifest.overlaps
    store = Store(tmp_path / ".skald" / "people" / "artifacts")
    entry = read_entry(overlap.release, store)
    assert entry is not None
    assert not entry.is_readable
    assert (overlap.shared, overlap.unmeasured) == (len(TABLE), "")
    assert overlap.shared_at_risk is not None


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("module", ["core/mondrian/cuts.py", "core/recoding/recoding.py", "core/columns/domains.py"])
def test_cuts_are_not_found_again_by_other_code(tmp_path: Path, edit: Edit, module: str) -> None:
    run = flow_of("mondrian")
    job = people_job(tmp_path, TABLE, method={"name": "mondrian"})
    release = run(job).manifest.release
    edit("core/lattice/search.py")
    run(job, (f"replay={release}",))
    edit(module)
    with pytest.raises(ReplayError, match="another version of this program made them"):
        run(job, (f"replay={release}", "suppression.limit=0.2"))


@pytest.mark.ci
def test_a_replay_within_a_wider_limit_is_none_within_a_narrower(tmp_path: Path) -> None:
    run = flow_of("mondrian")
    job = people_job(tmp_path, TABLE, files=2, method={"name": "mondrian"})
    replay = f"replay={run(job).manifest.release}"
    pq.write_table(TABLE.slice(200, 170), tmp_path / "people" / "001.parquet")
    assert run(job, (replay, "suppression.limit=0.3")).manifest.suppressed
    with pytest.raises(PrivacyError, match="do not hold here"):
        run(job, (replay,))


@pytest.mark.ci
def test_another_reading_of_the_same_csv_file_is_counted_anew(anonymise: Anonymise, tmp_path: Path) -> None:
    write_csv(tmp_path / "people.csv", TABLE)
    job = write_job(tmp_path, job_of(source={"path": "people.csv", "format": "csv", "types": CSV_TYPES}))
    anonymise(job)
    before, settings = made(tmp_path), 'source.null_values=["", "20", "21"]'
    kept = anonymise(job, settings)
    assert again(before, made(tmp_path)) >= {"converted", "domains", "histograms", "outcome"}
    assert digests(kept.folder) == digests(anonymise(job, settings, "work=fresh", "target=fresh-releases").folder)


@pytest.mark.ci
def test_more_memory_searches_again(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    anonymise(job)
    before = made(tmp_path)
    anonymise(job, "memory=512MB")
    assert "outcome" in again(before, made(tmp_path))


def test_the_code_of_every_method_is_seen_by_a_comparison() -> None:
    reached = {method: keys.module_with_imports(entry.flow.module) for method, entry in METHODS.items()}
    assert "core.lattice.search" in reached["skald"]
    assert all("core.mondrian.partition" in reached[method] for method in reached if method != "skald")
    assert all("tasks.publication.verify_and_publish" in modules for modules in reached.values())


@pytest.mark.slow
def test_the_key_of_prefects_record_is_that_of_the_store(prefect: CommandLine) -> None:
    people_job(prefect.folder, TABLE)
    done = prefect("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    results = prefect.folder / ".skald" / "people" / "results"
    records = dict(path.name.split("-", maxsplit=1) for path in results.iterdir())
    secret = secret_of(load_job(prefect.folder / "job.yaml"))
    # What Prefect's server knows too is keyed.
    store = {step: {secret.keyed(key) for key in keys} for step, keys in made(prefect.folder).items()}
    assert records.keys() >= {"domains", "domain", "histograms", "histogram", "sizes", "search"}
    assert {phase: {key} for phase, key in records.items() if phase in store} == {step: store[step] for step in store if step in records}
    assert {records["search"]} == store["outcome"] == store["cells"] == store["classes"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[str], list[Artifact]]]:
    """The modules of ours that ran in each call of a step, and all that it made, whether it returns that or keeps it for a later one."""
    calls: list[tuple[set[str], list[Artifact]]] = []
    plain, make, kept = steps.guarded, Store.make, list[Artifact]()

    def noted(store: Store, *arguments: Any) -> Artifact:
        kept.append(make(store, *arguments))
        return kept[-1]

    monkeypatch.setattr(Store, "make", noted)

    def profiled(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            files: set[str] = set()
            kept.clear()
            sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename) if event == "call" else None)
            try:
                result = plain(function)(*arguments)
            finally:
                sys.setprofile(None)
            inside = [Path(file).relative_to(ROOT) for file in files if Path(file).is_relative_to(ROOT)]
            # The environment may lie in the checkout.
            ours = [path for path in inside if not path.parts[0].startswith(".")]
            calls.append(({".".join(path.with_suffix("").parts) for path in ours}, [*artifacts_of(result), *kept]))
            return result

        return call

    monkeypatch.setattr(steps, "guarded", profiled)
    return calls


JOBS: dict[str, dict[str, Any]] = {
    "lattice": {"privacy": {"k": 4, "l": {"disease": {"distinct": 2}}}, "suppression": {"limit": 0.3, "treatment": "cell", "rounds": 1}},
    "roots": {"memory": "64MB", "method": {"name": "skald", "objective": "gcp"}},
    "mondrian": {"method": {"name": "mondrian"}},
    "fragments": {"method": {"name": "mondrian", "fragments": {"count": 2}}},
    "pseudonyms": {
        "columns": JOB["columns"] | {"identifiers": [{"name": "person", "treatment": {"mask": {"keep": 1}}}], "linkable": "person"}
    },
    "rayden": {"method": {"name": "rayden"}, "privacy": {"k": 4, "t": {"disease": {"t": 0.9}}}},
    "clustering": {"method": {"name": "clustering"}},
}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("name", JOBS)
def test_what_a_step_runs_is_in_its_key(tmp_path: Path, ran: list[tuple[set[str], list[Artifact]]], name: str) -> None:
    job = people_job(tmp_path, TABLE, files=2, **JOBS[name])
    flow_of(load_job(job).method.name)(job)
    assert len(ran) > 5
    for modules, made_of_it in ran:
        codes = {code.module for code in CODES if any(code.made_by_this_code(artifact.key) for artifact in made_of_it)}
        assert codes
        seen = set().union(*(keys.module_with_imports(code) for code in codes))
        # The first reading makes nothing itself: what it keeps are results of other steps, under their keys. And where workers of a cluster
        # write the files, the step of shelves has the rest in its own key.
        above = {"tasks.counting.source_domains", "tasks.writing.two_level_shuffle"}
        assert not {module for module in modules - seen - above if not module.startswith((*keys.IGNORED_MODULES, "tests."))}
