"""Releases of all methods stay the same to the byte for the same job and data, from one version to the next."""

from pathlib import Path

import pytest

from tests.corpus.releases import cases, outcome, recorded


@pytest.mark.ci
@pytest.mark.few(33)
@pytest.mark.parametrize("name", sorted(cases()))
def test_a_release_stays_the_same_to_the_byte(name: str, tmp_path: Path) -> None:
    assert outcome(cases()[name], tmp_path) == recorded()[name]


def test_the_corpus_has_every_method_with_every_setting_and_few_refusals() -> None:
    ended = recorded()
    assert ended.keys() == cases().keys()
    assert sum(end["code"] == 0 for end in ended.values()) >= 60
