"""What nobody can count again from the files is said to be taken on trust, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.recount.groups import TogetherCount
from core.recount.labels.label_losses import ColumnLoss
from core.recount.people import PersonCount
from schemas.job.identifiers import ColumnPublication
from schemas.release.evidence import ALTERED, complete_manifest
from tasks.store.place import place_of
from tasks.verification.entries import is_target, manifest_text_faults
from tasks.verification.manifest_claims import TOGETHER, uncounted_promises, unverified_claims, unverified_without_job
from tests.core.recount.test_classes import PERSONS, job, manifest, recount

COUNTED = PersonCount(90, 2, 0, 5, 0, 0, 0)


def trusted(with_job: bool = True, source: int | None = 100, **changes: Any) -> set[str]:
    found = replace(recount(), source=source)
    return set(unverified_claims(job() if with_job else None, manifest(**changes), found, is_its_job=with_job))


def test_what_the_search_found_out_is_taken_on_trust_where_it_is_said() -> None:
    assert "optimal" in trusted()
    assert not {"search", "repeats", "overlaps", "lattice"} & trusted()
    assert {"search", "versions"} <= trusted(search={"nodes": 3}, versions={"skald": "0"})
    assert "versions" not in trusted()


def test_what_the_source_tells_is_trusted_only_without_it() -> None:
    assert not {"records", "suppressed", "asked"} & trusted()
    assert {"records", "suppressed"} <= trusted(source=None)
    assert {"records", "suppressed", "asked", "hierarchies", "node"} <= trusted(with_job=False)
    # It is at hand, and the records were not held against it.
    told = unverified_claims(job(), manifest(), replace(recount(), source=100, unproved=("x",)), is_its_job=True)
    assert {"records", "suppressed"} <= {*told}


def test_what_columns_lost_is_trusted_where_it_was_not_counted_again() -> None:
    figures = {"income": ColumnPublication(publish="shared", changed=0.0, error=None, null=0.5)}
    found, said = replace(recount(), source=100), manifest(published=figures)
    assert "published" in unverified_claims(None, said, found, is_its_job=False)
    assert "published" not in unverified_claims(job(), said, replace(found, published=figures), is_its_job=True)
    assert "published" not in unverified_claims(job(), manifest(), found, is_its_job=True)


@pytest.mark.parametrize(
    ("persons", "counted", "said"),
    [
        (None, False, set()), (None, True, set()), (PERSONS, True, {"source_sizes", "risk.before"}),
        (PERSONS, False, {"source_sizes", "risk.before", "persons", *TOGETHER}),
    ],
)  # fmt: skip
def test_of_persons_is_trusted_what_their_classes_do_not_tell_and_what_the_source_tells_of_its_own(
    persons: dict[str, Any] | None, counted: bool, said: set[str]
) -> None:
    of_persons = {"source_sizes", "risk.before", "persons", *TOGETHER}
    found = replace(recount(), source=100)
    if counted:
        found = replace(found, persons=COUNTED, together={"passthrough": TogetherCount(0, 0, 0, 0)})
    for of, more in ((job(), set()), (None, {"source_sizes", "risk.before"})):
        told = unverified_claims(of, manifest(persons=persons), found, is_its_job=of is not None)
        assert set(told) & of_persons == said | more
        assert len(set(told)) == len(told)


def test_what_the_worst_class_keeps_is_trusted_where_its_persons_were_not_counted() -> None:
    measured = {"l": {"s": 2.0}}
    assert "measured" in trusted(measured=measured, persons=PERSONS)
    assert "measured" not in trusted(measured=measured)
    assert "measured" not in trusted(persons=PERSONS)


def test_losses_of_sizes_are_counted_and_others_trusted() -> None:
    told = trusted(loss={"dm": 1.0, "gcp": 0.5, "strange": 2.0})
    assert "loss.dm" not in told
    assert {"loss.gcp", "loss.strange"} <= told


def test_a_folder_bears_the_name_of_its_release(tmp_path: Path) -> None:
    named = "people-0123456789abcdef"

    def faults(folder: str, release: str = named) -> bool:
        return any("bear the name" in one for one in manifest_text_faults(tmp_path / folder, b"{}", manifest(release=release), ""))

    assert not faults(named)
    assert faults("people-0123456789abcdee")
    assert faults("no release", "no release")
    # Whether its content has its digest is told beside it.
    assert ALTERED in manifest_text_faults(tmp_path / named, b"{}", manifest(release=named), "")


def test_a_target_is_the_folder_of_the_job_however_it_is_written(tmp_path: Path) -> None:
    one = job()
    assert is_target(one, place_of(str(one.target_path.resolve())))
    assert not is_target(one, place_of(str(tmp_path)))
    (tmp_path / "kept").mkdir()
    (tmp_path / "linked").symlink_to("kept")
    by_link = job(target=str(tmp_path / "linked"))
    assert is_target(by_link, place_of(str((tmp_path / "kept").resolve())))
    assert not is_target(by_link, place_of(str(tmp_path.resolve())))
    away = job(target="s3://bucket/releases/of")
    assert is_target(away, place_of("s3://bucket/releases/of"))
    assert not is_target(away, place_of("s3://bucket/releases"))


def test_the_mean_size_of_classes_is_trusted_where_others_were_counted() -> None:
    assert "loss.c_avg" not in trusted(loss={"c_avg": 1.0})
    assert "loss.c_avg" in trusted(loss={"c_avg": 1.0}, persons=PERSONS)
    assert "loss.dm_star" not in trusted(loss={"dm_star": 1.0}, persons=PERSONS)


def test_where_shared_ranges_end_is_not_known_without_the_job() -> None:
    said = manifest().model_copy(update={"endpoints": {"age": "shared", "zip": "grid"}})
    [told] = [one for one in unverified_without_job(said) if "ranges" in one]
    assert "'age'" in told
    assert "'zip'" not in told
    assert not any("ranges" in one for one in unverified_without_job(manifest()))


@pytest.mark.parametrize("persons", [None, PERSONS])
def test_why_a_promise_was_not_counted_without_the_job_is_said(persons: dict[str, Any] | None) -> None:
    diversity, closeness = {"s": {"entropy": "2"}}, {"u": {"t": "0.1", "distance": "equal"}}
    told = uncounted_promises(manifest(privacy={"k": 2, "l": diversity, "t": closeness}, persons=persons))
    of_persons = [
        "k is of persons, and records were counted: who is whose is kept where the release was made.",
        "l-diversity of 's' was not counted: it is of persons, and these are not at hand.",
    ]
    expected = of_persons if persons else []
    assert told == [*expected, "t-closeness of 'u' was not counted: it is measured from the source."]
    assert uncounted_promises(manifest(privacy={"k": 2, "l": diversity}, persons=persons)) == expected


@pytest.mark.parametrize("search", [{}, {"nodes": 3}, {"evaluated": 3}])
@pytest.mark.parametrize("counted", [True, False])
def test_what_labels_lost_is_trusted_where_it_was_not_counted_or_does_not_follow_from_them(search: dict[str, int], counted: bool) -> None:
    found = replace(recount(), source=100, losses={"age": ColumnLoss(1.0, 1.0, numeric=False)} if counted else {})
    names = {"ncp", "loss.gcp", "loss.gcp_held"}
    for ncp in ({}, {"age": 0.1}):
        said = manifest(search=search, ncp=ncp, loss={"gcp": 0.1, "gcp_held": 0.1})
        told = set(unverified_claims(job(), said, found, is_its_job=True)) & names
        assert told == (set() if counted and "evaluated" not in search else names - (set() if ncp else {"ncp"}))


@pytest.mark.parametrize(("kept", "told"), [("", False), ("its own", False), ("another", True)])
@pytest.mark.parametrize("valid", [True, False])
def test_a_manifest_is_the_one_that_the_run_folder_published(tmp_path: Path, kept: str, told: bool, valid: bool) -> None:
    """Where its content has not its digest, that is told alone."""
    made, text = complete_manifest(manifest(), (), None)
    content = text.encode() if valid else text.encode() + b" "
    seal = made.seal if kept == "its own" else kept
    faults = manifest_text_faults(tmp_path, content, made, seal)
    assert any("run folder published" in one for one in faults) is (told and valid)
