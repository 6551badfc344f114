"""Every way to tamper with a release that the corpus knows is noticed, and no message says what was laid there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from schemas.job.job import load_job
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise
from tests.places import ROOT
from tests.tampering.kinds import all_kinds
from tests.tampering.play import LAYOUTS, MISSED, copy_of, finished, played, trusted_key


@pytest.fixture(scope="module")
def made(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return finished(tmp_path_factory.mktemp("releases"), lambda job, *settings: anonymise(job, *settings).folder)


@pytest.mark.ci
@pytest.mark.parametrize("share", [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.promise]), 15])
def test_every_kind_of_tampering_is_noticed(made: dict[str, Path], tmp_path: Path, share: int) -> None:
    """All of them; in seconds one of fifteen."""
    found: dict[str, str] = {}
    for number, kind in enumerate(list(all_kinds())[::share]):
        found[kind.name] = played(kind, made, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number), ignore_errors=True)
    missed = [f"{name}: {told}" for name, told in found.items() if told.startswith(MISSED)]
    assert not missed, "\n".join(missed)


def test_the_documentation_says_how_many_kinds_there_are() -> None:
    kinds = list(all_kinds())
    keyed = sum(kind.keyed for kind in kinds)
    anew = sum(kind.name.endswith("anew") for kind in kinds if not kind.keyed)
    text = " ".join((ROOT / "docs" / "features.md").read_text("utf-8").split())
    [said] = re.findall(r"Of (\d+) kinds of tampering .*? all are caught: (\d+) by .*? in (\d+) of these .*? the other (\d+) by", text)
    assert [int(number) for number in said] == [len(kinds), len(kinds) - keyed, anew, keyed]


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("layout", [*LAYOUTS, "signed"])
def test_what_is_not_tampered_with_is_verified(layout: str, made: dict[str, Path], tmp_path: Path) -> None:
    release = copy_of(made[layout], tmp_path / "job")
    job = load_job(tmp_path / "job" / "job.yaml", LAYOUTS.get(layout, LAYOUTS["parquet"]))
    key = trusted_key(made[layout]) if layout == "signed" else None
    assert verify_published(job, release, VerificationContext(str(release), key=key)).notes == ()
    assert verify_published(None, release, VerificationContext(str(release), key=key)).manifest is not None
