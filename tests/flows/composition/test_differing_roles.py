"""What two releases reveal where one takes a column for known that the other publishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.refusals import OverlapError
from schemas.release.increments import Overlap
from tasks.composition.by_contents import OLDER
from tasks.composition.earlier import KnownRecords
from tasks.composition.release_history import read_entry, save_entry
from tasks.store.store import Store
from tests.conftest import Anonymise

LABELS = {"a": {"quasi_identifiers": [{"name": "a", "hierarchy": {"widths": [1, 10]}}]}, "both": {"quasi_identifiers": []}}
LABELS["both"]["quasi_identifiers"] = [*LABELS["a"]["quasi_identifiers"], {"name": "b", "hierarchy": {"widths": [1, 10]}}]
MASKED = {"name": "b", "treatment": {"mask": {"keep": 1}}}
PSEUDONYM = {"name": "b", "treatment": {"hash": {"key": {"file": "key"}}}}


def job_in(folder: Path, name: str, columns: dict[str, Any], **parts: Any) -> Path:
    """Write a job over sixty people, of whom every a holds ten and every b six."""
    if not (folder / "people.parquet").exists():
        rows = [{"pid": row, "a": row // 10, "b": row % 10, "dx": ["flu", "hiv", "asthma"][row % 3]} for row in range(60)]
        pq.write_table(pa.Table.from_pylist(rows), folder / "people.parquet")
        (folder / "key").write_text("a key of more than thirty-two characters\n")
    job = {
        "version": 1, "name": name, "source": {"path": "people.parquet"}, "columns": {"identifiers": ["pid"], **columns},
        "privacy": {"k": 5}, "method": {"name": "skald"}, "suppression": {"limit": 0.5}, "memory": "200MB", "target": f"releases/{name}",
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job | parts, sort_keys=False))
    return path


def exact_of(anonymise: Anonymise, first: Path, second: Path) -> Overlap:
    anonymise(first)
    [overlap] = anonymise(second).manifest.overlaps or ()
    return overlap


@pytest.mark.ci
@pytest.mark.parametrize("known_first", [True, False])
@pytest.mark.parametrize("role", ["sensitive", "insensitive", "identifiers"])
def test_a_column_that_one_release_takes_for_known_and_another_publishes_is_told(
    anonymise: Anonymise, tmp_path: Path, role: str, known_first: bool
) -> None:
    sensitive = {"sensitive": ["dx"]}
    known = job_in(tmp_path, "known", LABELS["both"] | sensitive)
    columns: dict[str, list[Any]] = {"sensitive": ["dx", "b"], "insensitive": ["b"], "identifiers": ["pid", MASKED]}
    shown = job_in(tmp_path, "shown", LABELS["a"] | sensitive | {role: columns[role], "linkable": ["b"] * (role == "identifiers")})
    first, second = (known, shown) if known_first else (shown, known)
    overlap = exact_of(anonymise, first, second)
    assert (overlap.exact, overlap.is_safe) == (("b",), False)
    assert "Of 'b', one of both publishes values" in overlap.sentence()
    assert "'b' published as values by one of both" in overlap.in_short()
    with pytest.raises(OverlapError, match="Of 'b', one of both publishes values") as refused:
        anonymise(second, "overlaps=refuse")
    assert "replay" not in str(refused.value), "the same labels beside the same values tell as much"


@pytest.mark.ci
@pytest.mark.parametrize("columns", [{"identifiers": ["pid", "b"]}, {"identifiers": ["pid", PSEUDONYM]}, {}])
def test_a_column_that_is_not_published_or_known_to_both_is_not_told(anonymise: Anonymise, tmp_path: Path, columns: dict[str, Any]) -> None:
    qids = LABELS["a"] if columns else LABELS["both"]
    first = job_in(tmp_path, "first", LABELS["both"] | {"sensitive": ["dx"]})
    second = job_in(tmp_path, "second", qids | {"sensitive": ["dx"]} | columns)
    overlap = exact_of(anonymise, first, second)
    assert overlap.exact == () and "publishes values" not in overlap.sentence()


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("role", ["sensitive", "insensitive"])
def test_what_an_older_registry_does_not_say_is_known_from_the_history(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    columns = LABELS["a"] | {"sensitive": ["dx"]}
    with monkeypatch.context() as older:
        older.setattr(KnownRecords, "exact", None)
        anonymise(job_in(tmp_path, "first", columns | {role: [*columns.get(role, []), "b"]}))
    [overlap] = anonymise(job_in(tmp_path, "second", LABELS["both"] | {"sensitive": ["dx"]})).manifest.overlaps or ()
    assert (overlap.unmeasured, overlap.exact, overlap.is_safe) == ("", ("b",), False)


@pytest.mark.ci
def test_means_of_which_an_older_history_says_nothing_are_not_compared(anonymise: Anonymise, tmp_path: Path) -> None:
    way = {"sensitive": ["dx"], "insensitive": [{"name": "b", "publish": {"microaggregate": 6}}]}
    first = anonymise(job_in(tmp_path, "first", LABELS["a"] | way))
    store = Store(tmp_path / ".skald" / "first" / "artifacts")
    entry = read_entry(first.folder.name, store)
    assert entry is not None and entry.means == ("b",)
    save_entry(entry.model_copy(update={"means": None}), store)
    [overlap] = anonymise(job_in(tmp_path, "second", LABELS["a"] | way)).manifest.overlaps or ()
    assert (overlap.unmeasured, overlap.is_safe) == (OLDER, False)
    # Means that one of both alone publishes are not laid side by side.
    [third, *_] = anonymise(job_in(tmp_path, "third", LABELS["a"] | {"sensitive": ["dx"], "withheld": ["b"]})).manifest.overlaps or ()
    assert (third.unmeasured, third.means_at_risk) == ("", None)
