"""The index of a family of pseudonyms grows release by release, and one that was not published leaves nothing in it."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.job import Job
from tasks.composition import pseudonym_families
from tasks.composition.pseudonym_families import Disclosed, family_of
from tasks.composition.registry import ReleaseRegistry
from tasks.store.keys import FolderSecret
from tasks.store.store import Artifact, Store
from tests.jobs import job_of

FIRST = [(1, 7, 70), (2, 7, 70), (3, 8, 70)]
SECOND = [(1, 9, 90), (2, 9, 90), (4, 5, 90)]
"""By pseudonym, digests of all that a release publishes of it and of its labels."""


class Index:
    """The index of one family in a folder, to which releases are added; those before are published."""

    def __init__(self, folder: Path) -> None:
        self.store, self._spill = Store(folder / "artifacts"), folder / "spill"
        self.registry = ReleaseRegistry(folder / "registry", FolderSecret(b"secret"))
        self.registry.folder.mkdir()
        self.published = set[str]()

    def _artifact(self, name: str, columns: dict[str, list[int]]) -> Artifact:
        key: Any = name.encode().hex().ljust(32, "0")
        table = pa.table({column: pa.array(values, pa.uint64()) for column, values in columns.items()})

        def write(path: Path) -> int:
            pq.write_table(table, path)
            return len(table)

        return self.store.make("disclosed", key, ".parquet", write)

    def fold(self, release: str, rows: list[tuple[int, int, int]], k: int, owners: dict[int, int] | None = None) -> dict[str, int]:
        """Add a release; return what its pseudonyms join."""
        head = pseudonym_families._head(self.registry, "f", self.published)
        columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}]}
        run: Any = SimpleNamespace(
            job=Job.model_validate(job_of(columns=columns, privacy={"k": k})), store=self.store, spill=self._spill
        )  # fmt: skip
        digests = self._artifact(release, dict(zip(("key", "everything", "labels"), map(list, zip(*rows, strict=True)), strict=True)))
        whose = self._artifact(f"{release} of", {"key": list(owners), "owner": list(owners.values())}) if owners else None
        figures, self.path = pseudonym_families._folded(run, release, self.registry, ("f", [Disclosed(("ssn",), digests, whose)]), head)
        self.published.add(release)
        return figures

    def files(self) -> set[str]:
        return {path.suffix for path in self.registry.folder.iterdir()}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path)


@pytest.mark.parametrize(("first", "second", "below"), [(2, 3, 0), (3, 2, 0)])
def test_who_is_in_both_shares_what_both_publish_with_fewer_than_the_smaller_k(index: Index, first: int, second: int, below: int) -> None:
    nothing = {"people": 0, "below_k": 0, "by_labels": 0, "smallest": 0}
    assert index.fold("people-1", FIRST, first) == nothing
    found = index.fold("people-1", FIRST, first)
    assert (found, index.path) == (nothing, None), "it is in the index already"
    joined = {"people": 2, "below_k": below, "by_labels": below, "smallest": 2}
    assert index.fold("people-2", SECOND, second) == joined
    assert index.fold("people-2", SECOND, second) == joined
    head = pseudonym_families._head(index.registry, "f", index.published)
    assert head is not None
    assert (head.k, head.releases, head.key) == (min(first, second), ("people-1", "people-2"), index.registry.key)


def test_several_pseudonyms_of_one_person_are_one(index: Index) -> None:
    index.fold("people-1", FIRST, 2, {1: 1, 2: 1, 3: 2})
    assert index.fold("people-2", SECOND, 2, {1: 1, 2: 1, 4: 3}) == {"people": 1, "below_k": 1, "by_labels": 1, "smallest": 1}


def test_a_release_that_was_not_published_is_taken_out_again(index: Index) -> None:
    index.fold("people-1", FIRST, 2)
    before = pseudonym_families._head(index.registry, "f", index.published)
    files = index.files()
    index.fold("people-2", SECOND, 2)
    assert pseudonym_families._head(index.registry, "f", {"people-1"}) == before
    assert len(list(index.registry.folder.iterdir())) == len(files) == 2
    assert not pseudonym_families._lost(index.registry, "f", before)
    index.published.remove("people-2")
    assert index.fold("people-3", SECOND, 2)["people"] == 2


KEY = {"env": "SKALD_KEY"}
FORMS: list[tuple[str, dict[str, Any], str]] = [
    ("hash", {"hash": {"key": KEY}}, ""),
    ("hash", {"hash": {"key": KEY, "length": 16}}, ""),
    ("hash", {"hash": {"key": {"file": "key"}}}, ""),
    ("token", {"token": {"vault": KEY}}, ""),
    ("encrypt", {"encrypt": {"key": KEY, "alphabet": "digits"}}, ""),
    ("encrypt", {"encrypt": {"key": KEY, "alphabet": "lower", "separators": "-"}}, ""),
    ("mask", {"mask": {"keep": 2}}, "two at the end"),
    ("mask", {"mask": {"keep": 2, "from": "start"}}, "two at the beginning"),
    ("shift", {"shift": {"subject": "who", "days": 30, "key": KEY}}, "by 30"),
    ("shift", {"shift": {"subject": "who", "days": 30, "key": {"file": "key"}}}, "by 30"),
    ("shift", {"shift": {"subject": "who", "days": 31, "key": KEY}}, "by 31"),
]
"""Treatments by kind, with the settings by which different values may get one pseudonym."""


def test_columns_are_of_one_family_where_equal_values_have_equal_pseudonyms(tmp_path: Path) -> None:
    """Where different values have different pseudonyms, the key alone says which are equal, and no setting and no name does."""

    def family(form: int, *names: str, key: str = "k", secret: bytes = b"secret") -> str:
        identifiers = [{"name": name, "treatment": FORMS[form][1]} for name in names]
        columns = {"identifiers": identifiers, "quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}]}
        source: Any = SimpleNamespace(keys={name: f"{key} of {name}" if key == "each" else key for name in names})
        registry = ReleaseRegistry(tmp_path, FolderSecret(secret))
        return family_of(Job.model_validate(job_of(columns=columns)), source, names, registry)

    found = [family(form, "who") for form in range(len(FORMS))]
    for one, other in combinations_with_replacement(range(len(FORMS)), 2):
        assert (found[one] == found[other]) == (FORMS[one][::2] == FORMS[other][::2]), (FORMS[one], FORMS[other])
    for form, (kind, _, settings) in enumerate(FORMS):
        assert kind == "shift" or (family(form, "whose") == found[form]) == (not settings)
    others = [family(0, "who", key="another"), family(0, "who", secret=b"another"), family(0, "who", "whose"), family(0, "whose", "who")]
    assert found[0] not in others
    # Of columns that name a person together the first one's key is not the second one's.
    assert (family(0, "who", "whose", key="each") == family(0, "whose", "who", key="each")) is False
    # An index of an earlier run is found by it.
    said = [None, "hash", None, "k"]
    assert found[0] == FolderSecret(b"secret").keyed("family", [said])[:24]
